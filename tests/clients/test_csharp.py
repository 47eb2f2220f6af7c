"""The C# client: its whole API against a real server, and against servers that lie, leave or are late.

Its test program has the modes of the C++ client's and says the same, so that the tests of that client are tests of this
one, too: they are given another program.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.clients import test_cpp as shared
from tests.clients.csharp_build import CLIENT, compiled
from tests.conftest import require
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_process import tryll_process
from tests.support.tryll_stub import HANG_UP, SILENCE, TryllStub
from trunkline.wires.tryll import messages as m

STAND_INS = Path(__file__).parent / "unity"

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def program(folder: Path, name: str) -> Path:
    """A program of the client's tests, as one file that can be run."""
    command = compiled(folder / f"{name}.exe", CLIENT / "Tests~" / f"{name}.cs")
    # Mono in the shell's place: who ends one ends the other.
    script = folder / name
    script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return script


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("csharp"), "Api")


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("csharp"), "Vectors")


test_the_whole_api_works_against_a_real_server = shared.test_the_whole_api_works_against_a_real_server
test_a_managed_server_is_started_used_and_stopped = (
    shared.test_a_managed_server_is_started_used_and_stopped_again_and_again
)
test_a_program_that_is_no_server_is_told_at_once = shared.test_a_program_that_is_no_server_is_told_at_once
test_the_last_words_of_a_server_that_does_not_start_are_told = (
    shared.test_the_last_words_of_a_server_that_does_not_start_are_in_the_error_and_its_log
)
test_a_managed_server_ends_with_a_game_that_is_killed = shared.test_a_managed_server_ends_with_a_game_that_is_killed
test_a_lost_connection_is_tried_again = shared.test_a_lost_connection_is_tried_again_and_the_game_makes_its_agents_anew
test_a_server_is_not_asked_for_what_it_would_pass_over = shared.test_a_server_is_not_asked_for_what_it_would_pass_over
test_an_answer_comes_in_its_order = shared.test_an_answer_comes_with_sound_events_and_a_tool_call_in_their_order
test_models_are_fetched_with_progress_or_waited_for = shared.test_models_are_fetched_with_progress_or_waited_for
test_what_comes_too_late_is_destroyed_and_harms_nobody = shared.test_what_comes_too_late_is_destroyed_and_harms_nobody
test_a_server_that_is_faster_is_slowed_and_nothing_is_lost = (
    shared.test_a_server_that_sends_faster_than_a_game_reads_is_slowed_and_nothing_is_lost
)
test_a_connection_that_does_not_begin_says_why = shared.test_a_connection_that_does_not_begin_says_why
test_a_token_that_is_refused_is_told = shared.test_a_token_that_is_refused_is_told
test_a_server_that_is_not_there_is_told = shared.test_a_server_that_is_not_there_is_told
test_it_refuses_what_our_codec_refuses_and_reads_the_rest_alike = (
    shared.test_it_refuses_what_our_codec_refuses_and_reads_the_rest_alike
)


def said(command: list[str], line: str = "") -> str:
    done = subprocess.run(command, input=line, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("log", ["nowhere/server.log", "."], ids=["no folder", "a folder"])
def test_without_a_log_that_can_be_written_no_server_is_started_and_it_is_said_why(
    api: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str
) -> None:
    monkeypatch.setenv("SERVER_LOG", str(tmp_path / log))
    told = said([str(api), "managed", "/bin/sh", "-c", f": > {shlex.quote(str(tmp_path / 'started'))}"])
    assert told.startswith("1001 The server's log cannot be written: ")
    assert not (tmp_path / "started").exists()


def test_a_server_that_is_stopped_while_it_starts_is_not_left_behind_nor_taken_for_the_next_one(
    api: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("/proc", Path("/proc/self").exists(), "Linux")
    servers = tmp_path / "servers"
    monkeypatch.setenv("SERVERS", str(servers))
    monkeypatch.setenv("SERVER_THERE", str(tmp_path / "there"))
    # It never says that it is ready, and ends with its input.
    said([str(api), "stopped", "/bin/sh", "-c", 'echo $$ >> "$SERVERS"; : > "$SERVER_THERE"; exec cat'])
    started = servers.read_text(encoding="utf-8").split()
    assert len(started) >= 4
    assert [pid for pid in started if Path(f"/proc/{pid}").exists()] == []


async def test_whoever_waits_hears_of_a_lost_connection_whatever_others_throw_who_hear_of_it(api: Path) -> None:
    async with TryllStub() as stub:
        stub.answers |= {
            m.CreateVoiceInputRequest: lambda peer, asked: [m.CreateVoiceInputResponse(asked.request_id, 1)],
            m.SendMessageRequest: lambda peer, asked: SILENCE,
            m.HealthRequest: lambda peer, asked: SILENCE if stub.connections == 1 else stub.usual(peer, asked),
            m.ListModelsRequest: lambda peer, asked: [HANG_UP],
        }
        assert await shared.ran(api, "thrown", str(stub.port)) == ["listened: connected a b c lost again "]


def test_it_speaks_websocket_as_well(api: Path) -> None:
    with tryll_process("--ws", "127.0.0.1:0") as server:
        said([str(api), "websocket", server.websocket])


def test_the_example_talks_and_carries_out_what_the_character_wants(tmp_path: Path) -> None:
    command = compiled(tmp_path / "Chat.exe", CLIENT / "Examples" / "Chat.cs")
    with tryll_process() as server:
        told = said([*command, f"127.0.0.1:{server.port}"], "Good evening\nopen_gate, please\n")
    assert "You said: Good evening" in told
    assert "* The gate opens." in told


def test_the_sample_talks_in_a_game_of_frames_and_calls_tools(tmp_path: Path) -> None:
    """Without Unity, of which there are stand-ins: what a compiler finds, and whether it uses the client rightly."""
    sample = sorted((CLIENT / "Samples~" / "TalkingCharacter").glob("*.cs"))
    command = compiled(tmp_path / "Game.exe", *sample, *sorted(STAND_INS.glob("*.cs")))
    with tryll_process() as server:
        assert said([*command, str(server.port)]) == "You said: Good evening\ncalled {}\n"


def test_the_package_has_what_it_names_and_needs_no_other() -> None:
    package = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    assert package["name"] == "com.trunkline.tryll"
    assert not package.get("dependencies")
    for sample in package["samples"]:
        assert list((CLIENT / sample["path"]).glob("*.cs"))
    assembly = json.loads((CLIENT / "Runtime" / "Trunkline.Tryll.asmdef").read_text(encoding="utf-8"))
    assert assembly["references"] == []
    assert assembly["noEngineReferences"]
    project = (CLIENT / "Trunkline.Tryll.csproj").read_text(encoding="utf-8")
    assert "<TargetFramework>netstandard2.1</TargetFramework>" in project
    assert not re.search("<(PackageReference|Reference)", project)
