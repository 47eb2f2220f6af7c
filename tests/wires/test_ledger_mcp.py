"""The ledger says what becomes of an agent's events when a client of MCP has asked it."""

from __future__ import annotations

import asyncio

import pytest

from tests.wires.test_ledger import SAMPLES
from trunkline.core import events as core
from trunkline.core.keeper import Removed, Seat
from trunkline.wires.ledger import CONCEPTS, WIRES
from trunkline.wires.mcp.asking import AskRun

MCP = WIRES["mcp"]

#: Those that a run does not tell by itself: they are looked at in the session.
BY_THE_SESSION = {"ToolRequested": "elicitation/create", "ToolAnswered": "notifications/cancelled"}


async def forms_of(event: core.Event) -> set[str]:
    """In which forms an event makes a difference to the client."""

    async def never(_: Removed) -> Seat:
        await asyncio.Event().wait()
        raise AssertionError

    async def leave(_: Seat) -> None:
        raise AssertionError

    run = AskRun("agent", never, leave, "hello")
    before = (run.text, run.outcome, run.fault, run.usage)
    status = run.status
    run.take(event)
    changed = {"result"} if (run.text, run.outcome, run.fault, run.usage) != before else set()
    run.task.cancel()
    return changed | ({"notifications/progress"} if run.status != status else set())


@pytest.mark.parametrize("concept", [concept.name for concept in CONCEPTS if concept.group == "events"])
async def test_a_client_is_told_of_each_event_what_the_ledger_says(concept: str) -> None:
    found = MCP[concept]
    forms = await forms_of(SAMPLES[concept])
    if concept in BY_THE_SESSION:
        forms.add(BY_THE_SESSION[concept])
    assert forms == set(found.lines)
    assert (not found.lines) == (found.fate == "refused")
