"""Checks of the handshake, and that what is announced is there."""

from __future__ import annotations

from typing import Any

from trunkline.conform.expect import expect, same, short
from trunkline.conform.kit import Broken, NotApplicable
from trunkline.conform.mcp.link import hello
from trunkline.conform.mcp.stage import Stage
from trunkline.conform.mcp.suite import SUITE
from trunkline.conform.mcp.vocabulary import LISTS, METHOD_NOT_FOUND, NO_VERSION


@SUITE.check("mcp.init.answer", "MUST", "Lifecycle")
async def initialize_is_answered(stage: Stage) -> None:
    """`initialize` is answered with a protocol version, capabilities, and the server's name and version."""
    link = await stage.connect()
    await stage.shake_hands(link)
    wanted: dict[str, type[Any]] = {"protocolVersion": str, "capabilities": dict, "serverInfo": dict}
    for name, kind in wanted.items():
        expect(isinstance(link.info.get(name), kind), f"`{name}` of the result is {short(link.info.get(name))}")
    for name in ("name", "version"):
        found = link.info["serverInfo"].get(name)
        expect(isinstance(found, str), f"`serverInfo.{name}` is {short(found)}, not a string")


@SUITE.check("mcp.init.same-version", "MUST", "Lifecycle: version negotiation")
async def a_version_that_it_speaks_is_taken(stage: Stage) -> None:
    """A client that asks for a version which the server has named gets that version."""
    first = await stage.ready()
    named = first.info.get("protocolVersion")
    if not isinstance(named, str):
        raise Broken(f"`protocolVersion` is {short(named)}, not a string")
    second = await stage.connect()
    await stage.shake_hands(second, named)
    same("`protocolVersion`", second.info.get("protocolVersion"), named)


@SUITE.check("mcp.init.other-version", "MUST", "Lifecycle: version negotiation")
async def a_version_that_it_does_not_speak_is_not_agreed_to(stage: Stage) -> None:
    """A version that never existed is answered with another one, or with an error."""
    link = await stage.connect()
    answer = await link.ask("initialize", hello(NO_VERSION), stage.target.timeout)
    result = answer.get("result")
    if isinstance(result, dict):
        version = result.get("protocolVersion")
        expect(isinstance(version, str) and version != NO_VERSION, f"it agreed to the version {short(version)}")
    elif "error" not in answer:
        raise Broken(f"it was answered with {short(answer)}")


@SUITE.check("mcp.init.announced", "MUST", "Lifecycle: capability negotiation")
async def what_is_announced_is_there(stage: Stage) -> None:
    """The lists of every capability that the server announces are answered with results."""
    link = await stage.ready()
    capabilities = link.info.get("capabilities")
    offered = [each for each in LISTS if isinstance(capabilities, dict) and each in capabilities]
    if not offered:
        raise NotApplicable("the server offers neither tools, resources nor prompts")
    for capability in offered:
        method, member = LISTS[capability]
        await stage.listed(link, capability, method, member)


@SUITE.check("mcp.init.not-announced", "SHOULD", "Lifecycle: capability negotiation")
async def what_is_not_announced_is_refused(stage: Stage) -> None:
    """A method of a capability that the server does not announce is answered with the error -32601."""
    link = await stage.ready()
    capabilities = link.info.get("capabilities") or {}
    missing = [each for each in LISTS if each not in capabilities]
    if not missing:
        raise NotApplicable("the server offers tools, resources and prompts")
    for capability in missing:
        method = LISTS[capability][0]
        answer = await link.ask(method, {}, stage.target.timeout)
        same(f"the error of `{method}`", (answer.get("error") or {}).get("code"), METHOD_NOT_FOUND)


@SUITE.check("mcp.ping.answer", "MUST", "Utilities: ping")
async def ping_is_answered(stage: Stage) -> None:
    """`ping` is answered with an empty result."""
    link = await stage.ready()
    found = await stage.result(link, "ping")
    expect(set(found) <= {"_meta"}, f"the result of `ping` is {short(found)}, not empty")
