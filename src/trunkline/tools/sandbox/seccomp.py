"""The system calls that a command in the sandbox does not get, as a filter that the kernel runs (seccomp, BPF).

Everything is allowed but what is named here: ways out of the namespaces, to other processes, to sockets of the machine
and into the kernel. What looks like a lack is answered as one (`ENOSYS`), so that programs go the older way.
"""

from __future__ import annotations

import errno
import platform
import struct
import sys
from collections.abc import Iterator
from typing import TypeAlias

from trunkline.base.values import Value

#: Machine -> its number for the kernel's audit, and its system calls by name.
# fmt: off
_X86 = {
    "open": 2, "ioctl": 16, "socket": 41, "socketpair": 53, "clone": 56, "creat": 85, "chmod": 90, "fchmod": 91,
    "ptrace": 101, "syslog": 103, "mknod": 133, "uselib": 134, "vhangup": 153, "pivot_root": 155, "adjtimex": 159,
    "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168,
    "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175,
    "delete_module": 176, "quotactl": 179, "lookup_dcookie": 212, "clock_settime": 227, "kexec_load": 246,
    "add_key": 248, "request_key": 249, "keyctl": 250, "openat": 257, "mknodat": 259, "fchmodat": 268, "unshare": 272,
    "perf_event_open": 298, "fanotify_init": 300, "prlimit64": 302, "name_to_handle_at": 303,
    "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
    "kcmp": 312, "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
}
_ARM = {
    "lookup_dcookie": 18, "ioctl": 29, "mknodat": 33, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51,
    "fchmod": 52, "fchmodat": 53, "openat": 56, "vhangup": 58, "quotactl": 60, "acct": 89, "unshare": 97,
    "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117,
    "reboot": 142, "sethostname": 161, "setdomainname": 162, "settimeofday": 170, "adjtimex": 171, "socket": 198,
    "socketpair": 199, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "swapon": 224, "swapoff": 225,
    "perf_event_open": 241, "prlimit64": 261, "fanotify_init": 262, "name_to_handle_at": 264,
    "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271,
    "kcmp": 272, "finit_module": 273, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
}
#: The same everywhere: these came after the tables were made one.
_COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "openat2": 437, "pidfd_getfd": 438,
    "mount_setattr": 442, "quotactl_fd": 443, "fchmodat2": 452, "open_tree_attr": 467,
}
_MACHINES = {"x86_64": (0xC000003E, _X86), "aarch64": (0xC00000B7, _ARM)}

#: Refused whatever their arguments are.
_REFUSED = (
    "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "mount", "umount2", "pivot_root",
    "chroot", "open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
    "unshare", "setns", "add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd", "kexec_load",
    "kexec_file_load", "init_module", "finit_module", "delete_module", "name_to_handle_at", "open_by_handle_at",
    "fanotify_init", "quotactl", "quotactl_fd", "swapon", "swapoff", "reboot", "sethostname", "setdomainname", "iopl",
    "ioperm", "acct", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "lookup_dcookie", "syslog",
    "vhangup", "uselib",
)
#: What they ask for stands in memory, which a filter does not see; the older calls are there for all of it.
_MISSING = ("clone3", "openat2", "io_uring_setup", "io_uring_enter", "io_uring_register")
# fmt: on

_NEW_NAMESPACES = 0x7E020000
_SETUID = 0o4000
#: Two ways to make a file by opening it; the other makes one that gets its name later.
_MAKES = 0o100 | 0o20000000
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_SOCK_TYPE, _SOCK_STREAM, _SOCK_SEQPACKET = 0xF, 1, 5
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
#: Calls of the x32 kind carry this bit; no program of today has them.
_X32 = 0x40000000

_LOAD, _JUMP_EQUAL, _JUMP_NOT_LESS, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16


class Has(Value):
    """A test of one argument: any of these bits is set, or it is one of these values under the mask."""

    argument: int
    bits: int = 0
    one_of: tuple[int, ...] = ()
    mask: int = 0xFFFFFFFF
    otherwise: bool = False
    """It is none of the values."""


#: System call -> when it is refused: one of the lines must hold, all tests of it.
_CONDITIONS: dict[str, tuple[tuple[Has, ...], ...]] = {
    # Sockets of the machine (a desktop's bus, an agent for keys, Docker's) have no place in a network namespace.
    "socket": (
        (Has(0, one_of=(_AF_INET, _AF_INET6, _AF_NETLINK), otherwise=True),),
        (Has(0, one_of=(_AF_NETLINK,)), Has(2, one_of=(0,), otherwise=True)),
    ),
    # Half of a pair for datagrams can write to any socket that has a path.
    "socketpair": ((Has(1, one_of=(_SOCK_STREAM, _SOCK_SEQPACKET), mask=_SOCK_TYPE, otherwise=True),),),
    "clone": ((Has(0, bits=_NEW_NAMESPACES),),),
    # A program that runs as its owner would do so for others outside.
    "chmod": ((Has(1, bits=_SETUID),),),
    "fchmod": ((Has(1, bits=_SETUID),),),
    "fchmodat": ((Has(2, bits=_SETUID),),),
    "fchmodat2": ((Has(2, bits=_SETUID),),),
    "creat": ((Has(1, bits=_SETUID),),),
    "open": ((Has(1, bits=_MAKES), Has(2, bits=_SETUID)),),
    "openat": ((Has(2, bits=_MAKES), Has(3, bits=_SETUID)),),
    "mknod": ((Has(1, bits=_SETUID),),),
    "mknodat": ((Has(2, bits=_SETUID),),),
    # Limits of somebody else's process; a limit of its seconds would end it.
    "prlimit64": ((Has(0, one_of=(0,), otherwise=True),),),
    # Characters typed into a terminal.
    "ioctl": ((Has(1, one_of=(_TIOCSTI, _TIOCLINUX)),),),
}

_Instruction: TypeAlias = tuple[int, int, int, int]


def is_supported() -> bool:
    """Whether the filter can be made for this machine."""
    return platform.machine() in _MACHINES and sys.byteorder == "little"


def program(machine: str | None = None) -> bytes:
    """The filter, as the kernel takes it."""
    arch, own = _MACHINES[machine or platform.machine()]
    numbers = {**own, **_COMMON}
    lines: list[_Instruction] = [(_LOAD, 0, 0, _ARCH), (_JUMP_EQUAL, 1, 0, arch), (_RETURN, 0, 0, _KILL)]
    lines += [(_LOAD, 0, 0, _NUMBER), (_JUMP_NOT_LESS, 0, 1, _X32), _refuse(errno.ENOSYS)]
    for names, number in ((_REFUSED, errno.EPERM), (_MISSING, errno.ENOSYS)):
        for name in names:
            if name in numbers:
                lines += [(_JUMP_EQUAL, 0, 1, numbers[name]), _refuse(number)]
    for name, alternatives in _CONDITIONS.items():
        if name in numbers:
            block = [line for tests in alternatives for line in _refuse_if(tests)] + [(_RETURN, 0, 0, _ALLOW)]
            lines += [(_JUMP_EQUAL, 0, len(block), numbers[name]), *block]
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _refuse(number: int) -> _Instruction:
    return _RETURN, 0, 0, _ERRNO | number


def _refuse_if(tests: tuple[Has, ...]) -> list[_Instruction]:
    """Refuse if all tests hold, else go on behind it."""
    done = [_refuse(errno.EPERM)]
    for test in reversed(tests):
        done = [*_jump_unless(test, len(done)), *done]
    return done


def _jump_unless(test: Has, rest: int) -> Iterator[_Instruction]:
    yield _LOAD, 0, 0, _ARGUMENTS + 8 * test.argument
    if test.bits:
        yield _JUMP_SET, 0, rest, test.bits
        return
    if test.mask != 0xFFFFFFFF:
        yield 0x54, 0, 0, test.mask
    for left, value in reversed(list(enumerate(reversed(test.one_of)))):
        if test.otherwise:
            yield _JUMP_EQUAL, left + rest, 0, value
        else:
            yield _JUMP_EQUAL, left, 0 if left else rest, value
