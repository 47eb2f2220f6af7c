"""Jupyter notebooks as their cells: numbers, sources, what came out of them, and pictures as pictures."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from typing import Any

from trunkline.base import jsontext
from trunkline.base.redact import Masked
from trunkline.base.values import Value
from trunkline.tools import pictures
from trunkline.tools.files import FileProblem
from trunkline.tools.truncation import truncate

ENDING = ".ipynb"
#: Of one output. Logs and tables are longer, and are rarely what a notebook is read for.
OUTPUT_CHARS = 2_000
#: Outputs of one cell.
MOST_OUTPUTS = 20
#: Pictures of one notebook, and the size of all of them in base64: a request has room for more than this.
MOST_PICTURES = 10
PICTURES_CHARS = 10_000_000

#: Colours and other commands for a terminal, which tracebacks are full of.
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]")
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
#: What says the same in letters, the plainest first.
_TEXTS = ("text/plain", "text/markdown", "text/latex", "application/json", "application/javascript")


class BrokenNotebook(FileProblem):
    """The file is no notebook that could be shown as one; the text says why."""


class NotebookShown(Value):
    """A notebook for a model."""

    text: str
    images: tuple[tuple[str, str], ...]
    """Media type and base64, in the order in which the text names them."""


def is_notebook(path: str) -> bool:
    """Whether a file of that name should be one."""
    return path.lower().endswith(ENDING)


def show_notebook(data: bytes, clean: Callable[[str], Masked]) -> NotebookShown:
    """The cells of a notebook. `clean` takes the secrets out of what is cut.

    Raises:
        BrokenNotebook: it cannot be read as one.
    """
    try:
        found = jsontext.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        raise BrokenNotebook(f"it is not JSON ({error})") from None
    cells = found.get("cells") if isinstance(found, Mapping) else None
    if not isinstance(cells, list) or not all(isinstance(cell, Mapping) for cell in cells):
        raise BrokenNotebook("it has no list of cells")
    writer = _Writer(clean)
    for number, cell in enumerate(cells, 1):
        writer.cell(number, cell)
    language = _language(found)
    head = f"Notebook with {len(cells)} cell{'' if len(cells) == 1 else 's'}{f', {language}' if language else ''}."
    return NotebookShown("\n\n".join([head, *writer.blocks]), tuple(writer.images))


class _Writer:
    def __init__(self, clean: Callable[[str], Masked]) -> None:
        self.blocks: list[str] = []
        self.images: list[tuple[str, str]] = []
        self._clean = clean
        self._room = PICTURES_CHARS

    def cell(self, number: int, cell: Mapping[str, Any]) -> None:
        kind = cell.get("cell_type")
        kind = kind if isinstance(kind, str) and kind.isidentifier() else "unknown"
        count = cell.get("execution_count")
        ran = f", run as [{count}]" if type(count) is int else ""
        self.blocks.append(f"--- Cell {number}: {kind}{ran} ---\n{_joined(cell.get('source'))}".rstrip())
        outputs = cell.get("outputs")
        if not isinstance(outputs, list) or not outputs:
            return
        shown = [text for each in outputs[:MOST_OUTPUTS] if (text := self._output(each))]
        if len(outputs) > MOST_OUTPUTS:
            shown.append(f"({len(outputs) - MOST_OUTPUTS} more outputs are not shown)")
        if shown:
            self.blocks.append("\n".join([f"--- Output of cell {number} ---", *shown]))

    def _output(self, output: Any) -> str:
        if not isinstance(output, Mapping):
            return ""
        match output.get("output_type"):
            case "stream":
                return self._text(_joined(output.get("text")))
            case "error":
                trace = output.get("traceback")
                lines = [line for line in trace if isinstance(line, str)] if isinstance(trace, list) else []
                return self._text("\n".join(lines) or f"{output.get('ename')}: {output.get('evalue')}")
            case _:
                data = output.get("data")
                return self._data(data) if isinstance(data, Mapping) else ""

    def _data(self, data: Mapping[str, Any]) -> str:
        """One thing in several forms: the picture, and what says the same in letters."""
        lines = [self._picture(kind, _joined(data[kind])) for kind in _PICTURES if kind in data]
        written = next((kind for kind in _TEXTS if kind in data), None)
        if written is not None:
            value = data[written]
            plain = isinstance(value, str | list)
            lines.append(self._text(_joined(value) if plain else jsontext.dumps(value).decode()))
        elif not lines:
            lines = [f"({kind}, {_length(value):,} characters, not shown)" for kind, value in data.items()]
        return "\n".join(filter(None, lines))

    def _picture(self, kind: str, encoded: str) -> str:
        encoded = "".join(encoded.split())
        try:
            data = b64decode(encoded, validate=True)
        except (NotBase64, ValueError):
            return f"(a broken picture, {kind})"
        found = pictures.inspect(data)
        problem = "it is broken" if found is None else pictures.problem(found, len(data))
        if problem is None and (len(self.images) >= MOST_PICTURES or len(encoded) > self._room):
            problem = "there are too many in this notebook"
        if problem is not None or found is None:
            return f"(a picture, {kind}, is not shown: {problem})"
        self._room -= len(encoded)
        self.images.append((found.media_type, encoded))
        return f"(picture {len(self.images)}: {found.media_type}, {found.width} x {found.height} pixels)"

    def _text(self, text: str) -> str:
        return truncate(self._clean(_ESCAPES.sub("", text).rstrip("\n")), OUTPUT_CHARS)


def _joined(text: Any) -> str:
    """A text as notebooks have it: one, or a list of its lines."""
    if isinstance(text, list):
        return "".join(line for line in text if isinstance(line, str))
    return text if isinstance(text, str) else ""


def _length(value: Any) -> int:
    """How long something is that is written as text, or as JSON."""
    return len(_joined(value) if isinstance(value, str | list) else jsontext.dumps(value))


def _language(notebook: Mapping[str, Any]) -> str:
    about = notebook.get("metadata")
    for member, name in (("language_info", "name"), ("kernelspec", "language"), ("kernelspec", "name")):
        part = about.get(member) if isinstance(about, Mapping) else None
        found = part.get(name) if isinstance(part, Mapping) else None
        if isinstance(found, str) and found.isprintable():
            return found[:40]
    return ""
