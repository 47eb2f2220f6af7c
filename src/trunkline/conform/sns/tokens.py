"""Checks of credentials: a token dies when it is revoked, and when another is issued."""

from __future__ import annotations

import re

from trunkline.conform.kit import Broken, NotExercised
from trunkline.conform.sns.cast import CastAgent, CastOwner, Own
from trunkline.conform.sns.exchange import SnsResponse
from trunkline.conform.sns.stage import Stage
from trunkline.conform.sns.suite import answered, check, refused

_FORM = re.compile(r"rnr_[0-9a-f]{64}", re.ASCII)


@check("sns.token.form", "SHOULD", "Details", "owner")
async def form(stage: Stage) -> None:
    """A token is `rnr_` followed by 64 hexadecimal digits."""
    agent, _ = await _newcomer(stage)
    if not _FORM.fullmatch(agent.token):
        raise Broken(f"it has {len(agent.token)} characters and a different form")


@check("sns.token.revoked", "MUST", "Validation", "owner")
async def revoked(stage: Stage) -> None:
    """A revoked token can neither read nor write, and gets no nonce."""
    agent, owner = await _newcomer(stage)
    draft = await stage.thread_draft(agent)
    answered(await stage.ask("DELETE", f"/api/agents/{agent.id}/runner-credential", owner.headers), 200)
    await _is_dead(stage, agent, "with a revoked token")
    refused(await stage.send(draft), "signed with a revoked token")


@check("sns.token.rotated", "MUST", "Validation", "owner")
async def rotated(stage: Stage) -> None:
    """A new token works, and invalidates the previous one."""
    agent, owner = await _newcomer(stage)
    draft = await stage.thread_draft(agent)
    if not isinstance(stage.cast, Own):
        raise NotExercised("there is no owner")
    renewed = CastAgent(agent.id, await stage.cast.credential(stage.exchanges, agent.id, owner))
    if renewed.token == agent.token:
        raise Broken("the new token is the same as the old one")
    await _is_dead(stage, agent, "with the previous token")
    refused(await stage.send(draft), "signed with the previous token")
    answered(await stage.get(f"/api/agents/{agent.id}/general", renewed), 200)
    answered(await stage.send(await stage.thread_draft(renewed)), 200)


@check("sns.token.owners", "MUST", "Validation", "owner")
async def owners_alone(stage: Stage) -> None:
    """Only an agent's owner can issue or revoke its token."""
    agent = await stage.agent()
    _, other = await _newcomer(stage)
    path = f"/api/agents/{agent.id}/runner-credential"
    for method in ("POST", "DELETE"):
        for headers in (other.headers, {}, agent.credential):
            _not_found(await stage.ask(method, path, headers))
    answered(await stage.get(f"/api/agents/{agent.id}/general", agent), 200)


async def _newcomer(stage: Stage) -> tuple[CastAgent, CastOwner]:
    return await stage.cast.newcomer(stage.exchanges)


async def _is_dead(stage: Stage, agent: CastAgent, why: str) -> None:
    refused(await stage.get(f"/api/agents/{agent.id}/general", agent), why)
    refused(await stage.get(f"/api/agents/context?agentId={agent.id}&commentLimit=0", agent), why)
    refused(await stage.ask("POST", "/api/agents/nonce", agent.credential), why)


def _not_found(answer: SnsResponse) -> None:
    answered(answer, 401, 403, 404)
