"""A short run of the fuzzer, and the proof that it would find something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import tryll_codec
from trunkline.wires.tryll.codec import fast as codec_fast
from trunkline.wires.tryll.codec import json_form
from trunkline.wires.tryll.codec import reader as codec_reader
from trunkline.wires.tryll.codec.reader import TableReader


def fuzz(folder: Path, runs: int, *more: str) -> int:
    codec_fast.forget()
    return tryll_codec.main([*more, "--runs", str(runs), "--seed", "1", "--findings", str(folder)])


def test_some_thousand_mutated_frames_find_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz(tmp_path, 10_000) == 0
    assert "executions=10000 " in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def _follow_anywhere(self: TableReader, at: int, offset: int) -> int:
    return at + offset


def _text_without_end(data: bytes, at: int, offset: int | None) -> str:
    if offset is None:
        return ""
    size = int.from_bytes(data[at + offset : at + offset + 4], "little")
    return str(data[at + offset + 4 : at + offset + 4 + size], "utf-8", "replace")


@pytest.mark.parametrize(
    ("owner", "name", "defect"),
    [
        (TableReader, "_follow", _follow_anywhere),
        (codec_fast, "_text", _text_without_end),
        (codec_reader, "shortest", lambda value: value / 3),
    ],
    ids=["an offset that is believed", "a string that is believed", "a number that changes"],
)
def test_a_planted_defect_is_found_and_can_be_reproduced(
    owner: Any, name: str, defect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, defect)
    assert fuzz(tmp_path, 20_000) == tryll_codec.EXIT_FOUND
    (found,) = tmp_path.iterdir()
    assert tryll_codec.main(["--reproduce", str(found)]) == tryll_codec.EXIT_FOUND
    monkeypatch.undo()
    assert tryll_codec.main(["--reproduce", str(found)]) == 0


def test_some_thousand_mutated_texts_find_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz(tmp_path, 10_000, "--json") == 0
    assert "executions=10000 " in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "defect"),
    [
        ("_integer", lambda code, value: int(value)),
        ("_text", lambda value: value),
        ("_shown", lambda name: name),
    ],
    ids=["a number that is believed", "half of a character", "a name that is repeated"],
)
def test_a_planted_defect_is_found_in_texts_and_can_be_reproduced(
    name: str, defect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    json_form._readers.cache_clear()
    json_form._writers.cache_clear()
    try:
        monkeypatch.setattr(json_form, name, defect)
        assert fuzz(tmp_path, 20_000, "--json") == tryll_codec.EXIT_FOUND
        (found,) = tmp_path.iterdir()
        assert tryll_codec.main(["--json", "--reproduce", str(found)]) == tryll_codec.EXIT_FOUND
        monkeypatch.undo()
    finally:
        json_form._readers.cache_clear()
        json_form._writers.cache_clear()
    assert tryll_codec.main(["--json", "--reproduce", str(found)]) == 0
