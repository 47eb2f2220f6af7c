"""`trunkline tryll chat`."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal.chat_terminal import ChatTerminal
from tests.support.invoked import Invoked, invoke
from tests.support.tryll_stub import TryllStub, echo
from trunkline.cli import chat_once
from trunkline.cli.tryll_chat import INSTRUCTIONS, command
from trunkline.wires.tryll import messages as m

GRAPH = """
start: refuse
storages:
  lines: ["No.", "Never."]
  names: {a: b}
knowledge:
  lore: {embedding_model: e, strings: ["x"]}
nodes:
  refuse: {type: CannedResponse, string_storage: lines}
"""


@pytest.fixture
async def stub() -> AsyncIterator[TryllStub]:
    async with TryllStub() as server:
        server.models["small"] = m.ModelInfo("small", model_type="language")
        server.models["e"] = m.ModelInfo("e", m.ModelStatus.LOCAL, model_type="embedding")
        yield server


async def chat(stub: TryllStub, *arguments: str, typed: str | None = None) -> Invoked:
    address = f"127.0.0.1:{stub.port}"
    return await asyncio.to_thread(invoke, command, address, *arguments, typed=typed)


async def test_one_question_is_answered_on_standard_output_alone(
    stub: TryllStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_once, "MOMENT_SECONDS", 0.0)
    result = await chat(stub, "-p", "hello there")
    assert (result.stdout, result.exit_code) == ("hello there \n", 0)
    assert "small: 50 % fetched" in result.stderr
    made = stub.asked(m.CreateAgentRequest)[0]
    assert made.default_model_name == "small"
    # A small model is told what it is.
    assert made.graph is not None
    assert getattr(made.graph.nodes[0].params, "system_prompt", "") == INSTRUCTIONS


async def test_what_plays_a_model_needs_none_to_be_fetched(stub: TryllStub) -> None:
    result = await chat(stub, "--engine", "mock", "-p", "hello there")
    assert (result.stdout, result.exit_code) == ("hello there \n", 0)
    assert not stub.asked(m.DownloadModelRequest)


async def test_what_is_piped_in_is_one_message_or_one_for_each_line(stub: TryllStub) -> None:
    assert (await chat(stub, "--model", "mock", typed="one\ntwo")).exit_code == 0
    assert [asked.text for asked in stub.asked(m.SendMessageRequest)] == ["one\ntwo"]
    stub.log.clear()
    arguments = ("--model", "mock", "--system-prompt", "Be brief.", "--lines")
    result = await chat(stub, *arguments, typed="one\n\ntwo\n")
    assert result.stdout == "one \ntwo \n"
    assert [asked.text for asked in stub.asked(m.SendMessageRequest)] == ["one", "two"]
    assert stub.asked(m.ConfigureSessionRequest)[0].inference_engine == m.InferenceEngine.MOCK


async def test_a_graph_brings_its_storages_along_and_its_nodes_are_heard(stub: TryllStub, tmp_path: Path) -> None:
    def turn(_: Any, asked: m.SendMessageRequest) -> list[m.Message]:
        pairs = (m.NodeEventKeyValue("k", "\x1b[31mv\nError: none"),)
        return [m.NodeEvent(asked.agent_id, "refuse", "mine", pairs), *echo(asked)]

    stub.answers[m.SendMessageRequest] = turn
    file = tmp_path / "npc.yaml"
    file.write_text(GRAPH)
    result = await chat(stub, "--graph", str(file), "-p", "hi")
    assert result.exit_code == 0, result.output
    assert [asked.name for asked in stub.asked(m.CreateStringStorageRequest)] == ["lines", "names"]
    assert stub.asked(m.CreateEmbeddedStringStorageRequest)[0].embedding_model == "e"
    assert "[refuse: mine] k=\\x1b[31mv\\nError: none" in result.stderr


async def test_a_graph_that_comes_along_is_known_by_its_name_and_records_travel_whole(
    stub: TryllStub, tmp_path: Path
) -> None:
    assert (await chat(stub, "--graph", "npc", "-p", "hi")).exit_code == 0
    assert [asked.name for asked in stub.asked(m.CreateEmbeddedStringStorageRequest)] == [
        "village",
        "herself",
        "greetings",
        "requests",
    ]
    file = tmp_path / "shop.yaml"
    records = "records: [{text: Sell me a sword.}]"
    file.write_text(GRAPH.replace('strings: ["x"]', records))
    result = await chat(stub, "--graph", str(file), "-p", "hi")
    assert (result.exit_code, "does not accept records" in result.stderr) == (1, True)
    stub.extensions = (*stub.extensions, "records")
    assert (await chat(stub, "--graph", str(file), "-p", "hi")).exit_code == 0
    assert stub.asked(m.CreateEmbeddedStringStorageRequest)[-1].records_json == (
        '{"records":[{"text":"Sell me a sword."}]}'
    )


async def test_why_a_turn_failed_is_told(stub: TryllStub) -> None:
    why = '{"error": {"code": 4001, "message": "The node `answer`: it is too hot."}}'
    stub.answers[m.SendMessageRequest] = lambda _, asked: [
        m.TurnComplete(asked.request_id, asked.agent_id, m.TurnStatus.ERROR, why)
    ]
    result = await chat(stub, "-p", "x")
    assert (result.exit_code, "it is too hot" in result.stderr) == (1, True)
    assert stub.asked(m.CreateAgentRequest)[0].enable_diagnostics


async def test_what_the_server_says_meanwhile_has_a_line_of_its_own(stub: TryllStub) -> None:
    stub.answers[m.SendMessageRequest] = lambda _, asked: [
        m.AnswerText(asked.request_id, asked.agent_id, "Once upon", is_delta=True),
        m.ErrorResponse(0, 2001, "The server stops."),
        m.AnswerText(asked.request_id, asked.agent_id, " a time", is_delta=True, is_final=True),
        m.TurnComplete(asked.request_id, asked.agent_id),
    ]
    # Who is quicker, the answer or the complaint, is a matter of luck: both are whole.
    result = await chat(stub, "-p", "x")
    assert result.stdout == "Once upon a time\n"
    assert next(line for line in result.output.splitlines() if "2001" in line).startswith("the server complains")


async def test_a_failed_turn_and_a_missing_server_exit_with_1(stub: TryllStub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_TRYLL_TOKEN", "secret")
    stub.answers[m.SendMessageRequest] = lambda _, asked: [
        m.TurnComplete(asked.request_id, asked.agent_id, m.TurnStatus.ERROR)
    ]
    result = await chat(stub, "-p", "x")
    assert (result.exit_code, "[4001]" in result.stderr) == (1, True)
    assert stub.asked(m.ConfigureSessionRequest)[0].token == "secret"
    await stub.stop()
    result = await chat(stub, "-p", "x")
    assert (result.exit_code, "trunkline tryll serve" in result.stderr) == (1, True)
    await stub.start()
    assert (await asyncio.to_thread(invoke, command, "nowhere")).exit_code == 1


async def test_what_is_piped_in_is_said_as_it_is_and_nobody_is_greeted(stub: TryllStub) -> None:
    result = await chat(stub, "--model", "mock", "--quiet", "--lines", typed="/help\n/quit\n")
    assert (result.stdout, result.stderr) == ("/help \n/quit \n", "")


async def test_a_server_that_is_not_there_is_named_once(stub: TryllStub) -> None:
    await stub.stop()
    result = await chat(stub, "-p", "x")
    assert f"127.0.0.1:{stub.port} cannot be reached: Connection refused." in result.stderr
    await stub.start()


async def test_a_conversation_is_gone_on_with_by_the_command_that_it_names(stub: TryllStub, tmp_path: Path) -> None:
    stub.extensions = (*stub.extensions, "history")
    file = tmp_path / "npc.yaml"
    file.write_text(GRAPH)
    said = await chat(stub, "--graph", str(file), "-p", "one")
    named = re.search(r"Go on with: \S*trunkline tryll chat (.*) --resume (\S+)", said.stderr)
    assert named is not None, said.stderr
    assert shlex.split(named[1]) == [f"127.0.0.1:{stub.port}", "--graph", str(file)]
    result = await chat(stub, "--graph", str(file), "--resume", named[2], "-p", "two")
    assert result.exit_code == 0, result.stderr
    restored = stub.asked(m.RestoreHistoryRequest)[-1]
    assert "one" in str(restored)


async def test_the_way_of_a_turn_is_told_and_recorded_as_that_of_a_graph_in_this_process(
    stub: TryllStub, tmp_path: Path
) -> None:
    found = {"status": "Success", "wall_ms": 2.4, "nodes": [{"name": "refuse", "exit": "default"}, "odd"]}
    stub.answers[m.SendMessageRequest] = lambda _, asked: [
        m.AnswerText(asked.request_id, asked.agent_id, "No.", is_final=True),
        m.TurnComplete(asked.request_id, asked.agent_id, m.TurnStatus.SUCCESS, json.dumps(found)),
    ]
    record = tmp_path / "turn.json"
    result = await chat(stub, "--trace", "--record", str(record), "-p", "x")
    assert (result.stdout, result.exit_code) == ("No.\n", 0)
    assert "(refuse default; 2 ms)" in result.stderr
    assert json.loads(record.read_text()) == found


@pytest.mark.process
async def test_the_terminal_lists_the_models_of_the_server_and_refuses_others(stub: TryllStub) -> None:
    stub.models["far"] = m.ModelInfo("far", m.ModelStatus.LOCAL, model_type="language")

    def talked() -> None:
        with ChatTerminal(f"127.0.0.1:{stub.port}", command=("tryll", "chat")) as terminal:
            terminal.say("/model")
            terminal.sees("Other models", "far", "/model NAME changes to another.")
            terminal.say("/model fax")
            terminal.sees("no language model `fax`. Did you mean `far`?")
            terminal.say("/model far")
            terminal.sees("The model is `far` now.")
            terminal.say("/exit")
            assert terminal.leaves() == 0

    await asyncio.to_thread(talked)
