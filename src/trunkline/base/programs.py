"""Where programs are looked for by their names: in the folders of a `PATH`, and nowhere else.

Folders that begin in the current directory, as an empty one does, are passed over: a repository that somebody works in
must not decide what `git` or `claude` is.
"""

from __future__ import annotations

import errno
import os
import shlex
import sys
from collections.abc import Callable, Mapping

from trunkline.base.own_python import module_command

#: What people type to run this program.
PROGRAM = "trunkline"


def program_folders(environ: Mapping[str, str] | None = None) -> list[str]:
    """The folders of the `PATH` of an environment, ours unless given, in which programs are looked for."""
    return [folder for folder in os.get_exec_path(environ) if os.path.isabs(folder)]


def find_program(name: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Where the program of a bare name is; `None` if it is not there."""
    candidates = (os.path.join(folder, name) for folder in program_folders(environ))
    return next((path for path in candidates if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def own_argv() -> list[str]:
    """How to run this installation from anywhere, if not by its name on `PATH`: its program, else its Python."""
    own = os.path.join(os.path.dirname(sys.executable), PROGRAM)
    return [own] if os.path.isfile(own) else list(module_command(PROGRAM))


def own_command(environ: Mapping[str, str] | None = None) -> str:
    """What to type in a shell, in whichever directory, so that this installation answers: its name, if that is what
    `PATH` finds, else where it is."""
    argv, found = own_argv(), find_program(PROGRAM, environ)
    if found is not None and os.path.realpath(found) == os.path.realpath(argv[0]):
        return PROGRAM
    return shlex.join(argv)


def own_command_here(environ: Mapping[str, str] | None = None) -> str:
    """The same for the current directory: by its way from here, if it is below it."""
    command, argv = own_command(environ), own_argv()
    if command == PROGRAM or len(argv) > 1 or (near := os.path.relpath(argv[0])).startswith(os.pardir):
        return command
    return shlex.quote(near)


def as_typed(text: str) -> str:
    """A text for people, such as a notice of an agent's, with the commands in it as they are typed on this machine, in
    whichever directory: "`trunkline models list`" names this installation also where `PATH` does not find it."""
    return _as_typed(text, own_command)


def as_typed_here(text: str) -> str:
    """The same of a text, such as an error's, that is read where this process works: commands as they are typed
    here."""
    return _as_typed(text, own_command_here)


def _as_typed(text: str, own: Callable[[], str]) -> str:
    quoted = f"`{PROGRAM} "
    return text.replace(quoted, f"`{own()} ") if quoted in text else text


def program_problem(program: str, environ: Mapping[str, str], how_to_install: str = "") -> str | None:
    """Why a program cannot be run, as far as that can be told without trying: there is none."""
    if os.path.isabs(program):
        if os.path.isfile(program) and os.access(program, os.X_OK):
            return None
        return f"There is no program `{program}` that could be run. Check the path."
    # One with a folder is relative to a workspace that is not known yet.
    if os.path.dirname(program) or find_program(program, environ) is not None:
        return None
    return f"There is no program `{program}` on `PATH`. {how_to_install or 'Install it, or give its full path.'}"


def program_file(name: str, environ: Mapping[str, str]) -> str:
    """The file to start for a bare name: where there is none that can be run, one of which the system says why.

    Raises:
        FileNotFoundError: there is no folder to look in.
    """
    candidates = [os.path.join(folder, name) for folder in program_folders(environ)]
    if not candidates:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return find_program(name, environ) or next(filter(os.path.lexists, candidates), candidates[0])


def trusted_path(environ: Mapping[str, str]) -> str:
    """A `PATH` in which children look as we do."""
    return os.pathsep.join(program_folders(environ))
