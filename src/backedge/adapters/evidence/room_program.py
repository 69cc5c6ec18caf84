"""The program that `room` runs: it covers the workspace in a mount namespace of its own, then becomes the judge's program.

The covering ends with the last process inside: the system removes the mounts, and only a folder is left to delete. Users
who may not mount get a user namespace as well, in which they keep their own number and no privileges.

    python -I -S -c START FOLDER PLAN PROGRAM ARGUMENT…

PLAN is a file of `marshal`, written by the same interpreter a moment ago: reading JSON would cost more than all mounts. If
something fails, the reason is in the file that the plan names, and the exit code is 125 (no room), 126 or 127 (no program).
This file imports little, since every run of a judge waits for it.
"""

# `signal` loads enums: that takes longer than all mounts.
import _signal  # type: ignore[import-not-found]  # a module of CPython that typeshed does not describe
import errno
import fcntl
import marshal
import os
import stat
import sys

START = "import sys; sys.path.append(sys.argv.pop(1)); import room_program; room_program.main()"
"""Starts this file as a module of its folder: unlike a script, a module is compiled only once."""
NO_ROOM, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_EXEC, _REMOUNT, _BIND, _REC, _SLAVE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 19
_NEW_MOUNTS, _NEW_USERS = 0x00020000, 0x10000000
_LOCK_DESCRIPTOR = 100
"""Where the descriptor begins that shows for as long as the program lives that its room is in use."""


class MountFailed(Exception):
    """The workspace could not be covered."""


def main() -> None:
    plan_file, argv = sys.argv[1], [os.fsencode(word) for word in sys.argv[2:]]
    with open(plan_file, "rb") as file:
        plan = marshal.load(file)
    failed = os.open(plan["failed"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        _stay_locked(plan["lock"])
        if plan["mounts"]:
            _cover(plan)
        os.chdir(plan["cwd"])
    except (OSError, MountFailed) as error:
        os.write(failed, f"room {error}".encode("utf-8", "backslashreplace"))
        os._exit(NO_ROOM)
    if argv:
        _become(argv, failed)
    os._exit(0)


def put(root: int, path: bytes, source: bytes, mode: int) -> None:
    """Put a file with the content of `source` at a path below an open folder. If the mode is that of a link, the content is
    its target. Links on the way are replaced by folders: the file cannot land anywhere else."""
    folder, name = _parent(root, path, make=True)
    try:
        _clear(folder, name)
        with open(source, "rb") as file:
            content = file.read()
        if stat.S_ISLNK(mode):
            os.symlink(content, name, dir_fd=folder)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(name, flags, 0o600, dir_fd=folder), "wb") as made:
            made.write(content)
            os.fchmod(made.fileno(), stat.S_IMODE(mode))
    finally:
        os.close(folder)


def take_away(root: int, path: bytes) -> None:
    """Remove a file or folder below an open folder, if it is there."""
    try:
        folder, name = _parent(root, path, make=False)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        _clear(folder, name)
    finally:
        os.close(folder)


def _parent(root: int, path: bytes, make: bool) -> tuple[int, bytes]:
    """The folder of a path, opened without following links, and the last part of the path."""
    *parents, name = path.split(b"/")
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    folder = os.dup(root)
    try:
        for part in parents:
            try:
                inner = os.open(part, flags, dir_fd=folder)
            except OSError as error:
                if not make and error.errno == errno.ELOOP:
                    raise NotADirectoryError(error.errno, "a link") from error
                if not make or error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    raise
                _clear(folder, part)
                os.mkdir(part, 0o755, dir_fd=folder)
                inner = os.open(part, flags, dir_fd=folder)
            os.close(folder)
            folder = inner
    except BaseException:
        os.close(folder)
        raise
    return folder, name


def _clear(folder: int, name: bytes) -> None:
    """Remove what has this name in an open folder."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):  # what Linux and other systems say about a folder
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
        try:
            for each in os.listdir(inner):
                _clear(inner, os.fsencode(each))
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=folder)


def _stay_locked(lock: bytes) -> None:
    """Hold the lock of the room until this process ends, also as another program."""
    found = os.open(lock, os.O_RDONLY)
    kept = fcntl.fcntl(found, fcntl.F_DUPFD, _LOCK_DESCRIPTOR)
    os.close(found)
    fcntl.flock(kept, fcntl.LOCK_SH)


def _become(argv: list[bytes], failed: int) -> None:
    """Execute the program. Its environment is ours as we got it: Python adds to the one that it passes on."""
    for each in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(each, _signal.SIG_DFL)  # Python ignores them; a program expects the default
    env = _environment()
    number = errno.ENOENT
    folders = [b""] if b"/" in argv[0] else env.get(b"PATH", b"/bin:/usr/bin").split(b":")
    for folder in folders:
        path = argv[0] if b"/" in argv[0] else (folder or b".") + b"/" + argv[0]
        try:
            os.execve(path, argv, env)
        except OSError as error:
            if os.path.exists(path):  # not merely a folder that we may not search
                number = error.errno or number
    os.write(failed, f"program {number}".encode())
    os._exit(NOT_FOUND if number == errno.ENOENT else NOT_EXECUTABLE)


def _environment() -> dict[bytes, bytes]:
    try:
        with open("/proc/self/environ", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return dict(os.environb)
    return dict(word.partition(b"=")[::2] for word in words if b"=" in word)


class _Mounts:
    """Calls of the system that Python has no functions for."""

    def __init__(self) -> None:
        import ctypes

        self._libc = ctypes.CDLL(None, use_errno=True)
        self._errno = ctypes.get_errno
        self._flags = ctypes.c_ulong
        self.users = False
        """Whether we are in a user namespace of our own: an overlay then keeps its marks in attributes of users."""

    def leave(self) -> None:
        """Get mounts of our own; nothing that we mount is seen outside."""
        user, group = os.geteuid(), os.getegid()
        if self._libc.unshare(_NEW_MOUNTS) == 0:
            self.mount(b"", b"/", flags=_REC | _SLAVE)
            return
        if self._libc.unshare(_NEW_MOUNTS | _NEW_USERS) != 0:
            raise MountFailed(f"no namespaces: {os.strerror(self._errno())}")
        self.users = True
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")

    def mount(self, source: bytes, target: bytes, kind: bytes = b"", flags: int = 0, options: bytes = b"") -> None:
        done = self._libc.mount(source, target, kind or None, self._flags(flags), options or None)
        if done != 0:
            number = self._errno()
            what = kind.decode() or "bind"
            raise MountFailed(f"{what} on {os.fsdecode(target)!r}: {os.strerror(number)}")

    def overlay(self, lower: int, target: bytes, layers: bytes) -> None:
        """Cover a folder: it shows what is in `lower`, and changes land in `layers`. The folders are given by
        descriptors, so that no name needs escaping."""
        # Each program in a room needs a work folder of its own: a volatile overlay marks the one that it used.
        own = b"/work/" + os.urandom(8).hex().encode()
        os.mkdir(layers + own)
        upper, work = (os.open(layers + each, os.O_PATH | os.O_DIRECTORY) for each in (b"/upper", own))
        try:
            # Volatile: nobody needs these files after a power cut, and an unmount would sync the whole disk.
            options = b"lowerdir=%s,upperdir=%s,workdir=%s,volatile%s" % (
                *map(_by_descriptor, (lower, upper, work)),
                b",userxattr" if self.users else b",redirect_dir=off,metacopy=off",
            )
            self.mount(b"backedge", target, b"overlay", options=options)
        finally:
            os.close(upper)
            os.close(work)

    def bind(self, source: int, target: bytes, read_only: bool = False) -> None:
        self.mount(_by_descriptor(source), target, flags=_BIND | _REC)
        if read_only:
            held = os.statvfs(target).f_flag & (_NO_SUID | _NO_DEVICES | _NO_EXEC)
            self.mount(b"", target, flags=_BIND | _REMOUNT | _READ_ONLY | held)


def _cover(plan: dict) -> None:  # type: ignore[type-arg]  # importing what describes it costs a millisecond
    mounts = _Mounts()
    mounts.leave()
    workspace = plan["workspace"]
    # All folders are opened first: soon their paths will lead elsewhere.
    source = _opened(plan["source"])
    git = [(path, _opened(path)) for path in plan["git"]]
    shown = [(path, _opened(path)) for path in plan["shown"]]
    nested = [(path, _opened(path)) for path in _mounted_below(workspace)]
    if plan["layers"]:
        mounts.overlay(source, workspace, plan["layers"])
    else:
        mounts.bind(source, workspace)
    for number, (path, folder) in enumerate(nested):
        _cover_nested(mounts, path, folder, plan, number)
    if plan["layers"] and not os.path.exists(plan["layers"] + b"/restored"):
        _restore(plan)
    for number, (path, folder) in enumerate(git):
        _cover_git(mounts, path, folder, plan, number)
    bytecode = _opened(plan["bytecode"]) if plan["bytecode_use"] != "own" else None
    shown.append((workspace, _opened(workspace)))
    if bytecode is not None:
        shown.append((plan["bytecode"], bytecode))
    for hidden in plan["hidden"]:
        if not os.path.isdir(hidden):
            continue  # a copy does not have it
        mounts.mount(b"backedge", hidden, b"tmpfs", _NO_SUID | _NO_DEVICES, b"mode=0755")
        for path, folder in shown:
            if path.startswith(hidden + b"/"):
                _make_place(path, folder)
                mounts.bind(folder, path)
    if bytecode is not None and plan["bytecode_use"] == "covered":
        _cover_bytecode(mounts, bytecode, plan["bytecode"])


def _cover_bytecode(mounts: _Mounts, kept: int, path: bytes) -> None:
    """Let the program add bytecode for itself alone. It goes to memory, where the state folder was hidden."""
    layers = os.path.dirname(os.path.dirname(path)) + b"/layers"
    for each in (b"/upper", b"/work"):
        os.makedirs(layers + each)
    try:
        mounts.overlay(kept, path, layers)
    except MountFailed:
        mounts.bind(kept, path, read_only=True)  # Python goes on without writing


def _restore(plan: dict) -> None:  # type: ignore[type-arg]  # as above
    root = os.open(plan["workspace"], os.O_RDONLY | os.O_DIRECTORY)
    for path in plan["remove"]:
        take_away(root, path)
    for path, restored, mode in plan["restore"]:
        put(root, path, restored, mode)
    os.close(root)
    os.close(os.open(plan["layers"] + b"/restored", os.O_WRONLY | os.O_CREAT, 0o600))


def _cover_nested(mounts: _Mounts, path: bytes, folder: int, plan: dict, number: int) -> None:  # type: ignore[type-arg]  # as above
    """An overlay does not show what is mounted below its lower folder: cover each such mount by itself."""
    if plan["layers"] and stat.S_ISDIR(os.fstat(folder).st_mode):
        layers = b"%s/nested/%d" % (plan["layers"], number)
        for each in (b"upper", b"work"):
            os.makedirs(layers + b"/" + each, exist_ok=True)
        with open(layers + b"/path", "wb") as file:
            file.write(os.path.relpath(path, plan["workspace"]))
        try:
            mounts.overlay(folder, path, layers)
            return
        except MountFailed:
            pass  # not every file system can be the lower one: at least nobody can change it
    mounts.bind(folder, path, read_only=True)


def _cover_git(mounts: _Mounts, path: bytes, folder: int, plan: dict, number: int) -> None:  # type: ignore[type-arg]  # as above
    """Let the program commit in a repository that nobody else sees. An overlay over the workspace covers what lies in it."""
    if plan["kind"] == "overlay" and path.startswith(plan["workspace"] + b"/"):
        return
    _make_place(path, folder)
    if plan["layers"]:
        layers = b"%s/git/%d" % (plan["layers"], number)
        for each in (b"upper", b"work"):
            os.makedirs(layers + b"/" + each, exist_ok=True)
        try:
            mounts.overlay(folder, path, layers)
            return
        except MountFailed:
            pass  # as above
    mounts.bind(folder, path, read_only=True)


def _mounted_below(workspace: bytes) -> list[bytes]:
    with open("/proc/self/mountinfo", "rb") as file:
        points = {_unescaped(line.split(b" ")[4]) for line in file}
    return sorted((each for each in points if each.startswith(workspace + b"/")), key=lambda path: path.count(b"/"))


def _unescaped(path: bytes) -> bytes:
    first, *rest = path.split(b"\\")
    return first + b"".join(bytes([int(each[:3], 8)]) + each[3:] for each in rest)


def _make_place(path: bytes, shown: int) -> None:
    """Make what a mount can lie on, if nothing is there."""
    if os.path.lexists(path):
        return
    if stat.S_ISDIR(os.fstat(shown).st_mode):
        os.makedirs(path)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))


def _opened(path: bytes) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def _by_descriptor(number: int) -> bytes:
    return b"/proc/self/fd/%d" % number


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
