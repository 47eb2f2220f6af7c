"""`trunkline tryll bench` as a program."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import served
from trunkline.base.config import user_file
from trunkline.cli import tryll, tryll_bench
from trunkline.cli.tryll_bench import FEW_TURNS, _Bench, _why
from trunkline.cli.tryll_load import LoadPlan, Round, RoundSoFar
from trunkline.wires.tryll.drive.address import ServerAddress
from trunkline.wires.tryll.drive.managed import ManagedServer
from trunkline.wires.tryll.errors import TryllError

BENCH = (sys.executable, "-m", "trunkline", "tryll", "bench", "--model", "mock")


def test_wrong_usage_is_told() -> None:
    for arguments, said in (
        (["--find", "--characters", "3"], "do not go together"),
        (["--connect", "nowhere"], "is not an address"),
        (["--connect", "ws://"], "is not an address"),
        (["--characters", "0"], "is not in the range"),
        (["--think", "-1"], "is not in the range"),
        (["--think", "nan"], "is not a number"),
        (["--think", "inf"], "is not in the range"),
    ):
        result = CliRunner().invoke(tryll.command, ["bench", *arguments])
        assert (result.exit_code, said in result.output) == (2, True), result.output


@pytest.mark.process
def test_it_starts_a_server_of_its_own_measures_and_leaves_nothing_running(tmp_path: Path) -> None:
    done = subprocess.run(
        [*BENCH, "--characters", "2", "--seconds", "1", "--think", "0.05", "--json"],
        env=os.environ | {"TRUNKLINE_HOME": str(tmp_path)}, capture_output=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (found,) = told["rounds"]
    assert (told["model"], told["complete"], found["characters"], found["failed"]) == ("mock", True, 2, 0)
    assert found["turns"] > 0
    assert found["first_word_ms_p50"] <= found["first_word_ms_p95"]
    assert b"2 characters with mock" in done.stderr


@pytest.mark.process
def test_what_is_configured_for_other_servers_is_not_for_its_own(tmp_path: Path) -> None:
    home = {"TRUNKLINE_HOME": str(tmp_path)}
    file = Path(user_file(home))
    file.parent.mkdir(parents=True)
    (file.parent / "models").mkdir()
    file.write_text(
        '[tryll]\ntoken = "of another server"\nmetrics = "127.0.0.1:1"\nws = "127.0.0.1:1"\nmodels_dir = "models"\n'
    )
    file.chmod(0o600)
    done = subprocess.run(
        [*BENCH, "--seconds", "1", "--think", "0.05", "--json"],
        env=os.environ | home | {"TRUNKLINE_TRYLL_AGENTS": "nobody", "TRUNKLINE_TRYLL_SESSIONS": "true"},
        capture_output=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rounds"][0]["failed"] == 0


@pytest.mark.process
async def test_it_measures_over_a_websocket_too(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        _, port = await server.server.listen_websocket("127.0.0.1", 0)
        done = await asyncio.to_thread(
            subprocess.run,
            [*BENCH, "--connect", f"ws://127.0.0.1:{port}", "--seconds", "1", "--think", "0.05", "--json"],
            env=os.environ | {"TRUNKLINE_HOME": str(tmp_path)}, capture_output=True, timeout=PATIENCE_SECONDS,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert server.server.accepted == 1
    assert json.loads(done.stdout)["rounds"][0]["failed"] == 0


@pytest.mark.parametrize(
    ("found", "turns", "said"),
    [
        (
            2,
            FEW_TURNS - 1,
            "2 characters at once: 95 % of 19 turns begin within 2000 ms. Those are few: say `--seconds`",
        ),
        (1, FEW_TURNS, "1 character at once: 95 % of 20 turns begin within 2000 ms.\n"),
        (1, 1, "95 % of 1 turn begin"),
        (0, 9, "Not even 1 character: its turns do not begin within 2000 ms, or fail."),
    ],
)
def test_a_result_says_on_how_many_turns_it_rests(
    found: int, turns: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = _Bench(LoadPlan("mock", 1, 1, 8), 1, 2.0)
    bench.found = found
    for count in (max(found, 1), 4):
        bench._told(Round(count, 30.0, turns, 0, 0.1, 0.5, 10.0))
    bench.show()
    told = capsys.readouterr()
    assert said in told.out
    assert f"for 95 % of {turns} turn" in told.err


@pytest.mark.virtual_time
async def test_what_a_round_has_measured_is_told_also_when_it_is_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with served(tmp_path) as server:
        bench = _Bench(LoadPlan("mock", 3600, 5.0, 8), 2, None)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await bench.run(ServerAddress(server.host, server.port))
    (told,) = bench.record()["rounds"]
    assert (told["complete"], told["failed"], told["turns"]) == (False, 0, bench.turns)
    assert bench.turns > 0
    bench.show()
    assert "The round with 2 characters was stopped after " in capsys.readouterr().out


@pytest.mark.parametrize("error", [asyncio.CancelledError(), TryllError(1002)])
async def test_a_round_that_a_stop_has_cut_off_is_known_whatever_ended_it(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cut_off(tryll: object, plan: LoadPlan, characters: int, heard: RoundSoFar) -> Round:
        bench.stopped = True
        heard.first.append(0.25)
        raise error

    monkeypatch.setattr(tryll_bench, "play", cut_off)
    bench = _Bench(LoadPlan("mock", 30, 5.0, 8), 2, None)
    async with served(tmp_path) as server:
        with suppress(TryllError):
            await bench.run(ServerAddress(server.host, server.port))
    (told,) = bench.record()["rounds"]
    assert (told["complete"], told["turns"]) == (False, 1)


def test_what_is_said_of_no_turns_helps_whoever_reads_it() -> None:
    nothing, failed = Round(2, 30.0, 0, 0, 0, 0, 0), Round(2, 30.0, 0, 3, 0, 0, 0, "[4001] No\nmemory.")
    assert "Say `--seconds`" in _why([nothing], None, stopped=False)
    assert _why([nothing], None, stopped=True) == " before it was stopped."
    assert _why([], None, stopped=True) == " before it was stopped."
    told = _why([failed, nothing], None, stopped=False)
    assert told == ", and 3 failed, the last one with: [4001] No\\nmemory.\nThe log of the server may say more."
    # Of its own server nobody else has the log.
    told = _why([failed], lambda: "ERROR \x1b[2J\nout of memory", stopped=False)
    assert told.endswith("No\\nmemory.\nThe last words of the server:\nERROR \\x1b[2J\nout of memory")
    assert _why([failed], lambda: "", stopped=True).endswith("No\\nmemory.")


@pytest.mark.process
def test_the_last_words_of_its_own_server_are_told_when_all_turns_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> Round:
        return Round(1, 1.0, 0, 2, 0, 0, 0, "[4001] No luck.")

    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))
    monkeypatch.setattr(tryll_bench, "play", fails)
    monkeypatch.setattr(ManagedServer, "last_words", lambda _: "out of memory")
    done = CliRunner().invoke(tryll.command, ["bench", "--model", "mock"])
    told = (
        "No turn was completed, and 2 failed, the last one with: [4001] No luck.\nThe last words of the server:\nout of"
    )
    assert (done.exit_code, told in done.output) == (1, True), done.output


@pytest.mark.virtual_time
async def test_a_round_knows_why_its_last_turn_failed(tmp_path: Path) -> None:
    async with served(tmp_path, turns_per_minute=4) as server:
        bench = _Bench(LoadPlan("mock", 40, 5.0, 8), 3, None)
        await bench.run(ServerAddress(server.host, server.port))
    assert bench.rounds[0].error.startswith("[")
    assert bench.rounds[0].error in _why(bench.rounds, None, stopped=False)


@pytest.mark.process
def test_a_bench_without_a_completed_turn_has_no_figures_and_fails(tmp_path: Path) -> None:
    done = subprocess.run(
        # Whoever thinks for so long has said nothing when the round ends.
        [*BENCH, "--seconds", "1", "--think", "600", "--json"],
        env=os.environ | {"TRUNKLINE_HOME": str(tmp_path)}, capture_output=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert b"No turn was completed: nothing was measured." in done.stderr
    (found,) = json.loads(done.stdout)["rounds"]
    figures = ("first_word_ms_p50", "first_word_ms_p95", "tokens_per_second")
    assert [found[each] for each in ("turns", *figures)] == [0, None, None, None]


@pytest.mark.process
def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    done = subprocess.run(
        [*BENCH, "--connect", "127.0.0.1:1"], env=os.environ | {"TRUNKLINE_HOME": str(tmp_path)},
        capture_output=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert (done.returncode, b"[1001]" in done.stderr) == (1, True)


@pytest.mark.process
def test_ctrl_c_prints_what_is_known(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*BENCH, "--find", "--seconds", "1", "--think", "0.05", "--limit-ms", "60000", "--json"],
        env=os.environ | {"TRUNKLINE_HOME": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            assert process.stderr is not None
            while b"first word" not in (line := process.stderr.readline()):
                assert line
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            process.kill()
    told = json.loads(out)
    assert (process.returncode, told["complete"], told["characters"]) == (130, False, None)
    assert told["rounds"][0]["characters"] == 1
