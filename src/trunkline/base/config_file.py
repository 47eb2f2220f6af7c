"""One configuration file: TOML text into a table, and errors that say where.

`ConfigFileError` is raised here and in the modules beside this one; the layers above turn it into what their users see.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from trunkline.base.nearest import about_key
from trunkline.base.place import Place, PlacedError
from trunkline.base.printable import printable_line
from trunkline.base.regular import NotRegular, read_regular
from trunkline.base.values import Value

#: No configuration that a person wrote is larger; what is larger was meant for something else.
MAX_BYTES = 1024 * 1024

# Compiled when first needed: most starts look for no line.
_HEADER = r"\s*\[{1,2}([^\[\]]+)\]{1,2}\s*(?:#.*)?"
_PART = r"""[\w-]+|"[^"]*"|'[^']*'"""
_QUOTES = r"""\"\"\"|'''"""
_KEY = rf"""\s*((?:{_PART})(?:\s*\.\s*(?:{_PART}))*)\s*="""


class ConfigFileError(PlacedError):
    """A configuration file that cannot be used. `key`, `line` and `column` are known where one place is to blame."""

    def __init__(self, file: str, problem: str, *, key: str | None = None, at: Place | None = None) -> None:
        place = f"`{file}`, line {at.line}" if at else f"`{file}`"
        # Names are in it, which anybody may have given: one that begins a new line could say there what it likes.
        super().__init__(printable_line(f"{place}: {about_key(key, problem) if key else problem}"))
        self.file = file
        self.problem = problem
        self.key = key
        self.line = at.line if at else None
        self.column = at.column if at else None


class TomlFile(Value):
    """What a file says, and its text for finding places in it."""

    path: str
    table: dict[str, Any]
    text: str

    def place_of(self, keys: Sequence[str]) -> Place | None:
        """Where a key is set, if the file is written in the usual way."""
        return find_place(self.text, keys)

    def wrong(self, problem: str, keys: Sequence[str]) -> ConfigFileError:
        """The error that says what is wrong with a key."""
        return ConfigFileError(self.path, problem, key=dotted(keys), at=self.place_of(keys))


def read_toml(path: str) -> TomlFile | None:
    """Read a file; None if there is none. The null device is an empty file: it says that nothing is configured.

    Raises:
        ConfigFileError: it cannot be read, or is not TOML.
    """
    if path == os.devnull:
        return TomlFile(path, {}, "")
    try:
        contents = read_regular(path, MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except NotRegular:
        raise ConfigFileError(path, "is not a file") from None
    except OSError as error:
        raise ConfigFileError(path, f"cannot be read: {os.strerror(error.errno or 0)}") from None
    if contents.cut:
        raise ConfigFileError(path, f"has more than {MAX_BYTES} bytes, too many for a configuration file")
    try:
        text = contents.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line_start = contents.data.rfind(b"\n", 0, error.start) + 1
        at = Place(contents.data.count(b"\n", 0, error.start) + 1, error.start - line_start + 1)
        raise ConfigFileError(path, "is not UTF-8", at=at) from None
    return TomlFile(path, _parsed(path, text), text)


def _parsed(path: str, text: str) -> dict[str, Any]:
    # Most starts find no file and need no parser.
    import tomllib

    try:
        # The parser counts a lone carriage return as an error; the rest of the world wrote it before a line feed.
        return tomllib.loads(text.replace("\r\n", "\n"))
    except RecursionError:
        raise ConfigFileError(path, "is nested too deeply") from None
    except ValueError as error:
        found = re.search(r"\(at (?:line (\d+), column (\d+)|end of document)\)", str(error))
        problem = str(error)[: found.start()].rstrip() if found else str(error)
        at = Place(int(found[1]), int(found[2])) if found and found[1] else None
        raise ConfigFileError(path, f"is not TOML: {problem}", at=at) from None


def find_place(text: str, keys: Sequence[str]) -> Place | None:
    """Where a key or its table begins. None when it is written in a way not looked for."""
    wanted = list(keys)
    table: list[str] = []
    quotes = ""
    for number, line in enumerate(text.split("\n"), 1):
        # What stands in a text of several lines is none of ours, whatever it looks like.
        inside, quotes = quotes, _open_quotes(line, quotes)
        if inside:
            continue
        if header := re.fullmatch(_HEADER, line):
            table = _parts(header[1])
            if table == wanted:
                return Place(number, header.start(1) + 1)
        elif (key := re.match(_KEY, line)) and _begins(wanted, [*table, *_parts(key[1])]):
            return Place(number, key.start(1) + 1)
    return None


def _open_quotes(line: str, quotes: str) -> str:
    """The quotes of a text of several lines that is open at the end of a line; `quotes` are those at its beginning."""
    if not quotes and line.lstrip().startswith("#"):
        return ""
    for found in re.findall(_QUOTES, line):
        if not quotes or found == quotes:
            quotes = "" if quotes else found
    return quotes


def _begins(wanted: list[str], found: list[str]) -> bool:
    # `env = {...}` holds what is wanted as well as `env.NAME = ...` does.
    return wanted[: len(found)] == found or found[: len(wanted)] == wanted


def _parts(dotted: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_PART, dotted)]


def dotted(path: Sequence[str]) -> str:
    """A path as one writes it in TOML."""
    bare = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
    return ".".join(key if key and bare.issuperset(key) else _quoted(key) for key in path)


def _quoted(key: str) -> str:
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    # What a terminal would obey, or a line would end at, is written as TOML writes it.
    return f'"{"".join(char if char.isprintable() else _escape(char) for char in escaped)}"'


def _escape(char: str) -> str:
    return f"\\u{ord(char):04X}" if ord(char) < 0x10000 else f"\\U{ord(char):08X}"
