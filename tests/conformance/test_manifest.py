"""The manifests of requirements: each has something that shows it, and nothing that it names is missing."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from trunkline.conform.agentproc.agent.catalogue import SUITES as AGENTPROC_AGENTS
from trunkline.conform.agentproc.bridge.catalogue import SUITE as AGENTPROC_BRIDGES
from trunkline.conform.jsonstream.catalogue import SUITE as JSONSTREAM
from trunkline.conform.kit import Check
from trunkline.conform.sns.catalogue import SUITE as SNS
from trunkline.conform.tryll.catalogue import SUITE as TRYLL

ROOT = Path(__file__).parents[2]
LEVELS = {"must": "MUST", "should": "SHOULD", "may": "MAY"}
KEYS = {"id", "section", "level", "text", "checks", "tests"}

#: Each wire, with the checks of its kits.
WIRES: dict[str, Mapping[str, Check]] = {
    "jsonstream": JSONSTREAM.checks,
    "agentproc": {
        **AGENTPROC_AGENTS["0.1"].checks,
        **AGENTPROC_AGENTS["0.4"].checks,
        **AGENTPROC_BRIDGES.checks,
    },
    "sns": SNS.checks,
    "tryll": TRYLL.checks,
    # Its checks are among those above.
    "tryll-voice": {},
}


def requirements(wire: str) -> list[dict[str, Any]]:
    text = Path(__file__).with_name(f"{wire}.toml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)["requirement"]
    return found


REQUIREMENTS = {wire: requirements(wire) for wire in WIRES}

each_requirement = pytest.mark.parametrize(
    ("wire", "requirement"),
    [
        pytest.param(wire, requirement, id=f"{wire}-{requirement['id']}")
        for wire, found in REQUIREMENTS.items()
        for requirement in found
    ],
)


@cache
def defined_in(file: str) -> frozenset[str]:
    """The names of the tests that a file defines; none if it is not there."""
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


@each_requirement
def test_a_requirement_is_shown_by_a_check_or_a_test(wire: str, requirement: dict[str, Any]) -> None:
    assert requirement.get("checks") or requirement.get("tests")


@each_requirement
def test_a_requirement_says_what_where_and_how_much(wire: str, requirement: dict[str, Any]) -> None:
    assert KEYS.issuperset(requirement)
    assert requirement["level"] in LEVELS
    assert requirement["section"]
    assert requirement["text"].endswith(".")


@each_requirement
def test_every_test_that_is_named_exists(wire: str, requirement: dict[str, Any]) -> None:
    named = [name.partition("::") for name in requirement.get("tests", ())]
    assert [f"{file}::{test}" for file, _, test in named if test not in defined_in(file)] == []


@each_requirement
def test_every_check_that_is_named_exists(wire: str, requirement: dict[str, Any]) -> None:
    assert [check for check in requirement.get("checks", ()) if check not in WIRES[wire]] == []


@pytest.mark.parametrize("wire", WIRES)
def test_no_two_requirements_have_one_id(wire: str) -> None:
    ids = [requirement["id"] for requirement in REQUIREMENTS[wire]]
    assert sorted(ids) == sorted(set(ids))


@pytest.mark.parametrize(("wire", "check"), [(wire, check) for wire, checks in WIRES.items() for check in checks])
def test_every_check_belongs_to_a_requirement_of_its_level_or_above(wire: str, check: str) -> None:
    levels = {LEVELS[each["level"]] for each in REQUIREMENTS[wire] if check in each.get("checks", ())}
    assert levels
    assert WIRES[wire][check].tier in levels or "MUST" in levels


def test_every_section_of_the_json_stream_is_there() -> None:
    sections = {requirement["section"] for requirement in REQUIREMENTS["jsonstream"]}
    parts = {"1": 11, "2": 6, "3": 5, "4": 3}
    wanted = {f"{chapter}.{number + 1}" for chapter, count in parts.items() for number in range(count)}
    assert wanted | {"Overview", "1", "2", "5", "6", "Trunkline"} == sections


def test_every_section_of_agentproc_is_there() -> None:
    sections = {requirement["section"] for requirement in REQUIREMENTS["agentproc"]}
    wanted = {"Profile", "Core", "Attachments", "stdin", "Output", "Session", "Partials", "Errors", "Exit codes",
              "Timeout", "Principles"}  # fmt: skip
    assert wanted | {"0.4", "Chat", "Trunkline"} == sections


def test_every_section_of_tryll_is_there() -> None:
    sections = {requirement["section"] for requirement in REQUIREMENTS["tryll"]}
    wanted = {"Transport", "Framing", "Message types", "Session lifecycle", "Streaming answers", "Error responses",
              "Voice input and transcripts", "String storage", "GraphDescription shape", "Versioning",
              "Checklist"}  # fmt: skip
    assert wanted | {"Details", "Mock engine", "Wire", "Graphs", "Models", "Additions"} == sections
