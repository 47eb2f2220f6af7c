"""Why a program could not be started, in words that say what to do.

    SpawnError      the one error of every start that failed; `reason` is for programs, the texts are for people

The texts name the program, the folder or the variable that is wrong, and never show the value of an argument or of a
variable: those may be secrets.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from trunkline.base.programs import program_folders

SpawnReason: TypeAlias = Literal[
    "not-found",
    "not-executable",
    "bad-format",
    "bad-interpreter",
    "bad-cwd",
    "bad-text",
    "too-long",
    "busy",
    "no-resources",
    "other",
]

#: Errors of a start that mean "not now" rather than "not like this".
_RESOURCE_ERRORS = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
#: Linux allows 32 pages for one argument.
_LONGEST_ARGUMENT = 32 * 4096
_PATH_ERRORS = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)


class SpawnError(Exception):
    """A program could not be started: `message` says what is wrong, `hint` what to do, `reason` which kind it is."""

    def __init__(self, message: str, hint: str, reason: SpawnReason) -> None:
        super().__init__(message, hint, reason)
        self.message = message
        self.hint = hint
        self.reason: SpawnReason = reason

    def __str__(self) -> str:
        return f"{self.message}: {self.hint}"


def explain(
    error: OSError | ValueError, argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None
) -> SpawnError:
    """The `SpawnError` for what `subprocess` raised."""
    if isinstance(error, OSError):
        return _explain_os_error(error, argv, cwd, env)
    return _explain_text(error, argv, cwd, env or {})


def unprepared(error: OSError) -> SpawnError:
    """The `SpawnError` for pipes or a watchdog that could not be had."""
    if error.errno in _RESOURCE_ERRORS:
        return _no_resources(error)
    return SpawnError(
        f"the watchdog, which must run before anything is spawned, could not be started ({_text(error)})",
        f"check the Python installation (`{sys.executable}`)",
        "other",
    )


def _no_resources(error: OSError) -> SpawnError:
    return SpawnError(
        f"the system refuses another process or file ({_text(error)})",
        "close what is not needed, or raise the limits of this user (`ulimit -u`, `ulimit -n`), and try again",
        "no-resources",
    )


def _explain_os_error(
    error: OSError, argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None
) -> SpawnError:
    program = argv[0]
    if error.errno in _RESOURCE_ERRORS:
        return _no_resources(error)
    # A directory in `PATH` that may not be searched hides the other error behind its own.
    if error.errno == errno.E2BIG or (error.errno == errno.EACCES and _is_too_long(argv)):
        return SpawnError(
            f"the arguments and variables for `{program}` are together longer than the system allows",
            "pass long text on standard input or in a file instead",
            "too-long",
        )
    if cwd is not None and (wrong := _wrong_with_cwd(cwd)):
        return SpawnError(
            f"the working directory `{cwd}` {wrong}", "create it, or give the path of one that exists", "bad-cwd"
        )
    return _explain_program(error, program, _locate(program, cwd, env))


def _is_too_long(argv: Sequence[str]) -> bool:
    return max(map(len, argv)) >= _LONGEST_ARGUMENT or sum(map(len, argv)) >= os.sysconf("SC_ARG_MAX")


def _wrong_with_cwd(cwd: str) -> str | None:
    if not os.path.exists(cwd):
        return "does not exist"
    if not os.path.isdir(cwd):
        return "is not a directory"
    if not os.access(cwd, os.X_OK):
        return "may not be entered by this user"
    return None


def _explain_program(error: OSError, program: str, path: str | None) -> SpawnError:
    if path is None and error.errno in (*_PATH_ERRORS, errno.EACCES):
        if os.path.dirname(program):
            return SpawnError(f"there is no program `{program}`", "check the path", "not-found")
        return SpawnError(
            f"there is no program `{program}` on `PATH`",
            "install it, give its full path, or add its directory to `PATH`",
            "not-found",
        )
    if error.errno in _PATH_ERRORS:
        return SpawnError(
            f"`{path}` names an interpreter that does not exist",
            "correct the first line of the file (`#!...`; Windows line ends break it, too), or install the interpreter",
            "bad-interpreter",
        )
    if error.errno == errno.EACCES and path is not None and os.path.isdir(path):
        return SpawnError(f"`{path}` is a directory", "give the path of a program", "not-executable")
    if error.errno in (errno.EACCES, errno.EPERM):
        return SpawnError(
            f"`{path or program}` is not executable for this user",
            f"run `chmod +x {path or program}`, or name its interpreter in front of it",
            "not-executable",
        )
    if error.errno == errno.ENOEXEC:
        return SpawnError(
            f"`{path or program}` is not a program that this system can run",
            "a script needs a first line such as `#!/bin/sh`; a binary must be made for this machine",
            "bad-format",
        )
    if error.errno == errno.ETXTBSY:
        return SpawnError(f"`{path or program}` is still being written", "wait until it is complete", "busy")
    return SpawnError(f"`{program}` could not be started", _text(error), "other")


def _locate(program: str, cwd: str | None, env: Mapping[str, str] | None) -> str | None:
    """The file that was meant, looked for as the child looked for it: in its `PATH`, from its working directory."""
    start = cwd or "."
    if os.path.dirname(program):
        candidates = [os.path.join(start, program)]
    else:
        candidates = [os.path.join(folder, program) for folder in program_folders(env)]
    for candidate in candidates:
        if os.path.lexists(candidate) and not os.path.isdir(candidate):
            return os.path.normpath(candidate)
    existing = [candidate for candidate in candidates if os.path.dirname(program) and os.path.isdir(candidate)]
    return os.path.normpath(existing[0]) if existing else None


def _explain_text(error: ValueError, argv: Sequence[str], cwd: str | None, env: Mapping[str, str]) -> SpawnError:
    """A text that cannot be passed to a program: which one, and why."""
    texts = [(f"argument {index} of `{_printable(argv[0])}`", text) for index, text in enumerate(argv)]
    texts += [(f"the value of the variable `{_printable(name)}`", value) for name, value in env.items()]
    texts += [("the name of a variable", name) for name in env]
    texts += [("the working directory", cwd)] if cwd is not None else []
    for what, text in texts:
        if "\0" in text:
            return SpawnError(f"{what} holds a NUL character", "programs cannot receive one; remove it", "bad-text")
        if not _encodable(text):
            return SpawnError(f"{what} holds half a character (a lone surrogate)", "replace or remove it", "bad-text")
    for name in env:
        if not name or "=" in name:
            return SpawnError(f"`{_printable(name)}` cannot be the name of a variable", "rename it", "bad-text")
    return SpawnError(f"`{_printable(argv[0])}` could not be started", str(error), "other")


def _encodable(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\0")


def _text(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno is not None else str(error)
