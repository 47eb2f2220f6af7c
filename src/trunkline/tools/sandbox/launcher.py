"""Starts one command in the sandbox: run as a script, it builds the walls around itself and becomes the command.

    python -I -S launcher.py run OPTION... -- PROGRAM ARGUMENT...
    python -I -S launcher.py hold OPTION...

`hold` makes the namespaces that the commands of one session share (user, network, IPC, and processes where that is
possible): a server that one command has left running is there for the next. It says `READY` or `READY_ALONE` on
standard output and holds them until its standard input ends, which also ends all processes in them. `run` joins those
of `--join=PID`, or makes its own; then it has its own view of the file system, read-only but for `--write=DIRECTORY`,
and gives up every right that it has no need of. Each wall that cannot be built ends it: exit code `FAILED`, and one
line on standard error that begins with `COMPLAINT`.

It stands alone, imports little and nothing of ours: it starts before every command.
"""

from __future__ import annotations

# What `signal` puts on top of it takes longer to import than all else here.
import _signal  # type: ignore[import-not-found]
import ctypes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

#: The exit code when there is no sandbox to be had; a shell has it for programs that cannot be run.
FAILED = 126
COMPLAINT = "trunkline sandbox: "
#: The namespaces are there; and those of `READY_ALONE` have processes of their own, so `run` is told `--alone=yes`.
READY, READY_ALONE = "ready", "ready alone"

#: How long a command may take to obey SIGTERM, before whoever waits for it kills both of us: then nobody would be there
#: to collect it, and its namespace could not end.
OBEY_SECONDS = 0.4

#: What a file says with which git stays in its own directory.
SAYS = b".\n"

#: What shared memory may hold: a test suite's semaphores and buffers, and no more of the machine's memory.
SHARED_MEMORY_BYTES = 256 << 20

_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_MS_BIND, _MS_REC, _MS_PRIVATE = 1 << 12, 1 << 14, 1 << 18
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_RESOLVE_NO_SYMLINKS = 4
_ATTR_RDONLY, _ATTR_NOSUID = 1, 2

# The same on every architecture: younger than their common table.
_OPENAT2, _MOUNT_SETATTR, _LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 437, 442, 444, 445, 446

_PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_SECUREBITS, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 22, 24, 28, 38, 47
_SECCOMP_FILTER, _AMBIENT_CLEAR = 2, 4
#: User 0 is nobody special, and no change of the user brings a right back; all of it for good.
_SECUREBITS = 0b11101111
_CAP_VERSION = 0x20080522
#: More than any kernel has; the first that it does not know ends the list.
_MOST_CAPABILITIES = 64

# Landlock's rights, by the version of its interface that brought them.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_ONLY_READ = _EXECUTE | _READ_FILE | _READ_DIR
_SCOPED_SINCE, _ABSTRACT_SOCKETS, _SIGNALS = 6, 1, 2

#: Devices that do nothing to anybody.
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx")

_SIOCSIFFLAGS, _IFF_UP, _NAME_BYTES = 0x8914, 1, 16

_libc = ctypes.CDLL(None, use_errno=True)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _Program(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class Options:
    """What stands on the command line."""

    def __init__(self, words: list[str]) -> None:
        self.join = 0
        self.alone = ""
        """Whether the namespaces to join have processes of their own."""
        self.proxy = ""
        self.forward: list[str] = []
        """Ports of this machine that are reached inside under the same numbers."""
        self.cwd = "/"
        self.seccomp = b""
        self.write: list[str] = []
        """Directories that may be written to."""
        self.keep: list[str] = []
        """Directories in those that must stay where they are, the outermost first."""
        self.make: list[str] = []
        """What is made in those if it is not there: a file, or, with a slash at its end, a directory."""
        self.point: list[str] = []
        """Files that are made in those if they are not there, and say `.`."""
        self.read: list[str] = []
        """Files, directories and links in those that may only be read."""
        self.argv: list[str] = []
        while words:
            word = words.pop(0)
            if word == "--":
                self.argv = words
                return
            name, _, value = word.removeprefix("--").partition("=")
            if name == "join":
                self.join = int(value)
            elif name == "seccomp":
                self.seccomp = bytes.fromhex(value)
            elif name in ("proxy", "cwd", "alone"):
                setattr(self, name, value)
            else:
                getattr(self, name).append(value)


def main() -> NoReturn:
    """Do what the command line says."""
    action, options = sys.argv[1], Options(sys.argv[2:])
    try:
        if action == "hold":
            _hold(options)
        _run(options)
    except OSError as error:
        _complain(str(error))


def _complain(text: str) -> NoReturn:
    sys.stderr.write(f"{COMPLAINT}{text}\n")
    sys.stderr.flush()
    os._exit(FAILED)


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _syscall(number: int, what: str, *args: object) -> int:
    return _check(_libc.syscall(ctypes.c_long(number), *args), what)


def _sized(*members: int) -> tuple[object, object]:
    """A structure, as the younger calls take it: its address and its size. Older kernels know only its beginning."""
    made = (ctypes.c_uint64 * len(members))(*members)
    return ctypes.byref(made), ctypes.c_size_t(ctypes.sizeof(made))


# Namespaces


def _hold(options: Options) -> NoReturn:
    _make_namespaces()
    if options.proxy:
        _give_listeners(options.proxy, [int(port) for port in options.forward])
    os.write(1, f"{READY_ALONE if _start_init() else READY}\n".encode())
    _wait_for_the_end()


def _wait_for_the_end() -> NoReturn:
    while os.read(0, 64):
        pass
    os._exit(0)


def _start_init() -> bool:
    """Start the first process of a namespace of processes; whether there can be one. When it ends, all others do."""
    if _libc.unshare(_NEWPID) < 0:
        return False
    read, write = os.pipe()
    if not os.fork():
        # Whoever loses their parent becomes a child of this one, and nobody asks how they end. The other has a handler,
        # so that commands could send it.
        _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
        try:
            # Where parts of it are hidden, as in some containers, the kernel shows nobody another one.
            _check(_libc.unshare(_NEWNS), "no mount namespace")
            _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
            _mount_proc()
        except OSError:
            os._exit(1)
        os.write(write, b"1")
        os.close(write)
        _wait_for_the_end()
    os.close(write)
    if os.read(read, 1) != b"1":
        return False
    # Without it nothing can be started here any more, so that there have to be other namespaces.
    _signal.signal(_signal.SIGCHLD, lambda *_: os._exit(0))
    return True


def _make_namespaces() -> None:
    user, group = os.getuid(), os.getgid()
    _check(_libc.unshare(_NEWUSER | _NEWNET | _NEWIPC), "no user namespace")
    # Without it nobody but root may map a group.
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")
    _start_loopback()


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _start_loopback() -> None:
    import socket
    from fcntl import ioctl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as some:
        ioctl(some, _SIOCSIFFLAGS, b"lo".ljust(_NAME_BYTES, b"\0") + _IFF_UP.to_bytes(2, sys.byteorder) + bytes(22))


def _give_listeners(path: str, ports: list[int]) -> None:
    """Listen inside, at any port and at these, and hand that to whoever listens outside: it answers who calls here."""
    import array
    import socket

    inside = [socket.create_server(("127.0.0.1", port)) for port in (0, *ports)]
    with socket.socket(socket.AF_UNIX) as outside:
        # The system takes no long paths for sockets.
        os.chdir(os.path.dirname(path))
        outside.connect(os.path.basename(path))
        os.chdir("/")
        handed = array.array("i", [each.fileno() for each in inside])
        outside.sendmsg([str(inside[0].getsockname()[1]).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handed)])
        # Until they have been taken.
        outside.recv(1)
    for each in inside:
        each.close()


def _join(pid: int, *, alone: bool) -> None:
    kinds = [("user", _NEWUSER), ("net", _NEWNET), ("ipc", _NEWIPC)]
    if alone:
        kinds.append(("pid_for_children", _NEWPID))
    # All are opened first: from inside, the holder is nobody whom we may look into.
    opened = [(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC), flag) for name, flag in kinds]
    for fd, flag in opened:
        _check(_libc.setns(fd, flag), "the namespaces of the session cannot be joined")
        os.close(fd)
    if alone:
        _go_on_as_child()


def _go_on_as_child() -> None:
    """Nobody moves into a namespace of processes, but children are born there. We stay outside, and end as ours."""
    child = os.fork()
    if not child:
        # Shells are used to lead a group: `kill -- -$$`.
        os.setpgid(0, 0)
        return

    def pass_on(number: int, _: object) -> None:
        if number == _signal.SIGTERM:
            _signal.setitimer(_signal.ITIMER_REAL, OBEY_SECONDS)
        for send in (os.killpg, os.kill):
            try:
                send(child, _signal.SIGKILL if number == _signal.SIGALRM else number)
            except OSError:
                # It leads no group yet, or has ended.
                continue
            return

    for name in ("TERM", "INT", "HUP", "QUIT", "CONT", "ALRM"):
        _signal.signal(getattr(_signal, f"SIG{name}"), pass_on)
    # Its pipes are its own.
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for standard in range(3):
        os.dup2(null, standard)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os._exit(code if code >= 0 else 128 - code)


# The file system


def _run(options: Options) -> NoReturn:
    if options.join:
        _join(options.join, alone=bool(options.alone))
    else:
        _make_namespaces()
    _check(_libc.unshare(_NEWNS), "no mount namespace")
    _mount_all(options)
    # The directory that we are in is the one under the mounts.
    os.chdir(options.cwd)
    _drop_capabilities()
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _restrict_paths(options)
    _restrict_calls(options.seccomp)
    try:
        os.execv(options.argv[0], options.argv)  # noqa: S606  (becoming the command is the purpose)
    except OSError as error:
        _complain(f"{options.argv[0]}: {error.strerror}")


def _mount_all(options: Options) -> None:
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    if options.alone:
        _mount_proc()
    _set("/", _ATTR_RDONLY | _ATTR_NOSUID, recursive=True)
    for path in options.write:
        _mount_on_itself(path)
        try:
            _set(path, clear=_ATTR_RDONLY, recursive=True)
        except OSError:
            # Something is mounted in it that was read-only before.
            _set(path, clear=_ATTR_RDONLY)
    for path in options.keep:
        _mount_on_itself(path)
    # Here, where nothing outside can be written to: a link may have been put in its way.
    for path in options.make:
        _make(path)
    for path in options.point:
        _make(path, SAYS)
    for path in options.read:
        if os.path.lexists(path):
            _mount_on_itself(path)
            _set(path, _ATTR_RDONLY, recursive=True)
    harmless = _MS_NOSUID | _MS_NODEV
    for kind, path, flags, data in (
        ("tmpfs", "/dev/shm", harmless, f"size={SHARED_MEMORY_BYTES},mode=1777"),  # noqa: S108
        ("devpts", "/dev/pts", _MS_NOSUID | _MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"),
    ):
        try:
            _mount(kind, path, kind, flags, data)
        except OSError:
            # What is there is read-only then: programs that need one of these do without.
            continue
        options.write.append(path)


def _make(path: str, text: bytes = b"") -> None:
    try:
        if path.endswith(os.sep):
            os.mkdir(path)
            return
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except OSError:
        # It is there, or nobody could make it here.
        return
    try:
        os.write(fd, text)
    finally:
        os.close(fd)


def _open(path: str) -> int:
    """What is at a path, a link itself if it is one. What runs already may put links in our way, which lead out."""
    how = _sized(os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, 0, _RESOLVE_NO_SYMLINKS)
    return _syscall(_OPENAT2, f"cannot open `{path}`", _AT_FDCWD, os.fsencode(path), *how)


def _mount_on_itself(path: str) -> None:
    fd = _open(path)
    _mount(f"/proc/self/fd/{fd}", f"/proc/self/fd/{fd}", None, _MS_BIND | _MS_REC, what=path)
    os.close(fd)


def _mount_proc() -> None:
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def _mount(source: str, target: str, kind: str | None, flags: int, data: str = "", *, what: str = "") -> None:
    done = _libc.mount(
        os.fsencode(source), os.fsencode(target), kind and kind.encode(), ctypes.c_ulong(flags), data.encode()
    )
    _check(done, f"cannot mount `{what or target}`")


def _set(path: str, attributes: int = 0, *, clear: int = 0, recursive: bool = False) -> None:
    flags = _AT_EMPTY_PATH | (_AT_RECURSIVE if recursive else 0)
    fd = _open(path)
    try:
        _syscall(
            _MOUNT_SETATTR, f"cannot change the mount of `{path}`", fd, b"", flags, *_sized(attributes, clear, 0, 0)
        )
    finally:
        os.close(fd)


# Rights


def _drop_capabilities() -> None:
    _check(_libc.prctl(_PR_SET_SECUREBITS, _SECUREBITS, 0, 0, 0), "securebits")
    _check(_libc.prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR, 0, 0, 0), "ambient capabilities")
    for capability in range(_MOST_CAPABILITIES):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break
    header = (ctypes.c_uint32 * 2)(_CAP_VERSION, 0)
    _check(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capabilities")


def _restrict_paths(options: Options) -> None:
    version = _syscall(_LANDLOCK_CREATE, "no Landlock", None, ctypes.c_size_t(0), 1)
    everything = sum(rights for since, rights in _RIGHTS.items() if since <= version)
    # In a namespace of their own, processes see nobody else: they may end what an earlier command has left running.
    scoped = _ABSTRACT_SOCKETS | (0 if options.alone else _SIGNALS) if version >= _SCOPED_SINCE else 0
    handled = _sized(everything, 0, scoped) if scoped else _sized(everything)
    ruleset = _syscall(_LANDLOCK_CREATE, "no Landlock", *handled, 0)
    _allow(ruleset, "/", _ONLY_READ)
    for path in options.write:
        _allow(ruleset, path, everything & ~(_MAKE_CHAR | _MAKE_BLOCK))
    of_devices = everything & (_READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV)
    for name in _DEVICES:
        if os.path.exists(f"/dev/{name}"):
            _allow(ruleset, f"/dev/{name}", of_devices)
    _syscall(_LANDLOCK_RESTRICT, "Landlock", ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathBeneath(rights, fd)
        _syscall(_LANDLOCK_ADD, f"Landlock on `{path}`", ruleset, 1, ctypes.byref(rule), 0)
    finally:
        os.close(fd)


def _restrict_calls(program: bytes) -> None:
    kept = ctypes.create_string_buffer(program, len(program))
    described = _Program(len(program) // 8, ctypes.addressof(kept))
    _check(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, ctypes.byref(described), 0, 0), "seccomp")


if __name__ == "__main__":
    main()
