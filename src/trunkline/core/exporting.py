"""A session to take along: as JSON lines for programs, as Markdown, or as one page for a browser.

All of them are made piece by piece: a session may be long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import Literal

from trunkline.base import jsontext
from trunkline.base.printable import printable, printable_line
from trunkline.core import records, transcript
from trunkline.core.events import Envelope, Gap
from trunkline.core.log import SessionInfo
from trunkline.core.transcript import TranscriptBlock, when

#: The version of the first line of an export; `records` is that of the lines after it.
EXPORT_VERSION = 1

ExportFormat = Literal["jsonl", "md", "html"]

#: The page needs nothing else, and its texts do nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h2 { margin-top: 2em; border-top: 1px solid; padding-top: .5em; font-size: 1.2rem; }
pre { white-space: pre-wrap; border: 1px solid; border-radius: 6px; padding: .6em .8em; font-size: .9em; }
.user { border-left: 4px solid; padding-left: .8em; }
.user, .agent, .thinking { white-space: pre-wrap; }
.thinking, .note, .end, .about { opacity: .75; }
"""


def exported(info: SessionInfo, found: Iterable[Envelope | Gap], form: ExportFormat) -> Iterator[bytes]:
    """A session in one of the forms, as lines without their ends."""
    if form == "jsonl":
        yield from json_lines(info, found)
        return
    for line in {"md": markdown, "html": page}[form](info, found):
        yield line.encode("utf-8", "replace")


def json_lines(info: SessionInfo, found: Iterable[Envelope | Gap], *, everything: bool = False) -> Iterator[bytes]:
    """A line about the session, and one for each event, as the log has it. `everything`: also the records that the
    agent keeps for itself. What was damaged is told by a line with `gap`."""
    yield jsontext.dumps(
        {
            "trunkline_export": EXPORT_VERSION,
            "records": records.VERSION,
            "session": info.id,
            "workspace": info.workspace,
            "created": info.created,
        }
    )
    yield from event_lines(found, everything=everything)


def event_lines(found: Iterable[Envelope | Gap], *, everything: bool = False) -> Iterator[bytes]:
    """The lines of the events alone."""
    for record in found:
        if isinstance(record, Gap):
            yield jsontext.dumps({"gap": [record.first, record.last]})
        elif everything or not record.event.private:
            yield records.encode(record)


def markdown(info: SessionInfo, found: Iterable[Envelope | Gap]) -> Iterator[str]:
    """A session as Markdown to read."""
    yield f"# Session `{printable_line(info.id)}`\n"
    yield f"Workspace `{printable_line(info.workspace)}`, created {when(info.created)}.\n"
    for block in transcript.blocks(found):
        yield transcript.as_markdown(block)


def page(info: SessionInfo, found: Iterable[Envelope | Gap]) -> Iterator[str]:
    """A session as one HTML page that needs nothing else, and in which all texts are texts."""
    title = escape(f"Session {printable_line(info.id)}")
    yield f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{_STYLE}</style>'
    about = f"Workspace {printable_line(info.workspace)}, created {when(info.created)}."
    yield f'<h1>{title}</h1>\n<p class="about">{escape(about)}</p>'
    for block in transcript.blocks(found):
        yield _HTML.get(block.kind, _paragraph)(block)
    yield "</html>"


def _paragraph(block: TranscriptBlock) -> str:
    return f'<p class="{block.kind}">{_text(block.text)}</p>'


def _turn(block: TranscriptBlock) -> str:
    return f'<h2>{_text(block.title)}</h2>\n<p class="about">{_text(block.text)}</p>'


def _fenced(block: TranscriptBlock) -> str:
    return f"<p><b>{_text(block.title)}</b></p>\n<pre>{_text(block.text)}</pre>"


def _failure(block: TranscriptBlock) -> str:
    return f'<p class="failure"><b>{_text(block.text)}</b></p>'


def _text(text: str) -> str:
    return escape(printable(text).rstrip("\n"))


_HTML: dict[str, Callable[[TranscriptBlock], str]] = {
    "turn": _turn,
    "tool": _fenced,
    "output": _fenced,
    "failure": _failure,
}
