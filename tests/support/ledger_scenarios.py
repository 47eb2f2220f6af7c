"""What is tried in each cell of the ledger's matrix, and the word for what came of it.

    found = await cell(tmp_path, "coder", "http", monkeypatch)      # {"text": "carried", ...}

As a program it prints what it finds, so that `wires.ledger_matrix` can be brought up to date:

    python -m tests.support.ledger_scenarios [AGENT [WAY]]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.attached import exchange
from tests.support.ledger_agents import AGENTS, CODE_WORD, DONE, FAIL, HELLO, ILL, NOT_DONE, RECALL, SAY, USE, WAIT
from tests.support.ledger_faces import AcpWay, McpWay, OpenAIWay
from tests.support.ledger_ways import (
    AGENT,
    AgentProcWay,
    ChatWay,
    Heard,
    HttpWay,
    JsonStreamWay,
    RunnerWay,
    TryllWay,
    Way,
)
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.agent import Approve
from trunkline.core.events import Event, ToolAnswered, ToolFinished, ToolJudged, TurnEnded
from trunkline.core.fault_table import form_of

#: Somebody else in the exchange, who answers what a client cannot be asked.
OTHER = "ana"
#: What the scripted agent says in place of the code word if its place in the script was kept: it was the fifth message.
FIFTH = "message 5"

#: By the names of the matrix.
WAYS: dict[str, type[Way]] = {
    "jsonstream": JsonStreamWay,
    "agentproc": AgentProcWay,
    "tryll": TryllWay,
    "chat": ChatWay,
    "runner": RunnerWay,
    "http": HttpWay,
    "acp": AcpWay,
    "openai": OpenAIWay,
    "mcp": McpWay,
}


async def cell(home: Path, agent: str, way: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Try everything; gives a word for each scenario."""
    client = WAYS[way](home, monkeypatch)
    found: dict[str, str] = {}
    async with AGENTS[agent](home) as settings:
        async with exchange(home, **{AGENT: settings}) as running, client.inside(running):
            found["text"] = await text(client)
            first = await client.session()
            found["tool"] = await tool(client)
            found["stop"] = await stop(client)
            found["fault"] = await fault(client)
        async with exchange(home, **{AGENT: settings}) as running, client.inside(running):
            found["resume"] = await resume(client, first)
    return found


async def text(client: Way) -> str:
    """A message and its answer."""
    heard = await client.ask(SAY)
    assert _outcome(await client.events()) == "success"
    return "carried" if HELLO in heard.text and heard.over else "lost"


async def tool(client: Way) -> str:
    """A tool that needs approval. If the client cannot be asked, somebody else in the exchange is."""
    helping = asyncio.create_task(_help(client))
    try:
        heard = await client.ask(USE)
    finally:
        helping.cancel()
        await asyncio.wait({helping})
    events = await client.events()
    assert _outcome(events) == "success", events
    ran = any(isinstance(event, ToolFinished) for event in events)
    answered = [event.by for event in events if isinstance(event, ToolAnswered)]
    judged = [event.verdict for event in events if isinstance(event, ToolJudged)]
    assert ran == (DONE in heard.text), (heard.text, events)
    assert ran or NOT_DONE in heard.text, heard.text
    if not ran:
        return "denied"
    if judged:
        return "by policy"
    return "asked" if heard.asked and answered != [OTHER] else "elsewhere"


async def _help(client: Way) -> None:
    """Say yes to what the client is not asked."""
    board = client.exchange.switchboard
    while not client.can_be_asked:
        for row in await board.approvals.found("pending"):
            await (await board.find(row.session)).decide(row, Approve(), OTHER)
        await asyncio.sleep(0.001)


async def stop(client: Way) -> str:
    """An answer that is stopped in the middle."""
    heard = await client.ask(WAIT, stop=True)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (outcome := _outcome(await client.events())) is None:  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0.001)
    assert heard.over
    return "carried" if outcome == "cancelled" else outcome


async def fault(client: Way) -> str:
    """A turn that fails: what is told of it."""
    heard: Heard = await client.ask(FAIL)
    assert _outcome(await client.events()) == "error"
    if ILL not in heard.fault:
        return "bare" if heard.over else "lost"
    if heard.kind == "provider":
        return "carried"
    # A code that says no more than that the agent failed is none.
    return "by code" if heard.code == form_of("provider").jsonstream else "in words"


async def resume(client: Way, first: str) -> str:
    """The exchange was started again, and the client comes back."""
    heard = await client.ask(RECALL)
    assert _outcome(await client.events()) == "success"
    remembers = CODE_WORD in heard.text or FIFTH in heard.text
    is_same = await client.session() == first
    if not remembers:
        return "forgotten" if is_same else "none"
    return "carried" if is_same else "told again"


def _outcome(events: list[Event]) -> str | None:
    return next((event.outcome for event in events if isinstance(event, TurnEnded)), None)


def main(agents: list[str], ways: list[str]) -> None:
    for agent in agents:
        for way in ways:
            with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as monkeypatch:
                monkeypatch.setenv("TRUNKLINE_HOME", f"{home}/state")
                found = asyncio.run(cell(Path(home), agent, way, monkeypatch))
            print(f"{agent:10} {way:10}", *(f"{name}: {word:10}" for name, word in found.items()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:2] or list(AGENTS), sys.argv[2:3] or list(WAYS))
