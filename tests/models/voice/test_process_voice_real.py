"""The real voices, and the processes that they are."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.local_model import THREADS, TIMEOUT_SECONDS
from tests.support.speech import SENTENCES, collected, pulled
from trunkline.models.voice import loading
from trunkline.models.voice.process_voice import ProcessVoice

pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(TIMEOUT_SECONDS)]

#: A process may live on for so long when the one that started it was killed.
GONE_SECONDS = 4.0
#: What a stopped voice may still compute in seconds of its own time, where half of `LONG` does not take longer.
STOP_SECONDS = 0.1
#: How long it is watched for doing nothing more.
IDLE_SECONDS = 0.2
#: How long a busy machine may take for it.
PATIENCE_SECONDS = 20.0
#: Said in one piece.
LONG = "one two three four five six seven eight nine ten " * 4

_PARENT = """
import asyncio, json, sys
from trunkline.models.voice import loading
async def main():
    voices = [await loading.load_espeak("espeak"), await loading.load_piper("piper-joe", sys.argv[1], threads=1)]
    speaking = [asyncio.ensure_future(anext(voice.speak("word " * 40))) for voice in voices]
    print(json.dumps([voice.pid for voice in voices]), flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.fixture(scope="module", params=["piper-joe", "espeak"])
def name(request: pytest.FixtureRequest) -> str:
    pulled(request.param)
    return str(request.param)


@pytest.fixture
async def voice(name: str) -> AsyncIterator[ProcessVoice]:
    made = await (
        loading.load_espeak(name) if name == "espeak" else loading.load_piper(name, pulled(name), threads=THREADS)
    )
    yield made
    await made.close()


def cpu_seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


async def cost(voice: ProcessVoice, text: str) -> float:
    """What it takes to say a text, in seconds of the voice's own time."""
    assert voice.pid is not None
    before = cpu_seconds(voice.pid)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await collected(voice.speak(text))
    return cpu_seconds(voice.pid) - before


async def test_speed_changes_how_long_it_takes_to_say_something(voice: ProcessVoice) -> None:
    usual, slow, quick = [len(await collected(voice.speak(SENTENCES[1], speed=speed))) for speed in (1.0, 0.5, 2.0)]
    assert slow > 1.3 * usual
    assert quick < 0.85 * usual
    assert 8000 <= voice.sample_rate <= 48_000
    # Whatever is asked for, it is said as well as it can be.
    assert await collected(voice.speak("?! \ud800 \0 [[")) == b""
    assert await collected(voice.speak("[[ hello ]] <speak> 12 \N{SNOWMAN}", speaker=99, speed=float("nan")))


async def test_who_stops_listening_stops_the_work(voice: ProcessVoice) -> None:
    word, whole = await cost(voice, "Yes."), await cost(voice, LONG)
    assert voice.pid is not None
    begun = cpu_seconds(voice.pid)
    sound = voice.speak(LONG)
    first = asyncio.ensure_future(anext(sound))
    # Piper computes a sentence as a whole, and has begun to when its time moves; eSpeak has sound at once.
    while not first.done() and cpu_seconds(voice.pid) == begun:  # noqa: ASYNC110  (no event for another's time)
        await asyncio.sleep(0.005)
    first.cancel()
    await asyncio.wait([first])
    before = cpu_seconds(voice.pid)
    await sound.aclose()
    # Its place is free.
    await cost(voice, "Yes.")
    assert cpu_seconds(voice.pid) - before - word < max(whole / 2, STOP_SECONDS)
    before = cpu_seconds(voice.pid)
    await asyncio.sleep(IDLE_SECONDS)
    assert cpu_seconds(voice.pid) - before < IDLE_SECONDS / 4
    # And the next one is not spoilt by it.
    assert await collected(voice.speak("Yes."))


async def test_several_are_served_in_turn_by_one_process(voice: ProcessVoice) -> None:
    pid = voice.pid
    texts = [f"This is number {number}." for number in range(3)]
    assert all(await asyncio.gather(*[collected(voice.speak(text)) for text in texts]))
    assert voice.pid == pid


def test_no_voice_outlives_a_parent_that_was_killed() -> None:
    pulled("espeak")
    command = [sys.executable, "-c", _PARENT, pulled("piper-joe")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pids = json.loads(parent.stdout.readline())
        assert all(map(_lives, pids))
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + GONE_SECONDS
    while any(map(_lives, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(_lives, pids))


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
