"""The terminal as a platform: lines in, text out."""

from __future__ import annotations

import asyncio
import os
import pty
from collections.abc import Iterator

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.chat.platform import Gone, Inbound, SendFailed
from trunkline.chat.terminal.platform import LONGEST_LINE, MOST_LINES, TerminalPlatform


class Pipes:
    def __init__(self) -> None:
        self.reading, self.typed = os.pipe()
        self.screen, self.writing = os.pipe()
        self.platform = TerminalPlatform(self.reading, self.writing)

    def types(self, data: bytes) -> None:
        os.write(self.typed, data)

    def leaves(self) -> None:
        os.close(self.typed)
        self.typed = -1

    def close(self) -> None:
        for fd in (self.reading, self.typed, self.screen, self.writing):
            if fd >= 0:
                os.close(fd)


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    made = Pipes()
    yield made
    made.close()


async def received(platform: TerminalPlatform, count: int | None = None) -> list[Inbound]:
    items: list[Inbound] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for item in platform.receive():
            assert isinstance(item, Inbound)
            items.append(item)
            if len(items) == count:
                break
    return items


async def test_each_line_is_a_message_with_an_id_of_its_own(pipes: Pipes) -> None:
    await pipes.platform.open()
    pipes.types("hello\n\n  grüße \r\nthe ".encode())
    pipes.types(b"end")
    pipes.leaves()
    items = await received(pipes.platform)
    assert [item.text for item in items] == ["hello", "grüße", "the end"]
    assert len({item.id for item in items}) == 3
    assert all(item.private for item in items)
    await pipes.platform.close()


async def test_what_comes_faster_than_it_is_taken_waits_in_the_pipe_and_none_is_lost(pipes: Pipes) -> None:
    await pipes.platform.open()
    lines = 30 * MOST_LINES

    def typing() -> None:
        for number in range(lines):
            pipes.types(b"%d\n" % number)
        pipes.leaves()

    typist = asyncio.create_task(asyncio.to_thread(typing))
    items = await received(pipes.platform)
    await typist
    assert [item.text for item in items] == [str(number) for number in range(lines)]
    await pipes.platform.close()


async def test_a_line_without_end_is_cut(pipes: Pipes) -> None:
    await pipes.platform.open()

    def typing() -> None:
        for _ in range(LONGEST_LINE // 65536 + 2):
            pipes.types(b"x" * 65536)
        pipes.leaves()

    typist = asyncio.create_task(asyncio.to_thread(typing))
    items = await received(pipes.platform)
    await typist
    assert len(items) == 2
    assert sum(len(item.text) for item in items) == (LONGEST_LINE // 65536 + 2) * 65536
    await pipes.platform.close()


async def test_answers_and_files_are_written_as_lines(pipes: Pipes) -> None:
    await pipes.platform.open()
    await pipes.platform.send("terminal", "an\nanswer", key="k")
    await pipes.platform.send_file("terminal", "/x/y.png", type="image", name="y.png", key="l")
    assert os.read(pipes.screen, 1000) == b"an\nanswer\n[image] /x/y.png\n"
    await pipes.platform.close()
    with pytest.raises(SendFailed):
        await pipes.platform.send("terminal", "late", key="m")


@pytest.mark.parametrize(("term", "shown"), [("xterm", b"  a \x1b[1mb\x1b[0m"), ("dumb", b"a **b**")])
async def test_a_screen_obeys_nothing_that_an_agent_says(
    term: str, shown: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.delenv("NO_COLOR", raising=False)
    ours, theirs = pty.openpty()
    reading, typed = os.pipe()
    try:
        platform = TerminalPlatform(reading, theirs)
        assert platform.limits.edits is (term != "dumb")
        await platform.open()
        await platform.send("terminal", "a\x1b]0;title\x07 **b**\x9b", key="k")
        assert os.read(ours, 100).rstrip() == shown
        await platform.close()
    finally:
        for fd in (ours, theirs, reading, typed):
            os.close(fd)


async def test_a_terminal_shows_an_answer_as_it_comes_and_asks_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    try:
        platform = TerminalPlatform(theirs, theirs)
        await platform.open()
        os.write(ours, b"hello\n")
        assert [item.text for item in await received(platform, 1)] == ["hello"]
        await platform.typing("terminal")
        message = await platform.send("terminal", "one", key="k")
        await platform.edit("terminal", message, "one two")
        shown = b""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not shown.endswith(b"\n> "):
                shown += await asyncio.to_thread(os.read, ours, 1000)
        greeting, _, answer = shown.partition(b"hello\r\n")
        assert b"/help" in greeting
        assert answer.startswith(b"  one\r\n\x1b[1A\r\x1b[J  one two\r\n")
        await platform.close()
    finally:
        for fd in (ours, theirs):
            os.close(fd)


async def test_a_pipe_gets_whole_messages_and_nothing_else(pipes: Pipes) -> None:
    assert not pipes.platform.limits.edits
    await pipes.platform.open()
    await pipes.platform.typing("terminal")
    await pipes.platform.send("terminal", "**bold** \x1b[1m", key="k")
    assert os.read(pipes.screen, 1000) == b"**bold** \x1b[1m\n"
    with pytest.raises(SendFailed, match="cannot be changed"):
        await pipes.platform.edit("terminal", "k", "other")
    await pipes.platform.close()


async def test_nobody_reads_any_more(pipes: Pipes) -> None:
    await pipes.platform.open()
    os.close(pipes.screen)
    pipes.screen = -1
    lost: list[OSError] = []
    pipes.platform.on_lost = lost.append
    with pytest.raises(Gone, match="standard output cannot be written: Broken pipe"):
        await pipes.platform.send("terminal", "hello", key="k")
    assert [type(error) for error in lost] == [BrokenPipeError]
    await pipes.platform.close()


def test_remarks_are_for_people_alone() -> None:
    ours, theirs = pty.openpty()
    reading, writing = os.pipe()
    try:
        between = {
            (place, to): TerminalPlatform(place, to).limits.remarks
            for place in (theirs, reading)
            for to in (theirs, writing)
        }
        assert between == {
            (theirs, theirs): True,
            (theirs, writing): False,
            (reading, theirs): False,
            (reading, writing): False,
        }
    finally:
        for fd in (ours, theirs, reading, writing):
            os.close(fd)
