"""What keeps an exchange from working is found before it is started."""

from __future__ import annotations

import json
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.models.model_servers import Gpu
from trunkline.base import keyring
from trunkline.exchange import checking
from trunkline.exchange.checking import DoctorFinding, examine
from trunkline.exchange.schema import FORM
from trunkline.store.database.opening import open_database

FILE = """\
[exchange]
listen = "127.0.0.1:0"
home = "home"
[agents.e]
agent = "echo"
"""


def written(directory: Path, text: str) -> str:
    path = directory / "trunkline.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


async def wrong(directory: Path, text: str, environ: dict[str, str] | None = None) -> list[DoctorFinding]:
    found = await examine(written(directory, text), environ or {})
    return [each for each in found if not each.ok]


async def test_where_nothing_is_wrong_nothing_is_said_to_be(tmp_path: Path) -> None:
    assert await wrong(tmp_path, FILE) == []
    assert not (tmp_path / "home").exists()


async def test_every_mistake_of_the_file_is_told_with_its_line(tmp_path: Path) -> None:
    found = await wrong(tmp_path, FILE + "[people.ana]\ntoken_env = 'ANA_TOKEN'\n[agents.f]\nagent = 'ech'\n")
    assert [each.what for each in found] == ["file", "file"]
    assert "trunkline.toml:7:1" in found[0].told
    assert "export ANA_TOKEN=" in found[0].mend
    assert "Did you mean `echo`" in found[1].mend


async def test_a_file_that_is_not_there_is_mended_by_writing_one(tmp_path: Path) -> None:
    (found,) = await examine(str(tmp_path / "none.toml"), {})
    assert (found.ok, "trunkline init" in found.mend) == (False, True)


async def test_a_home_that_others_can_open_is_told_with_the_command_that_closes_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    assert f"chmod 700 {home}" in [each.mend for each in await examine(written(tmp_path, FILE), {})]
    home.chmod(0o700)
    assert not [each.mend for each in await examine(written(tmp_path, FILE), {}) if each.mend]


async def test_a_disk_that_is_full_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    monkeypatch.setattr(checking, "free_bytes", lambda path: 4096)
    (found,) = await wrong(tmp_path, FILE)
    assert (found.what, "4 KiB of free space" in found.told, "df -h" in found.mend) == ("home", True, True)


async def test_a_file_in_the_place_of_the_home_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    (found,) = await wrong(tmp_path, FILE)
    assert "is not a directory" in found.told


@pytest.mark.parametrize(
    ("contents", "told"),
    [
        (b"no database at all, by far", "file is not a database"),
        ("PRAGMA user_version = 99", "made by a newer version"),
    ],
)
async def test_a_database_that_would_keep_it_from_starting_is_told(
    tmp_path: Path, contents: bytes | str, told: str
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    file = home / "exchange.db"
    if isinstance(contents, bytes):
        file.write_bytes(contents)
    else:
        await (await open_database(f"sqlite:///{file}", FORM)).close()
        with closing(sqlite3.connect(file)) as connection:
            connection.execute(contents)
    before = sorted(home.iterdir())
    (found,) = await wrong(tmp_path, FILE)
    assert (found.what, told in found.told, bool(found.mend)) == ("database", True, True)
    assert sorted(home.iterdir()) == before


async def test_the_database_of_an_earlier_run_is_fine_and_stays_as_it_is(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    await (await open_database(f"sqlite:///{home / 'exchange.db'}", FORM)).close()
    before = {file: file.stat().st_mtime_ns for file in home.iterdir()}
    assert await wrong(tmp_path, FILE) == []
    assert {file: file.stat().st_mtime_ns for file in home.iterdir()} == before


async def test_an_address_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        (found,) = await wrong(tmp_path, FILE.replace(":0", f":{taken.getsockname()[1]}"))
    assert (found.what, "in use" in found.told, "`listen`" in found.mend) == ("address", True, True)


async def test_a_workspace_that_is_not_there_is_told_with_the_command_that_makes_it(tmp_path: Path) -> None:
    (found,) = await wrong(tmp_path, FILE + "workspace = 'my project'\n")
    assert (found.what, found.mend) == ("agent e", f"mkdir -p '{tmp_path / 'my project'}'")


async def test_an_agent_that_cannot_be_made_is_told_with_the_reason(tmp_path: Path) -> None:
    (found,) = await wrong(tmp_path, FILE + "[agents.s]\nagent = 'scripted:none.yaml'\n")
    assert found.what == "agent s"
    assert "none.yaml" in found.told


async def test_a_chat_without_its_token_is_told(tmp_path: Path) -> None:
    text = FILE + "[wires.telegram]\nagent = 'e'\n"
    (found,) = await wrong(tmp_path, text)
    assert (found.what, found.mend) == ("wire telegram", "export TELEGRAM_BOT_TOKEN=...")
    assert await wrong(tmp_path, text, {"TELEGRAM_BOT_TOKEN": "1:x"}) == []


async def test_an_entry_that_no_keyring_has_is_told_with_the_command_that_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{FILE}[people.ana]\ntoken_keyring = 'ana'\n[wires.telegram]\ntoken_keyring = 'bot'\n"
    monkeypatch.setattr(keyring, "entry", lambda name: None)
    first, second = await wrong(tmp_path, text)
    assert ("trunkline.toml:7:1" in first.told, "trunkline.toml:9:1" in second.told) == (True, True)
    assert "keyring set trunkline ana" in first.mend
    monkeypatch.setattr(keyring, "entry", lambda name: f"the token of {name}")
    assert await wrong(tmp_path, text) == []


RUNNER = "[wires.runner.agents.ada]\nagentId = 'c1'\nrunnerToken = {env = 'T'}\n"


async def test_runners_are_looked_at_as_they_would_run(tmp_path: Path) -> None:
    found = await examine(written(tmp_path, FILE + RUNNER), {"T": "a-token"})
    assert ("wire runner", True, "runs ada") in [(each.what, each.ok, each.told) for each in found]
    (problem,) = await wrong(tmp_path, f"{FILE}{RUNNER}[wires.runner]\nlisten = '127.0.0.1:0'\n", {"T": "a-token"})
    assert (problem.what, "needs a secret" in problem.told, "secret_env" in problem.mend) == ("wire runner", True, True)


async def test_a_package_that_is_missing_is_told_with_the_command_that_adds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "missing", {"exchange": "httptools"}.get)
    (found,) = await wrong(tmp_path, FILE)
    assert (found.what, "[exchange]" in found.mend) == ("packages", True)


async def test_a_home_that_cannot_be_made_is_told_also_to_root(tmp_path: Path) -> None:
    (found,) = await wrong(tmp_path, FILE.replace('"home"', '"/proc/home/of/it"'))
    assert (found.what, found.mend) == ("home", "Name another `home` in the file.")
    assert found.told == "/proc/home/of/it cannot be made: No such file or directory"


async def test_a_home_that_cannot_be_made_by_default_is_moved_by_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", "/proc/nope")
    (found,) = await wrong(tmp_path, FILE.replace('home = "home"\n', ""), {"TRUNKLINE_HOME": "/proc/nope"})
    assert found.mend == "Set `TRUNKLINE_HOME` to a directory in which you can write."


async def test_a_budget_in_dollars_needs_a_price_for_its_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))
    budget = (
        FILE + "[agents.c]\nagent = 'coder'\nprovider = 'openai'\nmodel = 'own'\n[agents.c.budget]\nusd_per_day = 1\n"
    )
    (found,) = await wrong(tmp_path, budget)
    assert (found.what, "price of `own`" in found.told, '[prices."own"]' in found.mend) == ("agent c", True, True)
    assert await wrong(tmp_path, budget.replace("'own'", "'gpt-4o'")) == []
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text("[prices.own]\ninput = 1\noutput = 2\n")
    assert await wrong(tmp_path, budget) == []


def models(folder: Path, *urls: str) -> str:
    """The section of a wire whose model is on these servers."""
    folder.mkdir(exist_ok=True)
    entry = {"name": "far", "engine": "openai", "urls": urls, "api_key_env": "FAR_KEY"}
    (folder / "models.json").write_text(json.dumps({"models": [entry, {"name": "near", "local_path": "near.gguf"}]}))
    return f"{FILE}[wires.tryll]\nmodels_dir = '{folder.name}'\n"


async def test_model_servers_that_work_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAR_KEY", "secret")
    async with Gpu("a") as one, Gpu("b") as other:
        text = models(tmp_path / "models", f"{one.url}/v1", f"{other.url}/v1")
        found = {each.what: each for each in await examine(written(tmp_path, text), {})}
        assert (found["model far"].ok, found["model far"].told) == (True, "its 2 servers work")
        assert "model near" not in found
        assert one.requests[0].headers["authorization"] == "Bearer secret"
        text = models(tmp_path / "models", f"{one.url}/v1")
        assert "its server works" in [each.told for each in await examine(written(tmp_path, text), {})]


async def test_model_servers_that_do_not_work_are_told_with_their_reasons(tmp_path: Path) -> None:
    async with Gpu("a") as one, Gpu("b") as other, Gpu("c") as third:
        other.health = {"/health": 503}
        text = models(tmp_path / "models", *(f"{gpu.url}/v1" for gpu in (one, other, third)))
        await third.stop()
        (found,) = await wrong(tmp_path, text)
        assert found.what == "model far"
        assert "2 of its 3 servers cannot be used" in found.told
        assert f"{other.url}/v1: API error 503" in found.told
        assert f"{third.url}/v1: Connection error: nothing listens" in found.told
        assert f"{one.url}" not in found.told
        assert "models.json" in found.mend


async def test_models_that_cannot_be_read_are_told_once(tmp_path: Path) -> None:
    text = models(tmp_path / "models")
    (found,) = await wrong(tmp_path, f"{text}[agents.g]\nagent = 'echo'\nmodels_dir = 'models'\n")
    assert (found.what, "needs an `url`" in found.told) == ("models", True)
    (found,) = await wrong(tmp_path, text.replace("'models'", "'none'"))
    assert (found.what, found.mend) == ("models", f"mkdir -p {tmp_path / 'none'}")
