"""How `trunkline bridge run` begins and ends."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.chat_bridge import Stage
from tests.support.patience import PATIENCE_SECONDS
from trunkline.chat.bridge import Bridge
from trunkline.chat.delivery.rows import Rows
from trunkline.chat.delivery.store import ChatStore
from trunkline.cli import bridge_run
from trunkline.core.faults import ConfigError

AWAY = ConfigError("Nobody answers.", retryable=True)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is said on standard error beside the log."""
    lines: list[str] = []
    monkeypatch.setattr(bridge_run, "tell", lines.append)
    return lines


@pytest.fixture
def ends() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop of its own, whose signal handlers go with it."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def unreachable(stage: Stage, *problems: ConfigError) -> None:
    """The platform cannot be opened so many times."""
    left = list(problems)

    async def open_it() -> None:
        if left:
            raise left.pop(0)

    stage.platform.open = open_it  # type: ignore[method-assign]


async def begun(bridge: Bridge) -> None:
    for each in await bridge_run._start([bridge]):
        await bridge_run._serve(*each)


@pytest.mark.virtual_time
async def test_a_network_that_is_not_there_yet_is_waited_for(
    tmp_path: Path, told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    away, here = Stage(tmp_path / "away"), Stage(tmp_path / "here")
    unreachable(away, *[AWAY] * 9)

    with caplog.at_level(logging.WARNING):
        bridges = [stage.unstarted() for stage in (away, here)]
        started = await bridge_run._start(bridges)
        assert [problem for _, problem in started] == [AWAY, None]
        assert told == ["Serving memory. Ctrl-C ends it."]
        serving = [asyncio.ensure_future(bridge_run._serve(*each)) for each in started]
        await here.exchange("hello", "hi")
        assert len(told) == 1
        await asyncio.sleep(400)
        assert len(told) == 2
        await away.exchange("hello", "at last")
        for stage, bridge, task in zip((away, here), bridges, serving, strict=True):
            await stage.end(bridge, task)
    waits = [message for message in caplog.messages if "cannot be served yet" in message]
    assert len(waits) == 9
    assert waits[0].endswith("which is tried again in 1 s: Nobody answers.")
    assert " 60 s" in waits[-1]


@pytest.mark.virtual_time
@pytest.mark.parametrize("before", [(), (AWAY,)])
async def test_wrong_credentials_are_not_waited_for(
    tmp_path: Path, told: list[str], before: tuple[ConfigError, ...]
) -> None:
    stage = Stage(tmp_path)
    unreachable(stage, *before, ConfigError("The token is wrong."))

    bridge = stage.unstarted()
    with pytest.raises(ConfigError, match="token is wrong"):
        await begun(bridge)
    await bridge.close()
    assert stage.store is not None
    stage.store.close()
    assert told == []


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 141, []),
        (OSError(errno.ENOSPC, "No space"), 1, ["Error: Standard output cannot be written: No space."]),
    ],
)
def test_output_that_is_gone_ends_it(
    ends: asyncio.AbstractEventLoop, told: list[str], error: OSError, code: int, said: list[str]
) -> None:
    async def main() -> None:
        end = bridge_run._Ends()
        forever = asyncio.ensure_future(asyncio.Event().wait())
        end.lost(error)
        end.lost(error)
        assert not await end.first(forever)
        assert forever.cancelled()
        assert (end.code, told) == (code, said)

    ends.run_until_complete(main())


def test_a_signal_that_was_ignored_stays_ignored(ends: asyncio.AbstractEventLoop) -> None:
    async def main() -> None:
        end = bridge_run._Ends()
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)
        assert not await end.first(asyncio.ensure_future(asyncio.Event().wait()))
        assert end.code == 128 + signal.SIGTERM

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        ends.run_until_complete(main())
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_the_chat_on_a_screen_shows_is_news_to_nobody() -> None:
    record = logging.makeLogRecord({"msg": "The agent failed."})
    assert bridge_run._is_not_shown(record)
    record.shown = True
    assert not bridge_run._is_not_shown(record)


@pytest.mark.process
@pytest.mark.parametrize(
    ("device", "code", "said"),
    [
        ("/dev/full", 1, "Error: Standard output cannot be written: No space left on device.\n"),
        (None, 141, ""),
    ],
)
def test_answers_that_nobody_can_read_are_a_failure_and_leave_nothing_behind(
    tmp_path: Path, device: str | None, code: int, said: str
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    if device is not None:
        os.close(writing)
        writing = os.open(device, os.O_WRONLY)
    argv = [sys.executable, "-m", "trunkline", "bridge", "run", "terminal", "--agent", "echo"]
    try:
        done = subprocess.run(
            argv,
            input=b"one\ntwo\n",
            stdout=writing,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr.decode()) == (code, f"Serving terminal. Ctrl-C ends it.\n{said}")
    store = ChatStore()
    assert Rows(store).unsettled() == Rows(store).unfinished("terminal") == []
    store.close()
