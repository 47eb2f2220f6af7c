"""`trunkline graph run`: a conversation with a graph, in one process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal.chat_terminal import CTRL_C, CTRL_D, ChatTerminal
from tests.support.invoked import Invoked, invoke
from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider import Reply, StubProvider, in_thread
from tests.support.provider_streams import openai_sse, openai_text
from trunkline.agents.graph.pool import ModelPool
from trunkline.cli.graph_run import command
from trunkline.cli.talk_files import read_wav
from trunkline.cli.trace import TraceFiles
from trunkline.core.asides import way
from trunkline.core.events import Audio, Envelope
from trunkline.core.faults import ModelError

GRAPH = """start: guard
default_model: any
storages: {refusals: refusals.txt}
knowledge: {lore: {embedding_model: m, strings: [The mill is old.]}}
nodes:
  guard: {type: HumanMessageGuardrail, inline_strings: [bad], triggered: refuse, not_triggered: find}
  refuse: {type: CannedResponse, string_storage: refusals}
  find: {type: Retrieve, embedded_string_storage: lore, found: tools, not_found: tools}
  tools: {type: ToolCall, notify_client: true, tools: [{name: open_gate}], no_tool_called: answer}
  answer: {type: Generate, stream: true}
"""


SLOW = """start: answer
default_model: mock-slow
nodes:
  answer: {type: Generate, stream: true}
"""


FETCHING = """start: find
default_model: no-such-model
knowledge: {lore: {embedding_model: all-minilm-l6-v2, strings: [The mill is old.]}}
nodes:
  find: {type: Retrieve, embedded_string_storage: lore, found: answer, not_found: answer}
  answer: {type: Generate}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "npc").mkdir()
    (tmp_path / "npc/refusals.txt").write_text("No.\nNever.\n")
    (tmp_path / "npc/npc.yaml").write_text(GRAPH)
    return str(tmp_path / "npc/npc.yaml")


def run(*arguments: str, typed: str | None = None) -> Invoked:
    return invoke(command, *arguments, typed=typed)


def test_a_record_does_not_take_the_place_of_the_graph(file: str) -> None:
    result = run(file, "-m", "x", "--record", os.path.join(os.path.dirname(file), ".", "npc.yaml"))
    assert (result.exit_code, "would take the place of" in result.stderr) == (2, True)
    assert Path(file).read_text() == GRAPH


def test_one_message_is_answered_on_standard_output_and_its_way_told_beside_it(file: str) -> None:
    result = run(file, "-m", "is the mill old?")
    assert (result.stdout, result.exit_code) == ("You said: is the mill old?\n", 0)
    assert "(guard not_triggered > find found > tools no_tool_called > answer default; " in result.stderr


def test_several_messages_are_turns_of_one_conversation_in_their_order(file: str) -> None:
    result = run(file, "-m", "is the mill old?", "-m", "bad", "-m", "and now?")
    assert (result.stdout, result.exit_code) == ("You said: is the mill old?\nNo.\nYou said: and now?\n", 0)
    result = run("npc", "-m", "My name is Ann.", "-m", "Who are you?", "--json")
    assert [json.loads(line)["message"] for line in result.stdout.splitlines()] == ["My name is Ann.", "Who are you?"]


def test_an_agent_that_the_graph_names_answers_and_one_that_runs_code_is_for_the_user_to_name(file: str) -> None:
    Path(file).write_text(SLOW.replace("mock-slow", "agent:echo"))
    assert (result := run(file, "-m", "as it was said")).stdout == "as it was said\n", result.output
    assert run(file, "-m", "hi", "--model", "agent:scripted:tour").exit_code == 0
    name = "agent:tests.support.fake_agent:FakeAgent"
    Path(file).write_text(SLOW.replace("mock-slow", f"{name!r}"))
    result = run(file, "-m", "hi")
    assert (result.exit_code, "a file alone may not start" in result.stderr) == (1, True)
    # Made, and unable to answer: nobody pulls its strings.
    Path(file).write_text(SLOW.replace("answer: {", "answer: {model_name: any, "))
    assert run(file, "-m", "hi", "--model", name).stdout == "You said: hi\n"
    Path(file).write_text(SLOW.replace("mock-slow", "agent:nobody"))
    result = run(file, "-m", "hi")
    assert (result.exit_code, "no agent `nobody`" in result.stderr) == (1, True)


def test_a_folder_has_more_models_that_the_graph_may_name(file: str, tmp_path: Path) -> None:
    Path(file).write_text(SLOW.replace("mock-slow", "far"))
    with in_thread(StubProvider(lambda _: Reply([openai_sse(openai_text("from afar"))]))) as stub:
        models = [{"name": "far", "engine": "openai", "urls": [f"{stub.url}/v1"]}]
        (tmp_path / "models.json").write_text(json.dumps({"models": models}))
        result = run(file, "-m", "hi", "--engine", "local", "--models-dir", str(tmp_path))
    assert (result.stdout, result.exit_code) == ("from afar\n", 0), result.output
    assert run(file, "-m", "hi", "--engine", "local").exit_code == 1


def test_events_and_canned_answers_are_shown(file: str) -> None:
    result = run(file, "-m", "open_gate \x1b[31m")
    assert "[tools: tool_call] tool_name=open_gate, arguments_json={}" in result.stderr
    assert "\x1b[31m" not in result.output
    assert run(file, "-m", "bad").stdout == "No.\n"


def test_what_is_piped_in_is_one_message_or_one_for_each_line(file: str) -> None:
    result = run(file, typed="hello\nthere\n")
    assert (result.stdout, result.exit_code) == ("You said: hello\nthere\n", 0)
    assert run(file, "-m", "hello", typed="there\n").stdout == "You said: hello\n\nthere\n"
    result = run(file, "--lines", typed="bad\n\nbad\nhello\n")
    assert (result.stdout, result.exit_code) == ("No.\nNever.\nYou said: hello\n", 0)


def test_json_is_an_object_for_each_turn(file: str) -> None:
    result = run(file, "--lines", "--json", typed="hello\nopen_gate\n")
    first, second = map(json.loads, result.stdout.splitlines())
    assert (first["message"], first["answer"], first["status"], first["events"]) == (
        "hello",
        "You said: hello",
        "Success",
        [],
    )
    assert [node["name"] for node in first["nodes"]] == ["guard", "find", "tools", "answer"]
    assert second["events"] == [
        {"node": "tools", "type": "tool_call", "tool_name": "open_gate", "arguments_json": "{}"}
    ]


def test_the_last_turn_is_recorded(file: str, tmp_path: Path) -> None:
    turn = tmp_path / "turn.json"
    run(file, "--lines", "--record", str(turn), typed="bad\nthe mill\n")
    found = json.loads(turn.read_text())
    assert found["interaction"][0] == {"_type": "HumanMessage", "text": "the mill"}
    assert found["find.result[000].text"] == "The mill is old."
    result = run(file, "-m", "x", "--record", str(tmp_path / "no/turn.json"))
    assert (result.exit_code, "cannot be written" in result.stderr) == (1, True)


def test_a_graph_that_cannot_run_and_a_turn_that_fails_exit_with_1(file: str, tmp_path: Path) -> None:
    endless = tmp_path / "endless.yaml"
    endless.write_text("start: a\nnodes:\n  a: {type: Instruction, default: a}\n")
    result = run(str(endless), "-m", "x")
    assert (result.exit_code, ", error 4003)" in result.stderr) == (1, True)
    endless.write_text("start: b\nnodes:\n  a: {type: Instruction, default: a}\n")
    result = run(str(endless), "-m", "x")
    assert (result.exit_code, "endless.yaml:1:1: " in result.stderr) == (1, True)
    endless.write_text("start: a\nnodes:\n  a: {type: CannedResponse, string_storage: ../x.txt}\n")
    assert run(str(endless), "-m", "x").exit_code == 1
    Path(file).write_text(SLOW)
    result = run(file, "-m", "x", "--engine", "local", "--model", "no-such-model")
    assert (result.exit_code, "no-such-model" in result.stderr) == (1, True)


def test_a_model_that_is_not_known_is_refused_before_another_one_is_fetched(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []

    async def ensure(self: ModelPool, name: str, *_: object) -> None:
        fetched.append(name)
        raise ModelError("Nothing is fetched here.")

    monkeypatch.setattr(ModelPool, "ensure", ensure)
    Path(file).write_text(FETCHING)
    result = run(file, "-m", "x", "--engine", "local")
    assert (result.exit_code, fetched) == (1, [])
    assert "There is no model `no-such-model` in the catalog." in result.stderr


def test_what_is_spoken_is_not_played_and_its_length_is_told_and_it_can_be_kept(tmp_path: Path) -> None:
    keeper = TraceFiles(None, str(tmp_path / "said.wav"))
    said = [Envelope("s", number, 1, 0.0, Audio(bytes(3200), 16_000)) for number in (1, 2)]
    keeper.show(said)
    keeper.close("")
    kept = read_wav(str(tmp_path / "said.wav"))
    assert (kept.pcm, kept.sample_rate, kept.channels) == (bytes(6400), 16_000, 1)
    assert way({"nodes": [{"name": "a", "exit": "b"}], "wall_ms": 3.2}, 0.2) == "(a b; 3 ms, 0.2 s of sound)"


CRIER = """start: call
nodes:
  call: {type: CannedResponse, inline_strings: [All is well.], default: aloud}
  aloud: {type: Speak, tts_model_name: espeak}
"""


def test_without_a_voice_a_file_of_sound_stays_as_it_was_and_the_reason_is_told(file: str, tmp_path: Path) -> None:
    kept = tmp_path / "said.wav"
    kept.write_bytes(b"before")
    result = run(file, "-m", "hello", "--sound", str(kept))
    assert (result.exit_code, "the graph has no node that speaks" in result.stderr) == (0, True)
    Path(file).write_text(CRIER)
    result = run(file, "-m", "hello", "--sound", str(kept))
    assert (result.stdout, kept.read_bytes()) == ("All is well.\n", b"before")
    assert "said.wav` was not written: the mock engine has no voice. `--engine local` has." in result.stderr


@pytest.mark.process
def test_a_graph_is_talked_to_in_the_terminal_of_chat(file: str) -> None:
    Path(file).write_text(SLOW)
    with ChatTerminal(file, command=("graph", "run")) as terminal:
        terminal.sees("The model is a mock: it repeats what you say.")
        terminal.say("word " * 100)
        terminal.sees("You said: word word")
        terminal.type(CTRL_C)
        terminal.sees("stopped")
        terminal.say("once more")
        terminal.sees("You said: once more", "(answer default; ")
        terminal.say("/trace off")
        terminal.sees("The way of a turn is not shown.")
        terminal.wait_for_prompt()
        terminal.type(CTRL_D)
        assert terminal.leaves() == 0


@pytest.mark.process
def test_ctrl_c_ends_the_only_answer_and_the_program_with_it(file: str) -> None:
    Path(file).write_text(SLOW)
    command_line = [sys.executable, "-m", "trunkline", "graph", "run", file, "-m", "word " * 10_000]
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.read(12) == b"You said: wo"
            process.send_signal(signal.SIGINT)
            # Its answer would take minutes.
            assert process.wait(PATIENCE_SECONDS) == 130
            assert b"Stopped." in process.stderr.read()
        finally:
            process.kill()
