"""`trunkline permissions`: the rules that count in a directory, and one's own for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from trunkline.base.config import user_file
from trunkline.cli import permissions


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "workspace"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(permissions.command, list(arguments))


def printed(*arguments: str, code: int = 0) -> dict[str, Any]:
    result = invoke(*arguments, "--json")
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_rules_are_listed_with_their_files_those_that_deny_first(workspace: Path) -> None:
    assert "There are no rules." in invoke("list").stderr
    file = Path(user_file())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[permissions]\nallow = ["Bash(ls:*)", "Bash(ls"]\n')
    (workspace / "trunkline.toml").write_text('[permissions]\nallow = ["Bash"]\ndeny = ["Bash(rm:*)"]\n')
    own = printed("add", "Bash(make test)")["file"]
    found = printed("list")
    assert [tuple(each.values()) for each in found["rules"]] == [
        ("deny", "Bash(rm:*)", str(workspace / "trunkline.toml")),
        ("allow", "Bash(ls:*)", str(file)),
        ("allow", "Bash(make test)", own),
    ]
    assert found["own_file"] == own
    assert "`Bash(ls`" in found["warnings"][0]
    assert invoke("list", "--wide").stdout.splitlines()[1].startswith("deny   Bash(rm:*)")


def test_one_is_added_for_a_directory_and_removed_again(workspace: Path, tmp_path: Path) -> None:
    assert printed("add", "Bash(git push:*)", "--kind", "deny")["added"] is True
    assert printed("add", "Bash(git push:*)", "--kind", "deny")["added"] is False
    assert printed("list", "--workspace", str(tmp_path))["rules"] == []
    assert "Did you mean `Bash(git push:*)`?" in invoke("remove", "Bash(git pull:*)").stderr
    assert printed("remove", "Bash(git push:*)", "--kind", "allow", code=1)["removed"] is False
    assert invoke("remove", "Bash(git push:*)").stdout.startswith("Removed from ")
    assert printed("list")["rules"] == []
    assert invoke("remove", "Bash(git push:*)").exit_code == permissions.EXIT_NOTHING


def test_a_rule_in_a_configuration_file_is_for_its_owner_to_edit(workspace: Path) -> None:
    (workspace / "trunkline.toml").write_text('[permissions]\ndeny = ["Bash(rm:*)"]\n')
    assert f"{workspace}/trunkline.toml: edit the file" in invoke("remove", "Bash(rm:*)").stderr.replace("\n", "")


def test_a_tool_whose_name_looks_like_a_slip_is_told_when_its_rule_is_added() -> None:
    result = invoke("add", "--kind", "deny", "Bsh(rm:*)")
    assert (result.exit_code, result.stderr) == (0, "There is no tool `Bsh`. Did you mean `Bash`?\n")
    assert invoke("add", "--kind", "deny", "mcp__hub__send").stderr == ""


def test_what_is_no_rule_is_refused() -> None:
    result = invoke("add", "Bash(ls")
    assert result.exit_code != 0
    assert "says how rules are written" in result.output
