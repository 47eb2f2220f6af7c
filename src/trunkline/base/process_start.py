"""Start one process: a session of its own, three standard files, no other descriptor of ours.

There are two ways, and they make the same child. `subprocess.Popen` is the sure one, but prepares for much that is not
needed here. So the function beneath it is called first, with what `Popen` would give it. That function is CPython's own
and not promised to anybody. It is used in the versions whose arguments are known; and whenever it does not do, for
whatever reason, nothing runs, and `Popen` is asked, which succeeds or says what is wrong. This module therefore knows
no errors of its own.

It is the one private function of the standard library in this package, and stays for one figure: a turn of an agent
process is to cost at most 1.1 times a bare `Popen(...).communicate()` (`bench/agentproc.py`). By turns, 900 of each, on
a busy machine with two cores: 1.08x (1.03 to 1.26) with it, 1.12x (1.10 to 1.19) without; a start takes 80 us of CPU
(70 to 132) instead of 116 (102 to 186). `os.posix_spawn` is as quick, but knows no working directory and leaves the
descriptors open that libraries have opened for themselves.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from trunkline.base.process_guard import make_pipe
from trunkline.base.programs import program_folders

#: Standard input, output and error: a descriptor, `subprocess.DEVNULL`, or `None` for ours.
Files: TypeAlias = tuple[int, int, int | None]

#: The versions of CPython in which `fork_exec` takes what we give it.
_KNOWN_VERSIONS = ((3, 11), (3, 12), (3, 13))
#: In the place of a descriptor, a number or a user: leave it as it is.
_SAME = -1


def start(argv: Sequence[str], files: Files, cwd: str | None, env: Mapping[str, str]) -> int:
    """The process number of the program, which runs. Nobody else waits for it.

    A bare program name is looked up in the `PATH` of `env` (`base.programs`), a relative path from `cwd`.

    Raises:
        OSError, ValueError: as `subprocess.Popen` does.
    """
    pid = _start_quickly(argv, files, cwd, env)
    if pid is not None:
        return pid
    process = subprocess.Popen(
        list(argv),
        executable=_executable(argv[0], env),
        stdin=files[0],
        stdout=files[1],
        stderr=files[2],
        cwd=cwd,
        env=env,
        start_new_session=True,
        close_fds=True,
    )
    # Else it would complain that nobody has waited for it.
    process.returncode = 0
    return process.pid


def _find_fork_exec() -> Callable[..., int] | None:
    if sys.implementation.name != "cpython" or sys.version_info[:2] not in _KNOWN_VERSIONS:
        return None
    try:
        from _posixsubprocess import fork_exec
    except ImportError:
        return None
    return fork_exec


_fork_exec = _find_fork_exec()


def _start_quickly(argv: Sequence[str], files: Files, cwd: str | None, env: Mapping[str, str]) -> int | None:
    """The process number, or `None`: then nothing was started."""
    if _fork_exec is None or "=" in "".join(env):
        return None
    # For those who watch what this Python starts, it is the same.
    sys.audit("subprocess.Popen", argv[0], argv, cwd, env)
    opened: list[int] = []
    try:
        try:
            programs = _candidates(argv[0], env)
            variables = _variables(env)
            stdin, stdout, stderr = _descriptors(files, opened)
            # The child writes into it what went wrong; `exec` closes it.
            report, failed = make_pipe()
            opened += (report, failed)
            pid = _fork_exec(
                list(argv),
                programs,
                # Close all descriptors but this one.
                True,
                (failed,),
                cwd,
                variables,
                # In each pair the other end is ours, and closed like all others.
                *(stdin, _SAME),
                *(_SAME, stdout),
                *(_SAME, stderr),
                *(report, failed),
                # The signals that Python ignores are as the system has them.
                True,
                # A session of its own, and no process group but that.
                True,
                _SAME,
                # Our groups, our user, our mask; and nothing of ours to be called in the child.
                *(None, None, None, _SAME),
                None,
                # `vfork`, where there is one.
                True,
            )
        except (OSError, ValueError, TypeError):
            return None
        os.close(opened.pop())
        if not os.read(report, 1):
            return pid
    finally:
        for fd in opened:
            os.close(fd)
    # It has never become the program. Where SIGCHLD is ignored, the system has collected it already.
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
    return None


def _descriptors(files: Files, opened: list[int]) -> list[int]:
    """What the child gets. What had to be opened for it is added to `opened`."""
    found = []
    for file in files:
        if file == subprocess.DEVNULL:
            opened.append(os.open(os.devnull, os.O_RDWR))
            found.append(opened[-1])
        else:
            found.append(_SAME if file is None else file)
    return found


def _candidates(program: str, env: Mapping[str, str]) -> list[bytes]:
    """The files to try: one, or the program's name in every folder of the child's `PATH`."""
    if os.path.dirname(program):
        return [os.fsencode(program)]
    return [os.fsencode(os.path.join(folder, program)) for folder in program_folders(env)]


def _executable(program: str, env: Mapping[str, str]) -> bytes | None:
    """The one of them that `Popen` is to try, since it would look in relative folders, too; None: as it is named."""
    if os.path.dirname(program):
        return None
    candidates = _candidates(program, env)
    if not candidates:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
    runnable = (path for path in candidates if os.path.isfile(path) and os.access(path, os.X_OK))
    existing = (path for path in candidates if os.path.lexists(path))
    return next(runnable, None) or next(existing, candidates[0])


def _variables(env: Mapping[str, str]) -> list[bytes]:
    """`NAME=value` as the system has it. All are encoded at once: one by one it takes four times as long.

    Raises:
        ValueError: one of them holds a NUL character, or half a character.
    """
    variables = os.fsencode("\0".join(map("=".join, env.items()))).split(b"\0")
    if len(variables) != len(env):
        raise ValueError("a variable holds a NUL character")
    return variables
