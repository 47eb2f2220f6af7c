"""The ledger says what OpenAI-compatible HTTP does with each event, in both formats."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.openai_world import events_in
from tests.wires.test_ledger import SAMPLES
from trunkline.core import events as core
from trunkline.wires.ledger import CONCEPTS, WIRES
from trunkline.wires.openai.chat import ChatWriter
from trunkline.wires.openai.messages import AskedTurn
from trunkline.wires.openai.responses_writer import ResponsesWriter
from trunkline.wires.openai.telling import AnswerWriter, TurnTeller

OPENAI = WIRES["openai"]

#: All forms in which something of a conversation crosses: to the agent, and back from it.
FORMS = {
    "content", "reasoning", "error", "finish_reason", "usage", "messages", "input", "instructions", "conversation",
    "previous_response_id", "X-Trunkline-Session",
}  # fmt: skip


def told(writer: AnswerWriter, event: core.Event) -> list[Any]:
    teller = TurnTeller(writer)
    data = teller.tell(event)
    if isinstance(event, core.Failed):
        data += teller.tell(core.TurnEnded("error"))
    return [each for each in events_in(data.decode()) if each is not None]


def in_chat(event: core.Event) -> set[str]:
    asked = AskedTurn("m", "hello", stream=True, include_usage=True)
    found = set()
    for chunk in told(ChatWriter(asked, "s1", 1, 0), event):
        if "error" in chunk:
            found.add("error")
            continue
        for choice in chunk["choices"]:
            found |= {name for name, key in (("content", "content"), ("reasoning", "reasoning_content"))
                      if choice["delta"].get(key)}  # fmt: skip
            found |= {"finish_reason"} if choice["finish_reason"] else set()
        found |= {"usage"} if chunk["usage"] else set()
    return found


def in_responses(event: core.Event) -> set[str]:
    found = set()
    for each in told(ResponsesWriter("m", "s1", 1, 0, echoed={}, streams=True, clock=lambda: 0), event):
        match each["type"]:
            case "response.output_text.delta":
                found.add("content")
            case "response.reasoning_summary_text.delta":
                found.add("reasoning")
            case "response.failed":
                found.add("error")
            case "response.completed":
                found |= {"finish_reason"} | ({"usage"} if each["response"]["usage"] else set())
    return found


@pytest.mark.parametrize("concept", [concept.name for concept in CONCEPTS if concept.group == "events"])
def test_both_formats_do_with_each_event_what_the_ledger_says(concept: str) -> None:
    found = OPENAI[concept]
    event = SAMPLES[concept]
    # Private events never come this far.
    seen = set() if event.private else in_chat(event)
    assert seen == (set() if event.private else in_responses(event)) == set(found.lines)
    assert (not found.lines) == (found.fate == "refused")


def test_every_form_is_in_the_ledger_and_no_invented_one() -> None:
    assert {line for found in OPENAI.values() for line in found.lines} == FORMS
