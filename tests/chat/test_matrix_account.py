"""Who we are on a homeserver, and what is said when it cannot work."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import require
from tests.support.synapse_scripted import ME, Asked, Scripted, scripted
from trunkline.chat.matrix import client as matrix_client
from trunkline.chat.matrix.account import Credentials, configured
from trunkline.chat.matrix.platform import MatrixPlatform, make
from trunkline.chat.matrix.state import FILE, StateKeeper
from trunkline.core.faults import ConfigError

TOKEN = "syt_secret_token"
PASSWORD = "correct horse"


@pytest.fixture(autouse=True)
def _with_nio() -> None:
    require("matrix-nio", find_spec("nio") is not None, "pip install -e '.[matrix]'")


@asynccontextmanager
async def platform(server: Scripted, directory: Path, **credentials: Any) -> AsyncIterator[MatrixPlatform]:
    made = MatrixPlatform(server.url, state_dir=str(directory), **credentials)
    try:
        yield made
    finally:
        await made.close()


def refused(table: dict[str, Any], environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as raised:
        configured({"homeserver": "https://here", **table}, {"HOME": "/home/ada", **(environ or {})})
    return str(raised.value)


def test_a_token_comes_from_the_table_or_the_environment() -> None:
    environ = {"HOME": "/home/ada", "MATRIX_TOKEN": "t1\n", "OTHER": "t2"}
    table = {"homeserver": "https://here"}
    assert configured(table, environ) == ("https://here", Credentials("t1"), "/home/ada/.local/state/trunkline/matrix")
    assert configured({**table, "token_env": "OTHER"}, environ)[1] == Credentials("t2")
    assert configured({**table, "token": "t3"}, environ)[1] == Credentials("t3")


def test_a_password_that_is_written_down_is_meant() -> None:
    environ = {"HOME": "/home/ada", "MATRIX_TOKEN": "t1"}
    table = {"homeserver": "https://here", "user": "bot", "password": "p"}
    assert configured(table, environ)[1] == Credentials(None, "bot", "p")


def test_what_is_wrong_with_a_table_is_said() -> None:
    assert "`MY_TOKEN`, which is not set" in refused({"token_env": "MY_TOKEN"})
    missing = refused({"homeserver": ""})
    assert "`bridge.matrix.homeserver` is missing" in missing
    assert "into the section `[bridge.matrix]` of `/home/ada/.config/trunkline/config.toml`" in missing


def test_credentials_are_not_shown() -> None:
    assert "secret" not in repr(Credentials("secret", "bot", "secret"))


@pytest.mark.parametrize("address", ["ftp://here", "https://", "https://a:b@here", "https://here/?x=1"])
def test_an_address_that_is_none_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(ConfigError, match="address"):
        MatrixPlatform(address, token=TOKEN, state_dir=str(tmp_path))


def test_without_credentials_there_is_a_hint(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="MATRIX_TOKEN"):
        make({"homeserver": "https://here"}, {"HOME": str(tmp_path)})


def test_without_the_package_there_is_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(matrix_client, "import_module", missing)
    with pytest.raises(ConfigError, match=r"matrix-nio.*\[matrix\]"):
        make({"homeserver": "https://here", "token": TOKEN}, {"HOME": str(tmp_path)})


async def test_opening_says_who_we_are_and_what_is_allowed(tmp_path: Path) -> None:
    async with scripted() as server, platform(server, tmp_path, token=TOKEN) as made:
        await made.open()
        assert made.user == ME
        assert made.limits.file_bytes == 1000
        assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {TOKEN}"}
        assert not [asked for asked in server.asked if "token" in asked.target]


async def test_a_password_is_used_once_and_the_device_stays_the_same(tmp_path: Path) -> None:
    devices = []

    def login(asked: Asked) -> tuple[int, dict[str, Any]]:
        assert asked.data["identifier"]["user"] == "bot"
        assert asked.data["password"] == PASSWORD
        devices.append(asked.data.get("device_id"))
        return 200, {"access_token": TOKEN, "device_id": "DEV"}

    async with scripted() as server:
        server.answers("/login", login)
        for _ in range(2):
            async with platform(server, tmp_path, user="bot", password=PASSWORD) as made:
                await made.open()
        assert devices == [None, "DEV"]
        assert "authorization" not in server.requests("/login")[0].headers
    kept = (tmp_path / FILE).read_text()
    assert TOKEN not in kept
    assert PASSWORD not in kept


async def test_another_account_does_not_go_on_where_this_one_was(tmp_path: Path) -> None:
    StateKeeper.file(str(tmp_path)).keep(user="@other:here", since="s9")
    async with scripted() as server, platform(server, tmp_path, token=TOKEN) as made:
        await made.open()
    assert StateKeeper.file(str(tmp_path)).state.since == ""


async def failing(server: Scripted, directory: Path, **credentials: Any) -> ConfigError:
    async with platform(server, directory, **credentials or {"token": TOKEN}) as made:
        with pytest.raises(ConfigError) as raised:
            await made.open()
    assert TOKEN not in str(raised.value)
    assert PASSWORD not in str(raised.value)
    return raised.value


async def test_what_is_wrong_when_it_is_opened_is_said(tmp_path: Path) -> None:
    async with scripted() as server:
        server.always("/whoami", (401, {"errcode": "M_UNKNOWN_TOKEN", "error": "x"}))
        error = await failing(server, tmp_path)
        assert "does not accept the access token" in str(error)
        assert not error.retryable
        server.always("/whoami", (503, {"errcode": "M_UNKNOWN", "error": "Service unavailable."}))
        error = await failing(server, tmp_path)
        assert "Service unavailable. Check the address" in str(error)
        assert error.retryable
        server.always("/whoami", (403, {"errcode": "M_USER_DEACTIVATED", "error": "Gone."}))
        assert not (await failing(server, tmp_path)).retryable
        server.always("/whoami", b"HTTP/1.1 404 X\r\nContent-Length: 5\r\n\r\nhello")
        assert "no Matrix homeserver" in str(await failing(server, tmp_path))
        server.always("/whoami", (200, {"hello": "world"}))
        assert "no Matrix homeserver" in str(await failing(server, tmp_path))
        server.always("/whoami", (429, {"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 9000}))
        error = await failing(server, tmp_path)
        assert "Try again in 9 s." in str(error)
        assert error.retryable
        server.always("/login", (403, {"errcode": "M_FORBIDDEN", "error": "Invalid username or password"}))
        assert "rejected the login of `bot`" in str(await failing(server, tmp_path, user="bot", password=PASSWORD))
        server.always("/whoami", (200, {"user_id": ME}))
        assert f"that of `{ME}`, not of `carl`" in str(await failing(server, tmp_path, user="carl", token=TOKEN))


async def test_an_address_where_nobody_answers_is_said(tmp_path: Path) -> None:
    async with scripted() as server:
        pass
    error = await failing(server, tmp_path)
    assert "nothing answers" in str(error)
    assert error.retryable
