"""`trunkline explain`."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.support.exchange_api import answering
from tests.support.invoked import invoke
from trunkline.cli.explain import command

EVIL = "<script>alert(1)</script>\x1b[2J&amp;"
STORY: dict[str, Any] = {
    "session": {"id": "s1", "agent": "helper", "workspace": "/w", "by": "ana", "created_at": 0, "updated_at": 1000},
    "people": ["ana", "bob"],
    "left_out": 2,
    "turns": [{"turn": 1, "by": "ana", "message": EVIL, "began_at": 0, "ended_at": 1000, "outcome": "cancelled",
               "cause": "bob stopped it.", "usage": None}],
    "timeline": [
        {"at": 0, "seq": 1, "turn": 1, "kind": "message", "who": "ana", "text": EVIL},
        {"at": 500, "seq": 2, "turn": 1, "kind": "tool_asked", "who": "helper", "text": "Write\na.txt"},
        {"at": 1000, "seq": 2, "turn": 0, "kind": "act", "who": "bob", "text": "stopped the turn in progress"},
        {"at": 1000, "seq": 3, "turn": 1, "kind": "end", "who": "helper", "text": "cancelled: bob stopped it."},
    ],
}  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))
    return tmp_path / "exchange"


def told(home: Path, *options: str) -> str:
    with answering(home, lambda asked: (200, STORY)) as asked:
        done = invoke(command, "s1", *options)
    assert (done.exit_code, asked[0].path) == (0, "/api/sessions/s1/explanation")
    return done.stdout


def test_the_text_names_people_and_the_cause_of_every_end_and_obeys_nothing(home: Path) -> None:
    text = told(home)
    for part in ("people     ana, bob", "Turn 1", "asks for Write", "  1: cancelled. bob stopped it. (asked by ana)"):
        assert part in text
    assert "(2 earlier entries are not shown.)" in text
    assert "\x1b" not in text


def test_json_is_what_the_exchange_says(home: Path) -> None:
    assert json.loads(told(home, "--json")) == STORY


def test_the_page_is_whole_and_what_was_said_is_no_markup_in_it(home: Path) -> None:
    page = told(home, "--html")
    tags: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.append(tag)

    Tags().feed(page)
    assert page.startswith("<!doctype html>")
    assert "script" not in tags
    assert "\x1b" not in page
    for part in ("bob stopped it.", "ana, bob", "&lt;script&gt;alert(1)&lt;/script&gt;"):
        assert part in page


def test_the_page_fits_a_phone_and_only_failures_stand_out(home: Path) -> None:
    page = told(home, "--html")
    assert '<meta name="viewport"' in page
    assert "@media(max-width" in page
    assert page.count("<tr class=failed>") == 1


def test_long_names_keep_their_column(home: Path) -> None:
    entries = [{**STORY["timeline"][0], "who": who, "text": "hi"} for who in ("telegram:1234567", "bob")]
    with answering(home, lambda asked: (200, {**STORY, "timeline": entries})):
        lines = [line for line in invoke(command, "s1").stdout.splitlines() if line.endswith("  hi")]
    assert len({len(line) for line in lines}) == 1


def test_a_session_in_which_nothing_was_asked_says_so(home: Path) -> None:
    with answering(home, lambda asked: (200, {**STORY, "timeline": [], "turns": []})):
        assert invoke(command, "s1").stdout.endswith("Nothing has been asked yet.\n")


def test_without_an_exchange_it_exits_1() -> None:
    done = invoke(command, "s1")
    assert done.exit_code == 1
    assert "No exchange is running here" in done.stderr
