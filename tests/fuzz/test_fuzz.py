"""A minute of fuzzing, and the proof that it would find something."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import require
from tests.fuzz.jsonstream_codec import EXIT_FOUND, MODULE, ROOT

pytestmark = pytest.mark.process

MINUTE = 60
#: A machine so busy that it feeds fewer than that in a minute has tested nothing.
FEWEST_EXECUTIONS = 10_000
#: Most planted defects are found in a tenth of that.
RUNS_TO_FIND = 100_000
#: Where coverage guides, nearly all of them are libFuzzer's, which finds the hidden defect in 600 to 20,000, as chance
#: will have it.
RUNS_TO_BE_GUIDED = 60_000
OWN_SHARE = 0.02
#: How long a run may take in all, on a machine that is busy with other things.
PATIENCE_SECONDS = 120
#: For the one defect that never returns.
INPUT_SECONDS = 2


def fuzz(*arguments: str, findings: Path, patience: float = PATIENCE_SECONDS) -> subprocess.CompletedProcess[str]:
    """Run the fuzzer, in a process group that does not outlive this call."""
    # Coverage would be measured in the fuzzer, too, which halves its speed and finds nothing.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    command = [sys.executable, "-m", MODULE, "--findings", str(findings), *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate(timeout=patience)
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def summary(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """The last line: what was done and found."""
    assert done.stdout, done.stderr
    return dict(re.findall(r"(\w+)=(\S+)", done.stdout.splitlines()[-1]))


@pytest.mark.fuzz
@pytest.mark.timeout(MINUTE + PATIENCE_SECONDS + 10)
def test_a_minute_of_mutated_input_finds_nothing(tmp_path: Path) -> None:
    done = fuzz("--seconds", str(MINUTE), findings=tmp_path, patience=MINUTE + PATIENCE_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    told = summary(done)
    assert told["findings"] == "0"
    assert int(told["executions"]) > FEWEST_EXECUTIONS
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(PATIENCE_SECONDS + 10)
@pytest.mark.parametrize(
    "defect", ["wrong-exception", "lost-line", "unbounded", "split-character", "lost-surrogate", "endless"]
)
def test_a_planted_defect_is_found_and_can_be_reproduced(defect: str, tmp_path: Path) -> None:
    limits = ("--runs", str(RUNS_TO_FIND), "--input-seconds", str(INPUT_SECONDS))
    done = fuzz("--engine", "own", "--seed", "1", "--plant", defect, *limits, findings=tmp_path)
    assert done.returncode == EXIT_FOUND, done.stdout + done.stderr
    assert summary(done)["findings"] == "1"
    (found,) = tmp_path.iterdir()
    assert f"finding: {found}\n" in done.stdout
    if defect != "endless":
        (again,) = re.findall(r"^reproduce: python (.*)$", done.stdout, re.MULTILINE)
        assert reproduced(shlex.split(again)) == EXIT_FOUND
    sound = ["-m", MODULE, "--reproduce", str(found)]
    assert reproduced(sound) == 0


@pytest.mark.fuzz
@pytest.mark.timeout(2 * PATIENCE_SECONDS + 10)
@pytest.mark.parametrize("defect", ["hidden", "endless"])
def test_the_engine_that_is_guided_by_coverage_finds_what_hides_from_the_other(defect: str, tmp_path: Path) -> None:
    require("atheris", find_spec("atheris") is not None, "pip install atheris; it has wheels for Linux on x86-64")
    limits = ("--runs", str(RUNS_TO_BE_GUIDED), "--own-share", str(OWN_SHARE), "--input-seconds", str(INPUT_SECONDS))
    done = fuzz("--engine", "atheris", "--seed", "1", "--plant", defect, *limits, findings=tmp_path)
    assert done.returncode == EXIT_FOUND, done.stdout + done.stderr
    (found,) = tmp_path.iterdir()
    assert f"finding: {found}\n" in done.stdout


@pytest.mark.parametrize("engine", ["own", "atheris"])
@pytest.mark.timeout(PATIENCE_SECONDS + 10)
def test_as_many_inputs_are_fed_as_were_asked_for(engine: str, tmp_path: Path) -> None:
    if engine == "atheris":
        require("atheris", find_spec("atheris") is not None, "pip install atheris; it has wheels for Linux on x86-64")
    runs = 3000
    done = fuzz("--engine", engine, "--runs", str(runs), findings=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    told = summary(done)
    assert told["engine"] == engine
    assert int(told["executions"]) == runs


def reproduced(arguments: list[str]) -> int:
    """The exit code of a command that feeds one input."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, check=False, timeout=PATIENCE_SECONDS
    )
    return done.returncode
