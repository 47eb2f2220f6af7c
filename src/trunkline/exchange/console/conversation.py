"""The page of one session: what is said and done in it, live, and how to take part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base.vocabulary import MODES
from trunkline.exchange.api.endpoint import ApiCall
from trunkline.exchange.api.files import MAX_FILE
from trunkline.exchange.api.sessions import show_session
from trunkline.exchange.console.page import ConsolePage


async def conversation(call: ApiCall) -> Mapping[str, Any]:
    """`GET /sessions/{id}`."""
    return {"session": await show_session(call), "modes": MODES, "largest_file": MAX_FILE}


PAGES = (ConsolePage("/sessions/{id}", conversation, "conversation.html"),)
