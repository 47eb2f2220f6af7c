"""History that every provider takes: each call has its result, whatever happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from trunkline.agents.coder.history import History, NoJournal, estimate
from trunkline.agents.coder.words import CRASHED, NOT_BEGUN, STOPPED, UNSEEN
from trunkline.core.events import UserMessage
from trunkline.core.faults import SessionDamaged
from trunkline.models.messages import Document, Image, Message, Text, ThinkingBlock, ToolResultBlock, ToolUse, to_json


class Notebook:
    """A journal in memory."""

    def __init__(self, *records: Any) -> None:
        self.kept = list(records)

    @property
    def records(self) -> Sequence[Any]:
        return tuple(self.kept)

    def append(self, record: Any) -> None:
        self.kept.append(record)

    def replace(self, records: Sequence[Any]) -> None:
        self.kept = list(records)


def test_a_session_of_another_agent_is_refused_in_words() -> None:
    exchange = {"graph_exchange": ["hi", "You said: hi"]}
    for record in (exchange, {"role": "user", "content": 5}, {"role": "model"}, {"role": "options", "set": 5}):
        with pytest.raises(SessionDamaged, match="not written by the coding agent"):
            History(Notebook(record))


def test_what_the_model_has_not_read_yet_stays_when_other_messages_take_the_place_of_all() -> None:
    notebook = Notebook()
    history = History(notebook)
    for text in ("one", "two"):
        history.user((Text(text),))
    unread = (UserMessage("In French, please.", sender="ana"),)
    history.keep_unread(unread)
    history.replace([Message("user", (Text("A summary."),))])
    assert History(Notebook(*notebook.kept)).unread == unread
    history.replace([])
    assert History(Notebook(*notebook.kept)).unread == ()


CALL = ToolUse("t1", "Bash", {"command": "ls"})


def test_what_was_said_comes_back_when_the_session_is_resumed() -> None:
    notebook = Notebook()
    history = History(notebook)
    history.user((Text("list files"),))
    history.assistant((Text("I look."), CALL))
    history.results([ToolResultBlock("t1", "a.txt", images=(Image("image/png", "AAAA"),))])
    history.assistant((Text("There is a.txt."),))
    assert History(Notebook(*notebook.kept)).messages == history.messages


def test_a_call_that_a_crash_cut_off_gets_a_result_and_the_result_is_kept() -> None:
    notebook = Notebook()
    first = History(notebook)
    first.user((Text("go"),))
    first.assistant((CALL, CALL.replace(id="t2")))
    resumed = History(Notebook(*notebook.kept))
    last = resumed.messages[-1]
    assert last.role == "user"
    assert [(block.id, block.text, block.is_error) for block in last.content if isinstance(block, ToolResultBlock)] == [
        ("t1", NOT_BEGUN, True),
        ("t2", NOT_BEGUN, True),
    ]


def test_results_that_were_there_before_a_crash_are_not_lost() -> None:
    notebook = Notebook()
    history = History(notebook)
    history.user((Text("go"),))
    history.assistant((CALL, CALL.replace(id="t2")))
    for early in (
        ToolResultBlock("t2", UNSEEN, True),
        ToolResultBlock("t1", UNSEEN, True),
        ToolResultBlock("t2", "done"),
    ):
        history.early(early)
    resumed = History(Notebook(*notebook.kept))
    assert resumed.messages[-1].content == (ToolResultBlock("t1", UNSEEN, True), ToolResultBlock("t2", "done"))
    history.results([ToolResultBlock("t1", "too"), ToolResultBlock("t2", "done")])
    assert History(Notebook(*notebook.kept)).messages == history.messages


def test_a_stop_keeps_what_was_said_and_gives_every_call_an_end() -> None:
    history = History(NoJournal())
    history.user((Text("go"),))
    calls = history.assistant((CALL, CALL.replace(id="t2")))
    history.stopped("", calls, [ToolResultBlock("t2", "done")], "Stopped by user")
    assert history.messages[-1] == Message(
        "user", (ToolResultBlock("t1", "Stopped by user", True), ToolResultBlock("t2", "done"), Text(STOPPED))
    )
    history.stopped("Half an ans", (), (), "Stopped by user")
    assert history.messages[-2:] == [
        Message("assistant", (Text("Half an ans"),)),
        Message("user", (Text(STOPPED),)),
    ]


def test_calls_with_the_same_id_get_ids_of_their_own() -> None:
    history = History(NoJournal())
    ids = [call.id for call in history.assistant((CALL, CALL, CALL.replace(id="")))]
    ids += [call.id for call in history.assistant((CALL,))]
    assert ids == ["t1", "t1-2", "call", "t1-3"]


@pytest.mark.parametrize("bad", ["x" * 37, "a b", "a/b", "ä", "\ud800"])
def test_an_id_or_a_name_that_no_provider_takes_back_is_replaced(bad: str) -> None:
    (call,) = History(NoJournal()).assistant((ToolUse(bad, "n" * 100, {}),))
    assert (call.id, call.name) == ("call", "n" * 64)


def test_what_people_have_seen_of_an_answer_is_not_lost_with_the_process() -> None:
    notebook = Notebook()
    history = History(notebook)
    history.user((Text("go"),))
    history.early(Text("Half an "))
    history.early(Text("ans"))
    assert History(Notebook(*notebook.kept)).messages[1:] == [
        Message("assistant", (Text("Half an ans"),)),
        Message("user", (Text(CRASHED),)),
    ]
    history.assistant((Text("Half an answer, and more."),))
    assert History(Notebook(*notebook.kept)).messages == history.messages


def test_ids_of_before_are_known_after_resuming() -> None:
    resumed = History(
        Notebook(to_json(Message("assistant", (CALL,))), to_json(Message("user", (ToolResultBlock("t1", ""),))))
    )
    assert [call.id for call in resumed.assistant((CALL,))] == ["t1-2"]


def test_blocks_that_say_nothing_are_not_kept() -> None:
    history = History(NoJournal())
    history.assistant((Text(" \n"),))
    assert history.messages == []


def test_tokens_are_as_the_provider_counted_and_estimated_from_there() -> None:
    history = History(NoJournal())
    history.user((Text("x" * 400),))
    assert history.tokens == estimate(history.messages[0]) == 101
    history.counted(5000)
    history.user((Text("y" * 40),))
    assert history.tokens == 5011
    history.counted(None)
    assert history.tokens == 5011


def test_a_count_that_cannot_be_of_everything_is_not_believed() -> None:
    history = History(NoJournal())
    history.user((Text("x" * 40_000),))
    history.counted(110, beside=2000)
    assert (history.tokens, history.is_counted) == (12_001, False)
    history.user((Text("y" * 40_000),))
    history.counted(110, beside=2000)
    assert (history.tokens, history.is_counted) == (22_002, False)
    # Once the whole was counted, what came since is added to that.
    history.counted(30_000, beside=2000)
    history.user((Text("z" * 400),))
    history.counted(110, beside=2000)
    assert (history.tokens, history.is_counted) == (30_101, True)


def test_another_model_gets_no_thoughts_that_it_did_not_think() -> None:
    notebook = Notebook()
    history = History(notebook)
    history.answered_by("a")
    history.user((Text("go"),))
    history.assistant((ThinkingBlock("hm", "sig"), CALL.replace(extra={"signature": "sig"})))
    history.results([ToolResultBlock("t1", "a.txt")])
    history.assistant((ThinkingBlock("so", "sig"),))
    thoughtful = list(history.messages)
    resumed = History(Notebook(*notebook.kept))
    resumed.answered_by("a")
    assert resumed.messages == thoughtful
    resumed.answered_by("b")
    assert resumed.messages == [
        Message("user", (Text("go"),)),
        Message("assistant", (CALL,)),
        Message("user", (ToolResultBlock("t1", "a.txt"),)),
    ]


def test_turns_are_still_told_apart_when_reasoning_is_forgotten() -> None:
    history = History(Notebook())
    history.user((Text("one"),), "t1")
    history.assistant((ThinkingBlock("hm", "sig"),))
    history.user((Text("two"),), "t2")
    assert history.forget_reasoning()
    assert history.turns == {"t1": 0, "t2": 1}
    assert not history.forget_reasoning()


def test_the_name_of_a_turn_takes_no_record_of_its_own_and_comes_back() -> None:
    notebook = Notebook()
    history = History(notebook)
    history.user((Text("one"),), "t1")
    history.assistant((Text("yes"),))
    history.user((Text("two"),), "t2")
    assert len(notebook.kept) == 3
    assert History(Notebook(*notebook.kept)).turns == {"t1": 0, "t2": 2}
    history.replace(history.messages)
    assert len(notebook.kept) == 3
    assert History(Notebook(*notebook.kept)).turns == {"t1": 0, "t2": 2}


def test_a_document_counts_with_its_text() -> None:
    document = Document("application/pdf", "AAAA", "a.pdf", "x" * 4000)
    assert estimate(Message("user", (document,))) > 2000


def test_reasoning_in_the_provider_s_own_form_is_kept_until_another_model_answers() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "opaque"}
    notebook = Notebook()
    history = History(notebook)
    history.answered_by("openai/gpt-6@api.openai.com")
    history.user((Text("q"),))
    history.assistant((ThinkingBlock("", extra=item), Text("a")))
    resumed = History(Notebook(*notebook.kept))
    assert resumed.messages == history.messages
    resumed.answered_by("openai/gpt-6@api.openai.com")
    assert resumed.messages[1].content[0] == ThinkingBlock("", extra=item)
    resumed.answered_by("openai/gpt-6@elsewhere.example")
    assert resumed.messages[1].content == (Text("a"),)
