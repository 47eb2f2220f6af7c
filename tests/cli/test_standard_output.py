"""What commands say and how they end when standard output cannot be written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.cli.standard_output import unwritten

_FULL = "Error: Standard output cannot be written: No space left on device.\n"
_CLOSED = "Error: Standard output is closed.\n"


def ran(arguments: str, where: str, cwd: Path, *, buffered: bool = True) -> tuple[int, str]:
    """Exit code and standard error of a command whose output goes there."""
    script = f'exec "$0" {"" if buffered else "-u"} -m trunkline {arguments} >{where}'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.process
@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize(("where", "told"), [("/dev/full", _FULL), ("&-", _CLOSED)])
def test_a_list_that_cannot_be_written_is_a_failure_told_in_a_line(
    tmp_path: Path, where: str, told: str, buffered: bool
) -> None:
    assert ran("agentproc hub list", where, tmp_path, buffered=buffered) == (1, told)


@pytest.mark.process
@pytest.mark.parametrize(
    "arguments",
    ["chat echo -q -p hi", "config path", "models list", "ledger", "schema jsonstream", "--help", "doctor"],
)
def test_no_command_takes_a_closed_output_for_a_success(tmp_path: Path, arguments: str) -> None:
    assert ran(arguments, "&-", tmp_path) == (1, _CLOSED)


@pytest.mark.process
def test_what_is_open_is_written_as_ever(tmp_path: Path) -> None:
    assert ran("schema jsonstream", "out", tmp_path) == (0, "")
    assert (tmp_path / "out").read_text().startswith("{")


def test_an_error_without_words_is_told_by_its_own() -> None:
    assert unwritten(OSError("gone")) == "Standard output cannot be written: gone."
