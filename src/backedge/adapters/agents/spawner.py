"""The program that `supervisor` runs: it starts programs, waits for them, and records how they ended.

Only the parent of a process learns how it ended, so the parent must outlive backedge. Starting a Python interpreter for
every attempt would cost more than the attempt itself. So one *spawner* runs per backedge process, and forks one small
*supervisor* per attempt:

    backedge ── socket ── spawner ──fork── supervisor ──fork── the program of the attempt

The spawner ends with backedge. A supervisor does not: it ends right after its program. This file imports next to nothing,
since every fork copies what is loaded.

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
        posix.dup2(1, 0)  # the socket of the spawner must end with the spawner
        cwd, record, count, *words = _requested(talk)
        argv = words[: int(count)]
        env = dict(word.partition(b"=")[::2] for word in words[int(count) :])
        failing, failed = posix.pipe()  # closed by a successful exec: silence means success
        child = posix.fork()
        if not child:
            posix.close(talk)
            _start(argv, env, cwd, (stdin, stdout, log), failed)
        # They must end with the program, not with us.
        for each in (stdin, stdout, log, failed):
            posix.close(each)
        problem = _all(failing)
        try:
            posix.write(talk, b"errno %s\n" % problem if problem else b"pid %d %d\n" % (child, posix.getpid()))
            # Until we wait for it, its number belongs to no other process: backedge looks it up first, and then hangs up.
            _all(talk)
        except OSError:
            pass  # backedge has died: how the program ends is recorded all the same
        code = posix.waitstatus_to_exitcode(posix.waitpid(child, 0)[1])
        if not problem:
            _record(record, b'{"code":%d}' % code if code >= 0 else b'{"signal":%d}' % -code)
    finally:
        posix._exit(0)


def _start(argv: list[bytes], env: dict[bytes, bytes], cwd: bytes, files: tuple[int, int, int], failed: int) -> None:
    try:
        posix.setsid()
        posix.chdir(cwd)
        for target, file in enumerate(files):
            posix.dup2(file, target)
        for file in files:
            posix.close(file)
        for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores these
            _signal.signal(getattr(_signal, name), _signal.SIG_DFL)
        _become(argv, env)
    except OSError as error:
        posix.write(failed, b"%d" % (error.errno or 0))
    finally:
        posix._exit(127)


def _become(argv: list[bytes], env: dict[bytes, bytes]) -> None:
    """Raises OSError if there is no such program, or none that can be executed."""
    if b"/" in argv[0]:
        posix.execve(argv[0], argv, env)
    missing = problem = None
    for folder in env.get(b"PATH", b"/bin:/usr/bin").split(b":"):
        try:
            posix.execve((folder or b".") + b"/" + argv[0], argv, env)
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


def _all(file: int) -> bytes:
    found = b""
    while piece := posix.read(file, 65536):
        found += piece
    return found


def _record(path: bytes, text: bytes) -> None:
    draft = posix.open(path + b".new", posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC, 0o600)
    posix.write(draft, text)
    posix.close(draft)
    posix.rename(path + b".new", path)


if __name__ == "__main__":
    main()
