"""Checks of parameters that change while the agent lives."""

from __future__ import annotations

from typing import Any

from trunkline.conform.expect import same
from trunkline.conform.tryll.link import Link
from trunkline.conform.tryll.stage import Stage
from trunkline.conform.tryll.suite import canned, check, ended_well
from trunkline.wires.tryll import messages as m


async def _agent(link: Link) -> int:
    """An agent that reads the storage `one`; there is a `two` as well."""
    for name in ("one", "two"):
        lines = (f"{name} a", f"{name} b")
        await link.ask(m.CreateStringStorageRequest(0, name, lines), m.CreateStringStorageResponse)
    return await link.agent(canned("say", storage="one"), canned("other", "Never."))


def _change(agent: int, node: str = "say", **params: Any) -> m.ChangeAgentParamRequest:
    return m.ChangeAgentParamRequest(0, agent, node, m.CannedResponseParams(**params))


@check("tryll.param.change", "SHOULD", "Details")
async def change(stage: Stage) -> None:
    """Changing a mutable parameter gets an `Ack`, and takes effect from the next turn."""
    link = await stage.session()
    agent = await _agent(link)
    same("the line before", ended_well(await link.say(agent, "hello")).text, "one a")
    await link.ask(_change(agent, string_storage="two"), m.Ack)
    same("the line afterwards", ended_well(await link.say(agent, "hello")).text, "two a")
    first = m.CannedResponseSelectionStrategy.FIRST
    await link.ask(_change(agent, string_storage="two", selection_strategy=first), m.Ack)
    said = [ended_well(await link.say(agent, "hello")).text for _ in range(2)]
    same("the first line, again and again", said, ["two a", "two a"])


@check("tryll.param.structural", "SHOULD", "Details")
async def structural(stage: Stage) -> None:
    """The structure of the graph, exits included, cannot change: 3006, and no part of the request takes effect."""
    link = await stage.session()
    agent = await _agent(link)
    for params in ({"inline_strings": ("new",)}, {"default_exit": "other"}, {"default_exit": "nowhere"}):
        request = _change(agent, string_storage="two", **params)
        await link.refused(request, 3006, why=f"with other {next(iter(params))}")
    same("the line afterwards", ended_well(await link.say(agent, "hello")).text, "one a")


@check("tryll.param.empty", "SHOULD", "Details")
async def empty(stage: Stage) -> None:
    """An empty exit and an absent one are the same: replacing one by the other is not a change."""
    link = await stage.session()
    agent = await _agent(link)
    await link.ask(_change(agent, string_storage="two", default_exit=""), m.Ack)


@check("tryll.param.node", "SHOULD", "Details")
async def node(stage: Stage) -> None:
    """An unknown node is refused with 3005, and parameters of another kind of node with 3007."""
    link = await stage.session()
    agent = await _agent(link)
    await link.refused(_change(agent, "nobody", string_storage="two"), 3005, why="for a node that does not exist")
    for params in (m.InstructionParams("a", "b"), None):
        request = m.ChangeAgentParamRequest(0, agent, "say", params)
        await link.refused(request, 3007, why="with parameters of another kind")


@check("tryll.param.failed", "SHOULD", "Details")
async def failed(stage: Stage) -> None:
    """A change that cannot be applied is refused, and the node works as before."""
    link = await stage.session()
    agent = await _agent(link)
    request = _change(agent, string_storage="conform-not-there.txt")
    await link.refused(request, 3007, 3010, 7000, why="with a storage that does not exist")
    await link.refused(_change(agent, string_storage="../x.txt"), 3009, why="with a path out of the folder")
    same("the line afterwards", ended_well(await link.say(agent, "hello")).text, "one a")
