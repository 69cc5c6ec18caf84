"""The program that `supervisor` runs: it starts programs, waits for them, and says how they ended.

Only the parent of a process learns how it ended, so the parent must outlive backedge. Starting a Python interpreter for
every attempt would cost more than the attempt itself. So one *spawner* runs per backedge process, and forks one small
*supervisor* per attempt:

    backedge ── socket ── spawner ──fork── supervisor ──spawn── the program of the attempt

The spawner ends with backedge. A supervisor does not: it ends right after its program. This file imports as little as
possible, since every fork copies what is loaded.

Nothing that a program starts survives its attempt. On Linux a supervisor is a *subreaper*: a process whose parent ends
becomes a child of the supervisor, in whatever session it is. When the program has ended, the supervisor kills what is
left, and only then says how the program ended. If somebody kills a supervisor, the spawner kills what that one had.

For each attempt the spawner receives one message with four descriptors: the stdin, stdout and stderr of the program, and
a socket to talk with its supervisor. On that socket the supervisor reads what to start, says `starting SUPERVISOR`, and
then `pid PROGRAM` or `errno N`. In the end it sends the same JSON that it writes to its record. The program does not have this
socket. While it works the supervisor is in the folder of its record, so that anyone can see whose supervisor it is.
"""

# `signal`, `socket` and `os` load enums and abstract classes: that doubles the time to start and to fork.
import _signal  # type: ignore[import-not-found]  # a module of CPython that typeshed does not describe
import _socket
import posix
import sys
import time

DESCRIPTORS = 4
_SIZE = 4
"""Bytes of a descriptor in a message."""
PR_SET_CHILD_SUBREAPER = 36
PATIENCE = 5.0
"""Seconds after which we give up on processes that cannot be killed."""
MOST_NAMED = 20
"""Processes that are named in the record; the others are counted."""
LONGEST_NAME = 100
NOT_ENDED = " (it could not be ended)"
"""As in `core.evidence.values`, which this file does not import."""

_supervisors: set[int] = set()
"""The living supervisors of this spawner."""


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
    prctl = _prctl()
    _adopt_orphans(prctl)
    _signal.signal(_signal.SIGCHLD, _reap)
    while True:
        message, ancillary, _, _ = channel.recvmsg(1, _socket.CMSG_SPACE(DESCRIPTORS * _SIZE))
        if not message:
            posix._exit(0)
        data = ancillary[0][2] if ancillary else b""
        files = [int.from_bytes(data[at : at + _SIZE], sys.byteorder) for at in range(0, len(data), _SIZE)]
        # It may end before we know its number.
        _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGCHLD])
        supervisor = posix.fork()
        if supervisor == 0:
            _supervise(prctl, *files)
        _supervisors.add(supervisor)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGCHLD])
        for each in files:
            posix.close(each)


def _reap(_number: int, _frame: object) -> None:
    """Collect supervisors that have ended, so that they do not stay in the process table."""
    if _collected():
        _end_descendants(_supervisors)


def _collected() -> bool:
    """Whether one of the supervisors that have ended was killed: then what it had is left to us."""
    killed = False
    try:
        while True:
            pid, status = posix.waitpid(-1, posix.WNOHANG)
            if not pid:
                return killed
            killed = killed or (pid in _supervisors and posix.WIFSIGNALED(status))
            _supervisors.discard(pid)
    except ChildProcessError:
        return killed


def _supervise(prctl: int, stdin: int, stdout: int, log: int, talk: int) -> None:
    """Start one program, wait for it, end what it left, and say how it ended. Does not return."""
    try:
        _supervisors.clear()  # they are not our children
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGCHLD])
        posix.setsid()
        adopts = _adopt_orphans(prctl)
        posix.dup2(1, 0)  # this socket must be closed when the spawner ends
        cwd, record, count, *words = _requested(talk)
        env = dict(word.partition(b"=")[::2] for word in words[int(count) :])
        program, problem = 0, 0
        try:
            posix.chdir(cwd)
            posix.write(talk, b"starting %d\n" % posix.getpid())
            program = _started(words[: int(count)], env, (stdin, stdout, log), talk)
            posix.chdir(record.rpartition(b"/")[0] or b"/")
        except OSError as error:
            problem = 0 if program else error.errno or -1
        # Close our copies, so that only the program holds these files open.
        for each in (stdin, stdout, log):
            posix.close(each)
        try:
            posix.write(talk, b"errno %d\n" % problem if problem else b"pid %d\n" % program)
            # Until we wait for it, its number belongs to no other process: backedge looks it up first, and then answers.
            posix.read(talk, 1)
        except OSError:
            pass  # backedge has died: the end of the program is still recorded
        if program:
            _report(program, adopts, record, talk)
    finally:
        posix._exit(0)


def _report(program: int, adopts: bool, record: bytes, talk: int) -> None:
    """Wait for the program, end everything that it left, and say how it ended and what was left."""
    pid, status = 0, 0
    while pid != program:  # orphans that we adopted end in between
        pid, status = posix.waitpid(-1, 0)
    if not adopts:
        try:  # noqa: SIM105 - contextlib is not loaded
            posix.killpg(program, _signal.SIGKILL)
        except OSError:
            pass  # nothing is left in its group
    left = _end_descendants(set(), _grace(talk)) if adopts else []
    code = posix.waitstatus_to_exitcode(status)
    words = ",".join(f'"{name}"' for name in left).encode("utf-8", "replace")
    text = b'{"code":%d' % code if code >= 0 else b'{"signal":%d' % -code
    text += b',"left":[%s]}' % words if left else b"}"
    try:  # noqa: SIM105 - contextlib is not loaded
        _record(record, text)
    except OSError:
        pass  # a full disk, or the agent removed the folder: backedge still hears it
    try:
        posix.set_blocking(talk, True)
        posix.write(talk, text)
    except OSError:
        pass  # backedge has died: it finds the record


def _grace(talk: int) -> float:
    """Seconds in which processes may end by themselves: backedge says so when it has asked all of them to end."""
    try:
        posix.set_blocking(talk, False)
        return float(posix.read(talk, 100).split()[-1])
    except (OSError, ValueError, IndexError):
        return 0.0


def _end_descendants(spared: set[int], grace: float = 0.0) -> list[str]:
    """End all descendants of this process, except those of `spared` children. Returns what was ended, in words."""
    names: dict[int, str] = {}
    kill_after = time.monotonic() + grace
    give_up = kill_after + PATIENCE
    living: dict[int, str] = {}
    while True:
        try:
            while pid := posix.waitpid(-1, posix.WNOHANG)[0]:
                spared.discard(pid)
        except ChildProcessError:
            living = {}
            break  # nothing, as nearly always: no need to look at all processes of the machine
        now = time.monotonic()
        living = _descendants(spared)
        if not living or now > give_up:
            break
        if now >= kill_after:
            # The first look counts: a process that is just ending has lost its command line.
            names = {**living, **names}
            for pid in living:
                try:  # noqa: SIM105 - contextlib is not loaded
                    posix.kill(pid, _signal.SIGKILL)
                except OSError:
                    pass  # it has ended meanwhile, or belongs to another user
        time.sleep(0.001)
    said = [f"{name}{NOT_ENDED}" if pid in living else name for pid, name in names.items()]
    return [*said[:MOST_NAMED], *([f"{len(said) - MOST_NAMED} more"] if len(said) > MOST_NAMED else [])]


def _descendants(spared: set[int]) -> dict[int, str]:
    """The living descendants of this process with their names, except `spared` children and theirs."""
    rows: dict[int, tuple[int, bytes, bytes]] = {}
    try:
        numbers = [int(name) for name in posix.listdir("/proc") if name.isdigit()]
    except OSError:
        return {}
    for pid in numbers:
        text = _file(b"/proc/%d/stat" % pid)
        if text:
            # The name of the program is in brackets, and may itself contain brackets and spaces.
            state, parent = text[text.rindex(b")") + 2 :].split()[:2]
            rows[pid] = int(parent), state, text[text.index(b"(") + 1 : text.rindex(b")")]
    found, grew = {posix.getpid()}, True
    while grew:
        born = {pid for pid, row in rows.items() if row[0] in found and pid not in found and pid not in spared}
        found |= born
        grew = bool(born)
    found.discard(posix.getpid())
    return {pid: _name(pid, rows[pid][2]) for pid in found if rows[pid][1] not in (b"Z", b"X")}


def _name(pid: int, short: bytes) -> str:
    """The command line of a process, fit to stand inside a JSON string."""
    text = (_file(b"/proc/%d/cmdline" % pid)[: 4 * LONGEST_NAME] or short).decode("utf-8", "replace")
    words = " ".join("".join(each if each.isprintable() and each not in '"\\' else " " for each in text).split())
    return words if len(words) <= LONGEST_NAME else f"{words[: LONGEST_NAME - 1]}…"


def _file(path: bytes) -> bytes:
    try:
        file = posix.open(path, posix.O_RDONLY)
    except OSError:
        return b""
    try:
        return posix.read(file, 4096)
    except OSError:
        return b""
    finally:
        posix.close(file)


def _prctl() -> int:
    """The address of the function `prctl`; 0 where the system has none. It is looked up once, before any fork."""
    if sys.platform != "linux":
        return 0
    try:
        import _ctypes

        return _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]  # None is this process itself
    except (ImportError, OSError, AttributeError):
        return 0


def _adopt_orphans(prctl: int) -> bool:
    """Become a subreaper; False if the system cannot do that."""
    if not prctl:
        return False
    import _ctypes

    return bool(_ctypes.call_function(prctl, (PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0)


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
