"""Command-line agents that are not here, played by one script: what they take, and what they are known to print.

    install_fake(directory, "codex")        # puts a `codex` there; `FAKES` names all of them

A fake insists on the arguments that the real program needs, and on the message where that program reads it. What it
plays is decided by the message, and by the session that it is to go on with:

    fail        the model's service refuses; told as the program tells it
    crash       the program ends with code 3 and a word on standard error
    tool        a passage, the use of a tool, another passage
    noise       lines between the others that are none of them
    slow        answers, and does not end (for those who stop it)
    DEAD        as the session: it is not known, and the program says so, or begins a new one
    otherwise   a short answer: "You said: MESSAGE"

Claude Code and Codex are talked to while they run, and ask: see `fake_dialogue`. What they print where they are only
read, as in a profile of the user's own, is `run_lines`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator

from tests.support import fake_cli_plays as plays
from tests.support import fake_dialogue
from tests.support.fake_cli_plays import NEW, Failure, Output, Told

#: The profile -> the program that it starts.
PROGRAMS = {
    "agy": "agy",
    "aider": "aider",
    "claude-code": "claude",
    "codebuddy": "codebuddy",
    "codex": "codex",
    "cursor": "cursor-agent",
    "deepseek": "deepseek",
    "gemini-cli": "gemini",
    "goose": "goose",
    "grok-build": "grok",
    "kimi": "kimi",
    "opencode": "opencode",
    "pi": "pi",
    "qwen-code": "qwen",
    "recursive": "recursive",
}
#: Those that print nothing but text.
PLAIN = ("agy", "aider", "deepseek")
FAKES = list(PROGRAMS)
#: Those that are talked to, and the stream that reads them where they are not.
DIALOGUES = {"claude-code": "claude", "codex": "codex"}

DEAD = "dead-0000"
CRASHED = "something broke"
NOISE = "[debug] listening on 127.0.0.1"
EXIT_CRASHED = 3
#: As `sysexits.h` has it: the arguments are wrong.
EXIT_USAGE = 64
SLOW_SECONDS = 60

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_START = (
    f"import sys; sys.path.insert(0, {_ROOT!r}); from tests.support.fake_cli import main; sys.exit(main(*sys.argv[1:]))"
)


def install_fake(directory: str | os.PathLike[str], name: str) -> str:
    """Put the program of the profile `name` into a directory, and give its path."""
    path = os.path.join(directory, PROGRAMS[name])
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec "{sys.executable}" -S -E -c "{_START}" {name} "$@"\n')
    os.chmod(path, 0o755)
    return path


_PI_TOOLS = ["--mode", "json", "--tools", "read,grep,find,ls"]
_AIDER = [
    "--chat-mode=ask",
    "--restore-chat-history",
    "--no-pretty",
    "--no-stream",
    "--no-fancy-input",
    "--no-suggest-shell-commands",
    "--no-show-release-notes",
    "--no-check-update",
    "--no-detect-urls",
    "--no-show-model-warnings",
    "--message= ",
]
Play = Callable[[Told], Iterator[Output]]
#: What each prints, its arguments for a new session and for an old one, and what it says of one that is not there.
#: `{}` stands for the session. If the last ends with `=` or a space, or is empty, the message follows; else that comes
#: on standard input.
_PLAYS: dict[str, tuple[Play, str, list[str], list[str], str]] = {
    "agy": (plays.plain, "", [], ["--print", "--", ""], ""),
    "aider": (plays.aider, "", [], _AIDER, ""),
    "codebuddy": (plays.claude, "", ["-r", "{}"], ["--output-format", "stream-json", "-p", " "], ""),
    "deepseek": (plays.plain, "exec", [], ["-p", " "], ""),
    "grok-build": (
        plays.grok, "", ["-r", "{}"], ["--output-format", "streaming-json", "--no-auto-update", "-p", " "], "",
    ),
    "recursive": (
        plays.recursive, "", [], ["--json", "-H", "--stream", "--permission-mode", "plan", "run", "--", ""], "",
    ),
    "claude-code": (plays.claude, "", [], [], "No conversation found with session ID: {}"),
    "codex": (
        plays.codex, "", [], [],
        "Error: thread/resume: thread/resume failed: no rollout found for thread id {} (code -32600)",
    ),
    "cursor": (
        plays.cursor, "", ["--resume={}"], ["--print", "--output-format=stream-json", "--stream-partial-output"],
        "",
    ),
    "gemini-cli": (
        plays.gemini, "", ["--resume={}"], ["--output-format=stream-json"],
        'Error resuming session: Invalid session identifier "{}".',
    ),
    "goose": (
        plays.goose, "run", ["--resume", "--session-id={}"], ["--output-format=stream-json", "-i", "-"],
        "Cannot resume session {} - no such session exists",
    ),
    "kimi": (
        plays.kimi, "", ["--session={}"], ["--output-format=stream-json", "--prompt="],
        'error: failed to run prompt: Session "{}" not found.',
    ),
    "opencode": (
        plays.opencode, "run", ["--session={}"], ["--format=json", "--thinking"],
        "\x1b[91m\x1b[1mError: \x1b[0mSession not found",
    ),
    "pi": (plays.pi, "", ["--session", "{}"], _PI_TOOLS, "No session found matching '{}'"),
    "qwen-code": (
        plays.qwen, "", ["--resume={}"], ["--output-format=stream-json", "--include-partial-messages"],
        "No saved session found with ID {}. Run `qwen --resume` without an ID to choose from existing sessions.",
    ),
}  # fmt: skip


def _told(name: str, arguments: list[str]) -> Told:
    _, first, resume, rest, _ = _PLAYS[name]
    begin = first.split()
    if arguments[: len(begin)] != begin:
        raise Failure(EXIT_USAGE, f"unexpected arguments: {arguments}")
    given = arguments[len(begin) :]
    session = ""
    old, given = given[: -len(rest)], given[-len(rest) :]
    if old:
        for form, argument in zip(resume, old, strict=True):
            head, found, _ = form.partition("{}")
            if not argument.startswith(head) or (not found and argument != form):
                raise Failure(EXIT_USAGE, f"unexpected arguments: {arguments}")
            session = argument[len(head) :] if found else session
    on_argument = not rest[-1] or rest[-1].endswith(("=", " "))
    last = given[-1][: len(rest[-1])] if on_argument else given[-1]
    if [*given[:-1], last] != rest:
        raise Failure(EXIT_USAGE, f"unexpected arguments: {arguments}")
    message = given[-1][len(last) :] if on_argument else sys.stdin.buffer.read().decode()
    return Told(message, session or NEW.get(name, ""), not session)


def main(name: str, *given: str) -> int:
    """Play one run; gives the exit code."""
    arguments = list(given)
    if arguments == ["--version"]:
        print(f"{PROGRAMS[name]} 9.8.7")
        return 0
    if name in DIALOGUES:
        return fake_dialogue.play(name, arguments)
    play, *_, unknown = _PLAYS[name]
    try:
        told = _told(name, arguments)
        if told.session == DEAD and not unknown:
            told = Told(told.message, NEW[name], True)
        elif told.session == DEAD:
            raise Failure(1, unknown.format(DEAD))
        if told.message == "crash":
            raise Failure(EXIT_CRASHED, CRASHED)
        for output in play(told):
            for line in _noise(name, told.message):
                print(line)
            print(output if isinstance(output, str) else json.dumps(output), flush=True)
        if told.message == "slow":
            time.sleep(SLOW_SECONDS)
    except Failure as failure:
        sys.stdout.flush()
        print(failure.stderr, file=sys.stderr)
        return failure.code
    return 0


def run_lines(name: str, message: str) -> bytes:
    """What a fake prints on standard output for a message in a new session: for tests without a process."""
    lines: list[str] = []
    try:
        for output in _PLAYS[name][0](Told(message, NEW.get(name, ""), True)):
            lines += _noise(name, message)
            lines.append(output if isinstance(output, str) else json.dumps(output))
    except Failure:
        # What it writes to standard error is not asked for.
        pass
    return "".join(f"{line}\n" for line in lines).encode()


def dead_words(name: str, session: str) -> str:
    """What a program says of a session that it does not know."""
    return _PLAYS[name][-1].format(session)


def _noise(name: str, message: str) -> list[str]:
    if message != "noise" or name in PLAIN:
        return []
    return [NOISE, '{"type": "new.kind.of.event", "nested": [1, {"a": null}]}']
