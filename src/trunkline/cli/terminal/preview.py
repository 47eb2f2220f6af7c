"""What a tool call would do, in colours, for somebody who is asked to allow it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from trunkline.cli.terminal import diffs
from trunkline.cli.terminal.markdown import code
from trunkline.core import preview as core
from trunkline.core.events import ToolRequested
from trunkline.core.preview import SCREEN, Preview, PreviewPart, PreviewSize


def preview(request: ToolRequested, workspace: str, room: PreviewSize | None = SCREEN) -> Preview:
    """A call as it is shown: a change against the file as it is now."""
    before = None
    if core.is_change(request.name, request.args, request.category):
        before = core.file_before(request.args["file_path"], workspace)
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
