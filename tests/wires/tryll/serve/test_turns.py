"""Turns as any client may rely on them: each ends once, whatever happens in it, and says what happened."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest

from tests.wires.tryll.foreign_client import Foreigner, graph, text_of
from trunkline.wires.tryll import messages as m

SAY = m.GenerateParams(stream=True)
HAT = m.CannedResponseParams(inline_strings=("hat",))
ENDLESS = m.HumanMessageGuardrailParams(inline_strings=(r"(x+x+)+y",))
OPEN = m.ToolDefinition("open_door", "opens a door", (m.ToolParamDefinition("which", "string"),))
LORE = ("The mill burned down last winter.", "The bridge is closed.")
SUCCESS, ERROR, CANCELLED = m.TurnStatus.SUCCESS, m.TurnStatus.ERROR, m.TurnStatus.CANCELLED


def guard(**options: Any) -> m.HumanMessageGuardrailParams:
    return m.HumanMessageGuardrailParams(inline_strings=("secret",), **options)


def tools(**options: Any) -> m.ToolCallParams:
    return m.ToolCallParams(tools=(OPEN,), notify_client=True, **options)


# Each: the graph, the message, how the turn ends, what was said.
PATHS: dict[str, tuple[m.GraphDescription, str, int, str]] = {
    "streamed": (graph(a=SAY), "one two", SUCCESS, "You said: one two"),
    "whole": (graph(a=m.GenerateParams()), "one two", SUCCESS, "You said: one two"),
    "empty message": (graph(a=SAY), "", SUCCESS, "You said: "),
    "two that speak": (graph(a=SAY.replace(default_exit="b"), b=HAT), "x", SUCCESS, "You said: x\nhat"),
    "two that stream": (graph(a=SAY.replace(default_exit="b"), b=SAY), "x", SUCCESS, "You said: x\nYou said: x"),
    "canned": (graph(a=HAT), "x", SUCCESS, "hat"),
    "canned and empty": (graph(a=m.CannedResponseParams(inline_strings=("",))), "x", SUCCESS, ""),
    "canned without lines": (graph(a=m.CannedResponseParams()), "x", SUCCESS, ""),
    "guardrail to the end": (graph(a=guard(not_triggered_exit="b"), b=SAY), "the secret", SUCCESS, ""),
    "guardrail to a line": (graph(a=guard(triggered_exit="b"), b=HAT), "the secret", SUCCESS, "hat"),
    "guardrail passed": (graph(a=guard(not_triggered_exit="b"), b=HAT), "hello", SUCCESS, "hat"),
    "tool called": (graph(a=tools(no_tool_called_exit="b"), b=SAY), "open_door now", SUCCESS, ""),
    "tool called, then words": (graph(a=tools(tool_called_exit="b"), b=HAT), "open_door now", SUCCESS, "hat"),
    "no tool called": (graph(a=tools(no_tool_called_exit="b"), b=SAY), "hello", SUCCESS, "You said: hello"),
    "no tool called, and said": (graph(a=tools(generate_on_no_tool=True)), "hello", SUCCESS, "You said: hello"),
    "instruction alone": (graph(a=m.InstructionParams(instruction="be brief")), "x", SUCCESS, ""),
    "step limit": (graph(a=m.InstructionParams(default_exit="a")), "x", ERROR, ""),
    "step limit while speaking": (graph(a=HAT.replace(default_exit="a")), "x", ERROR, "\n".join(["hat"] * 64)),
    "pattern that takes for ever": (graph(a=ENDLESS), "x" * 5000, ERROR, ""),
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
async def test_every_turn_has_one_final_answer_and_one_end(client: Foreigner, path: str) -> None:
    described, message, status, said = PATHS[path]
    agent = await client.agent(described)
    for request_id in (7, 0, 2**64 - 1):
        client.say(m.SendMessageRequest(request_id, agent, message))
        answers, complete, _ = await client.turn()
        assert (complete.request_id, complete.agent_id, complete.status) == (request_id, agent, status)
        assert text_of(answers) == said
        assert complete.debug_info == ""
        if path in ("step limit while speaking", "pattern that takes for ever"):
            break
    # Nothing follows: the next thing that is heard answers the next question.
    assert (await client.ask(m.HealthRequest(9), m.HealthResponse)).request_id == 9


async def test_a_failure_in_a_turn_is_never_an_error_response_and_the_agent_lives_on(client: Foreigner) -> None:
    described = graph(
        a=guard(triggered_exit="loop", not_triggered_exit="b"), b=SAY, loop=m.InstructionParams(default_exit="loop")
    )
    agent = await client.agent(described, enable_diagnostics=True, max_steps_per_turn=5)
    client.say(m.SendMessageRequest(3, agent, "secret"))
    _, complete, _ = await client.turn()
    assert complete.status == ERROR
    told = json.loads(complete.debug_info)
    assert told["error"]["code"] == 4003
    assert [node["name"] for node in told["nodes"]] == ["a", "loop", "loop", "loop", "loop"]
    client.say(m.SendMessageRequest(4, agent, "fine"))
    answers, complete, _ = await client.turn()
    assert (text_of(answers), complete.status) == ("You said: fine", SUCCESS)


async def test_the_step_limit_is_64_unless_the_agent_says_otherwise(client: Foreigner) -> None:
    line = {f"n{number}": m.InstructionParams(default_exit=f"n{number + 1}") for number in range(63)}
    just = await client.agent(graph(**line, n63=HAT))
    over = await client.agent(graph(**line, n63=m.InstructionParams(default_exit="n64"), n64=HAT))
    more = await client.agent(
        graph(**line, n63=m.InstructionParams(default_exit="n64"), n64=HAT), max_steps_per_turn=65
    )
    for agent, status in ((just, SUCCESS), (over, ERROR), (more, SUCCESS)):
        client.say(m.SendMessageRequest(3, agent, "x"))
        assert (await client.turn())[1].status == status


# The mock engine.


async def test_the_mock_takes_any_model_and_says_the_message_word_for_word(client: Foreigner) -> None:
    for message in ("one", "Grüße, 世界! \N{GRINNING FACE}  two  spaces\nand a line", "You said: You said:"):
        for model in ("no-such-model", "smollm2-135m", "mock", "\N{SNOWMAN}"):
            streamed = await client.agent(graph(a=SAY), model)
            whole = await client.agent(graph(a=m.GenerateParams()), model)
            client.say(m.SendMessageRequest(3, streamed, message))
            answers, complete, _ = await client.turn()
            client.say(m.SendMessageRequest(3, whole, message))
            (only,), other, _ = await client.turn()
            assert text_of(answers) == only.text == f"You said: {message}"
            assert all(answer.is_delta for answer in answers)
            assert not only.is_delta
            # One delta for each token, and the end.
            assert len(answers) - 1 == complete.tokens_generated == other.tokens_generated > 0


async def test_the_mock_answers_the_prompt_as_it_was_projected(client: Foreigner) -> None:
    rendered = m.GenerateParams(template="<{{user_message}}>", placement=m.Placement.IN_PLACE_OF_USER)
    agent = await client.agent(graph(a=rendered))
    client.say(m.SendMessageRequest(3, agent, "a & b"))
    assert text_of((await client.turn())[0]) == "You said: <a & b>"


async def test_a_slow_model_takes_20_ms_for_each_token_and_nobody_elses_time(client: Foreigner) -> None:
    slow = [await client.agent(graph(a=SAY), "mock-slow-1") for _ in range(3)]
    quick = await client.agent(graph(a=SAY))
    loop = asyncio.get_running_loop()
    begun = loop.time()
    client.say(*(m.SendMessageRequest(3, agent, " ".join(["word"] * 28)) for agent in slow))
    client.say(m.SendMessageRequest(4, quick, "hello"))
    ended: dict[int, float] = {}
    spoke: list[int] = []
    while len(ended) < 4:
        heard = await client.hear()
        if isinstance(heard, m.TurnComplete):
            ended[heard.agent_id] = loop.time() - begun
        else:
            spoke.append(heard.agent_id)
    # Thirty tokens each.
    assert all(ended[agent] > 0.58 for agent in slow)
    assert ended[quick] < min(ended[agent] for agent in slow)
    # They speak in turns, rather than one after the other.
    changes = sum(first != second for first, second in pairwise(spoke))
    assert changes > 20


async def test_the_mock_calls_the_tools_whose_names_occur_and_no_others(client: Foreigner) -> None:
    shut = m.ToolDefinition("shut", "", ())
    for form in ("chatml", "llama3", "mistral", "generic"):
        asking = m.ToolCallParams(tools=(OPEN, shut), tool_call_format=form, notify_client=True)
        agent = await client.agent(graph(a=asking))
        for message, expected in (
            ("open_door and shut it", ["open_door", "shut"]),
            ("shut </tool_call> {\"name\": \"open\"}", ["shut"]),
            ("nothing of the sort", []),
            ("", []),
        ):  # fmt: skip
            client.say(m.SendMessageRequest(3, agent, message))
            answers, complete, events = await client.turn()
            called = [{pair.key: pair.value for pair in event.kv_pairs} for event in events]
            assert [(event.agent_id, event.node_name, event.event_type) for event in events] == [
                (agent, "a", "tool_call")
            ] * len(expected)
            assert [each["tool_name"] for each in called] == expected
            for each in called:
                flat = json.loads(each["arguments_json"])
                assert all(isinstance(value, str) for value in flat.values())
            assert (text_of(answers), complete.status) == ("", SUCCESS)


async def test_events_come_before_the_end_of_their_turn_and_only_to_those_who_want_them(client: Foreigner) -> None:
    agent = await client.agent(graph(a=m.ToolCallParams(tools=(OPEN,))))
    client.say(m.SendMessageRequest(3, agent, "open_door"))
    assert (await client.turn())[2] == []


# Diagnostics.


async def test_diagnostics_name_the_nodes_and_hold_what_was_found_and_what_was_gathered(client: Foreigner) -> None:
    made = await client.ask(
        m.CreateEmbeddedStringStorageRequest(3, "lore", strings=LORE, embedding_model="any"),
        m.CreateEmbeddedStringStorageResponse,
    )
    assert (made.record_count, made.embedding_dim) == (2, 384)
    described = graph(
        lore=m.RetrieveParams(embedded_string_storage="lore", top_k=1, threshold=0.9, found_exit="intent"),
        intent=m.ClassifyIntentLLMParams(intents_ids="ask,go", threshold=0, margin=0, found_exit="tell"),
        tell=m.InstructionParams(instruction="be brief", default_exit="call"),
        call=tools(tool_called_exit="say"),
        say=SAY,
    )
    agent = await client.agent(described, enable_diagnostics=True)
    message = "open_door to the bridge that is closed"
    client.say(m.SendMessageRequest(4, agent, message))
    _, complete, _ = await client.turn()
    told = json.loads(complete.debug_info)
    assert [node["name"] for node in told["nodes"]] == ["lore", "intent", "tell", "call", "say"]
    assert told["nodes"][0]["data"]["result[000].text"] == told["lore.result[000].text"] == LORE[1]
    assert told["error"] is None
    parts = {part["_type"]: part for part in told["interaction"]}
    assert [part["_type"] for part in told["interaction"]] == [
        "HumanMessage", "KnowledgeComponent", "IntentionComponent", "InstructionComponent", "ToolCallComponent",
        "CharacterMessage",
    ]  # fmt: skip
    assert parts["HumanMessage"]["text"] == message
    assert parts["KnowledgeComponent"]["source"] == "lore"
    assert parts["KnowledgeComponent"]["chunks"][0]["text"] == LORE[1]
    assert parts["IntentionComponent"]["intentLabel"] in ("ask", "go")
    assert (parts["InstructionComponent"]["name"], parts["InstructionComponent"]["text"]) == ("tell", "be brief")
    assert parts["ToolCallComponent"]["tool_name"] == "open_door"
    assert parts["CharacterMessage"]["text"] == f"You said: {message}"
    assert "truncated" not in told


async def test_a_cancelled_turn_has_diagnostics_too(client: Foreigner) -> None:
    agent = await client.agent(graph(a=SAY), "mock-slow", enable_diagnostics=True)
    client.say(m.SendMessageRequest(3, agent, " ".join(["word"] * 500)))
    await client.get(m.AnswerText)
    client.say(m.CancelTurnRequest(4, agent))
    _, complete, _ = await client.turn()
    told = json.loads(complete.debug_info)
    assert (complete.status, told["status"], told["nodes"][0]["name"]) == (CANCELLED, "Cancelled", "a")
    assert told["interaction"][-1]["text"].startswith("You")
    assert await client.get(m.Ack) == m.Ack(4)


# Embeddings.


async def test_mock_embeddings_take_any_name_and_tell_texts_apart(client: Foreigner) -> None:
    texts = ("the same text", "qqq vvv", "zzz www kkk")
    agents = []
    for model in ("no-such-embedding", "minilm-l6"):
        request = m.CreateEmbeddedStringStorageRequest(3, model, strings=texts, embedding_model=model)
        await client.ask(request, m.CreateEmbeddedStringStorageResponse)
        look = m.RetrieveParams(embedded_string_storage=model, top_k=3, threshold=0)
        agents.append(await client.agent(graph(look=look), enable_diagnostics=True))
    for agent in agents:
        client.say(m.SendMessageRequest(4, agent, "the same text"))
        told = json.loads((await client.turn())[1].debug_info)
        found = [
            (told[f"look.result[00{rank}].text"], float(told[f"look.result[00{rank}].distance"])) for rank in range(3)
        ]
        assert found[0][0] == "the same text"
        assert found[0][1] < 0.001
        assert all(distance > 0.5 for _, distance in found[1:])


# Intents.


@pytest.mark.parametrize("message", ["hello", "\N{SNOWMAN}", "?", "A", "x" * 100_000])
async def test_without_thresholds_an_intent_is_always_found_and_only_for_a_message(
    client: Foreigner, message: str
) -> None:
    choose = m.ClassifyIntentLLMParams(
        intents_ids="greet,leave", threshold=0, margin=0, found_exit="yes", not_found_exit="no", notify_client=True
    )
    line = m.CannedResponseParams
    described = graph(choose=choose, yes=line(inline_strings=("yes",)), no=line(inline_strings=("no",)))
    agent = await client.agent(described)
    client.say(m.SendMessageRequest(3, agent, message))
    answers, _, events = await client.turn()
    assert (text_of(answers), [event.event_type for event in events]) == ("yes", ["intent_classified"])
    client.say(m.SendMessageRequest(3, agent, ""))
    answers, _, events = await client.turn()
    assert (text_of(answers), events) == ("no", [])
