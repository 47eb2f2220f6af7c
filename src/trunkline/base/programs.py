"""Where programs are looked for by their names: in the folders of a `PATH`, and nowhere else.

Folders that begin in the current directory, as an empty one does, are passed over: a repository that somebody works in
must not decide what `git` or `claude` is.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping


def program_folders(environ: Mapping[str, str] | None = None) -> list[str]:
    """The folders of the `PATH` of an environment, ours unless given, in which programs are looked for."""
    return [folder for folder in os.get_exec_path(environ) if os.path.isabs(folder)]


def find_program(name: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Where the program of a bare name is; `None` if it is not there."""
    candidates = (os.path.join(folder, name) for folder in program_folders(environ))
    return next((path for path in candidates if os.path.isfile(path) and os.access(path, os.X_OK)), None)


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
