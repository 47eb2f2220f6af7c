"""The C++ client: its whole API against a real server, and against servers that lie, leave or are late."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from client_vectors import transcript
from tests.clients.cpp_build import CHECKED, CLIENT, compiled
from tests.conftest import require
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_process import tryll_process
from tests.support.tryll_stub import HANG_UP, LEAVE, SILENCE, Peer, TryllStub, echo
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import decode, json_form
from trunkline.wires.tryll.codec.errors import FrameError

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

SERVE = (sys.executable, "-m", "trunkline", "tryll", "serve")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test program, with everything that finds a wrong access."""
    folder = tmp_path_factory.mktemp("cpp")
    return compiled(folder / "api", CLIENT / "test" / "api.cpp", CLIENT / "tryll.cpp", flags=CHECKED)


def run(program: Path, *arguments: str) -> str:
    """What it says; it must succeed."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=4 * PATIENCE_SECONDS)
    assert done.returncode == 0, done.stderr
    # A server that the program started says where its figures are, and why it ends.
    words = ("Its figures are at", "--exit-with-stdin")
    assert [line for line in done.stderr.splitlines() if not any(word in line for word in words)] == []
    return done.stdout


async def ran(program: Path, *arguments: str) -> list[str]:
    """The same, while a server in this process serves it."""
    child = await asyncio.create_subprocess_exec(program, *arguments, stdout=-1, stderr=-1)
    try:
        async with asyncio.timeout(2 * PATIENCE_SECONDS):
            out, err = await child.communicate()
    finally:
        if child.returncode is None:
            child.kill()
    assert (child.returncode, err.decode()) == (0, "")
    return out.decode().splitlines()


def test_the_whole_api_works_against_a_real_server(api: Path) -> None:
    with tryll_process() as server:
        run(api, "api", str(server.port))


# The server of a game.


def test_a_managed_server_is_started_used_and_stopped_again_and_again(api: Path) -> None:
    assert run(api, "managed", *SERVE) == "stopped\n"


@pytest.mark.parametrize("program", ["/nonexistent", "/bin/false", "/bin/echo"])
def test_a_program_that_is_no_server_is_told_at_once(api: Path, program: str) -> None:
    assert run(api, "managed", program).startswith("1001 ")


def test_the_last_words_of_a_server_that_does_not_start_are_in_the_error_and_its_log(
    api: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "server.log"
    log.write_text("of another day\n", encoding="utf-8")
    monkeypatch.setenv("SERVER_LOG", str(log))
    told = run(api, "managed", "/bin/sh", "-c", "echo no such model >&2; exit 3")
    assert told.startswith("1001 ")
    assert told.endswith("Its last words: no such model\n")
    assert log.read_text(encoding="utf-8") == "of another day\nno such model\n"


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_a_managed_server_ends_with_a_game_that_is_killed(api: Path, sent: signal.Signals) -> None:
    require("/proc", Path("/proc/self").exists(), "Linux")
    with subprocess.Popen([api, "killed", *SERVE], stdin=-1, stdout=-1) as game:
        assert game.stdout is not None
        server = int(game.stdout.readline())
        # Holds on to the process itself, not to a number that another one may get.
        watched = os.pidfd_open(server)
        try:
            game.send_signal(sent)
            game.wait(PATIENCE_SECONDS)
            waiting = subprocess.run(
                [
                    sys.executable,
                    "-c",
                    f"import select; p = select.poll(); p.register({watched}, 1); p.poll(60_000) or exit(1)",
                ],
                pass_fds=[watched],
            )
            assert waiting.returncode == 0
        finally:
            os.close(watched)


# Servers that do what they should not, or what a quiet one would not.


async def test_a_lost_connection_is_tried_again_and_the_game_makes_its_agents_anew(api: Path) -> None:
    async with TryllStub() as stub:
        stub.answers[m.SendMessageRequest] = lambda peer, asked: [HANG_UP]
        running = asyncio.create_task(ran(api, "lost", str(stub.port), "3"))
        await stub.until_asked(m.CreateAgentRequest, 4)
        configured = stub.asked(m.ConfigureSessionRequest)
        assert [each.game_name for each in configured] == ["kept"] * 4
        assert [each.protocol_version for each in configured] == [2] * 4
        stub.answers[m.ConfigureSessionRequest] = lambda peer, asked: [HANG_UP]
        # Not before the client has seen that it has its last session.
        await stub.until_asked(m.HealthRequest)
        await stub.stop()
        assert await running == ["3"]


async def test_a_server_is_not_asked_for_what_it_would_pass_over(api: Path) -> None:
    fields = ["stop", "lora", "timings", "pronunciations", "records_json", "memory_path"]
    calls = ["stop a turn", "give a conversation", "take a conversation", "say how it is"]
    refused = [f"5002 This server does not know `{field}`." for field in fields]
    refused[2:2] = [f"5002 This server cannot {what}." for what in calls]
    async with TryllStub() as stub:
        known, stub.extensions = stub.extensions, ()
        assert await ran(api, "unknown", str(stub.port)) == refused
        assert len(stub.asked(m.CreateAgentRequest)) == 1
        for kind in (m.CancelTurnRequest, m.SaveHistoryRequest, m.RestoreHistoryRequest, m.HealthRequest):
            assert stub.asked(kind) == []
        stub.extensions = (*known, "generation", "timings", "records", "memory")
        assert "This server" not in "".join(await ran(api, "unknown", str(stub.port)))
        assert stub.asked(m.CreateEmbeddedStringStorageRequest)[-1].memory_path == "a"


async def test_an_answer_comes_with_sound_events_and_a_tool_call_in_their_order(api: Path) -> None:
    def answer(peer: Peer, asked: m.SendMessageRequest) -> Sequence[Any]:
        number, agent = asked.request_id, asked.agent_id
        call = (
            m.NodeEventKeyValue("tool_name", "wave"),
            m.NodeEventKeyValue("arguments_json", '{"to":"\\ud83d\\ude00","n":[1, 2],"q":"\\"\\\\"}'),
        )
        return [
            # Of an agent that is not there, of a turn that is not there, and of a kind that is not known.
            m.AnswerText(0, agent + 1, "no", True),
            m.AnswerText(number + 1, agent, "no", True),
            pack("<I", len(UNKNOWN)) + UNKNOWN,
            m.TtsAudioFrame(agent, pack("<h", 9)),
            m.AnswerText(number, agent, "Good ", True),
            m.NodeEvent(agent, "node", "tool_call", call),
            m.TtsAudioFormatFrame(agent, 24000, 2),
            m.TtsAudioFrame(agent, pack("<4h", 1, -1, 32767, -32768)),
            m.TtsTimingFrame(agent),
            m.AnswerText(number, agent, "Good day", False),
            m.NodeEvent(agent, "node", "something_new"),
            m.AnswerText(number, agent, "Bad day", False, True),
            m.TurnComplete(number, agent, m.TurnStatus.ERROR),
        ]

    async with TryllStub() as stub:
        stub.answers[m.SendMessageRequest] = answer
        assert await ran(api, "spoken", str(stub.port)) == [
            "text Good ",
            'tool wave to=\U0001f600 n=[1, 2] q="\\',
            "sound 24000 2 1 -1 32767 -32768",
            "timing",
            "text day",
            "event something_new",
            "replaced Bad day",
            "done Bad day 1",
        ]


#: A message with the tag 250.
UNKNOWN = pack("<I HHHH iBxxxI HHi", 12, 8, 12, 4, 8, 8, 250, 8, 4, 4, 4)


async def test_models_are_fetched_with_progress_or_waited_for(api: Path) -> None:
    async with TryllStub() as stub:
        stub.models = {name: m.ModelInfo(name, m.ModelStatus.ABSENT) for name in ("absent", "broken", "busy")}
        usual, busy = stub.usual, count()

        def download(peer: Peer, asked: m.DownloadModelRequest) -> Sequence[Any]:
            if asked.model_name == "broken":
                return [m.DownloadComplete(asked.request_id, "broken", False, "no more room")]
            if asked.model_name == "busy" and next(busy) == 0:
                return [m.ErrorResponse(asked.request_id, 6004, "another client is at it")]
            return usual(peer, asked)

        def create(peer: Peer, asked: m.CreateAgentRequest) -> Sequence[Any]:
            return [m.DownloadProgress(asked.request_id, "needed", 1, 1, 100.0), *usual(peer, asked)]

        stub.answers |= {m.DownloadModelRequest: download, m.CreateAgentRequest: create}
        said = await ran(api, "fetched", str(stub.port))
        assert said == ["absent 50", "busy 50", "needed 100"]
        assert [each.model_name for each in stub.asked(m.LoadModelRequest)] == ["absent", "busy"]


async def test_what_comes_too_late_is_destroyed_and_harms_nobody(api: Path) -> None:
    held: list[Any] = []

    def create(peer: Peer, asked: m.CreateAgentRequest) -> Sequence[Any]:
        if not held:
            held.append(asked)
            return SILENCE
        return [m.CreateAgentResponse(held[0].request_id, 77), m.CreateAgentResponse(asked.request_id, 78)]

    def send(peer: Peer, asked: m.SendMessageRequest) -> Sequence[Any]:
        if asked.text == "hello":
            held.append(asked)
            return [m.AnswerText(asked.request_id, 78, "Well", True)]
        old = held[1].request_id
        late = [m.AnswerText(old, 78, "I", True), m.TurnComplete(old, 78)]
        return [*late, m.AnswerText(asked.request_id, 78, asked.text, True, True), m.TurnComplete(asked.request_id, 78)]

    async with TryllStub() as stub:
        stub.answers |= {m.CreateAgentRequest: create, m.SendMessageRequest: send}
        assert await ran(api, "late", str(stub.port)) == []
        assert [each.agent_id for each in stub.asked(m.DestroyAgentRequest)] == [77]
        assert [each.agent_id for each in stub.asked(m.CancelTurnRequest)] == [78]


async def test_a_server_that_sends_faster_than_a_game_reads_is_slowed_and_nothing_is_lost(api: Path) -> None:
    def answer(peer: Peer, asked: m.SendMessageRequest) -> Sequence[Any]:
        number, agent = asked.request_id, asked.agent_id
        pieces = [m.AnswerText(number, agent, "x" * 4096, True) for _ in range(2000)]
        return [*pieces, m.AnswerText(number, agent, "", True, True), m.TurnComplete(number, agent)]

    async with TryllStub() as stub:
        stub.answers[m.SendMessageRequest] = answer
        assert await ran(api, "slow", str(stub.port)) == [str(4096 * 2000)]


@pytest.mark.parametrize(
    ("last", "told"),
    [
        (LEAVE, "1002 The server has closed the connection."),
        (pack("<I", 1 << 20 | 1), "5003 The server broke the protocol: a frame of 1048577 bytes."),
    ],
)
@pytest.mark.parametrize("way", ["looking", "waiting", "glancing"])
async def test_a_game_that_looks_again_and_again_or_waits_reads_by_itself_and_wakes_no_thread(
    api: Path, last: Any, told: str, way: str
) -> None:
    """Glancing: it waits for no time at all, between the frames that it draws."""
    require("/proc", sys.platform == "linux", "Linux")
    turns = count()

    def answer(peer: Peer, asked: m.SendMessageRequest) -> Sequence[Any]:
        return echo(asked) if next(turns) < 100 else [last]

    async with TryllStub() as stub:
        stub.answers[m.SendMessageRequest] = answer
        assert await ran(api, way, str(stub.port)) == [f"100 turns, few woke a thread, then {told}"]


READY = m.SessionReady(m.PROTOCOL_VERSION, 1)


@pytest.mark.parametrize(
    ("greeting", "code"),
    [
        ((LEAVE,), 1002),
        ((HANG_UP,), 1002),
        ((m.SessionReady(3, 1),), 5004),
        ((m.Ack(1),), 5001),
        ((pack("<I", 1 << 20 | 1),), 5003),
        ((pack("<I", 0),), 5001),
        ((pack("<I", 40) + bytes(40),), 5001),
        ((m.ErrorResponse(0, 2001, "Later."), LEAVE), 2001),
        ((READY, m.ErrorResponse(0, 5004, "Too old."), LEAVE), 5004),
        ((READY, m.ErrorResponse(0, 2001, "Later."), LEAVE), 2001),
        ((), 1003),
    ],
)
async def test_a_connection_that_does_not_begin_says_why(api: Path, greeting: Sequence[Any], code: int) -> None:
    async with TryllStub() as stub:
        stub.greeted = greeting
        if len(greeting) > 1 and greeting[0] is READY:
            stub.answers[m.ConfigureSessionRequest] = lambda peer, asked: SILENCE
        (said,) = await ran(api, "connect", str(stub.port))
        assert said.startswith(f"{code} ")
        assert len(said) > len("1001 ")


async def test_a_token_that_is_refused_is_told(api: Path) -> None:
    async with TryllStub() as stub:
        stub.answers[m.ConfigureSessionRequest] = lambda peer, asked: [m.ErrorResponse(asked.request_id, 2003, "No.")]
        assert await ran(api, "connect", str(stub.port)) == ["2003 No."]


def test_a_server_that_is_not_there_is_told(api: Path) -> None:
    assert run(api, "connect", "1").startswith("1001 ")


# The codec.


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("cpp") / "vectors", CLIENT / "test" / "vectors.cpp", flags=CHECKED)


def broken(rounds: int, seed: int) -> list[bytes]:
    """Payloads of which some bytes were changed."""
    chance = random.Random(seed)
    good = [payload for _, payload in transcript() if len(payload) < 3000]
    found = []
    for _ in range(rounds):
        payload = bytearray(chance.choice(good))
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            at, how = chance.randrange(len(payload)), chance.random()
            if how < 0.4:
                payload[at] = chance.choice((0, 1, 4, 8, 128, 255, chance.randrange(256)))
            elif how < 0.6:
                payload[at] ^= 1 << chance.randrange(8)
            elif how < 0.8 and len(payload) >= 4:
                at = min(at & ~3, len(payload) - 4)
                payload[at : at + 4] = pack("<I", chance.choice((0, 4, 8, 12, len(payload) - at, 0xFFFFFFFC)))
            else:
                del payload[max(1, at) :]
        found.append(bytes(payload))
    return found


def understood(payload: bytes) -> str | int:
    """What our codec makes of it; as text, since a float may be none. Or the number of the error."""
    try:
        return json.dumps(json_form.full(decode(payload)))
    except FrameError as error:
        return error.code


def test_it_refuses_what_our_codec_refuses_and_reads_the_rest_alike(vectors: Path) -> None:
    payloads = broken(20_000, 21)
    given = "".join(f"{payload.hex()}\n" for payload in payloads)
    done = subprocess.run([vectors, "--encode"], input=given, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stderr
    refused = 0
    for said, payload in zip(done.stdout.splitlines(), payloads, strict=True):
        wanted = understood(payload)
        if isinstance(wanted, int):
            refused += 1
            assert json.loads(said) == {"error": wanted}, payload.hex()
        else:
            assert understood(bytes.fromhex(said)) == wanted, payload.hex()
    # There were enough of both kinds.
    assert 2_000 < refused < 18_000


# The example.


def test_the_example_talks_and_carries_out_what_the_character_wants(tmp_path: Path) -> None:
    program = compiled(tmp_path / "chat", CLIENT / "example" / "chat.cpp", CLIENT / "tryll.cpp", flags=("-O0",))
    with tryll_process() as server:
        done = subprocess.run(
            [program, f"127.0.0.1:{server.port}"],
            input="Good evening\nopen_gate, please\n",
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
    assert done.returncode == 0, done.stderr
    assert "You said: Good evening" in done.stdout
    assert "* The gate opens." in done.stdout


def test_the_example_takes_a_model_with_and_without_an_address(tmp_path: Path) -> None:
    program = compiled(tmp_path / "chat", CLIENT / "example" / "chat.cpp", CLIENT / "tryll.cpp", flags=("-O0",))
    # A server of its own is `trunkline` in PATH.
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with tryll_process() as server:
        for words in (("no-such-model",), ("no-such-model", f"127.0.0.1:{server.port}")):
            done = subprocess.run([program, *words], env=env, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
            assert done.returncode == 1
            assert "no-such-model" in done.stderr
