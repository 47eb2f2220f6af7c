"""Agents as tools, for clients of both generations of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest
from mcp import Client, MCPError
from mcp_types import (
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    InputRequiredResult,
    PromptReference,
    TextContent,
)

from tests.support.mcp_client import until
from tests.support.mcp_face import FaceKeeper
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.agent import Approve
from trunkline.wires.mcp import agents, messages
from trunkline.wires.mcp import serve as serving
from trunkline.wires.mcp.agents import AgentsOffer
from trunkline.wires.mcp.serve import mcp_server

Generation = Literal["legacy", "auto"]

both = pytest.mark.parametrize("generation", ["legacy", "auto"])


class Person:
    """A client's user, who answers questions."""

    def __init__(self, *answers: ElicitResult) -> None:
        self.answers = list(answers)
        self.asked: list[ElicitRequestParams] = []
        self.was_asked = asyncio.Event()

    async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params)
        self.was_asked.set()
        if not self.answers:
            await asyncio.Event().wait()
        return self.answers.pop(0)


def decided(decision: str, **more: str) -> ElicitResult:
    return ElicitResult(action="accept", content={"decision": decision, **more})


@asynccontextmanager
async def client(
    keeper: FaceKeeper, generation: Generation = "legacy", person: Person | None = None, only: tuple[str, ...] = ()
) -> AsyncIterator[Client]:
    offer = AgentsOffer(only)
    server = mcp_server(offer, lambda _: serving.Client(keeper, "tester"))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            async with Client(server, mode=generation, elicitation_callback=person) as made:
                yield made
    finally:
        await offer.close()
        await keeper.close()


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


# What there is.


@both
async def test_each_agent_is_a_tool_and_a_prompt(generation: Generation) -> None:
    async with client(FaceKeeper("echo", "my agent!", "my agent?"), generation) as host:
        names = [tool.name for tool in (await host.list_tools()).tools]
        prompts = [prompt.name for prompt in (await host.list_prompts()).prompts]
    assert prompts == ["ask_echo", "ask_my_agent", "ask_my_agent_2"]
    assert names == [*prompts, "list_sessions", "read_session"]


async def test_only_the_agents_that_were_named_are_offered() -> None:
    async with client(FaceKeeper("a", "b", "c"), only=("c", "a")) as host:
        names = [tool.name for tool in (await host.list_tools()).tools]
    assert names[:2] == ["ask_c", "ask_a"]
    assert "ask_b" not in names


def test_names_of_tools_are_short_and_unique() -> None:
    named = messages.tool_names(["x" * 100, "x" * 101, "///", "jsonstream:./a b"])
    assert all(len(name) <= messages.NAME_CHARS for name in named)
    assert list(named.values()) == ["x" * 100, "x" * 101, "///", "jsonstream:./a b"]
    assert "ask_agent" in named
    assert "ask_jsonstream_a_b" in named


async def test_a_prompt_says_how_to_ask() -> None:
    async with client(FaceKeeper()) as host:
        got = await host.get_prompt("ask_echo", {"message": "how are you?", "session": "s1"})
        assert "how are you?" in str(got.messages[0].content)
        assert "`s1`" in str(got.messages[0].content)
        with pytest.raises(MCPError, match="Unknown prompt"):
            await host.get_prompt("ask_nobody", {"message": "x"})
        with pytest.raises(MCPError, match="`message` is missing"):
            await host.get_prompt("ask_echo", {})


# Asking.


@both
async def test_a_message_is_answered(generation: Generation) -> None:
    keeper = FaceKeeper()
    async with client(keeper, generation) as host:
        result = await host.call_tool("ask_echo", {"message": "hello"})
    assert not result.is_error
    assert text_of(result) == "You said: hello"
    assert result.structured_content == {
        "session": next(iter(keeper.held)),
        "text": "You said: hello",
        "outcome": "success",
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


async def test_a_session_goes_on_and_an_unknown_one_is_opened_under_its_id() -> None:
    keeper = FaceKeeper()
    async with client(keeper) as host:
        for message in ("one", "two"):
            result = await host.call_tool("ask_echo", {"message": message, "session": "mine"})
            assert result.structured_content["session"] == "mine"
    assert keeper.said("mine") == ["one", "two"]


async def test_of_the_sessions_of_one_user_the_last_ones_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "KEPT", 2)
    keeper = FaceKeeper()
    async with client(keeper) as host:
        for session in ("a", "b", "a", "c"):
            await host.call_tool("ask_echo", {"message": "hello", "session": session})
        await until(lambda: [seat.left for seat in keeper.seats] == [True, True, False, False])
    assert all(seat.left for seat in keeper.seats)


async def test_a_session_of_another_agent_is_refused() -> None:
    async with client(FaceKeeper("a", "b")) as host:
        await host.call_tool("ask_a", {"message": "one", "session": "mine"})
        result = await host.call_tool("ask_b", {"message": "two", "session": "mine"})
    assert result.is_error
    assert "one with the agent `a`" in text_of(result)


@both
async def test_a_turn_that_failed_is_an_error_in_the_words_of_its_fault(generation: Generation) -> None:
    async with client(FaceKeeper(), generation) as host:
        result = await host.call_tool("ask_echo", {"message": "fail"})
    assert result.is_error
    assert text_of(result) == "I try.\n\nThe model is down. Try again later."
    assert result.structured_content["outcome"] == "error"


@both
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "`message` is missing"),
        ({"message": 7}, "`message` must be a string"),
        ({"message": " "}, "`message` is empty"),
        ({"message": "x", "session": 5}, "`session` must be a string"),
    ],
)
async def test_wrong_arguments_are_an_error_that_a_model_can_read(
    generation: Generation, arguments: dict[str, Any], words: str
) -> None:
    async with client(FaceKeeper(), generation) as host:
        result = await host.call_tool("ask_echo", arguments)
    assert result.is_error
    assert words in text_of(result)


async def test_an_unknown_tool_is_refused() -> None:
    async with client(FaceKeeper()) as host:
        with pytest.raises(MCPError, match="Unknown tool"):
            await host.call_tool("ask_nobody", {"message": "x"})


async def test_an_observer_may_list_and_read_but_not_ask() -> None:
    keeper = FaceKeeper()
    async with client(keeper) as host:
        await host.call_tool("ask_echo", {"message": "hello", "session": "mine"})
        keeper.may_ask = False
        refused = await host.call_tool("ask_echo", {"message": "again", "session": "mine"})
        read = await host.call_tool("read_session", {"session": "mine"})
        assert len((await host.list_resources()).resources) == 1
    assert refused.is_error
    assert "observer" in text_of(refused)
    assert "hello" in text_of(read)
    assert keeper.said("mine") == ["hello"]


async def test_a_client_cannot_ask_too_much_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "CALLS", 1)
    keeper = FaceKeeper()
    async with client(keeper) as host:
        first = asyncio.create_task(host.call_tool("ask_echo", {"message": "wait", "session": "a"}))
        await until(lambda: "a" in keeper.held and keeper.held["a"][0].turn)
        second = await host.call_tool("ask_echo", {"message": "x", "session": "b"})
        first.cancel()
        await asyncio.wait({first})
        assert second.is_error
        assert "being answered" in text_of(second)
        await until(lambda: not keeper.held["a"][0].turn)


# Progress, cancelling.


@both
async def test_progress_is_told_and_only_grows(generation: Generation) -> None:
    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    person = Person(decided("approve once"))
    async with client(FaceKeeper(), generation, person) as host:
        await host.call_tool("ask_echo", {"message": "tool"}, progress_callback=hear)
    numbers = [progress for progress, _ in heard]
    assert numbers
    assert numbers == sorted(set(numbers))
    assert all(message for _, message in heard)


async def test_a_cancelled_request_stops_its_turn_and_no_other() -> None:
    keeper = FaceKeeper()
    async with client(keeper) as host:
        other = asyncio.create_task(host.call_tool("ask_echo", {"message": "wait", "session": "other"}))
        mine = asyncio.create_task(host.call_tool("ask_echo", {"message": "wait", "session": "mine"}))
        await until(lambda: [session.turn for session, _, _ in keeper.held.values()] == [1, 1])
        mine.cancel()
        await asyncio.wait({mine})
        await until(lambda: not keeper.held["mine"][0].turn)
        assert keeper.held["other"][0].turn == 1
        assert [turn for seat in keeper.seats for turn in seat.stopped] == [1]
        other.cancel()
        await asyncio.wait({other})


# Approvals.


@both
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (decided("approve once"), "It ran."),
        (decided("approve always"), "It ran."),
        (decided("deny", reason="not today"), "It may not: not today"),
        (decided("whatever"), "It may not: The user denied it."),
        (ElicitResult(action="decline"), "It may not: The user denied it."),
        (ElicitResult(action="cancel"), "It may not: The user denied it."),
    ],
)
async def test_a_client_that_shows_forms_is_asked(generation: Generation, answer: ElicitResult, words: str) -> None:
    person = Person(answer)
    async with client(FaceKeeper(), generation, person) as host:
        result = await host.call_tool("ask_echo", {"message": "tool"})
    assert words in text_of(result)
    (asked,) = person.asked
    assert "`Bash`" in asked.message
    assert "List files" in asked.message
    assert '"ls"' in asked.message


@both
async def test_approve_always_is_not_asked_again(generation: Generation) -> None:
    person = Person(decided("approve always"))
    async with client(FaceKeeper(), generation, person) as host:
        for _ in range(2):
            result = await host.call_tool("ask_echo", {"message": "tool", "session": "mine"})
            assert "It ran." in text_of(result)
    assert len(person.asked) == 1


@both
async def test_without_forms_what_would_be_asked_is_denied_where_nobody_else_is(generation: Generation) -> None:
    async with client(FaceKeeper(), generation) as host:
        result = await host.call_tool("ask_echo", {"message": "tool"})
    assert "It may not: This needs approval" in text_of(result)


async def test_without_forms_what_must_be_asked_waits_for_somebody_else_on_an_exchange() -> None:
    keeper = FaceKeeper(shared=True)
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    async with client(keeper) as host:
        call = asyncio.create_task(
            host.call_tool("ask_echo", {"message": "tool", "session": "mine"}, progress_callback=hear)
        )
        await until(lambda: "A tool call waits for approval by somebody else" in heard)
        keeper.held["mine"][0].answer("call-1", Approve(), "somebody")
        assert "It ran." in text_of(await call)


async def test_a_question_that_somebody_else_answers_is_withdrawn() -> None:
    keeper = FaceKeeper(shared=True)
    person = Person()
    async with client(keeper, "legacy", person) as host:
        call = asyncio.create_task(host.call_tool("ask_echo", {"message": "tool", "session": "mine"}))
        await person.was_asked.wait()
        keeper.held["mine"][0].answer("call-1", Approve(), "somebody")
        assert "It ran." in text_of(await call)


# Sessions.


async def test_sessions_are_listed_and_read() -> None:
    async with client(FaceKeeper("a", "b")) as host:
        await host.call_tool("ask_a", {"message": "hello", "session": "s1"})
        await host.call_tool("ask_b", {"message": "good day", "session": "s2"})
        await host.call_tool("ask_a", {"message": "fail", "session": "s1"})
        everything = await host.call_tool("list_sessions", {})
        some = await host.call_tool("list_sessions", {"agent": "a", "limit": 1})
        read = await host.call_tool("read_session", {"session": "s1"})
        last = await host.call_tool("read_session", {"session": "s1", "limit": 1})
        unknown = await host.call_tool("read_session", {"session": "nobody"})
        too_many = await host.call_tool("list_sessions", {"limit": 1000})
    assert [each["session"] for each in everything.structured_content["sessions"]] == ["s2", "s1"]
    assert [each["session"] for each in some.structured_content["sessions"]] == ["s1"]
    assert read.structured_content["turns"] == [
        {"number": 1, "message": "hello", "answer": "You said: hello", "outcome": "success"},
        {
            "number": 2,
            "message": "fail",
            "answer": "I try.",
            "outcome": "error",
            "error": "The model is down. Try again later.",
        },
    ]
    assert "You said: hello" in text_of(read)
    assert [turn["number"] for turn in last.structured_content["turns"]] == [2]
    assert last.structured_content["omitted"] == 1
    assert unknown.is_error
    assert "no session `nobody`" in text_of(unknown)
    assert too_many.is_error
    assert "from 1 to 100" in text_of(too_many)


async def test_sessions_are_resources_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "PAGE", 2)
    async with client(FaceKeeper()) as host:
        for number in range(3):
            await host.call_tool("ask_echo", {"message": f"message {number}", "session": f"s/{number}"})
        first = await host.list_resources()
        second = await host.list_resources(cursor=first.next_cursor)
        read = await host.read_resource("trunkline://sessions/s%2F1")
        (template,) = (await host.list_resource_templates()).resource_templates
        for uri in ("trunkline://sessions/nobody", "file:///etc/passwd", "trunkline://sessions/"):
            with pytest.raises(MCPError, match="There is no"):
                await host.read_resource(uri)
        with pytest.raises(MCPError, match="`cursor` is unknown"):
            await host.list_resources(cursor="nonsense")
    assert [each.uri for each in first.resources] == ["trunkline://sessions/s%2F2", "trunkline://sessions/s%2F1"]
    assert [each.name for each in second.resources] == ["s/0"]
    assert second.next_cursor is None
    assert "You said: message 1" in str(read.contents[0])
    assert template.uri_template == "trunkline://sessions/{session}"


async def test_ids_of_sessions_are_completed() -> None:
    async with client(FaceKeeper()) as host:
        for name in ("abc", "abd", "xyz"):
            await host.call_tool("ask_echo", {"message": "x", "session": name})
        found = await host.complete(
            PromptReference(type="ref/prompt", name="ask_echo"), {"name": "session", "value": "ab"}
        )
        nothing = await host.complete(
            PromptReference(type="ref/prompt", name="ask_echo"), {"name": "message", "value": "ab"}
        )
    assert found.completion.values == ["abd", "abc"]
    assert nothing.completion.values == []


# Questions that are results.


async def test_a_question_is_given_back_once_and_by_the_one_who_was_asked() -> None:
    keeper = FaceKeeper()
    offer = AgentsOffer()
    who = ["a"]
    server = mcp_server(offer, lambda _: serving.Client(keeper, who[0]))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS), Client(server, elicitation_callback=Person()) as host:
            asked = await host.session.call_tool("ask_echo", {"message": "tool"}, allow_input_required=True)
            assert isinstance(asked, InputRequiredResult)
            assert list(asked.input_requests or ()) == ["call-1"]
            state = asked.request_state
            responses = {"call-1": decided("approve once")}
            again: Any = {"allow_input_required": True, "request_state": state, "input_responses": responses}
            who[0] = "b"
            with pytest.raises(MCPError, match="`requestState` is unknown"):
                await host.session.call_tool("ask_echo", {"message": "tool"}, **again)
            who[0] = "a"
            done = await host.session.call_tool("ask_echo", {"message": "tool"}, **again)
            assert "It ran." in text_of(done)
            with pytest.raises(MCPError, match="`requestState` is unknown"):
                await host.session.call_tool("ask_echo", {"message": "tool"}, **again)
    finally:
        await offer.close()
        await keeper.close()


async def test_a_question_that_nobody_answers_ends_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "ANSWER_SECONDS", 0.01)
    keeper = FaceKeeper()
    async with client(keeper, "auto", Person()) as host:
        await host.session.call_tool("ask_echo", {"message": "tool", "session": "s"}, allow_input_required=True)
        await until(lambda: not keeper.held["s"][0].turn)
    assert [turn for seat in keeper.seats for turn in seat.stopped] == [1]
