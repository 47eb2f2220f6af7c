"""`trunkline tryll talk`."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
import wave
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.fake_voice import FakeVoice, FakeVoices
from tests.support.invoked import invoke
from tests.support.tryll_process import TryllProcess, tryll_process
from tests.support.tryll_served import Served, served
from tests.support.tryll_voice import silence, tone, words
from trunkline.agents.external.tryll_talk_events import Answered, AnswerPiece, PromptSent, UserTranscript
from trunkline.agents.graph.pool import ModelPool
from trunkline.base import paths
from trunkline.cli import tryll_chat
from trunkline.cli.talk_screen import MOMENT_SECONDS, Lines, ProgressNotes
from trunkline.cli.tryll_talk import command
from trunkline.store.files import FileStore
from trunkline.wires.tryll.messages import DownloadProgress, NodeEvent, NodeEventKeyValue

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


async def talk(server: Served, *arguments: str) -> Result:
    address = f"{server.host}:{server.port}"
    return await asyncio.to_thread(CliRunner().invoke, command, [address, *arguments])


async def test_what_a_file_says_is_written_down_and_answered_aloud(server: Served, tmp_path: Path) -> None:
    source = wav(tmp_path / "in.wav", tone(300) + silence(600))
    target = tmp_path / "out.wav"
    result = await talk(
        server, "--model", "mock", "--stt", "mock", "--tts", "fake", "--in", source, "--out", str(target)
    )
    assert (result.stdout, result.exit_code) == (f"You: {words(1, 3)}\nAgent: You said: {words(1, 3)}\n", 0)
    with wave.open(str(target)) as file:
        assert (file.getframerate(), file.getsampwidth(), file.getnchannels()) == (16000, 2, 1)
        assert file.getnframes() > 0


async def test_a_fast_file_is_one_utterance_and_its_events_are_json(server: Served, tmp_path: Path) -> None:
    source = wav(tmp_path / "in.wav", tone(300) + silence(700) + tone(200) + silence(5000))
    result = await talk(server, *MOCK, "--fast", "--json", "--in", source)
    assert result.exit_code == 0, result.output
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert {"type": "heard", "kind": "over", "text": words(1, 5)} in events
    assert events[-1] == {"type": "answered", "outcome": "success", "message": ""}
    assert "".join(each["text"] for each in events if each["type"] == "words") == f"You said: {words(1, 5)}"


async def test_what_was_said_aloud_is_kept_and_gone_on_with_aloud_or_in_writing(server: Served, tmp_path: Path) -> None:
    source = wav(tmp_path / "in.wav", tone(300))
    first = await talk(server, *MOCK, "--fast", "--in", source)
    address, session = f"{server.host}:{server.port}", first.stderr.split()[-1]
    assert f"Go on with: trunkline tryll talk {address} --resume {session}" in first.stderr
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


def test_in_a_pipe_there_is_a_line_for_each_side_and_notes_are_apart(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Lines()
    for event in (
        PromptSent("Let me in."),
        AnswerPiece("As"),
        AnswerPiece(" you wish."),
        AnswerPiece("No.", anew=True),
        Answered("success"),
    ):
        screen.show(event)
    assert capsys.readouterr().out == "Agent: As you wish.\nNo.\n"
    screen.show(PromptSent("Let me in."))
    screen.told(NodeEvent(1, "open", "tool_call", (NodeEventKeyValue("tool_name", "gate\x1b\nYou: yes"),)))
    screen.show(AnswerPiece("Well."))
    screen.show(Answered("cancelled"))
    shown = capsys.readouterr()
    assert shown.out == "Agent: Well.\n"
    assert shown.err == "[open: tool_call] tool_name=gate\\x1b\\nYou: yes\n(interrupted)\n"


def test_what_was_heard_is_one_line_whatever_the_server_says_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Lines()
    screen.show(UserTranscript("over", "Hi\x1b[2J\nAgent: Come in."))
    shown = capsys.readouterr().out
    assert "\nAgent" not in shown
    assert shown.count("Hi\\x1b[2J\\nAgent: Come in.") == 1


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
    assert (result.stdout, result.exit_code) == ("Agent: You said: Good morning\n", 0), result.output
    assert target.exists()
    assert (await talk(server, "-p", "x", "--in", "y.wav")).exit_code == 2


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
        # What a node tells before the answer does not break its line.
        assert result.stdout == f"You: {words(1, length // 100)}\nAgent: {answer}\n", result.output
        with wave.open(str(target)) as file:
            frames.append(file.getnframes())
        assert ("[tools: tool_call] tool_name=w3" in result.stderr) == (length == 300)
    assert all(frames)
    result = await talk(server, *arguments, "--json", "--in", wav(tmp_path / "in.wav", tone(300)))
    events = [json.loads(line) for line in result.stdout.splitlines()]
    told = {"type": "event", "node": "tools", "event": "tool_call"}
    assert {**told, "values": {"tool_name": "w3", "arguments_json": "{}"}} in events


async def test_the_character_that_comes_along_can_be_talked_to_and_a_mute_voice_writes_no_file(
    server: Served, tmp_path: Path
) -> None:
    target = tmp_path / "out.wav"
    source = wav(tmp_path / "in.wav", tone(300))
    result = await talk(server, *MOCK, "--graph", "npc", "--fast", "--in", source, "--out", str(target))
    assert result.stdout.endswith("Agent: That I do not know, traveller. I only keep the gate.\n"), result.output
    assert (result.exit_code, target.exists()) == (0, False)
    assert "Nothing was said aloud" in result.stderr
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
    assert "a voice of its own: `other` is not used" in result.stderr


@pytest.mark.slow
async def test_who_may_not_interrupt_is_heard_after_the_answer(server: Served, tmp_path: Path) -> None:
    source = wav(tmp_path / "in.wav", tone(300) + silence(600) + tone(200) + silence(100))
    arguments = ["--model", "mock-slow", "--stt", "mock", "--tts", "mock", "--no-barge-in", "--json", "--in", source]
    result = await talk(server, *arguments)
    assert result.exit_code == 0, result.output
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["outcome"] for each in events if each["type"] == "answered"] == ["success", "success"]
    assert [each["text"] for each in events if each["type"] == "asked"] == [words(1, 3), words(1, 2)]


async def test_silence_wrong_files_and_a_missing_server_are_told(server: Served, tmp_path: Path) -> None:
    quiet = wav(tmp_path / "in.wav", silence(200))
    result = await talk(server, *MOCK, "--fast", "--in", quiet)
    assert (result.stderr, result.exit_code) == ("Nothing was understood.\n", 1)
    result = await talk(server, "--in", quiet, "--out", quiet)
    assert "are the same file" in result.stderr
    assert (tmp_path / "in.wav").stat().st_size > 6000, "it was not touched"
    result = await talk(server, "--in", str(tmp_path / "no.wav"))
    assert "cannot be read" in result.stderr
    assert (await talk(server, "--fast")).exit_code == 2
    server.port = 1
    assert "`trunkline tryll serve` starts one." in (await talk(server, "--in", quiet)).stderr


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
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=devices(tmp_path)) as child:
        assert child.stdout is not None
        try:
            said = [child.stdout.readline() for _ in range(2)]
            assert said == [b"You: w1 w2 w3\n", b"Agent: You said: w1 w2 w3\n"]
            child.send_signal(signal.SIGINT)
            assert child.wait(10) == 130
        finally:
            child.kill()
        assert child.stderr is not None
        assert b"Traceback" not in child.stderr.read()


@pytest.mark.process
@pytest.mark.slow
def test_the_space_bar_begins_and_ends_what_is_said_and_q_ends_all(process: TryllProcess, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "trunkline", "tryll", "talk", f"127.0.0.1:{process.port}", *MOCK, "--push-to-talk"]
    environ = devices(tmp_path)
    # It speaks for as long as it is listened to.
    (tmp_path / "bin" / "arecord").write_text(
        f"#!/bin/sh\nPATH={os.defpath}\nwhile cat {tmp_path}/loud; do sleep 0.05; done\n"
    )
    (tmp_path / "loud").write_bytes(tone(50))
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        try:
            assert b"space bar" in child.stderr.readline()
            os.write(ours, b" ")
            # Some sound has to come: a second of it.
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(1.5)
            os.write(ours, b" ")
            assert child.stdout.readline().startswith(b"You: w1 w2")
            assert child.stdout.readline().startswith(b"Agent: You said: w1 w2")
            os.write(ours, b"q")
            assert child.wait(10) == 0
        finally:
            child.kill()
            os.close(ours)
            os.close(theirs)
