"""The form of a log file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.shelves import record
from trunkline.store import logfile
from trunkline.store.logfile import CHUNK, Header, NotALog

HEADER = Header("s", "/w", 1.5)


def _reader(data: bytes) -> logfile.ReadAt:
    return lambda length, offset: data[offset : offset + length]


@given(st.binary(max_size=60).map(lambda data: data.replace(b"\1", b"\n")), st.integers(0, 60), st.integers(1, 9))
def test_lines_are_the_same_from_both_ends_and_have_true_offsets(data: bytes, start: int, chunk: int) -> None:
    start = min(start, len(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logfile, "CHUNK", chunk)
        forward = list(logfile.lines_forward(_reader(data), start, len(data)))
        backward = list(logfile.lines_backward(_reader(data), start, len(data)))
    assert [line for _, line in forward] == data[start:].split(b"\n")[:-1]
    assert backward == forward[::-1]
    for offset, line in forward:
        assert data[offset : offset + len(line) + 1] == line + b"\n"


@given(st.lists(st.integers(1, 3), max_size=40), st.integers(0, 130), st.integers(1, 300), st.data())
def test_searching_never_passes_over_a_record(steps: list[int], since: int, chunk: int, data: st.DataObject) -> None:
    seqs = [sum(steps[: index + 1]) for index in range(len(steps))]
    lines = [logfile.encode_record(record(seq)) for seq in seqs]
    for index in data.draw(st.sets(st.integers(0, max(0, len(lines) - 1)), max_size=5)) if lines else ():
        lines[index] = b"damaged" + lines[index][7:]
    content = b"".join(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logfile, "CHUNK", chunk)
        offset = logfile.find(_reader(content), 0, len(content), since)
    assert offset == 0 or content[offset - 1 : offset] == b"\n"
    skipped = content[:offset].splitlines()
    assert all((logfile.seq_of(line) or 0) <= since for line in skipped if logfile.is_whole(line))


def test_searching_reads_little_of_a_long_log() -> None:
    content = b"".join(logfile.encode_record(record(seq)) for seq in range(1, 20_001))
    read = 0

    def read_at(length: int, offset: int) -> bytes:
        nonlocal read
        read += length
        return content[offset : offset + length]

    offset = logfile.find(read_at, 0, len(content), 15_000)
    assert 0.7 * len(content) < offset < 0.8 * len(content)
    # A chunk for each halving.
    assert read <= CHUNK * (len(content) // CHUNK).bit_length()


def test_a_record_is_whole_only_as_it_was_written() -> None:
    line = logfile.encode_record(record(7))[:-1]
    assert logfile.is_whole(line)
    assert logfile.seq_of(line) == 7
    assert logfile.decode_record("s", line) == record(7)
    for position in range(len(line)):
        for bit in range(8):
            flipped = bytearray(line)
            flipped[position] ^= 1 << bit
            assert not logfile.is_whole(bytes(flipped))
            assert logfile.decode_record("s", bytes(flipped)) is None
        assert not logfile.is_whole(line[:position])


@pytest.mark.parametrize(
    "line", [b"", b"x", b'00000000 {"seq":', b'00000000 {"seq":x,', b"0" * 9 + b'{"seq":' + b"9" * 9999]
)
def test_a_line_that_does_not_say_has_no_number(line: bytes) -> None:
    assert logfile.seq_of(line) is None


def test_a_record_of_an_event_that_this_version_cannot_read_is_none() -> None:
    line = logfile.encode_record(record(7)).replace(b'"data":{"message"', b'"data":{"next"')[9:-1]
    from binascii import crc32

    assert logfile.is_whole(b"%08x %b" % (crc32(line), line))
    assert logfile.decode_record("s", b"%08x %b" % (crc32(line), line)) is None


def _header_of(path: Path, content: bytes) -> tuple[Header, int]:
    path.write_bytes(content)
    fd = os.open(path, os.O_RDONLY)
    try:
        return logfile.read_header(fd)
    finally:
        os.close(fd)


@pytest.mark.parametrize("size", [1, CHUNK - 100, CHUNK, 120_000])
def test_a_header_is_read_back_however_long_it_is(tmp_path: Path, size: int) -> None:
    header = Header("x" * size, "/w", 1.5)
    line = logfile.encode_header(header)
    assert _header_of(tmp_path / "log", line + b"more\n" * 20_000) == (header, len(line))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"\0" * 5000, "does not begin like a log"),
        (b"garbage\n" * 9, "does not begin like a log"),
        (b"x" * 500_000, "does not begin like a log"),
        (b"trunkline-log \n", "does not begin like a log"),
        (b"trunkline-log 1 00000000 {}", "does not begin like a log"),
        (b"trunkline-log " + b"9" * 5000 + b" 0 {}\n", "does not begin like a log"),
        (b"trunkline-log 1 00000000 {}\n", "its header is damaged"),
        (b"trunkline-log 0 99914b93 {}\n", "its header is damaged"),
        (b"trunkline-log 1 a3040c3c {}\n", "its header is damaged"),
        (b"trunkline-log 2 whatever comes then\n", r"newer version \(form 2, this one knows 1\)"),
        (logfile.encode_header(HEADER.replace(records=3)), r"newer version \(records 3, this one knows 2\)"),
    ],
)
def test_a_file_that_does_not_begin_with_a_header_is_no_log(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(NotALog, match=reason):
        _header_of(tmp_path / "log", content)


def test_a_header_of_the_wrong_shape_is_damaged(tmp_path: Path) -> None:
    from binascii import crc32

    with pytest.raises(NotALog, match="its header is damaged: `session` is missing"):
        _header_of(tmp_path / "log", b"trunkline-log 1 %08x {}\n" % crc32(b"{}"))
