"""`--log-level` and `--log-file`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from trunkline.base.redact import Redactor
from trunkline.cli import log_options
from trunkline.core.faults import ConfigError

OURS = logging.getLogger("trunkline.wires.tryll.test")
OTHERS = logging.getLogger("trunkline.tools.test")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """A log is for the rest of the process; here it ends with the test."""
    root = logging.getLogger()
    before = list(root.handlers)
    yield
    for handler in [each for each in root.handlers if each not in before]:
        root.removeHandler(handler)
        # Of a full disk it has something left that it cannot write.
        with suppress(OSError):
            handler.close()
    logging.getLogger("trunkline.wires.tryll").setLevel(logging.NOTSET)


def begin(level: str, file: Path) -> None:
    log_options.begin(level, str(file), Redactor(["a-secret-of-ours"]), ["trunkline.wires.tryll"])


def test_a_file_has_our_lines_without_secrets_and_of_others_only_warnings(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    begin("info", file)
    OURS.debug("too fine")
    OURS.info("one %s", "a-secret-of-ours")
    OTHERS.info("said by somebody")
    OTHERS.warning("two")
    lines = file.read_text().splitlines()
    assert [line.split(": ", 1)[1] for line in lines] == ["one [redacted]", "two"]
    assert file.stat().st_mode & 0o777 == 0o600


def test_less_is_logged_if_so_much_is_not_wanted(tmp_path: Path) -> None:
    begin("error", tmp_path / "a.log")
    OURS.warning("one")
    OTHERS.warning("two")
    OTHERS.error("three")
    assert len((tmp_path / "a.log").read_text().splitlines()) == 1


def test_a_file_that_is_moved_away_is_begun_again(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    begin("info", file)
    OURS.info("one")
    file.rename(tmp_path / "a.log.1")
    OURS.info("two")
    assert [name.read_text().split()[-1] for name in (tmp_path / "a.log.1", file)] == ["one", "two"]


def test_a_file_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written to"):
        begin("info", tmp_path / "none" / "a.log")


def test_a_full_disk_is_told_once_and_ends_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    begin("info", Path("/dev/full"))
    OURS.info("one")
    OURS.info("two")
    assert capfd.readouterr().err.count("can no longer be written") == 1
