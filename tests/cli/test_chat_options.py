"""The commands that talk to an agent are one terminal: the same flags in the same words, and the same commands."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from trunkline.cli import chat, graph_run, tryll_chat, tryll_talk
from trunkline.cli.chat_session import ChatOptions
from trunkline.cli.talk_voice import TerminalVoice
from trunkline.cli.terminal import commands, sitting

COMMANDS: Mapping[str, click.Command] = {
    "chat": chat.command,
    "graph run": graph_run.command,
    "tryll chat": tryll_chat.command,
    "tryll talk": tryll_talk.command,
}
ALL = frozenset(COMMANDS)
CHAT, GRAPH, TRYLL, TALK = ({name} for name in COMMANDS)


class Differs(NamedTuple):
    """Flags that not all of them have, or not in the same words."""

    names: set[str]
    reason: str


_SERVER = "who answers is elsewhere: which server, how it is reached, and what it runs"
_SPEECH = "only there sound is heard"
_CODER = "only of agents that `chat` makes itself: the file of a graph, or the server, says it for the others"

#: Where a flag is not the same everywhere, who has it, and why.
DIFFERENCES: Mapping[str, Differs] = {
    "--attach": Differs(CHAT, "the others know already who answers, and where"),
    "--models-dir": Differs(GRAPH, "of the others it is the server's, or of the exchange's file"),
    "--script": Differs(CHAT, "only the scripted agent plays one"),
    "--provider": Differs(CHAT, _CODER),
    "--base-url": Differs(CHAT, _CODER),
    "--profile": Differs(CHAT, _CODER),
    "--max-tokens": Differs(CHAT, _CODER),
    "--max-turns": Differs(CHAT, _CODER),
    "--thinking-budget": Differs(CHAT, _CODER),
    "--effort": Differs(CHAT, _CODER),
    "--sandbox": Differs(CHAT, "only the coding agent runs commands"),
    "--mode": Differs(CHAT | GRAPH, "a Tryll server asks nobody about tools: it only says which are called"),
    "--allow": Differs(CHAT | GRAPH, "as `--mode`"),
    "--auto-approve": Differs(CHAT | GRAPH, "as `--mode`"),
    "--system-prompt": Differs(CHAT | TRYLL | TALK, "a graph has its own"),
    "--engine": Differs(GRAPH | TRYLL | TALK, "graphs run without any model, too; other agents have no engine"),
    "--graph": Differs(TRYLL | TALK, "of `graph run` it is the argument, and of `chat` the agent `graph:FILE`"),
    "--tls-ca": Differs(TRYLL | TALK, _SERVER),
    "--no-trace": Differs(GRAPH, "whoever writes a graph wants to see its way, and can do without"),
    "--out": Differs(TALK, "its first name of `--sound`"),
    "--in": Differs(TALK, _SPEECH),
    "--fast": Differs(TALK, _SPEECH),
    "--push-to-talk": Differs(TALK, _SPEECH),
    "--stt": Differs(TALK, _SPEECH),
    "--tts": Differs(TALK, _SPEECH),
    "--pause": Differs(TALK, _SPEECH),
    "--no-barge-in": Differs(TALK, _SPEECH),
}
#: Where the words differ of a flag that several have, and why.
WORDS: Mapping[str, str] = {
    "--model": "of a graph it is that of some nodes, and of a server one that it has",
    "--system-prompt": "a graph that runs on a server has its own",
    "--trace": "`graph run` has it by default",
    "--engine": "a server names its engines otherwise, and decides by the model's name",
}


def flags(command: click.Command) -> dict[str, click.Option]:
    options = [each for each in command.params if isinstance(each, click.Option)]
    return {flag: each for each in options for flag in (*each.opts, *each.secondary_opts)}


def test_every_flag_is_everywhere_or_there_is_a_reason() -> None:
    found: dict[str, set[str]] = {}
    for name, command in COMMANDS.items():
        for flag in flags(command):
            found.setdefault(flag, set()).add(name)
    partly = {flag: names for flag, names in found.items() if names != ALL}
    assert partly == {flag: each.names for flag, each in DIFFERENCES.items()}
    assert all(each.reason for each in DIFFERENCES.values())
    for flag in (
        "-p",
        "-m",
        "--json",
        "--jsonl",
        "--lines",
        "--resume",
        "--session-id",
        "--no-session",
        "-q",
        "--sound",
    ):
        assert found[flag] == ALL


def test_a_flag_has_the_same_names_words_and_form_everywhere_or_there_is_a_reason() -> None:
    differ = set()
    for flag in {each for command in COMMANDS.values() for each in flags(command)}:
        forms = set()
        for command in COMMANDS.values():
            if (option := flags(command).get(flag)) is not None:
                names = {*option.opts, *option.secondary_opts} - DIFFERENCES.keys()
                kind = str(option.type.to_info_dict())
                forms.add((frozenset(names), option.help, option.metavar, option.is_flag, kind))
        if len(forms) > 1:
            differ.add(flag)
    assert differ == WORDS.keys()


@pytest.fixture
def graph(tmp_path: Path) -> str:
    (tmp_path / "one.yaml").write_text("start: answer\ndefault_model: mock\nnodes:\n  answer: {type: Generate}\n")
    return str(tmp_path / "one.yaml")


@pytest.mark.parametrize("name", COMMANDS)
def test_at_a_terminal_each_is_the_same_conversation(name: str, graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

        def flush(self) -> None:
            """There is nothing to be written."""

    begun: list[ChatOptions] = []

    async def converse(options: ChatOptions) -> int:
        begun.append(options)
        return 7

    monkeypatch.setattr(sitting, "converse", converse)
    monkeypatch.setattr(TerminalVoice, "devices", lambda voice: nullcontext())
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys, "stdout", Terminal())
    arguments = {"chat": ["echo"], "graph run": [graph]}.get(name, ["127.0.0.1:1"])
    with pytest.raises(SystemExit) as left:
        COMMANDS[name].main([*arguments, "--session-id", "abc"], prog_name="trunkline")
    assert (left.value.code, begun[0].session_id) == (7, "abc")
    assert (begun[0].voice is not None) == (name == "tryll talk")


#: What does not do the same with every agent, and why.
ELSEWHERE: Mapping[str, str] = {
    "effort": "says so where a model has no setting for it",
    "grants": "lists nothing where nothing is ever asked, as on a Tryll server",
    "mode": "changes nothing where nothing is ever asked",
    "model": "a spoken conversation and the mock engine say why they keep theirs",
    "permissions": "has no rules to show where nothing is ever asked",
    "plan": "changes nothing where nothing is ever asked",
    "thinking": "shows nothing of agents that do not tell their thoughts",
    "todos": "has nothing to show of agents that keep no list",
    "trace": "needs a graph, and its `--trace`",
    "usage": "knows as much as the agent tells",
}


def test_the_commands_are_the_same_and_those_that_depend_on_the_agent_say_why() -> None:
    offered = commands.COMMANDS.keys()
    everywhere = {"help", "clear", "sessions", "resume", "exit", "quit"}
    assert offered == everywhere | ELSEWHERE.keys()


def test_the_same_flags_lead_to_the_same_refusals(graph: str) -> None:
    from tests.support.invoked import invoke

    for name, command in COMMANDS.items():
        arguments: list[Any] = {"chat": ["echo"], "graph run": [graph]}.get(name, ["127.0.0.1:1"])
        for wrong in (("--resume", "a", "--session-id", "b"), ("--no-session", "--resume", "a"), ("--json", "--jsonl")):
            result = invoke(command, *arguments, "-p", "x", *wrong)
            assert (name, result.exit_code, "Cannot use" in result.stderr) == (name, 2, True)
        result = invoke(command, *arguments, "-p", "x", "--resume", "none-such")
        assert (name, result.exit_code, "none-such" in result.stderr) == (name, 1, True)
