"""A session as a page for a browser; its other forms are tested with the command that writes them."""

from __future__ import annotations

import re

from trunkline.core import events
from trunkline.core.events import Envelope, Event, Gap, UserMessage
from trunkline.core.exporting import exported, page
from trunkline.core.log import SessionInfo

MARKUP = "</pre><script>alert(1)</script>"
INFO = SessionInfo(f"s{MARKUP}", f"/w{MARKUP}", 0.0, 0.0, "agent")


def paged(*happened: Event) -> str:
    records = [Envelope("s", number, 1, 0.0, event) for number, event in enumerate(happened, 1)]
    return "\n".join(page(INFO, [*records, Gap(90, 91)]))


def test_a_page_has_all_texts_as_texts() -> None:
    text = paged(
        events.TurnStarted(UserMessage(MARKUP, (MARKUP,))),
        events.ThinkingDelta(MARKUP),
        events.TextDelta(MARKUP),
        events.ToolRequested("t1", MARKUP, "edit", {MARKUP: MARKUP}, MARKUP),
        events.ToolFinished("t1", MARKUP, "success", MARKUP),
        events.Notice(MARKUP),
        events.Failed("agent", MARKUP),
        events.TurnEnded("error"),
    )
    assert "<script" not in text
    assert text.count("&lt;script&gt;") == 14
    # What browsers obey: nothing but its own style.
    assert set(re.findall(r"<(\w+)", text)) == {"html", "meta", "title", "style", "h1", "h2", "p", "b", "pre"}
    assert "default-src &#x27;none&#x27;" in text or "default-src 'none'" in text


def test_what_cannot_be_written_as_utf_8_is_replaced() -> None:
    records = [Envelope("s", 1, 1, 0.0, events.TextDelta("a\ud800b"))]
    for form in ("md", "html"):
        assert b"a" in b"\n".join(exported(INFO, records, form))
