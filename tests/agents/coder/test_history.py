"""History that every provider takes: each call has its result, whatever happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trunkline.agents.coder.history import CUT_OFF, STOPPED, History, NoJournal, estimate
from trunkline.models.messages import Image, Message, Text, Thinking, ToolResult, ToolUse, to_json


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


CALL = ToolUse("t1", "Bash", {"command": "ls"})


def test_what_was_said_comes_back_when_the_session_is_resumed() -> None:
    notebook = Notebook()
    history = History(notebook)
    history.user((Text("list files"),))
    history.assistant((Text("I look."), CALL))
    history.results([ToolResult("t1", "a.txt", images=(Image("image/png", "AAAA"),))])
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
    assert [(block.id, block.text, block.is_error) for block in last.content if isinstance(block, ToolResult)] == [
        ("t1", CUT_OFF, True),
        ("t2", CUT_OFF, True),
    ]


def test_results_that_were_there_before_a_crash_are_not_lost() -> None:
    notebook = Notebook()
    history = History(notebook)
    history.user((Text("go"),))
    history.assistant((CALL, CALL.replace(id="t2")))
    history.early(ToolResult("t2", "done"))
    resumed = History(Notebook(*notebook.kept))
    assert resumed.messages[-1].content == (ToolResult("t1", CUT_OFF, True), ToolResult("t2", "done"))
    history.results([ToolResult("t1", "too"), ToolResult("t2", "done")])
    assert History(Notebook(*notebook.kept)).messages == history.messages


def test_a_stop_keeps_what_was_said_and_gives_every_call_an_end() -> None:
    history = History(NoJournal())
    history.user((Text("go"),))
    calls = history.assistant((CALL, CALL.replace(id="t2")))
    history.stopped("", calls, [ToolResult("t2", "done")], "Stopped by user")
    assert history.messages[-1] == Message(
        "user", (ToolResult("t1", "Stopped by user", True), ToolResult("t2", "done"), Text(STOPPED))
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


def test_ids_of_before_are_known_after_resuming() -> None:
    resumed = History(
        Notebook(to_json(Message("assistant", (CALL,))), to_json(Message("user", (ToolResult("t1", ""),))))
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


def test_another_model_gets_no_thoughts_that_it_did_not_think() -> None:
    notebook = Notebook()
    history = History(notebook)
    history.user((Text("go"),))
    history.assistant((Thinking("hm", "sig"), CALL))
    history.results([ToolResult("t1", "a.txt")])
    history.assistant((Thinking("so", "sig"),))
    history.forget_thoughts()
    assert history.messages == [
        Message("user", (Text("go"),)),
        Message("assistant", (CALL,)),
        Message("user", (ToolResult("t1", "a.txt"),)),
    ]
    assert History(Notebook(*notebook.kept)).messages == history.messages
