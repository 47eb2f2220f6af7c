"""What a tool call would do, in colours, for somebody who is asked to allow it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from trunkline.cli.terminal import diffs
from trunkline.cli.terminal.markdown import code
from trunkline.core import preview as core
from trunkline.core.events import ToolRequested
from trunkline.core.preview import SCREEN, Preview, PreviewPart, PreviewSize

#: Files beyond that are not read just to show what would change in them: what tools write is less.
LARGEST_FILE = 10 * 1024 * 1024


def preview(request: ToolRequested, workspace: str, room: PreviewSize | None = SCREEN) -> Preview:
    """A call as it is shown: a change against the file as it is now."""
    before = None
    if core.is_change(request.name, request.args, request.category):
        before = _before(request.args["file_path"], workspace)
    shown = core.preview(request.name, request.args, room, before, request.category)
    # Whose tool it is, only the description tells: two servers may have tools of one name.
    said = core.said_of(request.description) if request.category == "mcp" else ""
    return shown.replace(parts=(PreviewPart(text=said), *shown.parts)) if said else shown


def painted(shown: Preview) -> RenderableType | None:
    """What stands below the name of the tool. None if there is nothing more to see."""
    rows = [row for part in shown.parts for row in _painted(part)]
    if shown.warning:
        rows.append(Text(f"! {shown.warning}", "bold red"))
    return Group(*rows) if rows else None


def _painted(part: PreviewPart) -> Iterator[RenderableType]:
    if part.label:
        yield Text(f"{part.label}:", "dim")
    if part.rows:
        yield from diffs.painted(part.rows)
        return
    text = part.text.rstrip("\n")
    body = code(text, part.language).highlight(text) if part.language else Text(text)
    body.rstrip()
    body.expand_tabs(4)
    yield diffs.Folded(diffs.marked(body))


def _before(path: Any, workspace: str) -> str | None:
    """The content of the file that a call is about; None if there is none, or it cannot be compared."""
    if not isinstance(path, str) or not path:
        return None
    # As the tools find it.
    path = os.path.normpath(os.path.join(workspace, os.path.expanduser(path)))
    try:
        # Not what only looks like a file: opening a pipe would wait for whoever writes to it.
        if not os.path.isfile(path) or os.path.getsize(path) > LARGEST_FILE:
            return None
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            return file.read()
    except (OSError, ValueError):
        return None
