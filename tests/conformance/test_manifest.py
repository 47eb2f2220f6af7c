"""The manifest of requirements: each has something that shows it, and nothing that it names is missing."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from trunkline.conform.jsonstream.catalogue import SUITE

ROOT = Path(__file__).parents[2]
LEVELS = {"must": "MUST", "should": "SHOULD", "may": "MAY"}
KEYS = {"id", "section", "level", "text", "checks", "tests"}


def requirements(wire: str) -> list[dict[str, Any]]:
    text = Path(__file__).with_name(f"{wire}.toml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)["requirement"]
    return found


REQUIREMENTS = requirements("jsonstream")
_ids = [requirement["id"] for requirement in REQUIREMENTS]


@cache
def defined_in(file: str) -> frozenset[str]:
    """The names of the tests that a file defines; none if it is not there."""
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=_ids)
def test_a_requirement_is_shown_by_a_check_or_a_test(requirement: dict[str, Any]) -> None:
    assert requirement.get("checks") or requirement.get("tests")


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=_ids)
def test_a_requirement_says_what_where_and_how_much(requirement: dict[str, Any]) -> None:
    assert KEYS.issuperset(requirement)
    assert requirement["level"] in LEVELS
    assert requirement["section"]
    assert requirement["text"].endswith(".")


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=_ids)
def test_every_test_that_is_named_exists(requirement: dict[str, Any]) -> None:
    named = [name.partition("::") for name in requirement.get("tests", ())]
    assert [f"{file}::{test}" for file, _, test in named if test not in defined_in(file)] == []


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=_ids)
def test_every_check_that_is_named_exists(requirement: dict[str, Any]) -> None:
    assert [check for check in requirement.get("checks", ()) if check not in SUITE.checks] == []


def test_no_two_requirements_have_one_id() -> None:
    assert sorted(_ids) == sorted(set(_ids))


@pytest.mark.parametrize("check", SUITE.checks)
def test_every_check_belongs_to_a_requirement_of_its_level_or_above(check: str) -> None:
    levels = {LEVELS[each["level"]] for each in REQUIREMENTS if check in each.get("checks", ())}
    assert levels
    assert SUITE.checks[check].tier in levels or "MUST" in levels


def test_every_section_of_the_protocol_document_is_there() -> None:
    sections = {requirement["section"] for requirement in REQUIREMENTS}
    parts = {"1": 11, "2": 6, "3": 5, "4": 3}
    wanted = {f"{chapter}.{number + 1}" for chapter, count in parts.items() for number in range(count)}
    assert wanted | {"Overview", "1", "2", "5", "6", "Trunkline"} == sections
