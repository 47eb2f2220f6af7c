"""What the file of a running exchange says that is not in force."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.base.config_file import TomlFile, read_toml
from trunkline.exchange import config
from trunkline.exchange.config_changes import differences, unchangeable
from trunkline.exchange.settings import ExchangeSettings

MINE = '[mine]\nof = "another program"\n'
LOADED = f"""\
[exchange]
listen = "127.0.0.1:4400"
home = "home"

[agents.a]
agent = "echo"
mode = "plan"

[agents.a.budget]
turns_per_hour = 5

{MINE}"""


def written(folder: Path, text: str) -> TomlFile:
    path = folder / "trunkline.toml"
    path.write_text(text)
    file = read_toml(str(path))
    assert file is not None
    return file


def settings(folder: Path, text: str) -> ExchangeSettings:
    written(folder, text)
    return config.read(str(folder / "trunkline.toml"), {})


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("turns_per_hour = 5", "turns_per_hour = 6", [("agents.a.budget.turns_per_hour", 5, 6, 10)]),
        ('mode = "plan"\n', "", [("agents.a.mode", "plan", None, None)]),
        ('mode = "plan"', 'mode = "plan"\nmodel = "m"', [("agents.a.model", None, "m", 8)]),
        ("[exchange]", "# A comment.\n[exchange]", []),
        ("another program", "nobody", []),
    ],
)
def test_each_key_that_says_something_else_is_told_with_its_line(
    tmp_path: Path, old: str, new: str, told: list[tuple[object, ...]]
) -> None:
    before, after = written(tmp_path, LOADED), written(tmp_path, LOADED.replace(old, new))
    assert [(each.key, each.loaded, each.disk, each.line) for each in differences(before, after)] == told


def test_of_an_exchange_without_a_file_all_is_new(tmp_path: Path) -> None:
    found = differences(None, written(tmp_path, '[exchange]\nhome = "h"\n'))
    assert [(each.key, each.loaded, each.disk) for each in found] == [("exchange.home", None, "h")]


def test_values_are_cleaned_before_they_are_told(tmp_path: Path) -> None:
    before, after = written(tmp_path, LOADED), written(tmp_path, LOADED.replace('"plan"', '"hunter2"'))
    (found,) = differences(before, after, lambda value: "***" if value == "hunter2" else value)
    assert (found.loaded, found.disk) == ("plan", "***")


@pytest.mark.parametrize(
    ("old", "new", "keys"),
    [
        ('home = "home"', 'home = "other"', ["exchange.home"]),
        ("4400", "4401", ["exchange.listen"]),
        ("[mine]", '[otel]\nendpoint = "http://127.0.0.1:4318"\n\n[mine]', ["otel"]),
        ("turns_per_hour = 5", "turns_per_hour = 6", []),
    ],
)
def test_what_needs_another_start_is_told_with_what_to_do(tmp_path: Path, old: str, new: str, keys: list[str]) -> None:
    before = settings(tmp_path, LOADED.replace(MINE, ""))
    found = list(unchangeable(before, settings(tmp_path, LOADED.replace(old, new).replace(MINE, ""))))
    assert [each.key for each in found] == keys
    assert {each.hint for each in found} <= {"Start it again."}
