"""Microphones and speakers: by programs, by a package, and by nothing."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.cli import talk_audio
from trunkline.cli.talk_audio import MAX_PIECES, Speakers, open_microphone, open_speakers
from trunkline.core.faults import ConfigError
from trunkline.wires.tryll.drive import Sound


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Makes programs; there are no others, and no package."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(talk_audio, "find_spec", lambda name: None)

    def make(name: str, script: str) -> None:
        path = folder / name
        path.write_text(f"#!/bin/sh\nPATH={os.defpath}\n{script}\n")
        path.chmod(0o755)

    return make


async def test_without_anything_it_is_said_what_to_install(programs: Callable[[str, str], None]) -> None:
    with pytest.raises(ConfigError, match=r"sounddevice.*alsa-utils.*--in FILE\.wav"):
        await open_microphone()
    with pytest.raises(ConfigError, match=r"sounddevice.*--out FILE\.wav"):
        await open_speakers()


@pytest.mark.process
async def test_a_program_is_heard_and_its_complaint_is_told(programs: Callable[[str, str], None]) -> None:
    programs("arecord", "printf '\\1\\2\\3'; sleep 0.2; printf '\\4'")
    microphone = await open_microphone()
    assert await microphone.read() == b"\1\2"
    assert await microphone.read() == b"\3\4"
    assert await microphone.read() == b""
    await microphone.close()
    programs("arecord", "echo 'no such device' >&2; exit 3")
    microphone = await open_microphone()
    with pytest.raises(ConfigError, match="ended with 3: no such device"):
        await microphone.read()
    await microphone.close()


@pytest.mark.process
async def test_a_program_plays_all_in_order_and_falls_silent_at_once(
    programs: Callable[[str, str], None], tmp_path: Path
) -> None:
    heard = tmp_path / "heard"
    programs("aplay", f'echo "$@" >> {heard}.args; cat >> {heard}')
    speakers = await open_speakers()
    speakers.play(Sound(b"ab" * 5000, 22050))
    speakers.play(Sound(b"cd", 22050))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await silent(speakers)
    assert heard.read_bytes() == b"ab" * 5000 + b"cd"
    assert "-r 22050 -c 1" in heard.with_suffix(".args").read_text()
    programs("aplay", "sleep 60")
    speakers.play(Sound(b"ab" * 500_000, 22050))
    await asyncio.sleep(0)
    before = speakers.playing
    speakers.stop()
    assert (before, speakers.playing) == (True, False)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await speakers.close()
    speakers.play(Sound(b"ab", 22050))
    assert not speakers.playing


async def silent(speakers: Speakers) -> None:
    """Whoever plays tells nobody when it is over."""
    while speakers.playing:  # noqa: ASYNC110  # as above
        await asyncio.sleep(0.01)


class Stream:
    """A stream of `sounddevice`, whose thread is the test."""

    made: list[Stream] = []  # noqa: RUF012  # one list for one test

    def __init__(self, callback: Callable[..., None], **options: Any) -> None:
        self.callback = callback
        self.options = options
        self.closed = False
        self.made.append(self)

    def start(self) -> None:
        """Begin."""

    def close(self) -> None:
        self.closed = True


async def test_the_package_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk_audio, "find_spec", lambda name: object())
    module = SimpleNamespace(RawInputStream=Stream, RawOutputStream=Stream, check_output_settings=lambda **_: None)
    monkeypatch.setitem(sys.modules, "sounddevice", module)
    monkeypatch.setattr(Stream, "made", [])
    microphone, speakers = await open_microphone(), await open_speakers()
    hears = Stream.made[0]
    assert hears.options["samplerate"] == talk_audio.RATE
    for number in range(MAX_PIECES + 1):
        hears.callback(memoryview(number.to_bytes(2, "little")), 1, None, None)
    assert await microphone.read() == b"\1\0", "the newest counts"
    await microphone.close()
    assert hears.closed
    assert await microphone.read() == b""

    speakers.play(Sound(b"abcd", 8000))
    out = bytearray(6)
    Stream.made[1].callback(out, 3, None, None)
    assert (bytes(out), speakers.playing) == (b"abcd\0\0", False)
    speakers.play(Sound(b"abcd", 8000))
    speakers.stop()
    Stream.made[1].callback(out, 3, None, None)
    assert out == bytes(6)
    await speakers.close()
    assert Stream.made[1].closed
