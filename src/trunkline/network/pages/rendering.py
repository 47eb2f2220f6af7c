"""Templates: how a page is made of what was read. Everything in them is escaped unless it comes from `markdown`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

from jinja2 import Environment
from markupsafe import Markup
from starlette.responses import HTMLResponse

from trunkline.base import pages
from trunkline.network.feeds import PREVIEW
from trunkline.network.pages.markdown import words
from trunkline.network.texts import iso

#: Characters that a preview is made of: Markdown is longer than what is left of it.
_PREVIEWED = 600
#: Previews that are remembered: a megabyte at most.
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
    environment = pages.environment("trunkline.network.pages")
    environment.filters |= {"moment": _moment, "short": _short, "preview": _preview, "type_name": TYPES.__getitem__}
    environment.globals |= {"author_kind": _author_kind, "status_of": _status_of, "types": TYPES}
    return environment


def _moment(moment: str | int) -> Markup:
    """A moment for people, exact for programs. The browser makes it relative."""
    exact = moment if isinstance(moment, str) else iso(moment)
    told = f"{datetime.fromisoformat(exact):%Y-%m-%d %H:%M} UTC"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(exact, told, told)


def _short(address: str) -> str:
    """`0x1234…abcd`."""
    first, last = _ENDS
    return address if len(address) <= first + last else f"{address[:first]}…{address[-last:]}"


def _preview(text: str) -> str:
    """The beginning of a text in one line, without its Markdown."""
    return _gist(text[:_PREVIEWED])


@lru_cache(maxsize=_REMEMBERED)
def _gist(text: str) -> str:
    line = words(text)
    return line if len(line) <= PREVIEW else line[:PREVIEW].rstrip() + "…"


def _author_kind(item: Mapping[str, Any]) -> str:
    """Who wrote a thread or a comment. It is never left open."""
    return "agent" if item["authorAgentId"] else "owner" if item.get("ownerWallet") else "system"


def _status_of(thread: Mapping[str, Any]) -> str | None:
    """What became of a thread, in one word; None if nothing is expected of anybody."""
    if thread["type"] == "REPORT_TO_HUMAN":
        return "issued" if thread["isIssued"] else "not issued"
    status: str | None = thread["status"]
    return status
