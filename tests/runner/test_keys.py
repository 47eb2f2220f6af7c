"""Where secrets outlive the process: in a real keyring, or nowhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import chainer, fail, null

from tests.support.launched import MemoryKeyring, keys
from trunkline.runner import keys as keys_module
from trunkline.runner.keys import SERVICE, Keys, entry, system_keyring


class Memory(KeyringBackend):
    """A backend of the `keyring` package that keeps its entries in memory."""

    priority: float = 5

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.entries: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.entries[service, username] = password


class Plain(Memory):
    """One that the package itself does not recommend."""

    priority = 0.5


@pytest.fixture
def system() -> Iterator[None]:
    before = keyring.get_keyring()
    yield
    keyring.set_keyring(before)


def test_an_entry_that_somebody_put_there_is_found_by_its_name(system: None, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Memory()
    keyring.set_keyring(backend)
    backend.set_password("trunkline", "ana", "a token")
    assert (entry("ana"), entry("ben")) == ("a token", None)
    keyring.set_keyring(fail.Keyring())  # type: ignore[no-untyped-call]
    assert entry("ana") is None
    monkeypatch.setattr(keys_module, "PATIENCE_SECONDS", 0.01)
    answering = threading.Event()
    backend.get_password = lambda service, username: str(answering.wait())  # type: ignore[method-assign]
    with pytest.raises(TimeoutError):
        entry("ana", lambda: backend)
    answering.set()


async def test_what_is_saved_is_there_for_the_next_process(system: None) -> None:
    backend = Memory()
    keyring.set_keyring(backend)
    assert await Keys(system_keyring).save("a1", {"runnerToken": "sécret", "brain": {"apiKey": "k"}})
    assert await Keys(system_keyring).load("a1") == {"runnerToken": "sécret", "brain": {"apiKey": "k"}}
    assert list(backend.entries) == [(SERVICE, "a1")]
    assert await Keys(system_keyring).load("a2") is None


@pytest.mark.parametrize("backend", [fail.Keyring, null.Keyring, Plain])
async def test_a_backend_that_keeps_nothing_or_a_plain_file_is_none(
    backend: type[KeyringBackend], system: None
) -> None:
    keyring.set_keyring(backend())
    assert system_keyring() is None
    assert not await Keys(system_keyring).save("a1", {"runnerToken": "secret"})
    assert await Keys(system_keyring).load("a1") is None


def test_of_a_chain_only_what_is_recommended_counts(monkeypatch: pytest.MonkeyPatch, system: None) -> None:
    good = Memory()
    for chain, expected in (([], None), ([Plain()], None), ([Plain(), good], good)):
        monkeypatch.setattr(chainer.ChainerBackend, "backends", chain)
        keyring.set_keyring(chainer.ChainerBackend())  # type: ignore[no-untyped-call]
        assert system_keyring() is expected


async def test_a_keyring_that_fails_keeps_nothing_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Locked(MemoryKeyring):
        def set_password(self, service: str, username: str, password: str) -> None:
            raise OSError(f"cannot keep {password}")

    assert not await keys(Locked()).save("a1", {"runnerToken": "secret"})
    assert "keyring cannot be used" in caplog.text
    assert "secret" not in caplog.text


async def test_an_entry_that_is_not_ours_is_none() -> None:
    ring = MemoryKeyring()
    for text in ("{", "[]", '"x"', ""):
        ring.set_password(SERVICE, "a1", text)
        assert await keys(ring).load("a1") is None


async def test_a_keyring_that_hangs_is_left_alone_until_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "PATIENCE_SECONDS", 0.05)
    unlocked, asked = threading.Event(), list[str]()

    class Hanging(MemoryKeyring):
        def get_password(self, service: str, username: str) -> str | None:
            asked.append(username)
            unlocked.wait(10)
            return None

    kept = keys(Hanging())
    assert await kept.load("a1") is None
    assert await kept.load("a2") is None
    assert asked == ["a1"]
    unlocked.set()
