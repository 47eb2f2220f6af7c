"""Notebooks are read as their cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tools.calling import Box
from trunkline.tools.notebooks import MOST_OUTPUTS, MOST_PICTURES, OUTPUT_CHARS

#: One black pixel.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="


def code(source: str | list[str], *outputs: Any, count: int | None = 1) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": count,
        "metadata": {},
        "outputs": list(outputs),
        "source": source,
    }


def picture(data: str = PIXEL, kind: str = "image/png") -> dict[str, Any]:
    return {"output_type": "display_data", "metadata": {}, "data": {kind: data, "text/plain": ["<Figure>"]}}


def write(folder: Path, *cells: Any, **more: Any) -> None:
    about = {"language_info": {"name": "python"}, "kernelspec": {"name": "python3"}}
    notebook = {"cells": list(cells), "metadata": about, "nbformat": 4, "nbformat_minor": 5, **more}
    (folder / "a.ipynb").write_text(json.dumps(notebook, indent=1))


async def test_cells_come_with_numbers_sources_and_outputs(tmp_path: Path, box: Box) -> None:
    write(
        tmp_path,
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "Words."]},
        code(
            ["print(1)\n", "2"],
            {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
            {"output_type": "execute_result", "execution_count": 7, "data": {"text/plain": "2"}, "metadata": {}},
            count=7,
        ),
        code("plot()", picture()),
        code("1/0", {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\x1b[31mE\x1b[0m: v"]}),
        {"cell_type": "raw", "metadata": {}, "source": "raw"},
        code("", count=None),
    )
    output = await box.call("Read", file_path="a.ipynb")
    assert output.text == "\n\n".join(
        [
            "Notebook with 6 cells, python.",
            "--- Cell 1: markdown ---\n# Title\nWords.",
            "--- Cell 2: code, run as [7] ---\nprint(1)\n2",
            "--- Output of cell 2 ---\n1\n2",
            "--- Cell 3: code, run as [1] ---\nplot()",
            "--- Output of cell 3 ---\n(picture 1: image/png, 1 x 1 pixels)\n<Figure>",
            "--- Cell 4: code, run as [1] ---\n1/0",
            "--- Output of cell 4 ---\nE: v",
            "--- Cell 5: raw ---\nraw",
            "--- Cell 6: code ---",
        ]
    )
    assert output.images == (("image/png", PIXEL),)


async def test_a_part_is_read_as_text_so_that_it_can_be_edited(tmp_path: Path, box: Box) -> None:
    write(tmp_path, code("x = 1"))
    assert '"source": "x = 1"' in await box.text("Read", file_path="a.ipynb", offset=0, limit=20)
    await box.text("Edit", file_path="a.ipynb", old_string='"x = 1"', new_string='"x = 2"')
    assert "\nx = 2" in await box.text("Read", file_path="a.ipynb")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "it is not JSON"),
        ("[]", "it has no list of cells"),
        ('{"worksheets": []}', "it has no list of cells"),
        ('{"cells": [1]}', "it has no list of cells"),
        ("[" * 5000, "it is not JSON"),
    ],
)
async def test_a_broken_notebook_is_read_as_text_with_a_note(tmp_path: Path, box: Box, content: str, why: str) -> None:
    (tmp_path / "a.ipynb").write_text(content)
    text = await box.text("Read", file_path="a.ipynb")
    assert text.startswith(f"(Not shown as a notebook: {why}")
    assert f"     1\t{content}" in text


async def test_an_empty_file_is_one(tmp_path: Path, box: Box) -> None:
    (tmp_path / "a.ipynb").write_text("")
    assert await box.text("Read", file_path="a.ipynb") == "(empty file)"


async def test_long_outputs_are_cut_and_keep_no_half_of_a_secret(tmp_path: Path) -> None:
    secret = "sk-secret-0123456789"
    text = "x" * (OUTPUT_CHARS // 2 - 10) + secret + "y" * OUTPUT_CHARS
    write(tmp_path, code("go()", {"output_type": "stream", "name": "stdout", "text": text}))
    shown = await Box(tmp_path, secret).text("Read", file_path="a.ipynb")
    assert "truncated" in shown
    assert "sk-s" not in shown
    assert len(shown) < OUTPUT_CHARS + 300


async def test_the_number_of_outputs_and_pictures_is_bounded(tmp_path: Path, box: Box) -> None:
    write(tmp_path, code("go()", *[picture()] * (MOST_PICTURES + 1)), code("more()", *[picture()] * 99))
    output = await box.call("Read", file_path="a.ipynb")
    assert len(output.images) == MOST_PICTURES
    assert "is not shown: there are too many in this notebook" in output.text
    assert f"({99 - MOST_OUTPUTS} more outputs are not shown)" in output.text


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (picture("no base64!"), "(a broken picture, image/png)\n<Figure>"),
        (picture("AAAA"), "(a picture, image/png, is not shown: it is broken)\n<Figure>"),
        ({"output_type": "display_data", "data": {"text/html": "<b>"}}, "(text/html, 3 characters, not shown)"),
        ({"output_type": "display_data", "data": {"x/y+json": {"a": 1}}}, "(x/y+json, 7 characters, not shown)"),
        ({"output_type": "display_data", "data": {"application/json": {"a": 1}}}, '{"a":1}'),
        ({"output_type": "error", "ename": "E", "evalue": "v", "traceback": None}, "E: v"),
    ],
)
async def test_outputs_of_other_kinds_are_named(tmp_path: Path, box: Box, output: Any, said: str) -> None:
    write(tmp_path, code("go()", output))
    assert (await box.text("Read", file_path="a.ipynb")).endswith(f"--- Output of cell 1 ---\n{said}")


@pytest.mark.parametrize("cell", [{}, {"cell_type": 1, "source": 2, "outputs": 3}, code("x", 1, None, {"data": 1})])
async def test_a_cell_of_nonsense_is_no_failure(tmp_path: Path, box: Box, cell: Any) -> None:
    write(tmp_path, cell, metadata=None)
    assert (await box.text("Read", file_path="a.ipynb")).startswith("Notebook with 1 cell.")


async def test_a_notebook_that_has_not_changed_is_not_shown_twice(tmp_path: Path, box: Box) -> None:
    write(tmp_path, code("x"))
    await box.text("Read", file_path="a.ipynb")
    assert "unchanged" in await box.text("Read", file_path="a.ipynb")
