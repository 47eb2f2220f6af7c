"""`trunkline shim`: writes a launcher named `aionrs`, for hosts that know only that name.

The launcher is a shell script (`aionrs.sh`, beside this module), so that what hosts ask first, `--version`, costs no
start of Python.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import click

from trunkline import __version__
from trunkline.base import jsontext
from trunkline.base.printable import printable_line

NAME = "aionrs"

#: The version whose events and commands are all understood here. Hosts only want to see that it runs.
SPOKEN_VERSION = "0.1.15"

#: How a launcher of ours is recognised, in its second line.
_MARK = b"# Written by `trunkline shim`"

_MODE = 0o755


@click.command("shim")
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False))
@click.option("--force", is_flag=True, help="Replace whatever is there under that name.")
def command(directory: str, force: bool) -> None:
    """Write an `aionrs` launcher into DIR, which starts trunkline instead.

    For hosts made for aionrs: put DIR first in their PATH, or the launcher in the place of the program that they bring.
    Its path is printed.

    \b
    Examples:
      trunkline shim ~/.local/bin
      trunkline shim --force "/opt/host/resources/bundled-aionrs/linux-x64"
    """
    path = Path(directory) / NAME
    try:
        if not force and is_foreign(path):
            raise click.ClickException(
                f"`{path}` already exists and was not made by Trunkline. Use --force to replace it."
            )
        write(path)
    except OSError as error:
        raise click.ClickException(f"`{path}` cannot be written: {error.strerror or error}.") from error
    written = os.path.abspath(path)
    # For a program it is a path, for a person a name that anybody may have given.
    click.echo(printable_line(written) if sys.stdout.isatty() else written)


def is_foreign(path: Path) -> bool:
    """Whether something is there that this command did not write."""
    if path.is_symlink():
        return True
    if not path.exists():
        return False
    if not path.is_file():
        return True
    with path.open("rb") as file:
        return _MARK not in file.read(200)


def write(path: Path) -> None:
    """Write the launcher, all at once: a host may start the old one at this very moment.

    Raises:
        OSError: that is not possible.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # Made anew, so that it is nobody's link to somewhere else.
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
        with open(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(launcher())
        # Whatever the mask says: one that cannot be run is of no use.
        draft.chmod(_MODE)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def launcher(python: str = sys.executable) -> str:
    """The text of the launcher, for one Python."""
    gone = f"`{python}` no longer exists. Run `trunkline shim` of the new installation again."
    event = {"type": "error", "msg_id": None, "error": {"code": "config_error", "message": gone, "retryable": False}}
    places = {
        "@PYTHON@": shlex.quote(python),
        "@GONE@": shlex.quote(gone),
        "@GONE_EVENT@": shlex.quote(jsontext.dumps(event).decode()),
        "@ANSWER@": f"{NAME} {SPOKEN_VERSION} (trunkline {__version__})",
        "@VERSION@": __version__,
    }
    text = Path(__file__).with_name("aionrs.sh").read_text(encoding="utf-8")
    for place, value in places.items():
        text = text.replace(place, value)
    return text
