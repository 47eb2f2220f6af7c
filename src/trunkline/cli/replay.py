"""`trunkline replay`: a recorded session, played again by the agent `scripted`. It needs no exchange and no model.

Exit codes: 0, or 1 when the script cannot be played.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import click

from trunkline.agents import script
from trunkline.agents.script import Script, ScriptTurn, UseTools
from trunkline.agents.scripted import ScriptedAgent
from trunkline.cli.explained import explained
from trunkline.core import records, transcript
from trunkline.core.agent import Approve, Deny
from trunkline.core.approvals import Policy
from trunkline.core.events import Envelope, ToolRequested, TurnEnded, UserMessage
from trunkline.core.faults import ConfigError
from trunkline.core.ids import new_id
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session


@click.command("replay")
@click.argument("file", metavar="FILE", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per event.")
@explained
def command(file: str, as_json: bool) -> None:
    """Play the script FILE that `trunkline record` wrote.

    The messages are said again, and what was asked then is answered as it was. No tool is run: each gives what it gave.
    To play it on a wire, name the agent `scripted:FILE` there.

    \b
    Examples:
      trunkline replay talk.yaml
      trunkline agent --json-stream --agent scripted:talk.yaml
    """
    found = script.load(file)
    if any(turn.message is None for turn in found.turns):
        raise ConfigError(
            f"The script `{file}` does not say which messages it answers.",
            hint=f"It is not a recording; talk to it with `trunkline chat scripted:{file}`.",
        )
    asyncio.run(_replay(found, as_json))


async def _replay(found: Script, as_json: bool) -> None:
    async for turn in played(found):
        if as_json:
            for envelope in turn:
                click.echo(records.encode(envelope))
        else:
            for block in transcript.blocks(turn):
                label, text = transcript.as_text(block)
                click.echo(f"{label}  {text}")


async def played(found: Script) -> AsyncIterator[list[Envelope]]:
    """The events of each turn of a recording, one turn after the other."""
    session = await Session.open(ScriptedAgent(found), MemoryLog(new_id(), keep=0), Policy(allow=()))
    try:
        async with aclosing(session.subscribe()) as watched:  # type: ignore[type-var]
            for turn in found.turns:
                session.submit(UserMessage(turn.message or ""))
                yield await _turn(session, watched, turn)
    finally:
        await session.close()


async def _turn(session: Session, watched: AsyncIterator[Envelope | object], turn: ScriptTurn) -> list[Envelope]:
    calls = (call for step in turn.steps if isinstance(step, UseTools) for call in step.calls)
    answers = iter([Deny(call.reason) if call.answer == "deny" else Approve() for call in calls])
    seen: list[Envelope] = []
    async for envelope in watched:
        if not isinstance(envelope, Envelope):
            continue
        seen.append(envelope)
        match envelope.event:
            case ToolRequested(call_id=call_id):
                session.answer(call_id, next(answers, Approve()))
            case TurnEnded():
                break
    return seen
