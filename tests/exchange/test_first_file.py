"""The file that an exchange begins with."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from trunkline.base.config_schema import ANY
from trunkline.exchange import config, first_file
from trunkline.exchange.config_schema import OWN
from trunkline.exchange.first_file import Answers


def test_it_can_be_used_as_it_is_and_knows_its_owner_by_the_token(tmp_path: Path) -> None:
    path = tmp_path / "trunkline.toml"
    first_file.write(str(path), first_file.text(Answers(person="ana"), "tell-nobody"))
    found = config.read(str(path), {"HOME": "/home/ana"})
    assert set(found.agents) == {"helper", "echo"}
    assert found.agents["helper"].workspace == str(tmp_path)
    assert found.people["ana"].token_sha256 == hashlib.sha256(b"tell-nobody").hexdigest()
    assert found.people["ana"].role == "admin"
    assert "tell-nobody" not in path.read_text(encoding="utf-8")


def test_what_is_commented_out_in_it_can_be_used_as_well(tmp_path: Path) -> None:
    path = tmp_path / "trunkline.toml"
    lines = first_file.text(Answers(), "x").splitlines()
    used = [
        line.removeprefix("# ") if line.startswith(("# [", "# ")) and _is_toml(line[2:]) else line for line in lines
    ]
    path.write_text("\n".join(used), encoding="utf-8")
    found = config.read(str(path), {"HOME": "/home/ana"})
    assert set(found.wires) == {"tryll", "telegram"}
    assert found.agents["helper"].budget.turns_per_hour == 60
    assert found.approvals_expire_seconds == 86400


def _is_toml(line: str) -> bool:
    schema: Any = OWN
    keys = {*schema["exchange"], *schema["agents"][ANY]["budget"], "agents", "allow", "agent"}
    return line.startswith("[") or (" = " in line and line.partition(" ")[0] in keys)


@pytest.mark.parametrize("odd", ['with "quotes"', "back\\slash", "tab\tand\x7f", "é", "~/my project"])
def test_answers_of_any_kind_are_written_as_they_are(tmp_path: Path, odd: str) -> None:
    path = tmp_path / "trunkline.toml"
    first_file.write(str(path), first_file.text(Answers(workspace=f"/{odd}"), "x"))
    assert config.read(str(path), {}).agents["helper"].workspace == f"/{odd}"


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "trunkline.toml"
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        first_file.write(str(path), "yours")
    assert path.read_text() == "mine"


@pytest.mark.parametrize(("environ", "name"), [({"USER": "ana"}, "ana"), ({"USER": "a b"}, "me"), ({}, "me")])
def test_its_owner_is_called_like_the_user_where_that_is_a_name(environ: dict[str, str], name: str) -> None:
    assert first_file.person_of(environ) == name


def test_the_demonstration_has_a_file_that_can_be_used_and_is_left_as_somebody_changed_it(tmp_path: Path) -> None:
    path = first_file.demonstration_path(str(tmp_path / "up"))
    first_file.demonstrate(path)
    found = config.read(path, {"TRUNKLINE_HOME": str(tmp_path)})
    assert (set(found.agents), found.home) == ({"echo", "tour", "helper"}, str(tmp_path / "exchange"))
    assert Path(found.agents["helper"].workspace).is_dir()
    Path(path).write_text("[agents.mine]\nagent = 'echo'\n")
    first_file.demonstrate(path)
    assert set(config.read(path, {}).agents) == {"mine"}
