"""What is typed behind a command, whatever it is."""

from __future__ import annotations

from typing import Any, cast

import pytest

from trunkline.cli.terminal.commands import COMMANDS, _chosen, _model, arguments
from trunkline.cli.terminal.helping import GROUPS, grouped
from trunkline.cli.terminal.paint import Painter
from trunkline.cli.terminal.permissions import chosen
from trunkline.core.agent import Capabilities, Change
from trunkline.core.faults import ConfigError, SessionNotFound
from trunkline.core.grants import Grant

GRANTS = (Grant("edit"), Grant("exec"))


def test_a_grant_is_chosen_by_its_number() -> None:
    assert chosen("revoke 2", GRANTS) == GRANTS[1:]
    assert chosen("revoke all", GRANTS) == GRANTS


@pytest.mark.parametrize("which", ["0", "3", "-1", "9" * 5000, "\u0662", "x", ""])
def test_a_number_that_no_grant_has_takes_nothing_back(which: str) -> None:
    with pytest.raises(ConfigError):
        chosen(f"revoke {which}", GRANTS)


@pytest.mark.parametrize("which", ["0", "1", "9" * 5000])
def test_a_number_that_no_session_has_is_told(which: str) -> None:
    with pytest.raises(SessionNotFound, match="/sessions lists those there are"):
        _chosen(which, "/nowhere")


class Models:
    """A chat of which only the model is of interest."""

    def __init__(self, *known: str) -> None:
        self._known = known
        self.notes: list[str] = []
        self.model = ""
        self.view = self.session = self

    def note(self, text: str) -> None:
        self.notes.append(text)

    async def configure(self, change: Change) -> None: ...

    async def models(self) -> list[str]:
        return list(self._known)

    def use_model(self, name: str) -> None:
        self.model = name


async def changed(chat: Models, name: str) -> list[str]:
    await _model(cast(Any, chat), name)
    assert (chat.model, chat.notes.pop(0)) == (name, f"The model is `{name}` now.")
    return chat.notes


async def test_a_model_that_is_not_listed_is_taken_with_a_note_and_the_nearest_name() -> None:
    (note,) = await changed(Models("big-1", "small-1"), "bgi-1")
    assert note.startswith("It is not among the models that are known.")
    assert "`big-1`" in note


@pytest.mark.parametrize("name", ["big-1", "big-2", "big-3", "big-1-2025-09-29"])
async def test_a_model_that_is_listed_under_its_name_or_a_dated_one_is_taken_without_a_word(name: str) -> None:
    known = ("big-1", "big-1-2025-09-29", "big-2-20250929", "big-3")
    assert not await changed(Models(*known), name)


async def test_where_no_models_are_known_any_is_taken_without_a_word() -> None:
    assert not await changed(Models(), "anything")


def test_help_has_every_command_once_and_in_its_group() -> None:
    ours = {name: (f"/{name}", words) for name, (_, words, _) in COMMANDS.items()}
    theirs = {name: (f"/{name}", "theirs") for name in ("undo", "mine", "evil\x1b[31m")}
    painter = Painter(lambda: 100, color_system=None)
    shown = painter.lines(grouped({**theirs, **ours}, [("Tab", "sends")]))
    words = [line.split()[0] for line in shown if line.startswith("  /")]
    assert sorted(words) == sorted({f"/{name}" for name in (*ours, "mine", r"evil\x1b[31m")} - {"/quit"} | {"/undo"})
    titles = [line for line in shown if line and not line.startswith(" ")]
    known = [*GROUPS, "Your own commands and skills, or the agent's", "Keys"]
    assert titles == [title for title in known if title in titles]
    assert "\x1b" not in "".join(shown)
    below = shown[shown.index("Work") :]
    assert next(line for line in below if "/undo" in line).split() == ["/undo", "theirs"]
    assert shown.index(next(line for line in shown if "/mine" in line)) > shown.index("Work")


def test_what_can_follow_a_command_is_offered() -> None:
    chat = cast(Any, Models("big-1", "small-1"))
    chat.capabilities = Capabilities(effort_levels=("low", "high"))
    chat.known_models = lambda: ["big-1"]
    assert list(arguments(chat, "/model")) == ["big-1"]
    assert list(arguments(chat, "/effort")) == ["low", "high", "default"]
    assert list(arguments(chat, "/mode")) == ["default", "auto_edit", "plan", "yolo"]
    assert "kill " in arguments(chat, "/bashes")
    assert list(arguments(chat, "/nothing")) == []
