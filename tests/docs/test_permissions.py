"""The reference of the permission rules: every example in it is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trunkline.core.events import ToolRequested
from trunkline.core.rules import first_match, read_rule

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "permissions.md"
ROWS = re.findall(r"^\| `(.+?)` \| `(.+?)` \| (yes|no) \| (yes|no) \|$", PAGE.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize(("rule", "about", "allow", "deny"), ROWS)
def test_an_example_is_as_the_page_says(tmp_path: Path, rule: str, about: str, allow: str, deny: str) -> None:
    if rule.startswith("Bash"):
        call = ToolRequested("c1", "Bash", "exec", {"command": about})
    else:
        call = ToolRequested("c1", "Edit", "edit", {"file_path": about})
    workspace = str(tmp_path)
    allows = first_match("allow", [rule], call, workspace) is not None
    denies = first_match("deny", [rule], call, workspace) is not None
    assert (allows, denies) == (allow == "yes", deny == "yes")


def test_every_rule_on_the_page_can_be_read() -> None:
    text = PAGE.read_text("utf-8")
    rules = re.findall(r"`((?:Bash|Read|Edit|Write|WebFetch|Skill|Spawn|mcp)[^`]*)`", text)
    assert len(ROWS) > 25
    assert [rule for rule in rules if "..." not in rule and read_rule(rule)[1]] == []
