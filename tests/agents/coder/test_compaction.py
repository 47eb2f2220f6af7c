"""Room is made before the window is full: cheaply first, and the conversation stays fit to be sent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agents.coder.test_history import Notebook
from tests.support.fake_model import FakeModel, Reply, words
from tests.support.loop import run
from trunkline.agents.coder import compaction
from trunkline.agents.coder.compaction import ASK_FOR_SUMMARY, Compaction, Say
from trunkline.agents.coder.history import CHARS_PER_TOKEN, History
from trunkline.agents.coder.model_client import ModelClient
from trunkline.agents.coder.words import CLEARED, COMPACTED, DROPPED, NO_MORE_TOOLS, PICTURE_CLEARED, STOPPED
from trunkline.core.events import Event, Notice
from trunkline.core.faults import ProviderError
from trunkline.core.usage import Usage
from trunkline.models.messages import Document, Image, Message, Text, ToolResultBlock, ToolUse, from_json
from trunkline.models.model import Retrying

WINDOW = 10_000


class LongConversation:
    """A conversation of a few rounds, and a model to summarise it."""

    def __init__(self, *replies: Reply, rounds: int = 0, chars: int = 400, **options: Any) -> None:
        self.model = FakeModel(*replies)
        self.notebook = Notebook()
        self.history = History(self.notebook)
        self.history.user((Text("Find the bug."),))
        for number in range(rounds):
            self.history.assistant((ToolUse(f"t{number}", "Read", {"file_path": "a"}),))
            self.history.results([ToolResultBlock(f"t{number}", "x" * chars)])
        self.said: list[Event] = []
        client = ModelClient(self.model, lambda: "", context_window=WINDOW)
        self.compaction = Compaction(client, self.history, lambda: (), **options)

    async def say(self, event: Event) -> None:
        self.said.append(event)

    def make(self) -> list[str]:
        run(self.compaction.make_room(self.say))
        return [event.message for event in self.said if isinstance(event, Notice)]

    @property
    def texts(self) -> list[str]:
        return [
            block.text
            for message in self.history.messages
            for block in message.content
            if isinstance(block, ToolResultBlock)
        ]


def test_while_there_is_room_nothing_changes() -> None:
    long = LongConversation(rounds=10, chars=400)
    before = list(long.history.messages)
    assert long.make() == []
    assert long.history.messages == before


def test_old_results_are_cleared_first_and_the_newest_stay() -> None:
    long = LongConversation(rounds=10, chars=2600)
    notices = long.make()
    assert len(notices) == 1
    assert long.texts == [CLEARED] * 5 + ["x" * 2600] * compaction.KEPT_RESULTS
    assert long.history.tokens < compaction.CLEAR_SHARE * compaction.SUMMARISE_AT * WINDOW
    assert [from_json(record) for record in long.notebook.kept] == long.history.messages


def test_then_a_summary_takes_the_place_of_everything_but_the_latest_words() -> None:
    long = LongConversation(words("They look for a bug in a.py."), rounds=5, chars=8000)
    notices = long.make()
    assert "compacted" in notices[-1]
    assert long.model.asked[-1] == Message("user", (Text(ASK_FOR_SUMMARY),))
    (message,) = long.history.messages
    texts = [block.text for block in message.content if isinstance(block, Text)]
    assert texts[0] == f"{COMPACTED}\n\nThey look for a bug in a.py."
    assert texts[-1] == "Find the bug."
    assert long.compaction.usage == Usage(10, 5)


def test_a_summary_that_fails_is_told_and_the_oldest_go_when_the_window_is_full() -> None:
    fault = ProviderError("API error 500", retryable=True)
    long = LongConversation([fault], rounds=5, chars=8000)
    notices = long.make()
    assert "could not be summarised: API error 500" in notices[0]
    assert "the oldest" in notices[1]
    first = long.history.messages[0]
    assert first.content[0] == Text(DROPPED)
    assert long.history.tokens <= WINDOW // 2 + 2100
    kept = [block.id for message in long.history.messages for block in message.content if isinstance(block, ToolUse)]
    answered = [
        block.id for message in long.history.messages for block in message.content if isinstance(block, ToolResultBlock)
    ]
    assert kept == answered


def test_when_all_that_is_left_would_go_the_latest_words_stay() -> None:
    long = LongConversation([ProviderError("no")], rounds=1, chars=80_000)
    long.make()
    assert [block for message in long.history.messages for block in message.content][-1] == Text("Find the bug.")


def test_after_three_failures_no_more_summaries_are_tried() -> None:
    long = LongConversation(*([ProviderError("no")] for _ in range(3)), rounds=5, chars=7000)
    for _ in range(5):
        long.make()
    assert len(long.model.requests) == compaction.MAX_FAILURES


class Refusing:
    """Says no to summaries, as a hook may."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, say: Say, *, by_hand: bool) -> tuple[str, str]:
        self.asked += 1
        return "not now", ""


def test_a_refused_summary_is_no_failure_and_is_asked_for_again_when_there_is_more() -> None:
    long = LongConversation(words("In short."), rounds=5, chars=6500)
    long.compaction.before_summary = refusing = Refusing()
    for _ in range(5):
        long.make()
    assert refusing.asked == 1
    step = int(compaction.ASK_AGAIN_SHARE * WINDOW) * CHARS_PER_TOKEN
    for _ in range(2):
        long.history.user((Text("x" * step),))
        long.make()
    assert refusing.asked == 3
    # By hand it is asked for whenever somebody wants it.
    run(long.compaction.summarise(long.say, by_hand=True))
    assert refusing.asked == 4
    long.compaction.before_summary = None
    long.history.user((Text("x" * step),))
    long.make()
    assert COMPACTED in str(long.history.messages[0].content[0])


def test_a_sub_agent_s_summary_can_be_refused_too() -> None:
    long = LongConversation(rounds=5, chars=6500)
    long.compaction.before_summary = refusing = Refusing()
    client = ModelClient(long.model, lambda: "", context_window=WINDOW)
    run(long.compaction.alike(client, long.history, lambda: ()).make_room(long.say))
    assert refusing.asked == 1
    assert not long.model.requests


def test_switched_off_it_only_does_what_cannot_be_left_undone() -> None:
    long = LongConversation(rounds=5, chars=8000, enabled=False)
    assert ["the oldest" in notice for notice in long.make()] == [True]


def test_the_latest_words_are_the_user_s_and_not_our_own() -> None:
    long = LongConversation(words("A summary."), rounds=5, chars=8000)
    long.history.user((Text(NO_MORE_TOOLS), Text(STOPPED)))
    long.make()
    assert [block for message in long.history.messages for block in message.content][-1] == Text("Find the bug.")


def test_a_summary_that_was_cut_off_is_none() -> None:
    long = LongConversation(words("They look for", "max_tokens"), rounds=5, chars=7000)
    assert "could not be summarised" in long.make()[0]


def test_each_retry_of_a_summary_is_told() -> None:
    long = LongConversation([Retrying("API error 529", 1.0), *words("A summary.")], rounds=5, chars=8000)
    assert long.make()[0] == "API error 529. Trying again in 1.0 s."


def test_a_summary_asks_for_no_more_than_fits() -> None:
    long = LongConversation(words("A summary."), rounds=5, chars=8000)
    long.make()
    assert long.model.requests[0].max_tokens == compaction.SUMMARY_TOKENS


def test_the_oldest_pictures_go_when_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MAX_DATA_CHARS", 25)
    long = LongConversation(enabled=False)
    picture = Image("image/png", "A" * 10)
    long.history.user((picture, Document("application/pdf", "B" * 10, "a.pdf", "the text")))
    long.history.assistant((ToolUse("t1", "Read", {}),))
    long.history.results([ToolResultBlock("t1", "Image loaded", images=(picture, picture))])
    assert long.make() == ["Old pictures and documents were cleared to make room."]
    blocks = [block for message in long.history.messages for block in message.content]
    assert blocks[1:3] == [Text(PICTURE_CLEARED), Text("[The document `a.pdf`, as text:]\nthe text")]
    assert blocks[-1] == ToolResultBlock("t1", "Image loaded", images=(picture, picture))
    long.said.clear()
    assert long.make() == []


def test_what_a_summary_cost_that_was_never_finished_is_counted() -> None:
    long = LongConversation([Usage(7, 0), ProviderError("no more", retryable=False)], rounds=5, chars=8000)
    assert "could not be summarised: no more" in long.make()[0]
    assert long.compaction.usage == Usage(7, 0)
