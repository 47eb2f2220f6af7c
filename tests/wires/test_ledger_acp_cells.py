"""The ledger says what the Agent Client Protocol does with what is no event."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.acp_world import AcpWorld, acp_world
from tests.support.ledger_cells import OTHERS, Scenes, flags_of
from trunkline.cli import acp
from trunkline.core import faults
from trunkline.core.agent import AddMcpServer, Approve, Capabilities, Deny, SetOptions
from trunkline.core.events import Failed, TextDelta, ToolFinished, ToolRequested, ToolStarted, TurnEnded
from trunkline.core.usage import NOTHING_USED, Usage
from trunkline.wires.acp import messages
from trunkline.wires.ledger import WIRES, Fate

ACP = WIRES["acp"]
DONE = TurnEnded("success", NOTHING_USED)
LS = ToolRequested("c1", "Bash", "exec", {"command": "ls"}, "List files")
PICTURE = base64.b64encode(b"\x89PNG").decode()

SCENES = Scenes[AcpWorld]()


async def begun(world: AcpWorld, *blocks: dict[str, Any]) -> tuple[str, int]:
    """A session, and a prompt that the agent has heard."""
    session = await world.new()
    prompt = [*blocks] or [{"type": "text", "text": "hello"}]
    sent = world.client.request("session/prompt", sessionId=session, prompt=prompt)
    await world.client.settle()
    return session, sent


async def ended(world: AcpWorld, prompt: int, *events: Any) -> Any:
    """The answer to a prompt whose turn goes like this."""
    world.fake.say(*events)
    return await world.client.answer(prompt)


async def asked(world: AcpWorld, option: str) -> None:
    """A turn in which a tool is asked about, and the client chooses this."""
    _, prompt = await begun(world)
    world.fake.say(LS)
    await world.client.settle()
    world.client.choose(world.client.questions()[-1], option)
    await world.client.settle()
    await ended(world, prompt, DONE)


@SCENES.of("message", "attachments", "images in")
async def what_a_prompt_brings(world: AcpWorld) -> Fate:
    file = world.keeper.folder / "a.txt"
    file.write_text("x")
    link = {"type": "resource_link", "uri": file.as_uri(), "name": "a.txt"}
    image = {"type": "image", "data": PICTURE, "mimeType": "image/png"}
    _, prompt = await begun(world, {"type": "text", "text": "Look at "}, link, image)
    await ended(world, prompt, DONE)
    (heard,) = world.fake.heard
    assert "Look at [a.txt]" in heard.text
    assert heard.files == (str(file), *world.keeper.kept)
    assert list(world.keeper.kept.values()) == [b"\x89PNG"]
    return "carried"


@SCENES.of("images out")
async def a_picture(world: AcpWorld) -> Fate:
    world.keeper.mode = "yolo"
    _, prompt = await begun(world)
    finished = ToolFinished("c1", "Bash", "success", PICTURE, "image", {"media_type": "image/png"})
    await ended(world, prompt, LS, ToolStarted("c1", "Bash"), finished, DONE)
    shown = [update["content"][0]["content"] for update in world.client.updates() if update.get("content")]
    return "carried" if {"type": "image", "data": PICTURE, "mimeType": "image/png"} in shown else "degraded"


@SCENES.of("speech in")
async def speech(world: AcpWorld) -> Fate:
    told = await world.client.ask("initialize", protocolVersion=1)
    assert told["agentCapabilities"]["promptCapabilities"]["audio"] is False
    session = await world.new()
    sound = {"type": "audio", "data": PICTURE, "mimeType": "audio/wav"}
    assert (await world.client.refused("session/prompt", sessionId=session, prompt=[sound]))["code"] == -32602
    return "refused"


@SCENES.of("cancel")
async def a_cancel(world: AcpWorld) -> Fate:
    session, prompt = await begun(world)
    world.client.send(method="session/cancel", params={"sessionId": session})
    assert (await world.client.answer(prompt))["result"]["stopReason"] == "cancelled"
    again = world.client.prompt(session)
    await world.client.settle()
    await ended(world, again, DONE)
    return "carried"


@SCENES.of("busy")
async def two_prompts(world: AcpWorld) -> Fate:
    session, first = await begun(world)
    second = world.client.prompt(session, "two")
    await ended(world, first, DONE)
    await world.client.settle()
    await ended(world, second, DONE)
    return "carried" if [message.text for message in world.fake.heard] == ["hello", "two"] else "refused"


@SCENES.of("faults")
async def a_fault(world: AcpWorld) -> Fate:
    _, prompt = await begun(world)
    answer = await ended(world, prompt, Failed("provider", "Overloaded.", retryable=True), TurnEnded("error"))
    said = (answer["error"]["message"], answer["error"]["data"])
    return "carried" if said == ("Overloaded.", {"kind": "provider", "retryable": True}) else "degraded"


@SCENES.of("outcome")
async def outcomes(world: AcpWorld) -> Fate:
    """Gives whether all four can be told apart."""
    forms = set()
    for event in (DONE, Failed("agent", "No."), TurnEnded("unknown"), None):
        session, prompt = await begun(world)
        if event is None:
            world.client.send(method="session/cancel", params={"sessionId": session})
            answer = await world.client.answer(prompt)
        else:
            answer = await ended(world, prompt, event, *([TurnEnded("error")] if isinstance(event, Failed) else []))
        forms.add(answer.get("result", {}).get("stopReason") or answer["error"]["code"])
    assert {"end_turn", "cancelled"} < forms
    return "carried" if len(forms) == 4 else "degraded"


@SCENES.of("usage of a turn")
async def used(world: AcpWorld) -> Fate:
    _, prompt = await begun(world)
    told = (await ended(world, prompt, TurnEnded("success", Usage(10, 5, 3, 2))))["result"]["usage"]
    assert {"inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 3, "cachedWriteTokens": 2}.items() <= told.items()
    return "carried"


@SCENES.of("usage in total")
async def used_so_far(world: AcpWorld) -> Fate:
    _, prompt = await begun(world)
    setattr(world.fake, "context", (10, 100))  # noqa: B010  (not every agent has one)
    await ended(world, prompt, TextDelta("x"), TurnEnded("success", Usage(1, 2)))
    (window,) = (each for each in world.client.updates() if each["sessionUpdate"] == "usage_update")
    return "degraded" if (window["used"], window["size"]) == (10, 100) else "refused"


@SCENES.of("liveness", "sequence numbers", "history")
async def no_message_for_it(world: AcpWorld) -> Fate:
    """Neither methods nor members of what the client hears."""
    assert not {"ping", "session/ping"} & set(messages.AGENT_REQUESTS)
    _, prompt = await begun(world)
    await ended(world, prompt, TextDelta("x"), DONE)
    said = json.dumps(world.client.lines)
    assert '"seq"' not in said
    (fields,) = (kind.__fields__ for name, kind in messages.AGENT_REQUESTS.items() if name == "session/new")
    assert not {"history", "messages"} & set(fields)
    return "refused"


@SCENES.of("approve once")
async def once(world: AcpWorld) -> Fate:
    await asked(world, "allow_once")
    assert world.fake.decisions == [("c1", Approve())]
    return "carried"


@SCENES.of("approve always")
async def always(world: AcpWorld) -> Fate:
    await asked(world, "allow_always")
    (held,) = world.keeper.held.values()
    assert [grant.command for grant in held[0].grants] == ["ls"]
    return "carried"


@SCENES.of("deny")
async def no(world: AcpWorld) -> Fate:
    await asked(world, "reject_once")
    ((_, decision),) = world.fake.decisions
    assert isinstance(decision, Deny)
    # Nobody could say why.
    return "degraded"


@SCENES.of("modes")
async def modes(world: AcpWorld) -> Fate:
    session = await world.new()
    await world.client.ask("session/set_mode", sessionId=session, modeId="yolo")
    await world.client.settle()
    assert world.keeper.held[session][0].mode == "yolo"
    return "carried"


@SCENES.of("allow-list", "instructions")
async def at_the_start(world: AcpWorld) -> Fate:
    """By flags, and by no message."""
    assert {"--allow", "--system-prompt"} <= flags_of(acp.make_parser)
    fields = {field for kind in messages.AGENT_REQUESTS.values() for field in kind.__fields__}
    assert not {"allow", "system_prompt", "instructions"} & fields
    return "degraded"


@SCENES.of("session id", "workspace")
async def a_session(world: AcpWorld) -> Fate:
    assert await world.new() in world.keeper.held
    assert world.keeper.seats[0].workspace == str(world.keeper.folder)
    return "carried"


@SCENES.of("resume", "replay", "several watchers")
async def somebody_else(world: AcpWorld) -> Fate:
    """Comes to a session that there is, hears what was said, and then what is said."""
    session, prompt = await begun(world)
    await ended(world, prompt, TextDelta("good day"), DONE)
    other = world.connect()
    await world.client.ask("session/resume", sessionId=session, cwd="/", mcpServers=[])
    await world.client.ask("session/load", sessionId=session, cwd="/", mcpServers=[])
    await other.ask("session/load", sessionId=session, cwd="/", mcpServers=[])
    texts = [update["content"]["text"] for update in other.updates() if "content" in update]
    assert texts == ["hello", "good day"]
    again = world.client.prompt(session)
    await world.client.settle()
    world.fake.say(LS)
    await world.client.settle()
    other.choose(other.questions()[0], "allow_once")
    await world.client.settle()
    await ended(world, again, DONE)
    assert world.fake.decisions == [("c1", Approve())]
    return "carried"


@SCENES.of("capabilities")
async def capabilities(world: AcpWorld) -> Fate:
    """Those that change what is told are carried; all others are named as lost."""
    plain = await world.client.ask("initialize", protocolVersion=1)
    world.keeper.capabilities = Capabilities()
    plain = await world.client.ask("initialize", protocolVersion=1)
    lost = []
    for name in ("thinking", "voice", "steerable", "images", "mcp"):
        world.keeper.capabilities = Capabilities().replace(**{name: True})
        if await world.client.ask("initialize", protocolVersion=1) == plain:
            lost.append(name)
    assert lost == ["thinking", "voice", "steerable"]
    return "degraded"


@SCENES.of("model options")
async def options(world: AcpWorld) -> Fate:
    world.keeper.capabilities = Capabilities(effort_levels=("low", "high"))
    session = await world.new()
    chosen = {"sessionId": session, "configId": "effort", "value": "high"}
    await world.client.ask("session/set_config_option", **chosen)
    assert world.fake.changes == [SetOptions({"effort": "high"})]
    refused = await world.client.refused("session/set_config_option", **{**chosen, "configId": "model"})
    return "degraded" if refused["code"] == -32602 else "carried"


@SCENES.of("MCP servers")
async def servers(world: AcpWorld) -> Fate:
    server = {"name": "a", "command": "/bin/a", "args": [], "env": []}
    await world.client.ask("session/new", cwd=str(world.keeper.folder), mcpServers=[server])
    return "carried" if world.fake.changes == [AddMcpServer("a", "stdio", "/bin/a")] else "refused"


@SCENES.of("fatal start")
async def no_start(world: AcpWorld) -> Fate:
    for fault, code in ((faults.ConfigError("It is broken."), -32603), (faults.MissingKey("No key."), -32000)):
        world.keeper.failing = fault
        error = await world.client.refused("session/new", cwd=str(world.keeper.folder))
        assert (error["code"], error["message"]) == (code, str(fault))
    return "carried"


@pytest.mark.parametrize("concept", OTHERS)
async def test_the_protocol_does_with_what_is_no_event_what_the_ledger_says(concept: str, tmp_path: Path) -> None:
    async with acp_world(tmp_path, shared=True) as world:
        seen: set[str] = set()
        send, write = world.client.send, world.client.write

        def sent(**members: Any) -> None:
            seen.add(members.get("method", ""))
            send(**members)

        def heard(data: bytes) -> None:
            line = json.loads(data)
            seen.update({line.get("method", ""), line.get("params", {}).get("update", {}).get("sessionUpdate", "")})
            write(data)

        world.client.send, world.client.write = sent, heard  # type: ignore[method-assign]
        assert await SCENES.by_concept[concept](world) == ACP[concept].fate
        assert set(ACP[concept].lines) <= seen
