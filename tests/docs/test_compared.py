"""The comparison with other terminal agents: what it says of ours is shown by tests, line by line."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache

import pytest

from tests.docs.examples import ROOT

pytestmark = pytest.mark.docs

PAGE = (ROOT / "docs/explanation/compared.md").read_text(encoding="utf-8")
PROGRAMS = ["Trunkline", "Claude Code", "opencode", "Codex", "aionrs"]
#: Tables whose cells are facts and not answers.
FACTS = ("", "Starting it")
ANSWER = re.compile(r"(yes|partly|no|not known)(: \S.*)?")
#: What would name a command, an option or a setting if there were one.
REFERENCES = ("docs/reference/cli.md", "docs/reference/configuration.md", "docs/how-to/chat.md")


def tables() -> dict[str, list[list[str]]]:
    """The rows of each section, without those of its head."""
    found: dict[str, list[list[str]]] = {}
    for part in re.split(r"^## ", "\n" + PAGE, flags=re.MULTILINE):
        title = part.split("\n", 1)[0].strip()
        rows = re.findall(r"^\|(.+)\|$", part, re.MULTILINE)[2:]
        if rows:
            found[title] = [[cell.strip() for cell in row.split(" | ")] for row in rows]
    return found


ROWS = {row[0]: row[1:] for title, rows in tables().items() if title not in FACTS for row in rows}
SHOWN = tomllib.loads((ROOT / "tests/docs/compared.toml").read_text(encoding="utf-8"))


@cache
def functions(path: str) -> frozenset[str]:
    """The tests of a file, those of classes as `Class::test`."""
    found = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        inner = [(f"{node.name}::", child) for child in node.body] if isinstance(node, ast.ClassDef) else [("", node)]
        found |= {
            prefix + child.name for prefix, child in inner if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        }
    return frozenset(found)


def test_every_line_says_what_shows_it_and_nothing_else_is_said() -> None:
    assert len(ROWS) > 80
    assert sorted(SHOWN) == sorted(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_every_cell_is_an_answer(name: str) -> None:
    assert [cell for cell in ROWS[name] if not ANSWER.fullmatch(cell)] == []
    assert len(ROWS[name]) == len(PROGRAMS)


def test_every_table_has_a_column_for_each_program() -> None:
    heads = re.findall(r"^\| \|(.+)\|\n\|-", PAGE, re.MULTILINE)
    assert len(heads) == len(tables())
    assert {tuple(cell.strip() for cell in head.split("|")) for head in heads} == {tuple(PROGRAMS)}


@pytest.mark.parametrize("name", SHOWN)
def test_what_shows_a_line_is_there(name: str) -> None:
    shown = SHOWN[name]
    assert shown.keys() <= {"tests", "absent", "stated"}
    for node in shown.get("tests", []):
        path, _, function = node.partition("::")
        assert function in functions(path), node
    for page, words in shown.get("stated", {}).items():
        assert words in (ROOT / page).read_text(encoding="utf-8"), page
    for page in REFERENCES:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert [word for word in shown.get("absent", []) if word in text] == [], page


@pytest.mark.parametrize("name", ROWS)
def test_what_we_have_is_tested_and_what_we_lack_is_nowhere(name: str) -> None:
    ours, shown = ROWS[name][0], SHOWN.get(name, {})
    assert ours != "not known"
    kinds = ("absent", "stated", "tests") if ours.startswith("no") else ("stated", "tests")
    assert any(shown.get(kind) for kind in kinds)


def test_others_are_better_at_some_of_it() -> None:
    """A comparison in which one is best everywhere is not believed; this one would have to be looked at again."""
    assert sum(ours.startswith("no") for ours, *_ in ROWS.values()) >= 10
