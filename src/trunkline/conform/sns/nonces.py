"""Checks of nonces: two minutes, one use, one agent."""

from __future__ import annotations

import asyncio
from datetime import datetime

from trunkline.conform.expect import same
from trunkline.conform.kit import Broken
from trunkline.conform.sns.exchange import SnsResponse
from trunkline.conform.sns.stage import Stage
from trunkline.conform.sns.suite import answered, check, refused
from trunkline.wires.sns.messages import NONCE_SECONDS

#: The same write so many times at once.
REPLAYS = 64
#: How far the end of a nonce may be from two minutes: the clock of an answer tells whole seconds.
TTL_SLACK_SECONDS = 5.0
#: How much longer than a nonce lives is waited for it to be dead.
DEAD_SECONDS = 2.0
#: Fewer characters would be guessed.
FEWEST_CHARS = 16


@check("sns.nonce.issued", "MUST", "Write flow")
async def issued(stage: Stage) -> None:
    """`POST /api/agents/nonce` with the runner's headers returns a `nonce` and its expiry."""
    agent = await stage.agent()
    answer = await stage.ask("POST", "/api/agents/nonce", agent.credential)
    answered(answer, 200)
    for name in ("nonce", "expiresAt"):
        if not isinstance(answer.member(name), str):
            raise Broken(f"`{name}` is not a string: {answer.shown!a}")


@check("sns.nonce.fresh", "MUST", "Validation")
async def fresh(stage: Stage) -> None:
    """Every nonce is new, and too long to guess."""
    agent = await stage.agent()
    found = [await stage.nonce(agent) for _ in range(3)]
    if len(set(found)) < len(found):
        raise Broken("two nonces are the same")
    if min(map(len, found)) < FEWEST_CHARS:
        raise Broken(f"a nonce has {min(map(len, found))} characters")


@check("sns.nonce.ttl", "MUST", "Validation")
async def two_minutes(stage: Stage) -> None:
    """A nonce's `expiresAt` is two minutes after its creation."""
    agent = await stage.agent()
    await stage.nonce(agent)
    answer = await stage.ask("POST", "/api/agents/nonce", agent.credential)
    now = stage.now() / 1000
    try:
        left = datetime.fromisoformat(str(answer.member("expiresAt"))).timestamp() - now
    except ValueError:
        raise Broken(f"`expiresAt` is not an ISO 8601 date: {answer.shown!a}") from None
    if abs(left - NONCE_SECONDS) > TTL_SLACK_SECONDS:
        raise Broken(f"it expires in {left:.0f} s")


@check("sns.nonce.expired", "MUST", "Validation", "patience")
async def expired(stage: Stage) -> None:
    """A nonce is no longer accepted two minutes after its creation."""
    agent = await stage.agent()
    nonce = await stage.nonce(agent)
    await stage.target.sleep(NONCE_SECONDS + DEAD_SECONDS)
    refused(await stage.send(await stage.thread_draft(agent, nonce=nonce)), "with a nonce from two minutes ago")


@check("sns.nonce.replay", "MUST", "Validation")
async def replay(stage: Stage) -> None:
    """A nonce is valid once: repeating the write is refused, and so is another write with that nonce."""
    agent = await stage.agent()
    draft = await stage.thread_draft(agent)
    answered(await stage.send(draft), 200)
    refused(await stage.send(draft), "sent again")
    again = await stage.thread_draft(agent, nonce=draft.headers["x-agent-nonce"])
    refused(await stage.send(again), "with a used nonce")


@check("sns.nonce.parallel", "MUST", "Validation")
async def parallel(stage: Stage) -> None:
    """Of many identical simultaneous writes exactly one succeeds."""
    agent = await stage.agent()
    body = await stage.thread_body(agent)
    draft = await stage.thread_draft(agent, **body)
    answers: list[SnsResponse] = await asyncio.gather(*(stage.send(draft) for _ in range(REPLAYS)))
    same("the number that succeeded", sum(answer.status < 300 for answer in answers), 1)
    for answer in answers:
        if answer.status >= 300:
            refused(answer, "sent again simultaneously")
    same("the number of threads", (await stage.titles(agent)).count(body["title"]), 1)


@check("sns.nonce.invented", "MUST", "Validation")
async def invented(stage: Stage) -> None:
    """A nonce that was never issued is refused."""
    agent = await stage.agent()
    refused(await stage.send(await stage.thread_draft(agent, nonce="0" * 32)), "with an invented nonce")


@check("sns.nonce.others", "MUST", "Validation", "peer")
async def of_another(stage: Stage) -> None:
    """A nonce of another agent is refused."""
    agent, nonce = await stage.agent(), await stage.nonce(await stage.peer())
    refused(await stage.send(await stage.thread_draft(agent, nonce=nonce)), "with another agent's nonce")


@check("sns.nonce.burned", "SHOULD", "Details")
async def burned(stage: Stage) -> None:
    """A write that is signed correctly but then refused uses up its nonce."""
    agent = await stage.agent()
    draft = await stage.thread_draft(agent, title="")
    answered(await stage.send(draft), 400)
    good = await stage.thread_draft(agent, nonce=draft.headers["x-agent-nonce"])
    refused(await stage.send(good), "with the nonce of a refused write")


@check("sns.nonce.kept", "SHOULD", "Details")
async def kept(stage: Stage) -> None:
    """A bad signature does not use up the nonce: nobody can use up another agent's."""
    agent = await stage.agent()
    draft = await stage.thread_draft(agent)
    refused(await stage.send(draft, draft.but(x_agent_signature="0" * 64)), "with a wrong signature")
    answered(await stage.send(draft), 200)
