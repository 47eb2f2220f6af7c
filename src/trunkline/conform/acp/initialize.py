"""Checks of the beginning: versions, capabilities, authentication."""

from __future__ import annotations

from typing import Any

from trunkline.conform.acp.scenes import Params, greeting, ready, refused, succeeded
from trunkline.conform.acp.stage import Stage
from trunkline.conform.acp.subject import AcpReply
from trunkline.conform.acp.suite import SUITE
from trunkline.conform.acp.vocabulary import PROTOCOL_VERSION
from trunkline.conform.expect import expect, short
from trunkline.conform.kit import Broken, NotApplicable

#: A version that there will not be for a long time.
FAR_VERSION = 9999


async def _greeted(stage: Stage, params: Params) -> AcpReply:
    agent = await stage.start()
    return succeeded(await agent.ask("initialize", params, stage.target.timeout))


def _version(reply: AcpReply) -> int:
    found = reply.result.get("protocolVersion")
    if not isinstance(found, int) or isinstance(found, bool):
        raise Broken(f"{reply.asked} was answered with the `protocolVersion` {short(found)}, which is not an integer")
    return found


@SUITE.check("acp.init.answer", "MUST", "Initialization")
async def initialize_is_answered(stage: Stage) -> None:
    """`initialize` with protocol version 1 is answered with version 1."""
    reply = await _greeted(stage, greeting())
    if _version(reply) != PROTOCOL_VERSION:
        raise Broken(f"{reply.asked} was answered with {reply.shown}, not with the version {PROTOCOL_VERSION}")


@SUITE.check("acp.init.version", "MUST", "Initialization")
async def unknown_versions_get_our_own(stage: Stage) -> None:
    """A version that the agent does not know is answered with the latest that it does, not with an error."""
    reply = await _greeted(stage, greeting(FAR_VERSION))
    if not PROTOCOL_VERSION <= _version(reply) < FAR_VERSION:
        raise Broken(f"{reply.asked} was answered with {reply.shown}, not with a version that the agent speaks")


@SUITE.check("acp.init.capabilities", "MUST", "Initialization")
async def capabilities_have_their_types(stage: Stage) -> None:
    """Capabilities have their types: `loadSession` and those of prompts and MCP are booleans, the others objects."""
    reply = await _greeted(stage, greeting())
    found = reply.result.get("agentCapabilities", {})
    problem = f"{reply.asked} was answered with the `agentCapabilities` {short(found)}"
    expect(isinstance(found, dict), f"{problem}, not with an object")
    expect(isinstance(found.get("loadSession", False), bool), f"{problem}, in which `loadSession` is not a boolean")
    for group in ("promptCapabilities", "mcpCapabilities"):
        _members(found.get(group, {}), bool, f"{problem}, in which `{group}`", "booleans")
    _members(found.get("sessionCapabilities", {}), dict, f"{problem}, in which `sessionCapabilities`", "objects")


def _members(found: Any, kind: type, what: str, kinds: str) -> None:
    expect(isinstance(found, dict), f"{what} is not an object")
    for name, value in found.items():
        expect(name == "_meta" or value is None or isinstance(value, kind), f"{what} has other members than {kinds}")


@SUITE.check("acp.init.info", "SHOULD", "Initialization")
async def agents_say_who_they_are(stage: Stage) -> None:
    """The agent tells its name and version in `agentInfo`."""
    reply = await _greeted(stage, greeting())
    found = reply.result.get("agentInfo")
    for name in ("name", "version"):
        told = found.get(name) if isinstance(found, dict) else None
        expect(isinstance(told, str) and bool(told), f"`agentInfo` is {short(found)}, without a `{name}`")


@SUITE.check("acp.init.bare", "MUST", "Initialization")
async def versions_are_enough(stage: Stage) -> None:
    """`initialize` may lack everything but the version: capabilities that are not named are not offered."""
    _version(await _greeted(stage, {"protocolVersion": PROTOCOL_VERSION}))


@SUITE.check("acp.init.extras", "SHOULD", "Extensibility")
async def extras_do_not_matter(stage: Stage) -> None:
    """Capabilities that the agent does not know, and what is in `_meta`, do not make `initialize` fail."""
    params = greeting()
    params["clientCapabilities"] = {**params["clientCapabilities"], "conformNoSuchCapability": {}, "_meta": {"a.b": 1}}
    _version(await _greeted(stage, {**params, "_meta": {"conform": [1, None, "x"]}}))


@SUITE.check("acp.auth.shape", "MUST", "Initialization")
async def methods_have_names(stage: Stage) -> None:
    """Every one of the `authMethods` has an `id` and a `name`."""
    reply = await _greeted(stage, greeting())
    methods = reply.result.get("authMethods", [])
    expect(isinstance(methods, list), f"`authMethods` is {short(methods)}, not a list")
    for method in methods:
        fine = isinstance(method, dict) and all(isinstance(method.get(name), str) for name in ("id", "name"))
        expect(fine, f"the authentication method {short(method)} lacks an `id` or a `name`")
    if not methods:
        raise NotApplicable("the agent offers no `authMethods`")


@SUITE.check("acp.auth.unknown", "SHOULD", "Initialization")
async def unknown_methods_are_refused(stage: Stage) -> None:
    """`authenticate` with a method that was not offered is refused."""
    agent = await ready(stage)
    reply = await agent.ask("authenticate", {"methodId": "conform-no-such-method"}, stage.target.patience)
    refused(reply, "with a method that was not offered")
