"""What a model is shown of a conversation, and what no longer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.agents.graph.helpers import Recorder, agent, end, graph, host_in, take
from tests.support.faults import number as number_of
from trunkline.agents.graph import dialog
from trunkline.agents.graph.dialog import Dialog, Window
from trunkline.agents.graph.host import LocalHost
from trunkline.core.graph.models import SamplingParams
from trunkline.models.engines import ChatMessage, Prompt
from trunkline.models.overflow import PromptTooLong
from trunkline.wires.tryll.messages import (
    ClassifyIntentLLMParams,
    GenerateParams,
    NodeParams,
    ToolCallParams,
    ToolDefinition,
    TurnStatus,
)

ASK = (ChatMessage("system", "be brief"), ChatMessage("user", "now"))


def filled(count: int, words: int = 10) -> Dialog:
    made = Dialog()
    for number in range(count):
        made.add(f"{number} " + "w " * (words - 1), "a " * words)
    return made


def first_shown(window: Window, of: Dialog) -> str:
    shown = window.history(of, ASK)
    return shown[0].text.split()[0] if shown else ""


def test_a_prompt_above_the_mark_loses_its_oldest_exchanges_down_to_three_quarters() -> None:
    # 1000 - 250 in reserve = 750; an exchange of 2 x 10 words costs 36, what is always shown 2 + 1 + 16.
    window = Window(Recorder(context_size=1000))
    assert first_shown(window, filled(20)) == "0"
    shown = window.history(filled(21), ASK)
    assert len(shown) // 2 == 15
    assert 19 + 36 * 15 <= 750 * 0.75 < 19 + 36 * 16


def test_what_was_dropped_stays_dropped() -> None:
    window = Window(Recorder(context_size=1000))
    grown = filled(21)
    assert first_shown(window, grown) == "6"
    assert first_shown(window, grown) == "6"
    grown.add("new", "answer")
    assert first_shown(window, grown) == "6"
    assert first_shown(Window(Recorder(context_size=2000)), grown) == "0"


def test_nothing_is_counted_while_everything_fits() -> None:
    engine = Recorder(context_size=10_000)
    engine.count = lambda text: pytest.fail("counted")  # type: ignore[method-assign]
    assert len(Window(engine).history(filled(50), ASK)) == 100


async def test_a_message_that_does_not_fit_fails_the_turn_and_the_next_one_works() -> None:
    engine = Recorder(context_size=400)
    made = await agent(
        graph(a=GenerateParams(system_prompt="s")), LocalHost(language=lambda name: engine), diagnostics=True
    )
    events = await take(made, "word " * 301)
    assert (end(events).status, number_of(end(events).error)) == (TurnStatus.ERROR, 4001)
    assert "318 tokens; 300 fit" in end(events).debug_info
    assert end(await take(made, "word " * 200)).status == TurnStatus.SUCCESS
    assert made.history() == [("word " * 200, "ok")]


class Strict(Recorder):
    """Has ten times as many tokens as it says it would, and takes no prompt of more than its context."""

    tells = True

    async def generate(self, prompt: Prompt, *args: Any, **options: Any) -> AsyncGenerator[str, None]:
        tokens = 10 * sum(self.count(message.text) for message in prompt.messages)
        if tokens > self.context_size:
            self.prompts.append(prompt)
            raise PromptTooLong(f"{tokens} tokens", tokens if self.tells else 0)
        async for piece in super().generate(prompt, *args, **options):
            yield piece

    async def score(self, prompt: Prompt, *args: Any, **options: Any) -> list[float]:
        async for _ in self.generate(prompt, SamplingParams(), stream=False):
            pass
        return [3.0, 1.0]


@pytest.mark.parametrize("tells", [True, False])
@pytest.mark.parametrize(
    "params",
    [
        GenerateParams(),
        GenerateParams(stream=True),
        ToolCallParams(tools=(ToolDefinition("t"),), generate_on_no_tool=True),
        ClassifyIntentLLMParams(intents_ids="a,b", history_turns=64),
    ],
)
async def test_what_an_engine_finds_too_long_is_tried_again_with_less_history(params: NodeParams, tells: bool) -> None:
    engine = Strict(context_size=2000)
    engine.tells = tells
    made = await agent(graph(a=params), LocalHost(language=lambda name: engine))
    made.restore(filled(40).exchanges())
    assert end(await take(made, "now")).status == TurnStatus.SUCCESS
    tries = len(engine.prompts)
    assert 1 < tries < 12
    shown = engine.prompts[-1].messages
    assert 2 <= len(shown) < 30
    assert shown[-1].text == "now"
    # What was dropped stays dropped.
    await take(made, "and now")
    assert len(engine.prompts) == tries + 1


async def test_a_message_that_is_too_long_by_itself_is_said_to_be_and_is_not_kept() -> None:
    engine = Strict(context_size=400)
    made = await agent(graph(a=GenerateParams()), LocalHost(language=lambda name: engine), diagnostics=True)
    await take(made, "hello")
    events = await take(made, "word " * 60)
    assert (number_of(end(events).error), "600 tokens" in end(events).debug_info) == (4001, True)
    assert end(await take(made, "hi")).status == TurnStatus.SUCCESS
    assert [user for user, _ in made.history()] == ["hello", "hi"]


def test_an_agent_keeps_no_more_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialog, "MAX_EXCHANGES", 3)
    monkeypatch.setattr(dialog, "MAX_CHARS", 100)
    kept = filled(5, words=5)
    assert [user.split()[0] for user, _ in kept.exchanges()] == ["2", "3", "4"]
    window = Window(Recorder())
    assert first_shown(window, kept) == "2"
    kept.add("x" * 99, "y")
    assert kept.exchanges() == [("x" * 99, "y")]
    assert kept.most_tokens == 100 + 2 * dialog.MESSAGE_TOKENS


async def test_what_is_added_to_a_conversation_leaves_it_as_it_is() -> None:
    made = await agent(graph(a=GenerateParams()))
    made.restore([("a", "b")])
    made.restore([("c", "d"), ("e", "f")], append=True)
    assert made.history() == [("a", "b"), ("c", "d"), ("e", "f")]
    # Windows count from the very first exchange: what they know of the others is still true.
    assert made.dialog.dropped == 0


async def test_a_conversation_can_go_on_from_another_one(tmp_path: object) -> None:
    engine = Recorder()
    made = await agent(graph(a=GenerateParams()), host_in(tmp_path, language=lambda name: engine))
    await take(made, "old")
    made.restore([("hello", "hi")])
    await take(made, "and now")
    assert engine.shown() == [("user", "hello"), ("assistant", "hi"), ("user", "and now")]
    assert made.history() == [("hello", "hi"), ("and now", "ok")]
