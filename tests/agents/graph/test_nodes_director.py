"""Director: characters talk with each other, within a budget of lines and of tokens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.agents.graph.helpers import Heard, Recorder, agent, debug, end, graph, hear, said, take
from tests.support.loop import until
from trunkline.agents.graph.agent_models import check_nodes
from trunkline.agents.graph.host import LocalHost
from trunkline.agents.graph.nodes.director import MAX_CHARACTERS, MAX_NAME
from trunkline.agents.graph.turn import Delta, NodeNotice
from trunkline.core.faults import BadParameter, FixedParameter, GraphError, ProviderError
from trunkline.core.graph.ordinals import DirectorStrategy, TurnStatus
from trunkline.models.engines import Piece
from trunkline.models.sampling import DEFAULT_SAMPLING
from trunkline.wires.tryll.messages import (
    CannedResponseParams,
    CharacterDefinition,
    DirectorParams,
    SamplingOverrides,
)

ANNA = CharacterDefinition("Anna", "You keep the inn.")
BERT = CharacterDefinition("Bert", "You are a smith.")
CARL = CharacterDefinition("Carl", "You are a thief.")


def scene(*characters: CharacterDefinition, **params: Any) -> DirectorParams:
    return DirectorParams(system_prompt="A tavern.", characters=characters or (ANNA, BERT), **params)


def host(engine: Any) -> LocalHost:
    return LocalHost(language=lambda _: engine)


async def test_they_speak_in_their_order_until_the_lines_are_used_up() -> None:
    engine = Recorder(*"abcdefgh")
    made = await agent(graph(talk=scene(max_lines=3)), host(engine), diagnostics=True)
    events = await take(made, "What now?")
    assert said(events) == "Anna: a\nBert: b\nAnna: c"
    assert [event.text for event in events if isinstance(event, Delta)] == ["Anna: a", "\nBert: b", "\nAnna: c"]
    notices = [event for event in events if isinstance(event, NodeNotice)]
    assert [(each.node, each.type, each.pairs) for each in notices][:2] == [
        ("talk", "line", (("speaker", "Anna"), ("text", "a"))),
        ("talk", "line", (("speaker", "Bert"), ("text", "b"))),
    ]
    assert debug(events)["nodes"][0]["data"]["ended_by"] == "max_lines (3)"
    assert made.history() == [("What now?", "Anna: a\nBert: b\nAnna: c")]


async def test_each_sees_the_scene_who_is_there_and_its_own_lines_as_its_own() -> None:
    engine = Recorder(*"abcd")
    made = await agent(graph(talk=scene(max_lines=3)), host(engine))
    await take(made, "What now?")
    role, told = engine.shown()[0]
    assert role == "system"
    assert told.startswith("A tavern.\nYou keep the inn.\nYou are Anna. You talk with Bert. ")
    assert engine.shown()[1:] == [("user", "What now?"), ("assistant", "a"), ("user", "Bert: b")]
    # Each has a place of its own in the engine.
    assert len(set(engine.slots)) == 2
    await take(made, "And then?")
    assert engine.shown(3)[1:] == [
        ("user", "What now?"), ("assistant", "a"), ("user", "Bert: b"), ("assistant", "c"), ("user", "And then?"),
    ]  # fmt: skip


async def test_the_tokens_of_all_lines_are_one_budget_and_the_last_line_ends_with_a_sentence() -> None:
    class Endless(Recorder):
        async def generate(self, *given: Any, **named: Any) -> AsyncGenerator[str, None]:
            self.sampling.append(given[1])
            for word in ["One", " two.", " three", " four", " five", " six"]:
                yield Piece(word)
            while self.sampling:
                yield Piece(" more")

    engine = Endless()
    made = await agent(graph(talk=scene(max_tokens=4)), host(engine), diagnostics=True)
    events = await take(made, "Hm")
    assert said(events) == "Anna: One two."
    assert end(events).tokens_generated == 4
    assert engine.sampling[0].max_tokens == 4
    assert debug(events)["nodes"][0]["data"]["ended_by"] == "max_tokens (4)"


async def test_a_node_that_samples_less_says_less() -> None:
    engine = Recorder("a")
    params = scene(max_lines=1, sampling=SamplingOverrides(max_tokens=9, temperature=0.0))
    await take(await agent(graph(talk=params), host(engine)), "Hm")
    assert engine.sampling[0] == DEFAULT_SAMPLING.replace(max_tokens=9, temperature=0.0)


@pytest.mark.parametrize(
    ("answers", "text", "why"),
    [
        (["a", "Farewell. [END]", "b"], "Anna: a\nBert: Farewell.", "Bert said [END]"),
        (["a", "[END]", "b"], "Anna: a", "Bert said [END]"),
        (["a", " \n ", "b"], "Anna: a", "Bert said nothing"),
        ([" "], "", "Anna said nothing"),
    ],
)
async def test_an_empty_line_or_the_word_for_it_ends_the_scene(answers: list[str], text: str, why: str) -> None:
    made = await agent(graph(talk=scene()), host(Recorder(*answers)), diagnostics=True)
    events = await take(made, "Hm")
    assert (said(events), end(events).status) == (text, TurnStatus.SUCCESS)
    assert debug(events)["nodes"][0]["data"]["ended_by"] == why


async def test_a_model_chooses_who_is_next_and_never_the_last_speaker() -> None:
    engine = Recorder(*"abcd", scores=[0.0, 5.0, 1.0])

    async def score(prompt: Any, continuations: Any, *, slot: Any = None) -> list[float]:
        engine.prompts.append(prompt)
        return [0.0, 5.0, 1.0][: len(continuations)]

    engine.score = score  # type: ignore[method-assign]
    params = scene(ANNA, BERT, CARL, strategy=DirectorStrategy.MODEL, max_lines=3)
    events = await take(await agent(graph(talk=params), host(engine)), "Who?")
    # B of Anna, Bert, Carl; B of Anna, Carl; B of Anna, Bert.
    assert said(events) == "Bert: a\nCarl: b\nBert: c"
    role, about = engine.shown(2)[0]
    assert (role, about.splitlines()[-2:]) == ("system", ["A) Anna: You keep the inn.", "B) Carl: You are a thief."])
    assert engine.shown(2)[-1] == ("user", "Who?\nBert: a")


@pytest.mark.parametrize(("strategy", "lines"), [(DirectorStrategy.ROUND_ROBIN, 4), (DirectorStrategy.MODEL, 2)])
async def test_each_choice_is_a_token_of_the_budget(strategy: DirectorStrategy, lines: int) -> None:
    engine = Recorder(*"abcdef")
    params = scene(ANNA, BERT, CARL, strategy=strategy, max_tokens=4)
    made = await agent(graph(talk=params), host(engine), diagnostics=True)
    events = await take(made, "Hm")
    data = debug(events)["nodes"][0]["data"]
    assert (data["lines"], data["tokens"], data["ended_by"]) == (str(lines), "4", "max_tokens (4)")
    # The turn tells what was generated.
    assert end(events).tokens_generated == lines


async def test_one_who_cannot_choose_leaves_them_in_their_order() -> None:
    engine = Recorder(*"abc", scores=[1.0])
    params = scene(ANNA, BERT, CARL, strategy=DirectorStrategy.MODEL, max_lines=2)
    assert said(await take(await agent(graph(talk=params), host(engine)), "Hm")) == "Anna: a\nBert: b"


async def test_one_alone_goes_on_by_themself() -> None:
    engine = Recorder(*"abc")
    made = await agent(graph(talk=scene(ANNA, max_lines=2, strategy=DirectorStrategy.MODEL)), host(engine))
    assert said(await take(made, "Hm")) == "Anna: a\nAnna: b"
    assert engine.shown()[-2:] == [("assistant", "a"), ("user", "Go on.")]


async def test_each_may_have_a_model_of_its_own() -> None:
    engines = {name: Recorder(name) for name in ("small", "large")}
    bert = BERT.replace(model_name="large")
    made = await agent(
        graph(talk=scene(ANNA, bert, model_name="small", max_lines=2)), LocalHost(language=lambda name: engines[name])
    )
    assert said(await take(made, "Hm")) == "Anna: small\nBert: large"
    assert set(made.models()) == {"small", "large"}
    made.close()
    assert [len(engine.released) for engine in engines.values()] == [1, 1]


async def test_a_turn_that_is_cancelled_keeps_the_lines_that_were_said() -> None:
    class Waiting(Recorder):
        asked = 0

        async def generate(self, *_: Any, **__: Any) -> AsyncGenerator[str, None]:
            self.asked += 1
            yield f"{self.asked}"
            if self.asked == 3:
                await asyncio.Event().wait()

    engine = Waiting()
    made = await agent(graph(talk=scene()), host(engine))
    heard = Heard()
    running = asyncio.create_task(hear(made, "Hm", heard))
    await until(lambda: engine.asked == 3)
    made.cancel()
    await running
    assert end(heard.events).status == TurnStatus.CANCELLED
    assert made.history() == [("Hm", "Anna: 1\nBert: 2")]


async def test_a_model_that_fails_fails_the_turn_and_what_was_said_stays() -> None:
    engine = Recorder("a")
    made = await agent(graph(talk=scene()), host(engine))

    async def generate(*_: Any, **__: Any) -> AsyncGenerator[str, None]:
        if engine.prompts:
            raise ProviderError("No more.")
        engine.prompts.append(_[0])
        yield "a"

    engine.generate = generate  # type: ignore[method-assign]
    events = await take(made, "Hm")
    assert (end(events).status, made.history()) == (TurnStatus.ERROR, [("Hm", "Anna: a")])


async def test_without_notices_only_the_answer_is_told_and_the_next_node_follows() -> None:
    bye = CannedResponseParams(inline_strings=("The end.",))
    params = scene(max_lines=1, notify_client=False, default_exit="bye")
    events = await take(await agent(graph(talk=params, bye=bye), host(Recorder("a"))), "Hm")
    assert said(events) == "Anna: a\nThe end."
    assert not [event for event in events if isinstance(event, NodeNotice)]


async def test_scene_and_strategy_may_change_and_characters_may_not() -> None:
    engine = Recorder(*"abcdef", scores=[0.0, 1.0])
    made = await agent(graph(talk=scene(ANNA, BERT, CARL, max_lines=1)), host(engine))
    changed = scene(ANNA, BERT, CARL, max_lines=1, strategy=DirectorStrategy.MODEL)
    await made.change("talk", changed.replace(system_prompt="A wood."))
    engine.scores = [0.0, 1.0, 0.0]
    assert said(await take(made, "Hm")) == "Bert: a"
    assert engine.shown()[0][1].startswith("A wood.\nYou are a smith.")
    await made.change("talk", scene(ANNA, BERT, CARL, max_lines=1))
    assert said(await take(made, "Hm")) == "Anna: b"
    with pytest.raises(FixedParameter):
        await made.change("talk", scene(ANNA, BERT))


@pytest.mark.parametrize("name", ["", " ", "Anna ", "a:b", "a\nb", "x" * (MAX_NAME + 1), "bert", "\u202e"])
async def test_a_name_that_could_be_no_speakers_is_refused(name: str) -> None:
    with pytest.raises(GraphError, match="characters"):
        await agent(graph(talk=scene(CharacterDefinition(name), BERT)))


async def test_the_limits_are_what_they_are_said_to_be() -> None:
    many = [CharacterDefinition(f"c{number}") for number in range(MAX_CHARACTERS + 1)]
    await agent(graph(talk=scene(*many[:MAX_CHARACTERS], max_lines=64)))
    for params in (scene(*many), DirectorParams()):
        with pytest.raises(GraphError, match="characters"):
            await agent(graph(talk=params))
    for wrong in ({"max_lines": 0}, {"max_lines": 65}, {"max_tokens": 0}, {"strategy": 2}):
        with pytest.raises(BadParameter):
            await agent(graph(talk=scene(**wrong)))


async def test_the_mock_engine_plays_the_longest_scene_within_its_budget() -> None:
    made = await agent(graph(talk=scene(ANNA, BERT, CARL, max_lines=64)))
    events = await take(made, "One two three " * 200)
    assert 0 < end(events).tokens_generated <= 400


def test_an_agent_is_no_character() -> None:
    described = graph(talk=scene(ANNA, BERT.replace(model_name="agent:echo")))
    with pytest.raises(GraphError, match="agent:echo"):
        check_nodes(described, "mock")


async def test_a_character_without_any_model_is_refused() -> None:
    with pytest.raises(GraphError, match="no model"):
        await agent(graph(talk=scene(ANNA.replace(model_name="a"), BERT)), default_model="")
    # Nobody else asks for one.
    await agent(graph(talk=scene(ANNA.replace(model_name="a"), BERT.replace(model_name="b"))), default_model="")
