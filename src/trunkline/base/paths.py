"""Where files live.

    state     `TRUNKLINE_HOME`, else `XDG_STATE_HOME/trunkline`, else `~/.local/state/trunkline`
    sessions  `sessions` in the state directory
    config    `TRUNKLINE_HOME/config`, else `XDG_CONFIG_HOME/trunkline`, else `~/.config/trunkline`
    cache     `TRUNKLINE_CACHE`, else `XDG_CACHE_HOME/trunkline`, else `~/.cache/trunkline`

The cache is not under `TRUNKLINE_HOME`: what was fetched once serves every home. An empty variable counts as unset;
so does a relative path in an `XDG_` variable, as its specification demands. In our own two variables `~` and
relative paths are understood.

Nothing here makes a directory except `ensure_dir`. What cannot be used there is told by `unusable`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

#: What is kept here is the user's alone.
PRIVATE_DIR = 0o700

_NAME = "trunkline"
#: The longest name of a directory that all disks take is 255 bytes.
_MOST_NAME = 100
_HASH_CHARS = 12


class HomeUnknown(OSError):
    """Nobody says where this user's files belong."""


def state_dir(environ: Mapping[str, str] = os.environ) -> str:
    """What must survive a restart: sessions, databases."""
    return _own("TRUNKLINE_HOME", environ) or _xdg("XDG_STATE_HOME", ".local/state", environ)


def sessions_dir(environ: Mapping[str, str] = os.environ) -> str:
    """The logs of single-process sessions."""
    return os.path.join(state_dir(environ), "sessions")


def config_dir(environ: Mapping[str, str] = os.environ) -> str:
    """The user's own configuration file."""
    home = _own("TRUNKLINE_HOME", environ)
    return os.path.join(home, "config") if home else _xdg("XDG_CONFIG_HOME", ".config", environ)


def cache_dir(environ: Mapping[str, str] = os.environ) -> str:
    """What can be fetched again: weights, browsers."""
    return _own("TRUNKLINE_CACHE", environ) or _xdg("XDG_CACHE_HOME", ".cache", environ)


def project(path: str) -> str:
    """A directory's path as a name: `/home/ada/tool` is `home-ada-tool`. Different paths have different names."""
    name = re.sub(r"[^A-Za-z0-9]", "-", path).strip("-")
    if re.fullmatch(r"(/[A-Za-z0-9]+)+", path) and len(name) <= _MOST_NAME:
        return name
    import hashlib  # a start is short, and this is seldom needed

    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:_HASH_CHARS]
    return f"{name[-_MOST_NAME:].strip('-') or 'root'}-{digest}"


def is_within(path: str, folder: str) -> bool:
    """Whether a path is a folder or below it. Both are absolute, and are compared as they are written."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def homely(place: str) -> str:
    """A directory as its owner writes it, for lists and first lines."""
    home = os.path.expanduser("~")
    return f"~{place[len(home) :]}" if place == home or place.startswith(home + os.sep) else place


def unusable(error: OSError) -> str:
    """What the system says of a file, as a sentence. For one of ours, it ends with the variable that moves it."""
    reason = error.strerror or str(error)
    if not isinstance(error.filename, str | bytes):
        return reason if reason.endswith(".") else f"{reason}."
    file = os.fsdecode(error.filename)
    return f"Cannot use `{file}`: {reason}. {elsewhere(file)}".rstrip()


def elsewhere(path: str, environ: Mapping[str, str] = os.environ) -> str:
    """Which variable to set so that others than this path are used; empty for one that is not ours."""
    path = os.path.abspath(path)
    for variable, place in (
        ("TRUNKLINE_CACHE", cache_dir),
        ("TRUNKLINE_HOME", state_dir),
        ("TRUNKLINE_HOME", config_dir),
    ):
        try:
            own = place(environ)
        except HomeUnknown:
            continue
        common = os.path.commonpath((own, path))
        # What cannot be made may be a directory above ours.
        if common == own or (common == path and not os.path.isdir(path)):
            return f"Set `{variable}` to a directory in which you can write."
    return ""


def ensure_dir(path: str) -> tuple[str, ...]:
    """Make a directory and those above it, for this user alone. Those that exist keep their permissions.

    Returns:
        The directories that had to be made, outermost first.

    Raises:
        OSError: it cannot be made, or is not a directory.
    """
    path = os.path.abspath(path)
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        parent = os.path.dirname(path)
        if parent == path:
            break
        path = parent
    return tuple(directory for directory in reversed(missing) if _make(directory))


def _make(directory: str) -> bool:
    try:
        os.mkdir(directory, PRIVATE_DIR)
    except FileExistsError:
        # Somebody was quicker, which is as good; a file in its place is not.
        if not os.path.isdir(directory):
            raise
        return False
    return True


def _own(variable: str, environ: Mapping[str, str]) -> str | None:
    value = environ.get(variable)
    return os.path.abspath(_expand(value, environ)) if value else None


def _xdg(variable: str, default: str, environ: Mapping[str, str]) -> str:
    base = environ.get(variable, "")
    if not os.path.isabs(base):
        base = os.path.join(_expand("~", environ), default)
    return os.path.join(base, _NAME)


def _expand(path: str, environ: Mapping[str, str]) -> str:
    if path != "~" and not path.startswith("~/"):
        return path
    home = environ.get("HOME") or _listed_home()
    if not os.path.isabs(home):
        raise HomeUnknown("There is no home directory. Set `HOME` or `TRUNKLINE_HOME` to an absolute path.")
    return home + path[1:]


def _listed_home() -> str:
    """The one that the system lists for this user. `expanduser` would take an empty `HOME` for the root directory."""
    import pwd  # hardly ever needed, and an agent's start is short

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""
