"""Where an exchange keeps what it has, and where its sockets are. For those who look for one: light to import."""

from __future__ import annotations

import os
from collections.abc import Mapping

from trunkline.base import paths
from trunkline.base.config_file import TomlFile, read_toml

#: The file that an exchange is told by, in the directory where somebody works.
FILE = "trunkline.toml"
#: The HTTP API, for local clients; and what programs that a host spawns are attached through.
API_SOCKET, ATTACH_SOCKET = "exchange.sock", "attach.sock"


def default_home(environ: Mapping[str, str] = os.environ) -> str:
    """Where it is if nobody says."""
    return os.path.join(paths.state_dir(environ), "exchange")


def sessions_dir(home: str) -> str:
    """Where the logs of its sessions are."""
    return os.path.join(home, "sessions")


def home_in(file: TomlFile, environ: Mapping[str, str] = os.environ) -> str:
    """The home that a file names, in full; relative to the file."""
    section = file.table.get("exchange")
    said = section.get("home") if isinstance(section, dict) else None
    if not isinstance(said, str) or not said:
        return default_home(environ)
    return os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(file.path)), os.path.expanduser(said)))


def find_home(directory: str = os.curdir, environ: Mapping[str, str] = os.environ) -> str:
    """The home of the exchange that belongs to a directory: the one its file tells, else the user's.

    Raises:
        ConfigFileError: the file there cannot be read.
    """
    file = read_toml(os.path.join(directory, FILE))
    return default_home(environ) if file is None else home_in(file, environ)
