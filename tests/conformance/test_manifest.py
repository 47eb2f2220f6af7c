"""The manifests of requirements: each has something that shows it, and nothing that it names is missing."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from trunkline.conform.acp.suite import SUITE as ACP
from trunkline.conform.agentproc.agent.suite import SUITES as AGENTPROC_AGENTS
from trunkline.conform.agentproc.bridge.suite import SUITE as AGENTPROC_BRIDGES
from trunkline.conform.jsonstream.suite import SUITE as JSONSTREAM
from trunkline.conform.jsonstream_host.suite import SUITE as JSONSTREAM_HOSTS
from trunkline.conform.kit import Check
from trunkline.conform.mcp.suite import SUITE as MCP
from trunkline.conform.openai.suite import SUITE as OPENAI
from trunkline.conform.sns.suite import SUITE as SNS
from trunkline.conform.tryll.suite import SUITE as TRYLL

ROOT = Path(__file__).parents[2]
LEVELS = {"must": "MUST", "should": "SHOULD", "may": "MAY"}
KEYS = {"id", "section", "level", "text", "checks", "tests"}

#: Each wire, with the checks of its kits.
WIRES: dict[str, Mapping[str, Check]] = {
    "jsonstream": JSONSTREAM.checks,
    "jsonstream-host": JSONSTREAM_HOSTS.checks,
    "agentproc": {
        **AGENTPROC_AGENTS["0.1"].checks,
        **AGENTPROC_AGENTS["0.4"].checks,
        **AGENTPROC_BRIDGES.checks,
    },
    "sns": SNS.checks,
    "acp": ACP.checks,
    "mcp": MCP.checks,
    "openai": OPENAI.checks,
    "tryll": TRYLL.checks,
    # Its checks are among those above.
    "tryll-voice": {},
}


def requirements(wire: str) -> list[dict[str, Any]]:
    text = Path(__file__).with_name(f"{wire}.toml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)["requirement"]
    return found


REQUIREMENTS = {wire: requirements(wire) for wire in WIRES}

each_wire = pytest.mark.parametrize("wire", WIRES)


@cache
def defined_in(file: str) -> frozenset[str]:
    """The names of the tests that a file defines; none if it is not there."""
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def says_what_where_and_how_much(requirement: dict[str, Any]) -> bool:
    return (
        KEYS.issuperset(requirement)
        and requirement["level"] in LEVELS
        and bool(requirement["section"])
        and requirement["text"].endswith(".")
    )


# Not a test for each of them, which would be thousands: what is wrong is told by its name.


@each_wire
def test_a_requirement_is_shown_by_a_check_or_a_test(wire: str) -> None:
    found = REQUIREMENTS[wire]
    assert [each["id"] for each in found if not each.get("checks") and not each.get("tests")] == []


@each_wire
def test_a_requirement_says_what_where_and_how_much(wire: str) -> None:
    assert [each["id"] for each in REQUIREMENTS[wire] if not says_what_where_and_how_much(each)] == []


@each_wire
def test_every_test_that_is_named_exists(wire: str) -> None:
    named = [(each["id"], *name.partition("::")) for each in REQUIREMENTS[wire] for name in each.get("tests", ())]
    assert [f"{id}: {file}::{test}" for id, file, _, test in named if test not in defined_in(file)] == []


@each_wire
def test_every_check_that_is_named_exists(wire: str) -> None:
    named = [(each["id"], check) for each in REQUIREMENTS[wire] for check in each.get("checks", ())]
    assert [f"{id}: {check}" for id, check in named if check not in WIRES[wire]] == []


@each_wire
def test_no_two_requirements_have_one_id(wire: str) -> None:
    ids = [requirement["id"] for requirement in REQUIREMENTS[wire]]
    assert sorted(ids) == sorted(set(ids))


@each_wire
def test_every_check_belongs_to_a_requirement_of_its_level_or_above(wire: str) -> None:
    levels: dict[str, set[str]] = {check: set() for check in WIRES[wire]}
    for requirement in REQUIREMENTS[wire]:
        for check in requirement.get("checks", ()):
            levels.setdefault(check, set()).add(LEVELS[requirement["level"]])
    wrong = [id for id, check in WIRES[wire].items() if not levels[id] & {check.tier, "MUST"}]
    assert wrong == []


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


def test_every_section_of_acp_is_there() -> None:
    sections = {requirement["section"] for requirement in REQUIREMENTS["acp"]}
    wanted = {"Overview", "Initialization", "Session Setup", "Session List", "Session Delete", "Session Fork",
              "Prompt Turn", "Content", "Tool Calls", "Agent Plan", "Session Modes", "Slash Commands", "Extensibility",
              "Transports"}  # fmt: skip
    assert wanted | {"JSON-RPC"} == sections


def test_every_section_of_openai_is_there() -> None:
    sections = {requirement["section"] for requirement in REQUIREMENTS["openai"]}
    wanted = {"Models", "Chat", "Streaming", "Responses", "Responses streaming", "Embeddings", "Errors"}
    assert wanted | {"Authentication"} == sections


def test_every_section_of_mcp_is_there() -> None:
    sections = {requirement["section"] for requirement in REQUIREMENTS["mcp"]}
    wanted = {"Base protocol", "Lifecycle", "Transports", "Utilities", "Tools", "Resources", "Prompts"}
    assert wanted | {"JSON-RPC", "Trunkline"} == sections
