"""Starts one program, waits for it, and writes down how it ended, whether or not anybody lives to ask.

Only the parent of a process is told how it ended. This is a parent that outlives backedge: run as a program, it is
told on stdin what to start, and says on stdout which process that is, or why there is none. It is in every attempt's
way, so it imports next to nothing.
"""

# `signal` and `os` load enums and abstract classes: that doubles the time to start.
import _signal  # type: ignore[import-not-found]  # a module of CPython that typeshed does not describe
import posix
import sys


def told(argv: list[bytes], env: dict[bytes, bytes]) -> bytes:
    """What is to be started, as stdin tells it. Raises ValueError for what no system can start."""
    words = [str(len(argv)).encode(), *argv, *(key + b"=" + value for key, value in env.items())]
    if any(b"\0" in word for word in words) or any(b"=" in key for key in env):
        raise ValueError("embedded null byte, or = in the name of a variable")
    text = b"\0".join(words)
    return b"%d\n%s" % (len(text), text)


def main() -> None:
    stdin, stdout, log, record = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    # Whoever started us may not want to hear of its children; we do.
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    count, *words = _told()
    argv = words[: int(count)]
    env = dict(word.partition(b"=")[::2] for word in words[int(count) :])
    broken, breaking = posix.pipe()  # closed by the start of the program, so that silence means success
    child = posix.fork()
    if not child:
        _start(argv, env, (stdin, stdout, log), breaking)
    # What it writes to must end with it, not with us.
    for each in (stdin, stdout, log, breaking):
        posix.close(each)
    failed = _all(broken)
    posix.write(1, b"errno %s\n" % failed if failed else b"pid %d\n" % child)
    # Until it is reaped its number belongs to no other process: whoever started us looks at it first, or has died.
    _all(0)
    code = posix.waitstatus_to_exitcode(posix.waitpid(child, 0)[1])
    if not failed:
        _record(record, b'{"code":%d}' % code if code >= 0 else b'{"signal":%d}' % -code)
    posix._exit(0)  # taking the interpreter down would only keep others waiting


def _start(argv: list[bytes], env: dict[bytes, bytes], files: tuple[int, int, int], breaking: int) -> None:
    try:
        posix.setsid()
        for target, file in enumerate(files):
            posix.dup2(file, target)
        for file in files:
            posix.close(file)
        for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores these
            _signal.signal(getattr(_signal, name), _signal.SIG_DFL)
        _become(argv, env)
    except OSError as error:
        posix.write(breaking, b"%d" % (error.errno or 0))
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


def _told() -> list[bytes]:
    """What stdin tells; whoever died before it was told all wants nothing started."""
    text, size = b"", b""
    while not size or len(text) < int(size):
        piece = posix.read(0, 65536)
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


def _record(path: str, text: bytes) -> None:
    draft = posix.open(f"{path}.new", posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC, 0o600)
    posix.write(draft, text)
    posix.close(draft)
    posix.rename(f"{path}.new", path)


if __name__ == "__main__":
    main()
