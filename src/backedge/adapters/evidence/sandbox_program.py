"""The program that `sandbox` runs, outside and inside bubblewrap, so that an agent ends there as it would without.

    python -I -S -c START FOLDER outside bwrap … python -I -S -c START FOLDER inside PROGRAM ARGUMENT…

bubblewrap alone reports a signal as an exit code, and dies of the signal that asks the agent to end: then the agent has no
time to. So the *outer* process ignores such signals, and ends with the code or signal that the *inner* one reports. The
inner process is the first of its process namespace. It starts the agent, which gets its signals as usual, and waits; when
the agent has ended the inner process ends too, and the system ends everything else in there.
"""

# `os` and `signal` load enums and abstract classes: that doubles the time to start.
import _signal  # type: ignore[import-not-found]  # a module of CPython that typeshed does not describe
import posix
import sys

START = "import sys; sys.path.append(sys.argv.pop(1)); import sandbox_program; sandbox_program.main()"
"""Starts this file as a module of its folder: unlike a script, a module is compiled only once."""
NOT_STARTED = 127
_ENDING = (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP, _signal.SIGQUIT, _signal.SIGUSR1, _signal.SIGUSR2)
_DIE_WITH_PARENT = 1
STATUS = b"BACKEDGE_SANDBOX_STATUS"
"""The variable that names the descriptor for the status; the agent does not get it."""


def main() -> None:
    words = [word.encode(sys.getfilesystemencoding(), "surrogateescape") for word in sys.argv[2:]]
    if sys.argv[1] == "outside":
        _outside(words)
    else:
        _inside(words)


def _outside(argv: list[bytes]) -> None:
    env, parent = _environment(), posix.getppid()
    # Ignored signals stay ignored in bubblewrap. The inner process gives the agent the usual ones back.
    for number in _ENDING:
        _signal.signal(number, _signal.SIG_IGN)
    ours, theirs = posix.pipe()
    child = posix.fork()
    if child == 0:
        posix.set_inheritable(theirs, True)
        _execute(argv, {**env, STATUS: b"%d" % theirs})
    posix.close(theirs)
    _die_with(parent, child)
    said = b""
    while piece := posix.read(ours, 100):
        said += piece
    code = posix.waitstatus_to_exitcode(posix.waitpid(child, 0)[1])
    word, _, number = said.partition(b" ")
    if word == b"signal":
        code = -int(number)
    elif word == b"exit":
        code = int(number)
    if code < 0:
        _end_by(-code)
    posix._exit(code)


def _inside(argv: list[bytes]) -> None:
    env = _environment()
    status = int(env.pop(STATUS))
    posix.set_inheritable(status, False)
    child = posix.fork()
    if child == 0:
        for number in (*_ENDING, _signal.SIGPIPE, _signal.SIGXFSZ):
            _signal.signal(number, _signal.SIG_DFL)
        _execute(argv, env)
    while True:
        ended, how = posix.wait()
        if ended == child:
            break
    code = posix.waitstatus_to_exitcode(how)
    posix.write(status, b"signal %d" % -code if code < 0 else b"exit %d" % code)
    posix._exit(0)


def _execute(argv: list[bytes], env: dict[bytes, bytes]) -> None:
    """Become a program. Does not return."""
    problem = "No such file or directory"
    folders = [b""] if b"/" in argv[0] else env.get(b"PATH", b"/bin:/usr/bin").split(b":")
    for folder in folders:
        path = argv[0] if b"/" in argv[0] else (folder or b".") + b"/" + argv[0]
        try:
            posix.execve(path, argv, env)
        except OSError as error:
            if _exists(path):  # not merely a folder that we may not search
                problem = error.strerror or problem
    posix.write(2, b"cannot start %s: %s\n" % (argv[0], problem.encode()))
    posix._exit(NOT_STARTED)


def _exists(path: bytes) -> bool:
    try:
        posix.stat(path)
    except OSError:
        return False
    return True


def _environment() -> dict[bytes, bytes]:
    """Our environment as we got it: Python adds to the one that it passes on."""
    file = posix.open("/proc/self/environ", posix.O_RDONLY)
    text = b""
    while piece := posix.read(file, 1 << 16):
        text += piece
    posix.close(file)
    return dict(word.partition(b"=")[::2] for word in text.split(b"\0") if b"=" in word)


def _die_with(parent: int, child: int) -> None:
    """Have the system kill us when our parent ends; bubblewrap then dies with us."""
    import ctypes  # while bubblewrap starts: nothing waits for this

    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, _signal.SIGKILL, 0, 0, 0)
    if posix.getppid() != parent:
        posix.kill(child, _signal.SIGKILL)
        posix._exit(NOT_STARTED)


def _end_by(number: int) -> None:
    """End by a signal, without a memory dump of our own."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (_signal.SIGKILL, _signal.SIGSTOP):
        _signal.signal(number, _signal.SIG_DFL)
    posix.kill(posix.getpid(), number)
