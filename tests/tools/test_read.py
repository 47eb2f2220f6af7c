"""The Read tool."""

from __future__ import annotations

import base64
import os
import struct
import tracemalloc
import zlib
from pathlib import Path

import pytest

from tests.conftest import require
from tests.tools.calling import Box
from trunkline.base.extras import install_hint
from trunkline.base.redact import Masked
from trunkline.tools import read
from trunkline.tools.files import LARGEST_FILE
from trunkline.tools.read import EMPTY, READ_LIMIT, UNCHANGED
from trunkline.tools.truncation import truncate

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(b"\0" * (width * 3 + 1) * height)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


async def test_lines_are_numbered_from_one(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n\n\tthree\n")
    assert await box.text("Read", file_path="a") == "     1\tone\n     2\t\n     3\t\tthree"


async def test_the_offset_counts_from_zero_and_the_numbers_from_one(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"line {number}\n" for number in range(1, 11)))
    assert await box.text("Read", file_path="a", offset=3, limit=2) == "     4\tline 4\n     5\tline 5"
    assert await box.text("Read", file_path="a", offset=8) == "     9\tline 9\n    10\tline 10"
    assert (await box.text("Read", file_path="a", limit=99)).count("\n") == 9


async def test_line_endings_and_a_byte_order_mark_are_not_shown(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rstill\r\n")
    assert await box.text("Read", file_path="a") == "     1\tone\n     2\ttwo\rstill"


async def test_only_line_feeds_end_lines(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\x0c\u2028\x85still\ntwo")
    assert await box.text("Read", file_path="a") == "     1\tone\x0c\u2028\x85still\n     2\ttwo"


async def test_bytes_that_are_no_text_are_replaced(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"caf\xe9")
    assert await box.text("Read", file_path="a") == f"     1\tcaf{REPLACEMENT}"


async def test_an_empty_file_is_said_to_be_empty(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert await box.text("Read", file_path="a") == EMPTY


async def test_an_offset_behind_the_end_is_explained(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\n")
    assert "a has 2 lines" in await box.error("Read", file_path="a", offset=2)


async def test_a_missing_file_is_an_error(box: Box) -> None:
    text = await box.error("Read", file_path="no/such")
    assert text.startswith("Failed to read file no/such: No such file or directory")


async def test_what_would_be_waited_for_is_refused_at_once(box: Box, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert await box.error("Read", file_path="pipe") == ("Failed to read file pipe: it is a pipe, not a regular file")
    assert "it is a device" in await box.error("Read", file_path="/dev/zero")
    assert "use Glob" in await box.error("Read", file_path=".")


async def test_binary_files_are_named_as_such(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x7fELF\0\0" + b"x" * 20_000)
    assert await box.text("Read", file_path="a") == "(binary file, 20006 bytes)"


async def test_a_nul_far_from_the_beginning_makes_no_binary(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 8192 + b"\0")
    assert (await box.text("Read", file_path="a")).startswith("     1\txxx")


async def test_a_long_file_loses_its_middle(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"{number:0>92}\n" for number in range(1, 2001)))
    text = await box.text("Read", file_path="a")
    whole = "\n".join(f"{number:>6}\t{number:0>92}" for number in range(1, 2001))
    mark = f"\n\n... [truncated {len(whole) - READ_LIMIT} chars] ...\n\n"
    assert text == whole[: READ_LIMIT // 2] + mark + whole[-READ_LIMIT // 2 :]


def numbered(lines: list[str], first: int = 1) -> str:
    return truncate(Masked("\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))), READ_LIMIT)


@pytest.mark.parametrize(
    "lines",
    [
        [""] * 300_000,
        ["é\r"] * 300_000,
        ["x" * 150_000, "", "y" * 150_000],
        ["x" * 99_990, "y" * 99_990, "z"],
        [f"{number}" for number in range(40_000)],
    ],
    ids=["empty", "foreign", "long", "borderline", "many"],
)
@pytest.mark.parametrize("part", [(0, None), (1, None), (1, 250_000), (2, 1)])
@pytest.mark.slow
async def test_what_is_left_out_is_counted_exactly(
    box: Box, tmp_path: Path, lines: list[str], part: tuple[int, int | None]
) -> None:
    (tmp_path / "a").write_bytes("".join(f"{line}\n" for line in lines).encode())
    offset, limit = part
    text = await box.text("Read", file_path="a", offset=offset, limit=limit)
    chosen = lines[offset : None if limit is None else offset + limit]
    assert text == numbered([line.removesuffix("\r") for line in chosen], offset + 1)


async def test_numbers_of_more_digits_are_counted_exactly(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\n" * 1_200_000)
    assert await box.text("Read", file_path="a", offset=900_000) == numbered([""] * 300_000, 900_001)


@pytest.mark.parametrize("size", [LARGEST_FILE, LARGEST_FILE + 1])
@pytest.mark.slow
async def test_millions_of_lines_cost_little(box: Box, tmp_path: Path, size: int) -> None:
    (tmp_path / "a").write_bytes(b"\n" * size)
    tracemalloc.start()
    try:
        text = await box.text("Read", file_path="a", limit=size)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert text.startswith("     1\t\n     2\t\n")
    # Some copies of the file, and nothing for each of its lines.
    assert most < 8 * LARGEST_FILE


async def test_one_endless_line_is_bounded(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x" * 5_000_000)
    assert len(await box.text("Read", file_path="a")) < READ_LIMIT + 100


async def test_reading_again_what_has_not_changed_gives_a_short_answer(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\n")
    first = await box.text("Read", file_path="a")
    assert await box.text("Read", file_path=str(tmp_path / "a")) == UNCHANGED
    assert UNCHANGED.startswith("File unchanged since last read.")
    assert await box.text("Read", file_path="a", limit=1) == "     1\tone"
    os.utime(tmp_path / "a", (1, 1))
    assert await box.text("Read", file_path="a") == UNCHANGED
    box.memory.forget_shown()
    assert await box.text("Read", file_path="a") == first


async def test_a_change_is_seen_even_if_size_and_time_are_the_same(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    os.utime(tmp_path / "a", (1, 1))
    await box.text("Read", file_path="a")
    (tmp_path / "a").write_text("two")
    os.utime(tmp_path / "a", (1, 1))
    assert await box.text("Read", file_path="a") == "     1\ttwo"


async def test_after_a_write_and_after_an_edit_a_file_is_shown_again(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    await box.text("Read", file_path="a")
    await box.text("Write", file_path="a", content="one")
    assert await box.text("Read", file_path="a") == "     1\tone"
    await box.text("Edit", file_path="a", old_string="one", new_string="two")
    assert await box.text("Read", file_path="a") == "     1\ttwo"


@pytest.fixture
def large_limit(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(read, "LARGEST_FILE", 1000)
    monkeypatch.setattr(read, "_SEEK_CHUNK", 64)
    return 1000


async def test_a_large_file_is_read_in_parts_only(box: Box, tmp_path: Path, large_limit: int) -> None:
    (tmp_path / "a").write_text("".join(f"line {number}\n" for number in range(1, 501)))
    assert "Give `offset` and `limit`" in await box.error("Read", file_path="a")
    assert "Give `offset` and `limit`" in await box.error("Read", file_path="a", offset=3)
    assert await box.text("Read", file_path="a", limit=2) == "     1\tline 1\n     2\tline 2"
    assert await box.text("Read", file_path="a", limit=2) == UNCHANGED
    for offset in (1, 7, 8, 9, 250, 498):
        expected = "\n".join(f"{number:>6}\tline {number}" for number in range(offset + 1, offset + 3))
        assert await box.text("Read", file_path="a", offset=offset, limit=2) == expected
    assert await box.text("Read", file_path="a", offset=498, limit=9) == "   499\tline 499\n   500\tline 500"
    for offset in (500, 501, 9999):
        assert "there are no lines after" in await box.error("Read", file_path="a", offset=offset, limit=1)


async def test_empty_lines_of_a_large_file_are_lines(box: Box, tmp_path: Path, large_limit: int) -> None:
    (tmp_path / "a").write_text("a\n\n\nb\n" + "x" * 2000)
    assert await box.text("Read", file_path="a", limit=2) == "     1\ta\n     2\t"
    assert await box.text("Read", file_path="a", offset=1, limit=2) == "     2\t\n     3\t"
    assert await box.text("Read", file_path="a", offset=2, limit=2) == "     3\t\n     4\tb"


async def test_a_line_longer_than_memory_should_hold_is_cut(box: Box, tmp_path: Path, large_limit: int) -> None:
    (tmp_path / "a").write_text("x" * 5000)
    text = await box.text("Read", file_path="a", limit=1)
    assert text.startswith("     1\txxx")
    assert text.endswith("(cut: these lines have more than 1000 bytes)")


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (png(3, 2), "image/png"),
        (b"GIF89a\x03\0\x02\0" + b"\0" * 20, "image/gif"),
        (b"\xff\xd8\xff\xe0\0\x04\0\0\xff\xc0\0\x0b\x08\0\x02\0\x03\x01\x11\0" + b"\0" * 20, "image/jpeg"),
        (b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x02\0\0\x01\0\0", "image/webp"),
    ],
)
async def test_pictures_reach_the_model_as_pictures(box: Box, tmp_path: Path, data: bytes, media_type: str) -> None:
    # The content tells what it is, not the name.
    (tmp_path / "a.txt").write_bytes(data)
    output = await box.call("Read", file_path="a.txt")
    assert output.text == "Image loaded from a.txt"
    ((kind, encoded),) = output.images
    assert (kind, base64.b64decode(encoded)) == (media_type, data)
    assert (output.output_type, output.shown) == ("image", encoded)
    assert output.metadata == {"file_path": "a.txt", "media_type": media_type}
    assert (await box.call("Read", file_path="a.txt")).images == ()


async def test_a_picture_is_shown_whole_however_long_its_base64_is(box: Box, tmp_path: Path) -> None:
    data = png(3, 2) + b"\0" * (2 * READ_LIMIT)
    (tmp_path / "a.png").write_bytes(data)
    output = await box.call("Read", file_path="a.png")
    assert output.shown is not None
    assert base64.b64decode(output.shown, validate=True) == data
    assert output.images == (("image/png", output.shown),)


async def test_a_picture_that_providers_refuse_is_not_sent(box: Box, tmp_path: Path) -> None:
    (tmp_path / "big.png").write_bytes(png(3, 2) + b"\0" * 4_000_000)
    (tmp_path / "wide.png").write_bytes(png(9000, 1))
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0\0\x04")
    assert "Make a smaller copy" in await box.error("Read", file_path="big.png")
    assert "9000 x 1 pixels" in await box.error("Read", file_path="wide.png")
    assert "broken" in await box.error("Read", file_path="broken.jpg")


def pdf(text: str) -> bytes:
    """The smallest PDF with some text."""
    stream = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    data = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj%s endobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = len(data)
    return data + b"xref\n0 6\n0000000000 65535 f \n%strailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        table,
        start,
    )


def require_pypdf() -> None:
    import importlib.util

    require("pypdf", importlib.util.find_spec("pypdf") is not None, "pip install 'trunkline[coder]'")


@pytest.mark.process
async def test_the_text_of_a_pdf_is_read_like_a_file(box: Box, tmp_path: Path) -> None:
    require_pypdf()
    (tmp_path / "a.pdf").write_bytes(pdf("Hello from page one"))
    text = await box.text("Read", file_path="a.pdf")
    assert text == "     1\t--- Page 1 ---\n     2\tHello from page one"
    assert await box.text("Read", file_path="a.pdf", offset=1) == "     2\tHello from page one"
    assert await box.text("Read", file_path="a.pdf") == UNCHANGED


@pytest.mark.process
async def test_a_pdf_may_be_larger_than_a_text(box: Box, tmp_path: Path, large_limit: int) -> None:
    require_pypdf()
    (tmp_path / "a.pdf").write_bytes(pdf("x" * 2000))
    assert "xxxx" in await box.text("Read", file_path="a.pdf")


@pytest.mark.process
async def test_a_broken_pdf_is_an_error(box: Box, tmp_path: Path) -> None:
    require_pypdf()
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7\nnothing of the kind")
    assert (await box.error("Read", file_path="a.pdf")).startswith(
        "Failed to read file a.pdf: this PDF cannot be read ("
    )


@pytest.mark.process
async def test_without_the_package_a_pdf_says_what_to_install(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("x"))
    hiding = tmp_path / "hiding"
    hiding.mkdir()
    (hiding / "pypdf.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(hiding))
    assert install_hint("coder") in await box.error("Read", file_path="a.pdf")


@pytest.mark.process
async def test_a_pdf_that_keeps_the_program_busy_is_given_up(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("x"))
    hiding = tmp_path / "hiding"
    hiding.mkdir()
    (hiding / "pypdf.py").write_text("while True: pass")
    monkeypatch.setenv("PYTHONPATH", str(hiding))
    monkeypatch.setattr("trunkline.tools.pdf.PDF_SECONDS", 0.5)
    assert "takes more than" in await box.error("Read", file_path="a.pdf")


async def test_it_says_what_it_does(box: Box) -> None:
    reading = box.toolbox.read("Read", {"path": "/x/y"})
    assert (reading.description, reading.outside, reading.tool.concurrent) == ("Read /x/y", True, True)
    assert box.toolbox.read("Read", {"path": "a\nb"}).description == "Read a\\nb"
