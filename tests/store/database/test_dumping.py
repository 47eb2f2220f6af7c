"""PostgreSQL's own programs, and what they are told: a password only where nobody else can read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.core.faults import ConfigError
from trunkline.store.database import dumping

pytestmark = pytest.mark.process

URL = "postgresql://ana:hush-hush@127.0.0.1:5999/rows"


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


async def test_a_password_is_in_the_environment_and_on_no_command_line_nor_in_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = tmp_path / "said"
    program(
        tmp_path, "pg_dump", f'echo "$@" > {said}\necho "$PGPASSWORD" >> {said}\necho "no: $PGPASSWORD" >&2\nexit 3'
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(ConfigError) as told:
        await dumping.dump_database(URL, str(tmp_path / "file"))
    assert "`pg_dump` failed: no: [redacted]" in str(told.value)
    arguments, password = said.read_text().splitlines()
    assert password == "hush-hush"
    assert "hush" not in arguments
    assert "host=127.0.0.1" in arguments


async def test_programs_that_are_missing_are_an_error_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(dumping, "_DEBIAN", str(tmp_path / "*"))
    with pytest.raises(ConfigError, match=r"There is no `pg_dump` here. Install .*`postgresql-client`"):
        dumping.find_tools()


def test_the_newest_of_debian_is_used_and_not_what_chooses_among_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("9", "15", "17"):
        (tmp_path / version).mkdir()
        program(tmp_path / version, "pg_dump", "")
    (tmp_path / "bin").mkdir()
    program(tmp_path, "pg_wrapper", "")
    (tmp_path / "bin" / "pg_dump").symlink_to("../pg_wrapper")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(dumping, "_DEBIAN", str(tmp_path / "[0-9]*"))
    assert dumping._program("pg_dump") == str(tmp_path / "17" / "pg_dump")
    # One that somebody has put there is what they want.
    (tmp_path / "bin" / "pg_dump").unlink()
    program(tmp_path / "bin", "pg_dump", "")
    assert dumping._program("pg_dump") == str(tmp_path / "bin" / "pg_dump")


async def test_a_database_that_does_not_answer_is_told_without_its_password() -> None:
    with pytest.raises(ConfigError, match="cannot be used") as told:
        await dumping.count_rows(URL, "session")
    assert "hush" not in str(told.value)


@pytest.mark.parametrize("url", [f"{URL}?sslpassword=hush", "postgresql://ana:hush@[/rows"])
async def test_what_cannot_be_told_in_private_is_not_told(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as told:
        await dumping.dump_database(url, str(tmp_path / "file"))
    assert "hush" not in str(told.value)
