"""The sessions: searched, listed, begun; and the timeline of one, with what can be made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from trunkline.base.plain_words import MAX_QUERY, phrases, places_of
from trunkline.exchange.api.endpoint import ApiCall
from trunkline.exchange.api.exports import FORMATS
from trunkline.exchange.api.sessions import found_sessions, show_session
from trunkline.exchange.api.turns import found_turns
from trunkline.exchange.console.page import ConsolePage
from trunkline.exchange.session_opening import GRAPH
from trunkline.exchange.session_rows import LONGEST_TITLE
from trunkline.exchange.turn_causes import OUTCOME_WORDS

#: How many are on a page.
PAGE = 50
#: What the ends of turns are called here, each with the class of its tag.
OUTCOMES = {
    outcome: (word, "bad" if outcome in ("error", "unknown") else "") for outcome, word in OUTCOME_WORDS.items()
}
#: The same for what sessions are at.
STATES = {"running": "at work", "awaiting_approval": "asks", "ending": "ending"}
#: What exports are called.
FORMAT_NAMES = {"jsonl": "JSON lines", "md": "Markdown", "html": "Web page"}

#: What can be looked for besides words.
_FILTERS = ("agent", "outcome", "by")
#: Places in a text that are marked.
_MOST_MARKED = 20


async def sessions(call: ApiCall) -> Mapping[str, Any]:
    """`GET /sessions`: with words, the turns that have them; else the sessions."""
    asked = {name: call.query(name) or "" for name in ("q", *_FILTERS)}
    words = asked["q"].strip()
    found = await found_turns(call, PAGE + 1) if words else await found_sessions(call, PAGE + 1)
    shown, key = found[:PAGE], "number" if words else "id"
    given = {name: value for name, value in asked.items() if value}
    terms = phrases(words)
    return {
        "asked": asked,
        "longest": MAX_QUERY,
        "is_filtered": bool(given),
        "is_later_page": call.query("before") is not None,
        "agents": [entry.name for entry in call.exchange.directory.entries],
        "outcomes": OUTCOMES,
        "states": STATES,
        "sessions": [] if words else shown,
        "turns": [{**turn, **_marked(terms, turn)} for turn in shown] if words else [],
        "moment": _moment,
        "newest": _address(given),
        "older": _address({**given, "before": str(shown[-1][key])}) if len(found) > PAGE else "",
    }


async def timeline(call: ApiCall) -> Mapping[str, Any]:
    """`GET /sessions/{id}/timeline`."""
    session, entries = await show_session(call), call.exchange.directory.entries
    return {
        "session": session,
        "others": [entry.name for entry in entries if entry.name != session["agent"]],
        "is_graph": any(entry.settings.kind == GRAPH for entry in entries if entry.name == session["agent"]),
        "formats": {form: FORMAT_NAMES[form] for form in FORMATS},
    }


def _marked(terms: list[list[str]], turn: Mapping[str, Any]) -> Mapping[str, Any]:
    """The title of a turn that was found, and the passage that was, unless that is in the title."""
    title = list(_pieces(terms, turn["message"][:LONGEST_TITLE]))
    return {"title": title, "passage": [] if len(title) > 1 else list(_pieces(terms, turn["snippet"]))}


def _pieces(terms: list[list[str]], text: str) -> Iterator[tuple[str, bool]]:
    """A text in pieces, each with whether it is something that was looked for."""
    at = 0
    for start, end in places_of(terms, text, _MOST_MARKED):
        yield text[at:start], False
        yield text[start:end], True
        at = end
    yield text[at:], False


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="seconds")


def _address(given: Mapping[str, str]) -> str:
    return f"/sessions?{urlencode(given)}" if given else "/sessions"


PAGES = (
    ConsolePage("/sessions", sessions, "sessions.html"),
    ConsolePage("/sessions/{id}/timeline", timeline, "timeline.html"),
)
