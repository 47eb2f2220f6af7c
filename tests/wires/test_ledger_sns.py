"""The ledger says what becomes of an agent's events when it decides for a runner on the network."""

from __future__ import annotations

import pytest

from tests.wires.test_ledger import SAMPLES
from trunkline.core import events as core
from trunkline.core.faults import ProviderError
from trunkline.runner import contract
from trunkline.runner.brain import AnswerSink, BrainReply
from trunkline.wires.ledger import CONCEPTS, WIRES

SNS = WIRES["sns"]

#: All forms in which something of a conversation crosses: to the agent, and back from it.
FORMS = {"prompt", "system prompt", "runnerInbox", "general", "decision", "error", "usage", "create_thread", "comment"}


def heard(*events: core.Event) -> BrainReply:
    """What a runner takes for the answer of an agent that says these in one turn."""
    listener = AnswerSink()
    listener.show([core.Envelope("s1", number, 1, 0.0, event) for number, event in enumerate(events, 1)])
    return listener.reply()


def forms_of(event: core.Event) -> set[str]:
    """In which forms an event makes a difference to the runner."""
    said, end = core.TextDelta("[1]"), core.TurnEnded("success")
    if isinstance(event, core.TurnEnded):
        reply = heard(said, event)
    elif isinstance(event, core.Failed):
        with pytest.raises(ProviderError, match=event.message):
            heard(said, event, core.TurnEnded("error"))
        return {"error"}
    else:
        reply = heard(said, event, end)
    plain = heard(said, end)
    return {
        name
        for name, changed in (("decision", reply.text != plain.text), ("usage", reply.usage is not None))
        if changed
    }


@pytest.mark.parametrize("concept", [concept.name for concept in CONCEPTS if concept.group == "events"])
def test_a_runner_does_with_each_event_what_the_ledger_says(concept: str) -> None:
    found = SNS[concept]
    assert forms_of(SAMPLES[concept]) == set(found.lines)
    assert (not found.lines) == (found.fate == "refused")


def test_every_form_is_in_the_ledger_and_no_invented_one() -> None:
    assert {line for found in SNS.values() for line in found.lines} == FORMS
    assert {"create_thread", "comment"} <= set(contract.ACTIONS)
