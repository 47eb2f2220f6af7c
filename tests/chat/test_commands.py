"""What is a command of the bridge's, and what goes to the agent."""

from __future__ import annotations

import pytest

from trunkline.chat.commands import HELP, NAMES, ChatCommand, Choice, choice, for_agent, number, parse


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/stop", ChatCommand("stop")),
        ("  /Stop  ", ChatCommand("stop")),
        ("!stop", ChatCommand("stop")),
        ("/stop@some_bot", ChatCommand("stop")),
        ("/agent claude code", ChatCommand("agent", "claude code")),
        ("/deny 3 not\nnow", ChatCommand("deny", "3 not\nnow")),
    ],
)
def test_a_command_of_ours_is_understood(text: str, command: ChatCommand) -> None:
    assert parse(text) == command


@pytest.mark.parametrize("text", ["", "stop", "/", "/compact", "//stop", "/stopp", "/ stop", "a /stop", "/usr/bin/ls"])
def test_everything_else_goes_to_the_agent(text: str) -> None:
    assert parse(text) is None


def test_two_slashes_are_for_an_agent_whose_command_has_our_name() -> None:
    assert for_agent("//status now") == "/status now"
    assert for_agent("//comment") == "//comment"
    assert for_agent("hello") == "hello"


@pytest.mark.parametrize(
    ("command", "chosen"),
    [
        (ChatCommand("approve"), Choice()),
        (ChatCommand("approve", "3"), Choice(3)),
        (ChatCommand("approve", "always"), Choice(None, always=True)),
        (ChatCommand("approve", "3 Always"), Choice(3, always=True)),
        (ChatCommand("approve", "not"), None),
        (ChatCommand("approve", "3 4"), None),
        (ChatCommand("approve", "9" * 5000), None),
        (ChatCommand("approve", "٣"), None),
        (ChatCommand("deny"), Choice()),
        (ChatCommand("deny", "3 too dangerous"), Choice(3, reason="too dangerous")),
        (ChatCommand("deny", "too dangerous"), Choice(None, reason="too dangerous")),
    ],
)
def test_only_a_clear_yes_is_a_yes(command: ChatCommand, chosen: Choice | None) -> None:
    assert choice(command) == chosen


def test_the_help_names_every_command() -> None:
    assert all(f"`/{name}" in HELP for name in NAMES)


@pytest.mark.parametrize(
    ("argument", "meant"), [("17", 17), ("", None), ("x", None), ("1 2", None), ("٣", None), ("9" * 5000, None)]
)
def test_a_number_is_a_number(argument: str, meant: int | None) -> None:
    assert number(ChatCommand("retry", argument)) == meant
