"""The ledger says what OpenAI-compatible HTTP does with what is no event."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from tests.support.keeper import FAKE
from tests.support.ledger_cells import OTHERS, Scenes, flags_of
from tests.support.loop import until
from tests.support.openai_world import ECHO, MODEL, Caller, OpenAIWorld, error_of, openai_world
from trunkline.cli import openai_serve
from trunkline.core import events as core
from trunkline.core import faults
from trunkline.core.agent import AddHistory, Deny
from trunkline.core.usage import Usage
from trunkline.wires.ledger import WIRES, Fate
from trunkline.wires.openai.streaming import HEARTBEAT_SECONDS

OPENAI = WIRES["openai"]
CHAT, RESPONSES = "chat/completions", "responses"
BOTH = (CHAT, RESPONSES)
SESSION = "X-Trunkline-Session"
DONE = core.TurnEnded("success", Usage(10, 5, 3))
LS = core.ToolRequested("c1", "Bash", "exec", {"command": "ls"}, "List files")
PNG = b"\x89PNG\r\n\x1a\n"
PICTURE = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"

SCENES = Scenes["Watched"]()


class Watched:
    """A world, and in which forms something has crossed."""

    def __init__(self, world: OpenAIWorld) -> None:
        self.world = world
        self.seen: set[str] = set()

    async def ask(self, path: str, body: dict[str, Any], *events: core.Event, **headers: str) -> Caller:
        """A question to the agent on strings, and a turn that goes like this; without events it is still going on."""
        for key, value in {"messages" if path == CHAT else "input": "", **body, **headers}.items():
            self.seen |= {key} | (
                {message.get("role", "") for message in value} if key == "messages" and value else set()
            )
        caller = self.world.call(path, body, headers=headers)
        await until(lambda: self.world.keeper.fakes and self.world.fake.busy)
        if events:
            self.world.fake.say(*events)
            await caller.whole()
            self.hear(caller.text)
        return caller

    def hear(self, text: str) -> None:
        self.seen |= {form for form in ("usage", "finish_reason", "error") if f'"{form}":' in text}


@SCENES.of("message", "attachments", "images in")
async def what_a_message_brings(it: Watched) -> Fate:
    for path in BOTH:
        words, image = ("text", "image_url") if path == CHAT else ("input_text", "input_image")
        picture: Any = {"url": PICTURE} if path == CHAT else PICTURE
        parts = [{"type": words, "text": "Look"}, {"type": image, "image_url": picture}]
        sent = [{"role": "user", "content": parts}]
        await it.ask(path, {"messages": sent} if path == CHAT else {"input": sent}, DONE)
        (heard,) = it.world.fake.heard
        assert (heard.text, len(heard.files)) == ("Look", 1)
        assert it.world.keeper.kept[heard.files[0]] == PNG
    return "carried"


@SCENES.of("images out", "speech in", "MCP servers")
async def what_it_has_no_place_for(it: Watched) -> Fate:
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    error_of(await it.world.chat([{"type": "text", "text": "x"}, sound]), 400)  # type: ignore[arg-type]
    error_of(await it.world.respond(tools=[{"type": "mcp", "server_label": "a", "server_url": "http://a"}]), 400)
    finished = core.ToolFinished("c1", "Bash", "success", "AAA=", "image", {"media_type": "image/png"})
    for path in BOTH:
        caller = await it.ask(path, {}, core.ToolStarted("c1", "Bash"), finished, DONE)
        assert "AAA=" not in caller.text
    return "refused"


@SCENES.of("cancel")
async def hanging_up(it: Watched) -> Fate:
    for path in BOTH:
        caller = await it.ask(path, {"stream": True}, **{SESSION: path[:4]})
        await caller.leave()
        assert it.world.keeper.seats[-1].stopped == [1]
        assert path[:4] in it.world.keeper.held
    begun = (await it.world.respond("One", FAKE, background=True, conversation="s1")).json()
    await until(lambda: it.world.fake.busy)
    cancelled = (await it.world.ask("POST", f"responses/{begun['id']}/cancel")).json()
    return "carried" if cancelled["status"] == "cancelled" else "refused"


@SCENES.of("busy")
async def two_messages(it: Watched) -> Fate:
    first = await it.ask(RESPONSES, {"stream": True, "conversation": "s1", "input": "one"})
    second = it.world.call(RESPONSES, {"stream": True, "conversation": "s1", "input": "two"})
    await until(lambda: "response.created" in second.text)
    it.world.fake.say(DONE)
    await first.whole()
    await until(lambda: it.world.fake.busy)
    it.world.fake.say(DONE)
    await second.whole()
    return "carried" if [message.text for message in it.world.fake.heard] == ["one", "two"] else "refused"


@SCENES.of("faults")
async def faults_of_turns(it: Watched) -> Fate:
    """Gives whether all forms tell the kind."""
    failed = (core.Failed("timeout", "Too slow", True), core.TurnEnded("error"))
    codes = []
    for path in BOTH:
        for stream in (True, False):
            caller = await it.ask(path, {"stream": stream}, *failed)
            assert "Too slow" in caller.text
            codes.append('"code":"timeout"' in caller.text)
            if not stream:
                assert caller.status == 504
                assert caller.headers.get("x-should-retry") != "false"
    assert codes == [True, True, False, True]
    return "degraded"


@SCENES.of("outcome")
async def outcomes(it: Watched) -> Fate:
    """Gives whether all four can be told apart."""
    forms = set()
    for outcome in ("success", "error", "unknown"):
        caller = await it.ask(CHAT, {"stream": True}, core.TurnEnded(outcome))
        forms.add("error" if '"error":' in caller.text else '"finish_reason":"stop"' in caller.text)
    assert forms == {"error", True}
    return "degraded"


@SCENES.of("usage of a turn")
async def used(it: Watched) -> Fate:
    for path in BOTH:
        caller = await it.ask(path, {}, DONE)
        for number in (10, 5, 3):
            assert f":{number}" in caller.text.partition('"usage":')[2]
        unknown = await it.ask(path, {}, core.TurnEnded("success"))
        assert '"usage":{' not in unknown.text
    return "carried"


@SCENES.of("usage in total", "several watchers")
async def only_its_own(it: Watched) -> Fate:
    """A client hears of its own turn, however many there were."""
    usages = []
    for text in ("one", "two"):
        caller = await it.ask(CHAT, {}, core.TextDelta(text), DONE, **{SESSION: "s1"})
        usages.append(caller.text.partition('"usage":')[2])
        assert ("one" in caller.text, "two" in caller.text) == (text == "one", text == "two")
    assert usages[0] == usages[1]
    return "refused"


@SCENES.of("liveness")
async def a_silent_stream(it: Watched) -> Fate:
    for path in BOTH:
        caller = await it.ask(path, {"stream": True})
        await asyncio.sleep(2 * HEARTBEAT_SECONDS + 1)
        assert caller.text.count(": alive\n\n") == 1
        await caller.leave()
    assert f"for {HEARTBEAT_SECONDS:g} s" in OPENAI["liveness"].how
    return "carried"


@SCENES.of("approve once", "approve always", "deny")
async def asking(it: Watched) -> Fate:
    """The client cannot be asked. Where nobody else is there either, a policy denies it."""
    for path in BOTH:
        caller = await it.ask(path, {"stream": True})
        it.world.fake.say(LS)
        await until(lambda: it.world.fake.decisions)
        ((_, decision),) = it.world.fake.decisions
        assert isinstance(decision, Deny)
        it.world.fake.say(DONE)
        await caller.whole()
    return "refused"


@SCENES.of("modes", "allow-list", "workspace")
async def at_the_start(it: Watched) -> Fate:
    """By flags; what a client says of it changes nothing."""
    assert {"--mode", "--allow", "--workspace"} <= flags_of(openai_serve.make_parser)
    await it.ask(CHAT, {"mode": "yolo", "allow": ["Bash"], "workspace": "/"})
    assert it.world.keeper.seats[0].session.mode == "default"
    it.world.fake.say(LS)
    await until(lambda: it.world.fake.decisions)
    assert isinstance(it.world.fake.decisions[0][1], Deny)
    it.world.fake.say(DONE)
    return "degraded"


@SCENES.of("session id", "resume")
async def one_session(it: Watched) -> Fate:
    caller = await it.ask(CHAT, {}, DONE, **{SESSION: "mine"})
    assert caller.headers["x-trunkline-session"] == "mine"
    await it.ask(RESPONSES, {"conversation": "mine"}, DONE)
    await it.ask(RESPONSES, {"previous_response_id": "resp_2_mine"}, DONE)
    assert list(it.world.keeper.held) == ["mine"]
    assert len(it.world.fake.heard) == 3
    await it.ask(RESPONSES, {"previous_response_id": "resp_1_mine"}, DONE)
    return "carried" if len(it.world.keeper.held) == 2 else "degraded"


@SCENES.of("history", "instructions")
async def what_was_before(it: Watched) -> Fate:
    said = [{"role": "user", "content": "One"}, {"role": "assistant", "content": "Two"}]
    now = {"role": "user", "content": "Three"}
    system = {"role": "system", "content": "Be brief."}
    await it.ask(CHAT, {"messages": [system, *said, now]}, DONE)
    in_chat = it.world.fake.changes
    await it.ask(RESPONSES, {"instructions": "Be brief.", "input": [*said, now]}, DONE)
    assert it.world.fake.changes == in_chat
    (told,) = in_chat
    assert isinstance(told, AddHistory)
    for part in ("Be brief.", "One", "Two"):
        assert part in told.text
    return "carried"


@SCENES.of("replay", "sequence numbers")
async def once_more(it: Watched) -> Fate:
    numbers = []
    for text in ("One", "Two"):
        body = {"stream": True, "conversation": "s1", "input": text}
        caller = await it.ask(RESPONSES, body, LS.replace(name="Look"), core.TextDelta(text), DONE)
        numbers.append([event["sequence_number"] for event in caller.events if event])
    assert numbers[0] == numbers[1] == list(range(len(numbers[0])))
    stored = (await it.world.get("responses/resp_1_s1")).json()
    items = (await it.world.get("conversations/s1/items")).json()["data"]
    assert "One" in str(stored)
    assert len(items) >= 4
    assert "response.output_text.delta" not in f"{stored}{items}"
    return "degraded"


@SCENES.of("capabilities")
async def capabilities(it: Watched) -> Fate:
    listed = (await it.world.get("models")).json()["data"]
    assert {key for each in listed for key in each} == {"id", "object", "created", "owned_by", "description"}
    return "degraded"


@SCENES.of("model options")
async def options(it: Watched) -> Fate:
    schema = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}}
    assert (await it.world.chat(model=MODEL, temperature=0, top_p=1, seed=1, stop="x", max_tokens=9)).status_code == 200
    error_of(await it.world.chat(model=ECHO, response_format=schema), 400)
    cut = (await it.world.chat("123456789", max_tokens=2)).json()["choices"][0]
    assert cut["finish_reason"] == "length"
    it.seen |= {"messages", "input"}
    return "degraded"


@SCENES.of("fatal start")
async def no_start(it: Watched) -> Fate:
    it.world.keeper.refusal = faults.ConfigError("It is not configured.")
    for response in (await it.world.chat(), await it.world.respond()):
        assert error_of(response, 400)["message"] == "It is not configured."
        it.hear(response.text)
    return "carried"


@pytest.mark.virtual_time
@pytest.mark.parametrize("concept", OTHERS)
async def test_both_formats_do_with_what_is_no_event_what_the_ledger_says(concept: str) -> None:
    async with openai_world() as world:
        it = Watched(world)
        assert await SCENES.by_concept[concept](it) == OPENAI[concept].fate
        assert set(OPENAI[concept].lines) <= it.seen
