"""Checks of modes, which an agent may have."""

from __future__ import annotations

from typing import Any

from trunkline.conform.acp.scenes import new_params, ready, refused, say, succeeded
from trunkline.conform.acp.stage import Stage
from trunkline.conform.acp.subject import AcpSubject
from trunkline.conform.acp.suite import SUITE
from trunkline.conform.expect import expect, short
from trunkline.conform.kit import NotApplicable


async def _modes(stage: Stage) -> tuple[AcpSubject, str, dict[str, Any]]:
    """An agent, a session, and the modes of that."""
    agent = await ready(stage)
    reply = succeeded(await agent.ask("session/new", new_params(stage), stage.target.timeout))
    modes = reply.result.get("modes")
    if modes is None:
        raise NotApplicable("the agent has no modes: `session/new` tells of none")
    expect(isinstance(modes, dict), f"{reply.asked} was answered with the `modes` {short(modes)}, not an object")
    return agent, str(reply.result.get("sessionId")), modes


def _ids(modes: dict[str, Any]) -> list[str]:
    found = modes.get("availableModes")
    fine = isinstance(found, list) and bool(found)
    expect(fine, f"`modes` is {short(modes)}, without a list of `availableModes`")
    for mode in found if isinstance(found, list) else ():
        named = isinstance(mode, dict) and all(isinstance(mode.get(name), str) for name in ("id", "name"))
        expect(named, f"the mode {short(mode)} lacks an `id` or a `name`")
    return [str(mode["id"]) for mode in found] if isinstance(found, list) else []


@SUITE.check("acp.mode.shape", "MUST", "Session Modes")
async def modes_have_a_shape(stage: Stage) -> None:
    """Modes have an `id` and a `name`, and the current one is among them."""
    _, _, modes = await _modes(stage)
    current = modes.get("currentModeId")
    expect(current in _ids(modes), f"the current mode {short(current)} is not among {short(_ids(modes))}")


@SUITE.check("acp.mode.set", "MUST", "Session Modes")
async def modes_can_be_set(stage: Stage) -> None:
    """`session/set_mode` takes every mode that is available, and the session goes on."""
    agent, session, modes = await _modes(stage)
    for mode in _ids(modes):
        params = {"sessionId": session, "modeId": mode}
        succeeded(await agent.ask("session/set_mode", params, stage.target.patience))
    await say(stage, agent, session, "hello")


@SUITE.check("acp.mode.unknown", "SHOULD", "Session Modes")
async def unknown_modes_are_refused(stage: Stage) -> None:
    """A mode that is not available is refused."""
    agent, session, _ = await _modes(stage)
    params = {"sessionId": session, "modeId": "conform-no-such-mode"}
    refused(await agent.ask("session/set_mode", params, stage.target.patience), "(not available)")
