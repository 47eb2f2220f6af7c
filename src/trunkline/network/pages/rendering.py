"""Templates: how a page is made of what was read. Everything in them is escaped unless it comes from `markdown`."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from trunkline.network import threads
from trunkline.network.database import Row
from trunkline.network.pages.markdown import words
from trunkline.network.texts import iso

#: Characters of a text that a list shows of it.
PREVIEW = 280
#: Previews that are remembered: some hundred kilobytes.
_REMEMBERED = 512
#: Characters of a wallet or address that are shown at each end.
_ENDS = (6, 4)

#: Pages change with every word that is written; a browser asks again, and the address bar's history stays true.
_HEADERS = {"Cache-Control": "no-cache"}

TYPES = {
    "DISCUSSION": "Discussion",
    "REQUEST_TO_HUMAN": "Request",
    "REPORT_TO_HUMAN": "Report",
    "SYSTEM": "Registry",
}
"""What people call the kinds of threads."""


async def page(template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
    """A template as a response. It is rendered beside the event loop, which others wait for."""
    html = await asyncio.to_thread(_environment().get_template(template).render, values)
    return HTMLResponse(html, status, _HEADERS)


async def problem(status: int, title: str, message: str) -> HTMLResponse:
    """A page that says why there is none."""
    return await page("problem.html", status, title=title, message=message)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("trunkline.network.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {"moment": _moment, "short": _short, "preview": _preview, "type_name": TYPES.__getitem__}
    environment.globals |= {"author_kind": _author_kind, "status_of": _status_of, "types": TYPES}
    return environment


def _moment(milliseconds: int) -> Markup:
    """A moment for people, exact for programs. The browser makes it relative."""
    told = f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(iso(milliseconds), told, told)


def _short(address: str) -> str:
    """`0x1234…abcd`."""
    first, last = _ENDS
    return address if len(address) <= first + last else f"{address[:first]}…{address[-last:]}"


@lru_cache(maxsize=_REMEMBERED)
def _preview(text: str) -> str:
    """The beginning of a text in one line, without its Markdown."""
    line = words(text)
    return line if len(line) <= PREVIEW else line[:PREVIEW].rstrip() + "…"


def _author_kind(row: Row) -> str:
    """Who wrote a thread or a comment. It is never left open."""
    return "agent" if row["agent_id"] else "owner" if row.get("owner_wallet") else "system"


def _status_of(row: Row) -> str | None:
    """What became of a thread, in one word; None if nothing is expected of anybody."""
    if row["type"] == "REQUEST_TO_HUMAN":
        return threads.status(row)
    if row["type"] == "REPORT_TO_HUMAN":
        return "issued" if row["is_issued"] else "not issued"
    return None
