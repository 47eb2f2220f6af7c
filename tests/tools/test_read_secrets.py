"""What the Read tool cuts was cleaned before: half of a secret is none to the redactor, but still one to a thief."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.tools.calling import Box
from trunkline.tools import pdf
from trunkline.tools.files import LARGEST_FILE
from trunkline.tools.helper import Ended
from trunkline.tools.read import READ_LIMIT

KEY = "sk-live-0123456789abcde"
PEM = "-----BEGIN KEY-----\n" + "\n".join(letter * 40 for letter in "ABCDEFGH") + "\n-----END KEY-----"


def parts_of(secret: str, text: str) -> bool:
    return any(secret[place : place + 6] in text for place in range(len(secret) - 5))


@pytest.mark.parametrize("before", range(0, len(KEY), 5))
async def test_a_line_of_nothing_but_keys_shows_no_half_of_one(tmp_path: Path, before: int) -> None:
    (tmp_path / "a").write_text("." * before + KEY * 48_000)
    text = await Box(tmp_path, KEY).text("Read", file_path="a")
    assert "[redacted][redacted]" in text
    assert not parts_of(KEY, text)


async def test_many_lines_with_keys_show_no_half_of_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f"{KEY} {KEY}\n" * 20_000)
    text = await Box(tmp_path, KEY).text("Read", file_path="a")
    assert "truncated" in text
    assert not parts_of(KEY, text)


async def test_the_lines_of_a_file_that_is_too_large_for_memory_show_no_half_of_a_key(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(KEY * (LARGEST_FILE // len(KEY) + 2))
    text = await Box(tmp_path, KEY).text("Read", file_path="a", limit=1)
    assert text.endswith(f"(cut: these lines have more than {LARGEST_FILE} bytes)")
    assert not parts_of(KEY, text)


async def test_a_secret_of_many_lines_leaves_the_numbers_of_the_lines_behind_it_right(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f"{PEM}\nlast\n{'x' * READ_LIMIT}")
    text = await Box(tmp_path, PEM).text("Read", file_path="a")
    assert "    11\tlast\n    12\txxx" in text
    assert "AAAA" not in text


async def test_the_text_of_a_pdf_that_is_too_long_ends_with_a_whole_line(monkeypatch: pytest.MonkeyPatch) -> None:
    async def collect(argv: Sequence[str], cwd: str, take: Callable[[bytes], bool], seconds: float) -> Ended:
        assert not take(f"--- Page 1 ---\n{KEY}\n{KEY}\n".encode())
        return Ended(None, "")

    monkeypatch.setattr(pdf, "collect", collect)
    monkeypatch.setattr(pdf, "PDF_BYTES", len("--- Page 1 ---\n") + 2 * len(KEY) - 3)
    assert await pdf.pdf_text("a.pdf") == f"--- Page 1 ---\n{KEY}\n"
