"""The entries of the chat platforms: whole, true, and the only place that knows them."""

from __future__ import annotations

import ast
import inspect
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from trunkline.base.chat_platforms import PLATFORMS, PlatformEntry, remote, wrong_sender
from trunkline.base.environ_secrets import names_a_secret

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "trunkline"

entries = pytest.mark.parametrize(("name", "entry"), PLATFORMS.items(), ids=list(PLATFORMS))
needing_an_account = pytest.mark.parametrize(("name", "entry"), [(name, PLATFORMS[name]) for name in remote()])


@entries
def test_a_platform_is_made_by_its_module_of_a_table_an_environment_and_who_is_let_in(
    name: str, entry: PlatformEntry
) -> None:
    assert entry.package == f"trunkline.chat.{name}"
    assert list(inspect.signature(import_module(entry.module).make).parameters) == ["table", "environ", "is_allowed"]


@needing_an_account
def test_what_is_said_to_those_whom_nobody_let_in_is_an_entry_that_would_let_them_in(
    name: str, entry: PlatformEntry
) -> None:
    assert entry.way_in
    assert wrong_sender(f"{name}:{entry.example}") is None
    assert entry.ids in (wrong_sender(f"{name}:no id at all") or "")


@entries
def test_no_secret_of_a_platform_is_shown_and_none_is_inherited_by_agents(name: str, entry: PlatformEntry) -> None:
    assert [each for pair in entry.secrets.items() for each in pair if not names_a_secret(each)] == []


@needing_an_account
def test_a_page_of_the_documentation_tells_how_to_get_an_account(name: str, entry: PlatformEntry) -> None:
    assert entry.page is not None
    text = (ROOT / "docs" / entry.page).read_text(encoding="utf-8")
    assert f"[bridge.{name}]" in text
    assert [variable for variable in entry.secrets.values() if variable not in text] == []
    navigation = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), yaml.BaseLoader)["nav"]
    assert entry.page in _texts(navigation)


@entries
def test_what_a_platform_needs_is_an_extra_that_there_is(name: str, entry: PlatformEntry) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert bool(entry.needs) == (entry.extra in declared)


#: Where a word is not a platform's name: an editor's terminal is a word of ACP.
OTHER_MEANINGS = {("terminal", "acp")}


def test_no_other_part_of_the_program_knows_a_platform_by_its_name() -> None:
    knowing = [
        (name, str(path.relative_to(SOURCES)))
        for path in SOURCES.rglob("*.py")
        if path != SOURCES / "base" / "chat_platforms.py"
        for name in _named(path.read_text(encoding="utf-8"))
        if not path.is_relative_to(SOURCES / "chat" / name) and (name, path.parent.name) not in OTHER_MEANINGS
    ]
    assert knowing == []


def _named(source: str) -> list[str]:
    """The platforms that a module names, or imports from."""
    maybe = {name: entry for name, entry in PLATFORMS.items() if f'"{name}"' in source or entry.package in source}
    if not maybe:
        return []
    nodes = list(ast.walk(ast.parse(source)))
    found = {each.value for each in nodes if isinstance(each, ast.Constant)}
    found |= {each.module for each in nodes if isinstance(each, ast.ImportFrom)}
    return [name for name, entry in maybe.items() if found & {name, entry.package, entry.module}]


def _texts(tree: object) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        for each in tree.values():
            yield from _texts(each)
    elif isinstance(tree, list):
        for each in tree:
            yield from _texts(each)
