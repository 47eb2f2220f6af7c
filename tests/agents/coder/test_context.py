"""`/context`: each part has its tokens, and they add up to what the meter shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.agents.coder.test_conversation import notices, talking
from tests.support.fake_model import call, calls, words
from trunkline.agents.coder.context import PARTS, scaled, table
from trunkline.core.events import CONTEXT, Event, Extension, Notice
from trunkline.core.usage import Usage


def told(events: list[Event]) -> tuple[str, dict[str, int]]:
    """What people are told, and the parts that programs are."""
    (notice,) = (event.message for event in events if isinstance(event, Notice))
    (data,) = (event.data for event in events if isinstance(event, Extension) and event.kind == CONTEXT)
    assert sum(data["parts"].values()) == data["used"]
    rows = {name.strip(): int(count.replace(",", "")) for name, count in re.findall(r"(?m)^(.+?)  +([\d,]+)  ", notice)}
    assert {name: rows[name] for name in PARTS} == data["parts"]
    assert (rows["used"], rows["used"] + rows["free"]) == (data["used"], data["size"])
    return notice, data["parts"]


async def test_what_fills_the_window_is_told_by_part(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs. " * 400)
    skill = tmp_path / ".trunkline" / "skills" / "tidy"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: tidy\ndescription: Tidies.\n---\nTidy well.\n")
    (tmp_path / "a.txt").write_text("text " * 800)
    replies = calls(call("Read", file_path="a.txt")), words("Read it is, for sure.", usage=None)
    async with talking(tmp_path, *replies) as talk:
        talk.model.context_window = 50_000
        await talk.say("Read a.txt. " * 100)
        # As if nobody had counted.
        talk.conversation._history.is_counted = False  # type: ignore[attr-defined]
        notice, parts = told(await talk.say("/context"))
        assert "of 50,000 tokens" in notice
        assert "a summary is written at 40,000 (80%)" in notice
        assert 1000 <= parts["project instructions"] <= 1200
        assert 300 <= parts["user messages"] <= 310
        assert 1000 <= parts["tool results"] <= 1100
        assert 0 < parts["assistant messages"] < 50
        assert parts["system prompt"] > 300
        assert parts["tools"] > 1000
        assert parts["skills"] > 20
        assert (parts["MCP tools"], parts["pictures and documents"], parts["notes and summaries"]) == (0, 0, 0)


async def test_the_parts_add_up_to_what_the_service_has_counted(tmp_path: Path) -> None:
    async with talking(tmp_path, words("Hi.", usage=Usage(20_000, 17))) as talk:
        await talk.say("Hello.")
        notice, parts = told(await talk.say("/context"))
        assert sum(parts.values()) == 20_017
        assert notice.startswith("20,017 of 100,000 tokens (20%) in 2 messages, model `fake` of `test`.")


async def test_a_service_that_counts_too_little_is_not_believed(tmp_path: Path) -> None:
    async with talking(tmp_path, words("Hi.", usage=Usage(3, 2))) as talk:
        await talk.say("Hello.")
        _, parts = told(await talk.say("/context"))
        assert sum(parts.values()) > 1000
        # What compaction goes by is the same.
        meter = talk.conversation.context  # type: ignore[attr-defined]  # not every conversation has one
        assert abs(meter[0] - sum(parts.values())) < 10


async def test_room_is_made_also_where_the_service_counts_too_little(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.txt").write_text("text\n" * 1700)
    reads = [calls(call("Read", f"t{number}", file_path=f"{number}.txt")) for number in range(6)]
    async with talking(tmp_path, *reads, words("Done.")) as talk:
        talk.model.context_window = 44_000
        events = await talk.say("Read them all.")
        assert [notice for notice in notices(events) if "cleared to make room" in notice]


async def test_what_a_compaction_has_left_is_told_apart(tmp_path: Path) -> None:
    async with talking(tmp_path, words("Hi."), words("We said hello. " * 100)) as talk:
        await talk.say("Hello.")
        await talk.say("/compact")
        _, parts = told(await talk.say("/context"))
        assert parts["notes and summaries"] > 300
        assert parts["user messages"] == 2


async def test_where_compaction_is_off_that_is_said(tmp_path: Path) -> None:
    async with talking(tmp_path, compaction=False) as talk:
        notice, _ = told(await talk.say("/context"))
        assert "Compaction is off" in notice


@pytest.mark.parametrize("total", [0, 1, 7, 100, 12_345])
def test_scaled_parts_add_up(total: int) -> None:
    found = scaled({"a": 5, "b": 3, "c": 0, "d": 11}, total)
    assert sum(found.values()) == total
    assert found["c"] == 0


def test_a_table_is_aligned() -> None:
    assert table({"a": 5, "long name": 12_345}, 20_000) == ["a               5    0.0%", "long name  12,345   61.7%"]
