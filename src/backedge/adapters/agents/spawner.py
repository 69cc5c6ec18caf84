"""The program that `supervisor` runs: it starts programs, waits for them, and records how they ended.

Only the parent of a process learns how it ended, so the parent must outlive backedge. Starting a Python interpreter for
every attempt would cost more than the attempt itself. So one *spawner* runs per backedge process, and forks one small
*supervisor* per attempt:

    backedge ── socket ── spawner ──fork── supervisor ──spawn── the program of the attempt

The spawner ends with backedge. A supervisor does not: it ends right after its program. This file imports as little as
possible, since every fork copies what is loaded.

For each attempt the spawner receives one message with four descriptors: the stdin, stdout and stderr of the program, and
a socket to talk with its supervisor. On that socket the supervisor reads what to start, and answers `pid PROGRAM SUPERVISOR` or `errno N`.
"""

# `signal`, `socket` and `os` load enums and abstract classes: that doubles the time to start and to fork.
import _signal  # type: ignore[import-not-found]  # a module of CPython that typeshed does not describe
import _socket
import posix
import sys

DESCRIPTORS = 4
_SIZE = 4
"""Bytes of a descriptor in a message."""


def request(argv: list[bytes], env: dict[bytes, bytes], cwd: bytes, record: bytes) -> bytes:
    """What a supervisor reads: the program to start, and the file for how it ends. Raises ValueError for what no system
    can start."""
    words = [cwd, record, str(len(argv)).encode(), *argv, *(key + b"=" + value for key, value in env.items())]
    if any(b"\0" in word for word in words) or any(b"=" in key for key in env):
        raise ValueError("embedded null byte, or = in the name of a variable")
    text = b"\0".join(words)
    return b"%d\n%s" % (len(text), text)


def main() -> None:
    """Fork a supervisor for each message on stdin, until backedge closes it."""
    channel = _socket.socket(fileno=0)
    _signal.signal(_signal.SIGCHLD, _reap)
    while True:
        message, ancillary, _, _ = channel.recvmsg(1, _socket.CMSG_SPACE(DESCRIPTORS * _SIZE))
        if not message:
            posix._exit(0)
        data = ancillary[0][2] if ancillary else b""
        files = [int.from_bytes(data[at : at + _SIZE], sys.byteorder) for at in range(0, len(data), _SIZE)]
        if posix.fork() == 0:
            _supervise(*files)
        for each in files:
            posix.close(each)


def _reap(_number: int, _frame: object) -> None:
    """Collect supervisors that have ended, so that they do not stay in the process table."""
    try:
        while posix.waitpid(-1, posix.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _supervise(stdin: int, stdout: int, log: int, talk: int) -> None:
    """Start one program, wait for it, and record how it ended. Does not return."""
    try:
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        posix.setsid()
        posix.dup2(1, 0)  # this socket must be closed when the spawner ends
        cwd, record, count, *words = _requested(talk)
        env = dict(word.partition(b"=")[::2] for word in words[int(count) :])
        program, problem = 0, 0
        try:
            posix.chdir(cwd)
            program = _started(words[: int(count)], env, (stdin, stdout, log), talk)
        except OSError as error:
            problem = error.errno or -1
        # Close our copies, so that only the program holds these files open.
        for each in (stdin, stdout, log):
            posix.close(each)
        try:
            posix.write(talk, b"errno %d\n" % problem if problem else b"pid %d %d\n" % (program, posix.getpid()))
            # Until we wait for it, its number belongs to no other process: backedge looks it up first, and then hangs up.
            while posix.read(talk, 1):
                pass
        except OSError:
            pass  # backedge has died: the end of the program is still recorded
        if program:
            code = posix.waitstatus_to_exitcode(posix.waitpid(program, 0)[1])
            _record(record, b'{"code":%d}' % code if code >= 0 else b'{"signal":%d}' % -code)
    finally:
        posix._exit(0)


def _started(argv: list[bytes], env: dict[bytes, bytes], files: tuple[int, int, int], talk: int) -> int:
    """The number of the new process. Raises OSError if there is no such program, or none that can be executed."""
    actions = [
        *((posix.POSIX_SPAWN_DUP2, file, target) for target, file in enumerate(files)),
        *((posix.POSIX_SPAWN_CLOSE, file) for file in (*files, talk)),
    ]

    def start(path: bytes) -> int:
        # Python ignores these signals; a program expects the default. A spawn costs half as much as a fork.
        reset = (_signal.SIGPIPE, _signal.SIGXFSZ)
        return posix.posix_spawn(path, argv, env, file_actions=actions, setsid=True, setsigdef=reset)

    if b"/" in argv[0]:
        return start(argv[0])
    missing = problem = None
    for folder in env.get(b"PATH", b"/bin:/usr/bin").split(b":"):
        path = (folder or b".") + b"/" + argv[0]
        try:
            posix.stat(path)  # checking the file first is cheaper than a process that fails to execute it
            return start(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            missing = error
        except OSError as error:
            problem = error
    raise problem or missing or FileNotFoundError(2, "no folder to look in")


def _requested(talk: int) -> list[bytes]:
    """The whole request. If backedge died before it had sent it all, nothing is to be started."""
    text, size = b"", b""
    while not size or len(text) < int(size):
        piece = posix.read(talk, 65536)
        if not piece:
            posix._exit(1)
        text += piece
        if not size and b"\n" in text:
            size, _, text = text.partition(b"\n")
    return text.split(b"\0")


def _record(path: bytes, text: bytes) -> None:
    draft = posix.open(path + b".new", posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC, 0o600)
    posix.write(draft, text)
    posix.close(draft)
    posix.rename(path + b".new", path)


if __name__ == "__main__":
    main()
