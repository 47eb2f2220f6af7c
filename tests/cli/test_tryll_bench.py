"""`trunkline tryll bench` as a program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.patience import PATIENCE_SECONDS
from trunkline.cli import tryll

BENCH = (sys.executable, "-m", "trunkline", "tryll", "bench", "--model", "mock")


def test_wrong_usage_is_told() -> None:
    for arguments, said in (
        (["--find", "--characters", "3"], "do not go together"),
        (["--connect", "nowhere"], "is not an address"),
        (["--characters", "0"], "is not in the range"),
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
