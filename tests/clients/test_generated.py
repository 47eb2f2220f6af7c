"""The generated parts of the game clients: what the schema says now, in every language that is here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import client_code
from client_code import BEGIN, END, WHOLE
from trunkline.wires.tryll.codec.shapes import UNIONS
from trunkline.wires.tryll.drive.needs import EXTENSION_OF
from trunkline.wires.tryll.messages import BODIES


def test_nothing_is_stale() -> None:
    """`python scripts/client_code.py` writes what is."""
    assert [str(path.relative_to(client_code.CLIENTS)) for path in client_code.stale()] == []


def test_every_table_comes_behind_those_that_it_holds() -> None:
    schema = client_code.schema()
    seen: set[str] = set()
    for table in schema.tables:
        for field in table.fields:
            held = {kind.__name__ for kind in UNIONS[field.of]} if field.kind == "union" else {field.of} - {""}
            assert held <= seen, (table.name, field.name)
        seen.add(table.name)
    assert {kind.__name__ for kind in BODIES} <= seen


def test_every_field_of_an_extension_is_one_of_a_request() -> None:
    fields = {field.name for table in client_code.schema().tables if table.sender != "server" for field in table.fields}
    assert set(EXTENSION_OF) <= fields


def test_generated_text_goes_between_its_marks_and_nowhere_else(tmp_path: Path) -> None:
    file = tmp_path / "client.cpp"
    file.write_text(f"above\n// {BEGIN}\nold\n// {END}\nbelow\n", encoding="utf-8")
    assert client_code.filled(file, "new\n") == f"above\n// {BEGIN}\nnew\n// {END}\nbelow\n"


@pytest.mark.parametrize("text", ["by hand\n", f"// {BEGIN}\n", f"// {END}\n// {BEGIN}\n"])
def test_a_file_without_a_place_for_it_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "client.cpp"
    file.write_text(text, encoding="utf-8")
    for generated in ("new\n", f"// {WHOLE}\n"):
        with pytest.raises(ValueError, match=r"client\.cpp"):
            client_code.filled(file, generated)


def test_check_names_what_is_stale_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "client_code_gdscript.py").write_text(
        f"FILES = ('made.gd',)\n\ndef write(schema):\n    return {{'made.gd': '# {WHOLE}\\n'}}\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(client_code, "LANGUAGES", ("gdscript",))
    monkeypatch.delitem(sys.modules, "client_code_gdscript", raising=False)
    assert client_code.main(["--check"], tmp_path) == 1
    assert "stale: made.gd" in capsys.readouterr().out
    assert not (tmp_path / "made.gd").exists()
    assert client_code.main([], tmp_path) == 0
    assert client_code.main(["--check"], tmp_path) == 0
