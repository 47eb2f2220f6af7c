"""What the nodes of an agent and the ears of a session tell, for those who drive them, and who listens.

A listener for one type of event gets events of that type, in their own form if they have one. All others go to the
listener for node events, as they came. No event goes to both.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import NodeEvent, WireTranscriptUpdate

logger = logging.getLogger(__name__)

TOOL_CALL = "tool_call"
INTENT_CLASSIFIED = "intent_classified"


class ToolCall(Value):
    """The model wants to call a tool. The name is not checked: that is up to the code that runs the tool."""

    node: str
    name: str
    arguments: Mapping[str, Any] | None
    """None if what came is no JSON object; then only `arguments_json` tells."""
    arguments_json: str


class IntentClassified(Value):
    """What the user wants, as a node understands it."""

    node: str
    intent: str
    record_id: str = ""
    record_index: int = 0
    distance: float | None = None
    top_prob: float | None = None
    """How likely it is, and below how much likelier than the next; of ClassifyIntentLLM only."""
    margin: float | None = None


#: What a listener for a type gets.
Told = ToolCall | IntentClassified | NodeEvent


class VoiceListener(Protocol):
    """What a connection needs of a voice input. Nothing of it raises anything."""

    def feed(self, message: WireTranscriptUpdate) -> None:
        """Something was understood."""

    def complain(self, error: TryllError) -> None:
        """The server says that something is wrong with it."""

    def lose(self, error: TryllError) -> None:
        """The connection is gone."""


def told(event: NodeEvent) -> Told:
    """The event in the form of its type. One that lacks what its type needs stays as it came."""
    pairs = {pair.key: pair.value for pair in event.kv_pairs}
    if event.event_type == TOOL_CALL and "tool_name" in pairs:
        text = pairs.get("arguments_json", "")
        return ToolCall(event.node_name, pairs["tool_name"], _object(text), text)
    if event.event_type == INTENT_CLASSIFIED and "intent" in pairs:
        index = pairs.get("record_index", "")
        # Longer ones are no index, and `int` takes its time with them.
        number = int(index) if index.isascii() and index.isdecimal() and len(index) < 20 else 0
        distance, top, margin = (_number(pairs.get(key, "")) for key in ("distance", "top_prob", "margin"))
        return IntentClassified(
            event.node_name, pairs["intent"], pairs.get("record_id", ""), number, distance, top, margin
        )
    return event


class Listeners:
    """Who is to hear what one agent's nodes tell. Belongs to the agent, and is empty once that is destroyed."""

    def __init__(self) -> None:
        self._by_type: dict[str, Callable[[Any], object]] = {}
        self._others: Callable[[NodeEvent], object] | None = None

    def listen(self, event_type: str, listener: Callable[[Any], object] | None) -> None:
        """Let someone hear the events of a type, in place of whoever did so far; None: nobody."""
        if listener is None:
            self._by_type.pop(event_type, None)
        else:
            self._by_type[event_type] = listener

    def listen_to_others(self, listener: Callable[[NodeEvent], object] | None) -> None:
        """Let someone hear all events whose type nobody listens to."""
        self._others = listener

    def clear(self) -> None:
        """Let nobody hear anything."""
        self._by_type.clear()
        self._others = None

    def tell(self, event: NodeEvent) -> None:
        """Pass an event on. What a listener raises is logged: the connection has other work to do."""
        listener = self._by_type.get(event.event_type)
        if listener is not None:
            call(listener, told(event), event.event_type)
        elif self._others is not None:
            call(self._others, event, event.event_type)


def call(listener: Callable[[Any], object], event: object, what: str) -> None:
    """Let a listener hear something. What it raises is logged, and harms nobody else."""
    try:
        listener(event)
    except (Exception, asyncio.CancelledError):
        logger.exception("a listener to `%s` failed", what)
    except BaseException:
        # That ends the program, in its main thread. In another one it would only end the connection's.
        if threading.current_thread() is threading.main_thread():
            raise
        logger.exception("a listener to `%s` failed", what)


def _object(text: str) -> Mapping[str, Any] | None:
    try:
        found = jsontext.loads(text.encode())
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
