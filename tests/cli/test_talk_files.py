"""Speech in WAV files."""

from __future__ import annotations

import struct
import wave
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.cli.talk_files import WavWriter, read_wav
from trunkline.core.faults import ConfigError
from trunkline.wires.tryll.drive import Sound


def made(path: Path, *, rate: int = 16000, channels: int = 1, width: int = 2, data: bytes = b"\1\2\3\4") -> str:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(data)
    return str(path)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = str(tmp_path / "a.wav")
    with WavWriter(path) as writer:
        writer.write(Sound(b"\1\2\3\4", 22050))
        writer.write(Sound(b"\5\6", 22050))
    found = read_wav(path)
    assert (found.pcm, found.sample_rate, found.channels) == (b"\1\2\3\4\5\6", 22050, 1)
    assert found.second == 44100
    with WavWriter(path) as writer:
        writer.write(Sound(b"\1\2", 22050))
        with pytest.raises(ConfigError, match="22050 to 16000 Hz"):
            writer.write(Sound(b"\1\2", 16000))


def test_without_sound_there_is_no_file_and_one_that_was_there_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    with WavWriter(str(path)) as writer:
        assert writer.empty
    assert not path.exists()
    path.write_bytes(b"before" * 100)
    WavWriter(str(path)).close()
    assert path.read_bytes() == b"before" * 100
    with WavWriter(str(path)) as writer:
        writer.write(Sound(b"\1\2", 22050))
        assert not writer.empty
    assert (read_wav(str(path)).pcm, path.stat().st_size) == (b"\1\2", 46)
    with pytest.raises(ConfigError, match="cannot be written"):
        WavWriter(str(tmp_path / "no" / "a.wav"))
    with pytest.raises(ConfigError, match="no sound"):
        read_wav(made(path, data=b""))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"width": 1}, "8 bits"),
        ({"width": 3, "data": b"\0" * 6}, "24 bits"),
        ({"channels": 3, "data": b"\0" * 12}, "3 channels"),
        ({"rate": 7999}, "7999 Hz"),
        ({"rate": 96000}, "96000 Hz"),
    ],
)
def test_other_formats_are_named_with_what_makes_a_right_one(
    tmp_path: Path, options: dict[str, int], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        read_wav(made(tmp_path / "a.wav", **options))  # type: ignore[arg-type]  # of several types
    assert "sox" in str(caught.value)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.wav").write_text("hello")
    for name in ("text.wav", "missing.wav", ".", "/dev/zero"):
        with pytest.raises(ConfigError):
            read_wav(str(tmp_path / name))
    with pytest.raises(ConfigError, match="cannot be written"):
        WavWriter(str(tmp_path / "no" / "a.wav"))


@given(st.data())
def test_no_damage_does_harm(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("wav") / "a.wav"
    sound = bytearray(Path(made(path, data=b"\1\2" * 40)).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, 43))
        sound[at : at + 4] = struct.pack("<I", data.draw(st.sampled_from([0, 1, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF])))
    path.write_bytes(sound[: data.draw(st.integers(0, len(sound)))])
    try:
        found = read_wav(str(path))
    except ConfigError:
        return
    assert found.pcm
    assert len(found.pcm) % (2 * found.channels) == 0
