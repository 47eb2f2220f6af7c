"""What is kept when room is made: the approved plan, the to-dos, and the files in hand, again and again."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from tests.agents.coder.test_history import Notebook
from trunkline.agents.coder import in_hand
from trunkline.agents.coder.history import History
from trunkline.agents.coder.in_hand import MOST_NAMED, MOST_SHOWN, InHand
from trunkline.agents.coder.words import COMPACTED, FILE_KEPT, PLAN_KEPT, TODOS_KEPT
from trunkline.base.redact import Redactor
from trunkline.core.rules import NO_RULES, Rules
from trunkline.models.messages import Message, Text, ToolResultBlock, ToolUse
from trunkline.tools.exit_plan import APPROVED
from trunkline.tools.files import FileMemory
from trunkline.tools.todo_write import TodoWrite
from trunkline.tools.toolbox import Toolbox, standard_tools
from trunkline.tools.workspace import Workspace


class Working:
    """A conversation in a workspace, and what is kept of it."""

    def __init__(self, place: Path, *, window: int = 100_000, rules: Rules = NO_RULES, secrets: Any = ()) -> None:
        self.place = place
        self.history = History(Notebook())
        redactor = Redactor(secrets)
        memory = FileMemory()
        toolbox = Toolbox(standard_tools(Workspace(place, lambda: rules), memory, redactor), redactor)
        toolbox.add(TodoWrite(print))
        self._toolbox = toolbox
        self._make = partial(
            InHand, self.history, toolbox, window=window, workspace=str(place), rules=rules, redactor=redactor
        )
        self._forget_shown = memory.forget_shown
        self._calls = 0

    def call(self, name: str, result: str = "", *, is_error: bool = False, **args: Any) -> None:
        """The model calls a tool; without a result, the real one."""
        self._calls += 1
        self.history.assistant((ToolUse(f"t{self._calls}", name, args),))
        text = result or asyncio.run(self._toolbox.run(name, args, print)).text
        self.history.results([ToolResultBlock(f"t{self._calls}", text, is_error)])

    def file(self, name: str, text: str) -> str:
        (self.place / name).write_text(text)
        return name

    def kept(self) -> list[str]:
        self._forget_shown()
        return [block.text for block in asyncio.run(self._make().blocks())]

    def files(self) -> list[str]:
        kept = [text.removeprefix(FILE_KEPT + " ") for text in self.kept() if text.startswith(FILE_KEPT)]
        assert all("\n<untrusted_data>\n" in text for text in kept if "\n" in text)
        return [text.replace("<untrusted_data>\n", "").removesuffix("\n</untrusted_data>") for text in kept]

    def compact(self) -> list[str]:
        kept = self.kept()
        self.history.replace([Message("user", (Text(f"{COMPACTED}\n\nSo far."), *map(Text, kept)))])
        return kept


def test_of_a_conversation_without_any_of_it_nothing_is_kept(tmp_path: Path) -> None:
    working = Working(tmp_path)
    working.history.user((Text("hello"),))
    assert working.kept() == []


def test_the_latest_plan_that_was_approved_and_the_latest_to_dos_are_kept_word_for_word(tmp_path: Path) -> None:
    working = Working(tmp_path)
    working.call("ExitPlanMode", APPROVED, plan="1. Look.")
    working.call("ExitPlanMode", APPROVED, plan="1. Fix `it`.\n2. Test.")
    working.call("ExitPlanMode", "Tool denied: no", is_error=True, plan="Never.")
    working.call("TodoWrite", todos=[{"content": "Old", "status": "pending"}])
    working.call(
        "TodoWrite", todos=[{"content": "Fix", "status": "completed"}, {"content": "Test", "status": "pending"}]
    )
    working.call("TodoWrite", "no list", is_error=True, todos=[])
    for _ in range(3):
        assert working.compact() == [
            f"{PLAN_KEPT}\n1. Fix `it`.\n2. Test.",
            f"{TODOS_KEPT}\n[x] Fix\n[ ] Test",
        ]
    working.call("TodoWrite", todos=[])
    assert working.compact() == [f"{PLAN_KEPT}\n1. Fix `it`.\n2. Test."]
    assert working.compact() == [f"{PLAN_KEPT}\n1. Fix `it`.\n2. Test."]


def test_the_files_are_shown_as_they_are_now_and_the_latest_comes_last(tmp_path: Path) -> None:
    working = Working(tmp_path)
    for name in ("a.txt", "b.txt"):
        working.call("Read", file_path=working.file(name, "old\n"))
    working.call("Edit", file_path=str(tmp_path / "a.txt"), old_string="old", new_string="new")
    working.call("Read", "Failed to read", is_error=True, file_path="none.txt")
    for _ in range(3):
        assert [text.split("\n") for text in map(str, working.files())] == [
            ['{"file_path":"b.txt"}', "     1\told"],
            [f'{{"file_path":"{tmp_path}/a.txt"}}', "     1\tnew"],
        ]
        working.compact()


def test_of_a_file_the_part_is_shown_that_was_worked_on(tmp_path: Path) -> None:
    working = Working(tmp_path)
    name = working.file("a.txt", "".join(f"line {number}\n" for number in range(100)))
    working.call("Read", file_path=name, offset=50, limit=2)
    working.call("Edit", file_path=name, old_string="line 50\n", new_string="line fifty\n")
    expected = ['{"file_path":"a.txt","offset":50,"limit":2}\n    51\tline fifty\n    52\tline 51']
    assert working.files() == expected
    working.compact()
    assert working.files() == expected
    working.call("Read", file_path=name)
    assert working.files()[0].startswith('{"file_path":"a.txt"}\n     1\tline 0')


def test_what_is_shown_is_bounded_and_more_files_are_named(tmp_path: Path) -> None:
    working = Working(tmp_path, window=8_000)
    for number in range(MOST_NAMED + 5):
        working.call("Read", file_path=working.file(f"{number}.txt", f"{number} " * 1000))
    found = working.files()
    assert [text.partition("\n")[0] for text in found] == [
        f'{{"file_path":"{number}.txt"}}' for number in range(5, MOST_NAMED + 5)
    ]
    assert "truncated" in found[-2]
    assert sum(map(len, found)) < 8_000
    assert [text for text in found[:-MOST_SHOWN] if "\n" in text] == []


def test_a_plan_that_would_fill_a_small_window_is_cut(tmp_path: Path) -> None:
    working = Working(tmp_path, window=4_000)
    working.call("ExitPlanMode", APPROVED, plan="x" * 40_000)
    (plan,) = working.kept()
    assert len(plan) < 2_200


def test_files_that_nobody_may_read_unasked_are_named_alone(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (tmp_path / "out.txt").write_text("hidden")
    working = Working(place, rules=Rules(ask=("Read(asked.txt)",), deny=("Read(denied.txt)",)))
    for name in ("asked.txt", "denied.txt", "link.txt"):
        working.call("Write", file_path=name, content="hidden")
    (place / "link.txt").unlink()
    (place / "link.txt").symlink_to(tmp_path / "out.txt")
    working.call("Read", "was allowed once", file_path=str(tmp_path / "out.txt"))
    assert "hidden" not in "".join(working.files())
    assert len(working.files()) == 3


def test_secrets_and_pictures_are_not_shown(tmp_path: Path) -> None:
    working = Working(tmp_path, secrets=["sk-0123456789abcdef"])
    working.call("Read", file_path=working.file("env", "KEY=sk-0123456789abcdef\n"))
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0")
    working.call("Read", "a picture", file_path="a.png")
    working.call("ExitPlanMode", APPROVED, plan="Use sk-0123456789abcdef.")
    kept = "\n".join(working.kept())
    assert "sk-0123456789abcdef" not in kept
    assert kept.count("[redacted]") == 2
    assert "Image loaded" not in kept


def test_what_only_looks_like_it_does_no_harm(tmp_path: Path) -> None:
    working = Working(tmp_path)
    working.history.assistant((Text(f"{TODOS_KEPT}\nmine"),))
    working.history.user(tuple(map(Text, (f"{FILE_KEPT} [1]\nx", f"{FILE_KEPT} {{}}", f"{FILE_KEPT} no", FILE_KEPT))))
    assert working.kept() == []


def test_a_disk_that_hangs_does_not_hold_it_up(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(in_hand, "READ_SECONDS", 0.0)
    working = Working(tmp_path)
    working.call("Read", file_path=working.file("a.txt", "text"))
    assert working.files() == ['{"file_path":"a.txt"}']
