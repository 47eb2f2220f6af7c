"""`trunkline tryll talk`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import wave
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.cli.terminal.chat_terminal import CTRL_C, CTRL_D, ChatTerminal
from tests.support.certificates import own_certificate, showing
from tests.support.fake_voice import FakeVoice, FakeVoices
from tests.support.invoked import Invoked, invoke
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_process import TryllProcess, tryll_process
from tests.support.tryll_served import Served, served
from tests.support.tryll_voice import silence, tone, words
from trunkline.agents.graph.pool import ModelPool
from trunkline.base import paths
from trunkline.base.programs import own_command_here
from trunkline.cli import tryll_chat
from trunkline.cli.talk_voice import MOMENT_SECONDS, ProgressNotes
from trunkline.cli.tryll_talk import command
from trunkline.store.files import FileStore
from trunkline.wires.tryll.messages import DownloadProgress

MOCK = ("--model", "mock", "--stt", "mock", "--tts", "mock")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    pool = ModelPool()
    async with served(tmp_path, pool, FakeVoices([FakeVoice("fake", 16_000)], pool)) as found:
        yield found


def wav(path: Path, pcm: bytes) -> str:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(pcm)
    return str(path)


async def talk(server: Served, *arguments: str, typed: str | None = None) -> Invoked:
    address = f"{server.host}:{server.port}"
    return await asyncio.to_thread(invoke, command, address, *arguments, typed=typed)


async def test_what_a_file_says_is_written_down_and_answered_aloud(server: Served, tmp_path: Path) -> None:
    source = wav(tmp_path / "in.wav", tone(300) + silence(600))
    target = tmp_path / "out.wav"
    result = await talk(
        server, "--model", "mock", "--stt", "mock", "--tts", "fake", "--in", source, "--out", str(target)
    )
    assert (result.stdout, result.exit_code) == (f"You said: {words(1, 3)}\n", 0), result.output
    assert f"You: {words(1, 3)}\n" in result.stderr
    with wave.open(str(target)) as file:
        assert (file.getframerate(), file.getsampwidth(), file.getnchannels()) == (16000, 2, 1)
        assert file.getnframes() > 0


async def test_a_fast_file_is_one_utterance_and_json_is_that_of_chat(server: Served, tmp_path: Path) -> None:
    source = wav(tmp_path / "in.wav", tone(300) + silence(700) + tone(200) + silence(5000))
    result = await talk(server, *MOCK, "--fast", "--json", "--in", source)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["text"], found["outcome"], found["model"]) == (f"You said: {words(1, 5)}", "success", "mock")
    assert found["usage"]["output_tokens"] > 0
    result = await talk(server, *MOCK, "--fast", "--jsonl", "--in", source)
    kinds = [json.loads(line)["event"] for line in result.stdout.splitlines()]
    assert (kinds[0], kinds[-1], "TextDelta" in kinds) == ("TurnStarted", "TurnEnded", True)


async def test_what_is_piped_in_is_one_message_or_one_for_each_line(server: Served) -> None:
    assert (await talk(server, *MOCK, typed="one\ntwo")).stdout == "You said: one\ntwo\n"
    assert (await talk(server, *MOCK, "--lines", "-q", typed="one\ntwo\n")).stdout == "You said: one\nYou said: two\n"
    assert (await talk(server, *MOCK, "-m", "one", typed="two")).stdout == "You said: one\n\ntwo\n"


@pytest.mark.parametrize("is_protected", [False, True], ids=["ws", "wss"])
async def test_one_talks_over_a_websocket_too(server: Served, tmp_path: Path, is_protected: bool) -> None:
    certificate = own_certificate(tmp_path)
    tls, ca = (showing(certificate), ["--tls-ca", str(certificate)]) if is_protected else (None, [])
    _, port = await server.server.listen_websocket("127.0.0.1", 0, tls)
    address = f"{'wss' if is_protected else 'ws'}://127.0.0.1:{port}"
    source, target = wav(tmp_path / "in.wav", tone(300) + silence(600)), tmp_path / "out.wav"
    voices = ("--model", "mock", "--stt", "mock", "--tts", "fake", "--fast")
    result = await asyncio.to_thread(
        invoke, command, address, *ca, *voices, "--in", source, "--out", str(target), typed=None
    )
    assert (result.exit_code, "You said: " in result.stdout) == (0, True), result.output
    with wave.open(str(target)) as heard:
        assert heard.getnframes() > 0


async def test_the_way_of_a_turn_is_told_and_recorded(server: Served, tmp_path: Path) -> None:
    record = tmp_path / "turn.json"
    result = await talk(server, *MOCK, "--trace", "--record", str(record), "-p", "hello")
    assert "(answer default; " in result.stderr
    assert json.loads(record.read_text())["interaction"][0]["text"] == "hello"


async def test_what_was_said_aloud_is_kept_and_gone_on_with_aloud_or_in_writing(server: Served, tmp_path: Path) -> None:
    source = wav(tmp_path / "in.wav", tone(300))
    first = await talk(server, *MOCK, "--fast", "--in", source)
    address, session = f"{server.host}:{server.port}", first.stderr.split()[-1]
    told = f"Go on with: {own_command_here()} tryll talk {address} --stt mock --tts mock --model mock --resume"
    assert told in first.stderr
    assert (await talk(server, *MOCK, "--resume", session, "-p", "And you?")).exit_code == 0
    arguments = (address, "--model", "mock", "--resume", session, "-p", "Still there?")
    written = await asyncio.to_thread(invoke, tryll_chat.command, *arguments)
    assert (written.exit_code, written.stdout) == (0, "You said: Still there?\n"), written.stderr
    log = FileStore(paths.sessions_dir()).open(session)
    journal = [record["tryll_exchange"] for record in log.restore().state.journal]
    log.close()
    assert [said for said, _ in journal] == [words(1, 3), "And you?", "Still there?"]
    assert journal[0][1] == f"You said: {words(1, 3)}"
    result = await talk(server, *MOCK, "--no-session", "-p", "x")
    assert "Go on with" not in result.stderr


def test_progress_is_told_of_what_takes_longer_than_a_moment() -> None:
    now, told = 0.0, list[str]()
    notes = ProgressNotes(told.append, lambda: now)
    notes(DownloadProgress(model_name="small", percent=10.0))
    assert not told
    now = MOMENT_SECONDS
    for percent in (40.0, 41.0, 55.0):
        notes(DownloadProgress(model_name="small", percent=percent))
    assert told == ["small: 40 % fetched", "small: 55 % fetched"]


async def test_a_text_in_place_of_sound_is_answered_aloud(server: Served, tmp_path: Path) -> None:
    target = tmp_path / "out.wav"
    voices = ("--model", "mock", "--stt", "mock", "--tts", "fake")
    result = await talk(server, *voices, "-p", "Good morning", "--sound", str(target))
    assert (result.stdout, result.exit_code) == ("You said: Good morning\n", 0), result.output
    assert target.exists()
    assert (await talk(server, "-p", "x", "--in", "y.wav")).exit_code == 2


@pytest.mark.parametrize(("arguments", "typed"), [(("-p", "hello"), None), ((), "hello")])
async def test_a_text_needs_no_model_that_hears(server: Served, arguments: tuple[str, ...], typed: str | None) -> None:
    # One that nobody has: to listen would fail.
    voices = ("--model", "mock", "--stt", "no-such-ears", "--tts", "mock")
    result = await talk(server, *voices, *arguments, typed=typed)
    assert (result.stdout, result.exit_code) == ("You said: hello\n", 0), result.output


GATE = """start: guard
default_model: any
storages: {refusals: [Never.]}
knowledge: {lore: {embedding_model: any, strings: [w1 w2 w3]}}
nodes:
  guard: {type: HumanMessageGuardrail, inline_strings: [w4], triggered: refuse, not_triggered: find}
  refuse: {type: CannedResponse, string_storage: refusals}
  find: {type: Retrieve, embedded_string_storage: lore, found: tools, not_found: refuse}
  tools: {type: ToolCall, notify_client: true, tools: [{name: w3}], tool_called: answer, no_tool_called: refuse}
  answer: {type: Generate}
"""


async def test_a_character_that_was_written_to_be_read_answers_aloud(server: Served, tmp_path: Path) -> None:
    (tmp_path / "gate.yaml").write_text(GATE)
    target = tmp_path / "out.wav"
    arguments = ["--graph", str(tmp_path / "gate.yaml"), "--model", "mock", "--stt", "mock", "--tts", "fake", "--fast"]
    frames = []
    for length, answer in ((300, f"You said: {words(1, 3)}"), (500, "Never.")):
        source = wav(tmp_path / "in.wav", tone(length))
        result = await talk(server, *arguments, "--in", source, "--out", str(target))
        assert result.stdout == f"{answer}\n", result.output
        with wave.open(str(target)) as file:
            frames.append(file.getnframes())
        assert ("[tools: tool_call] tool_name=w3" in result.stderr) == (length == 300)
    assert all(frames)
    result = await talk(server, *arguments, "--json", "--in", wav(tmp_path / "in.wav", tone(300)))
    told = {"node": "tools", "type": "tool_call", "tool_name": "w3", "arguments_json": "{}"}
    assert json.loads(result.stdout)["events"] == [told]


async def test_the_character_that_comes_along_can_be_talked_to_and_a_mute_voice_writes_no_file(
    server: Served, tmp_path: Path
) -> None:
    target = tmp_path / "out.wav"
    source = wav(tmp_path / "in.wav", tone(300))
    result = await talk(server, *MOCK, "--graph", "npc", "--fast", "--in", source, "--out", str(target))
    assert result.stdout == "That I do not know, traveller. I only keep the gate.\n", result.output
    assert (result.exit_code, target.exists()) == (0, False)
    assert "was not written: nothing was said aloud" in result.stderr
    result = await talk(server, *MOCK, "--graph", str(tmp_path / "no.yaml"), "--in", source)
    assert (result.exit_code, "cannot be read" in result.stderr) == (1, True)


async def test_a_character_that_speaks_keeps_its_voice(server: Served, tmp_path: Path) -> None:
    (tmp_path / "crier.yaml").write_text(
        "start: call\ndefault_model: mock\nnodes:\n  call: {type: GenerateAndSpeak, tts_model_name: fake}\n"
    )
    source, target = wav(tmp_path / "in.wav", tone(300)), tmp_path / "out.wav"
    arguments = ["--graph", str(tmp_path / "crier.yaml"), "--stt", "mock", "--tts", "other", "--fast"]
    result = await talk(server, *arguments, "--in", source, "--out", str(target))
    assert (result.exit_code, target.exists()) == (0, True), result.output
    assert "its own voice: `other` is not used" in result.stderr


@pytest.mark.slow
async def test_who_may_not_interrupt_is_heard_after_the_answer(server: Served, tmp_path: Path) -> None:
    source = wav(tmp_path / "in.wav", tone(300) + silence(600) + tone(200) + silence(100))
    arguments = ["--model", "mock-slow", "--stt", "mock", "--tts", "mock", "--no-barge-in", "--json", "--in", source]
    result = await talk(server, *arguments)
    assert result.exit_code == 0, result.output
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(each["outcome"], each["text"]) for each in answers] == [
        ("success", f"You said: {words(1, 3)}"),
        ("success", f"You said: {words(1, 2)}"),
    ]


async def test_silence_wrong_files_and_a_missing_server_are_told(server: Served, tmp_path: Path) -> None:
    quiet = wav(tmp_path / "in.wav", silence(200))
    result = await talk(server, *MOCK, "--fast", "--in", quiet)
    assert (result.stderr, result.exit_code) == ("Error: Nothing was understood.\n", 1)
    result = await talk(server, "--in", quiet, "--out", quiet)
    assert (result.exit_code, "would take the place of" in result.stderr) == (2, True)
    assert (tmp_path / "in.wav").stat().st_size > 6000, "it was not touched"
    result = await talk(server, "--in", str(tmp_path / "no.wav"))
    assert "cannot be read" in result.stderr
    assert (await talk(server, "--fast")).exit_code == 2
    server.port = 1
    assert "`trunkline tryll serve` starts a server." in (await talk(server, "--in", quiet)).stderr


@pytest.fixture
def process(tmp_path: Path) -> Iterator[TryllProcess]:
    with tryll_process() as found:
        yield found


def devices(tmp_path: Path) -> dict[str, str]:
    """A microphone that says three words and then is silent, and speakers that write down."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (tmp_path / "said").write_bytes(tone(300) + silence(700))
    for name, script in {
        "arecord": f"cat {tmp_path}/said; exec sleep 60",
        "aplay": f"exec cat >> {tmp_path}/played",
    }.items():
        (folder / name).write_text(f"#!/bin/sh\nPATH={os.defpath}\n{script}\n")
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": str(folder)}


@pytest.mark.process
@pytest.mark.slow
def test_a_microphone_is_heard_hands_free_until_ctrl_c(process: TryllProcess, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trunkline", "tryll", "talk", f"127.0.0.1:{process.port}", *MOCK]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=nothing, stdout=pipe, stderr=pipe, env=devices(tmp_path)) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == b"You said: w1 w2 w3\n"
            child.send_signal(signal.SIGINT)
            assert child.wait(PATIENCE_SECONDS) == 130
        finally:
            child.kill()
        assert child.stderr is not None
        assert b"Traceback" not in child.stderr.read()


@pytest.mark.process
@pytest.mark.slow
def test_one_speaks_types_begins_again_and_goes_back_in_the_terminal_of_chat(
    process: TryllProcess, tmp_path: Path
) -> None:
    arguments = (f"127.0.0.1:{process.port}", "--model", "mock-slow", "--stt", "mock", "--tts", "mock")
    with ChatTerminal(*arguments, command=("tryll", "talk"), PATH=devices(tmp_path)["PATH"]) as terminal:
        terminal.sees(f"tryll:127.0.0.1:{process.port} · mock-slow · hears with mock", "the agent listens")
        terminal.sees("❯ w1 w2 w3", "You said: w1 w2 w3")
        terminal.say("word " * 300)
        terminal.sees("You said: word")
        terminal.type(CTRL_C)
        terminal.sees("stopped")
        terminal.say("/help")
        terminal.sees("/todos", "in an empty line: lets the agent fall")
        assert any("shows how many tokens were used" in line for line in terminal.terminal.history)
        terminal.say("/model other")
        terminal.sees("come back with", "--model other")
        terminal.say("/clear")
        terminal.sees("is kept.", "A new session.")
        # The microphone is heard in the new one, and what is typed is answered there.
        terminal.say("a new beginning")
        terminal.sees("You said: a new beginning")
        terminal.say("/resume 2")
        terminal.until(lambda: "2 turns so far." in terminal.raw)
        terminal.say("quiet again")
        terminal.sees("You said: quiet again")
        terminal.wait_for_prompt()
        terminal.type(CTRL_C)
        terminal.sees("Ctrl-C again leaves")
        terminal.type(CTRL_C)
        assert terminal.leaves() == 0
        assert f"trunkline tryll talk 127.0.0.1:{process.port} --stt mock --tts mock" in terminal.raw
        assert "Traceback" not in terminal.raw


@pytest.mark.process
@pytest.mark.slow
def test_the_space_bar_begins_and_ends_what_is_said_unless_a_line_is_begun(
    process: TryllProcess, tmp_path: Path
) -> None:
    path = devices(tmp_path)["PATH"]
    # It speaks for as long as it is listened to.
    (tmp_path / "bin" / "arecord").write_text(
        f"#!/bin/sh\nPATH={os.defpath}\nwhile cat {tmp_path}/loud; do sleep 0.05; done\n"
    )
    (tmp_path / "loud").write_bytes(tone(50))
    arguments = (f"127.0.0.1:{process.port}", *MOCK, "--push-to-talk")
    with ChatTerminal(*arguments, command=("tryll", "talk"), PATH=path) as terminal:
        terminal.sees("Press the space bar to talk")
        terminal.wait_for_prompt()
        terminal.type(" ")
        # What is understood so far stands above the line to type in.
        terminal.sees("❯ w1 w2")
        terminal.type(" ")
        terminal.sees("You said: w1 w2")
        terminal.say("a b")
        terminal.sees("You said: a b")
        terminal.wait_for_prompt()
        terminal.type(CTRL_D)
        assert terminal.leaves() == 0


def test_a_key_to_talk_needs_a_terminal() -> None:
    result = invoke(command, "127.0.0.1:1", "--push-to-talk")
    assert (result.exit_code, "needs a terminal" in result.stderr) == (2, True)


def test_whoever_has_no_microphone_is_told_before_the_server_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("trunkline.cli.talk_audio.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    result = invoke(command, "127.0.0.1:1", *MOCK)
    assert (result.exit_code, "No microphone can be used here." in result.stderr) == (1, True)
