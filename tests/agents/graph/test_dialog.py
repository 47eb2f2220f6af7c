"""What a model is shown of a conversation, and what no longer."""

from __future__ import annotations

import pytest

from tests.agents.graph.helpers import Recorder, agent, end, graph, host_in, take
from trunkline.agents.graph import dialog
from trunkline.agents.graph.dialog import Dialog, Window
from trunkline.agents.graph.engines import ChatMessage
from trunkline.agents.graph.host import LocalHost
from trunkline.wires.tryll.messages import GenerateParams, TurnStatus

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
    assert (end(events).status, end(events).error) == (TurnStatus.ERROR, 4001)
    assert "318 tokens; 300 fit" in end(events).debug_info
    assert end(await take(made, "word " * 200)).status == TurnStatus.SUCCESS
    assert made.history() == [("word " * 200, "ok")]


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


async def test_a_conversation_can_go_on_from_another_one(tmp_path: object) -> None:
    engine = Recorder()
    made = await agent(graph(a=GenerateParams()), host_in(tmp_path, language=lambda name: engine))
    await take(made, "old")
    made.restore([("hello", "hi")])
    await take(made, "and now")
    assert engine.shown() == [("user", "hello"), ("assistant", "hi"), ("user", "and now")]
    assert made.history() == [("hello", "hi"), ("and now", "ok")]
