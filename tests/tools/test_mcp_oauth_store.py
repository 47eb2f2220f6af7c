"""What logins have brought, on this machine: in the keyring, or in a file of the user's alone."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from tests.support.system_keyring import Memory
from trunkline.base import keyring, paths
from trunkline.core.agent import AddMcpServer
from trunkline.tools.mcp.oauth.store import SERVICE, KeyringSilent, Login, LoginStore

URL = "https://mcp.example.org/mcp"
TOKENS = {"access_token": "access-0123456789", "refresh_token": "refresh-0123456789", "token_type": "Bearer"}
CLIENT = {"client_id": "c1", "client_secret": "hush-0123456789"}
LOGIN = Login("web", URL, TOKENS, CLIENT, {"issuer": "https://auth.example.org"}, {"resource": URL}, 2e9)


def spec(url: str = URL, name: str = "web") -> AddMcpServer:
    return AddMcpServer(name, "streamable-http", url=url)


def without_keyring() -> LoginStore:
    return LoginStore(find=lambda: None)


def files() -> list[Path]:
    return sorted(Path(paths.state_dir(), "mcp-logins").iterdir())


def test_with_a_keyring_no_secret_is_in_a_file() -> None:
    ring = Memory()
    kept = LoginStore(find=lambda: ring).save(LOGIN)
    assert (kept.kept, kept.server, kept.place) == ("keyring", "web", "https://mcp.example.org")
    assert LoginStore(find=lambda: ring).load(spec()) == LOGIN
    ((service, _),) = ring.entries
    assert service == SERVICE
    assert not any(secret in file.read_text() for secret in LOGIN.secrets for file in files())
    assert without_keyring().load(spec()) is None


def test_without_one_it_is_in_a_file_that_nobody_else_can_read() -> None:
    before = os.umask(0)
    try:
        kept = without_keyring().save(LOGIN)
    finally:
        os.umask(before)
    assert kept.kept == "file"
    (file,) = files()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert without_keyring().load(spec()) == LOGIN
    # One that was opened to others meanwhile is not left like that.
    file.chmod(0o644)
    without_keyring().save(LOGIN)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_keyring_that_comes_later_takes_the_secrets_out_of_the_file() -> None:
    without_keyring().save(LOGIN)
    LoginStore(find=lambda: Memory()).save(LOGIN)
    (file,) = files()
    assert TOKENS["refresh_token"] not in file.read_text()


@pytest.mark.parametrize(
    "other",
    [
        spec("https://mcp.example.com/mcp"),
        spec("http://mcp.example.org/mcp"),
        spec("https://mcp.example.org:8443/mcp"),
        spec("https://mcp.example.org/other"),
        spec("https://mcp.example.org/mcp?tenant=2"),
        spec(name="other"),
    ],
)
def test_a_server_with_another_address_or_name_has_no_use_of_it(other: AddMcpServer) -> None:
    store = without_keyring()
    store.save(LOGIN)
    assert store.load(other) is None
    assert store.kept(other) is None


@pytest.mark.parametrize("same", ["https://MCP.example.org/mcp", "https://mcp.example.org:443/mcp", f"{URL}#here"])
def test_another_spelling_of_the_address_is_the_same_one(same: str) -> None:
    store = without_keyring()
    store.save(LOGIN)
    assert store.load(spec(same)) == LOGIN


def test_what_is_known_without_the_secrets() -> None:
    store = LoginStore(find=Memory)
    assert store.listed() == []
    store.save(LOGIN)
    store.save(LOGIN.replace(server="other", tokens={"access_token": "x" * 20}, expires_at=1000.0))
    listed = {each.server: each for each in store.listed()}
    assert (listed["web"].renewable, listed["web"].over(3e9)) == (True, False)
    assert (listed["other"].renewable, listed["other"].over(999), listed["other"].over(1000)) == (False, False, True)


def test_what_is_forgotten_is_gone_everywhere() -> None:
    ring = Memory()
    store = LoginStore(find=lambda: ring)
    store.save(LOGIN)
    store.forget(spec())
    store.forget(spec())
    assert (ring.entries, files(), store.load(spec())) == ({}, [], None)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"kept": "file"}', b'{"login": {"tokens": 1}}', b"\xff" * 10])
def test_a_file_that_is_none_of_ours_is_no_login(text: bytes) -> None:
    store = without_keyring()
    store.save(LOGIN)
    files()[0].write_bytes(text)
    assert store.load(spec()) is None
    store.listed()
    store.save(LOGIN)
    assert store.load(spec()) == LOGIN


def test_an_entry_that_somebody_took_out_of_the_keyring_is_no_login() -> None:
    ring = Memory()
    store = LoginStore(find=lambda: ring)
    store.save(LOGIN)
    ring.entries.clear()
    assert store.load(spec()) is None
    store.forget(spec())
    assert files() == []


def test_a_keyring_that_does_not_answer_is_told_apart_from_one_that_has_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ring = Memory()
    store = LoginStore(find=lambda: ring)
    store.save(LOGIN)
    monkeypatch.setattr(keyring, "PATIENCE_SECONDS", 0.01)
    answering = threading.Event()
    ring.get_password = lambda *_: str(answering.wait())  # type: ignore[method-assign]
    ring.delete_password = lambda *_: answering.wait()  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyringSilent):
        store.load(spec())
    with pytest.raises(KeyringSilent):
        store.forget(spec())
    assert store.kept(spec()) is not None
    answering.set()


def test_one_process_at_a_time_renews_a_login() -> None:
    store = without_keyring()
    first = store.begin_renewing(spec())
    assert first is not None
    assert LoginStore().begin_renewing(spec()) is None
    other = store.begin_renewing(spec(name="other"))
    assert other is not None
    os.close(first)
    again = store.begin_renewing(spec())
    assert again is not None
    os.close(again)
    os.close(other)
