"""Where secrets outlive the process: in a real keyring, or nowhere."""

from __future__ import annotations

import threading

import pytest
from keyring.backends import null

from tests.support.launched import MemoryKeyring, keys
from tests.support.system_keyring import Memory, using
from trunkline.base import keyring
from trunkline.base.keyring import system_keyring
from trunkline.runner.keys import SERVICE, Keys


async def test_what_is_saved_is_there_for_the_next_process() -> None:
    backend = Memory()
    with using(backend):
        assert await Keys(system_keyring).save("a1", {"runnerToken": "sécret", "brain": {"apiKey": "k"}})
        assert await Keys(system_keyring).load("a1") == {"runnerToken": "sécret", "brain": {"apiKey": "k"}}
        assert list(backend.entries) == [(SERVICE, "a1")]
        assert await Keys(system_keyring).load("a2") is None


async def test_a_backend_that_keeps_nothing_keeps_nothing_of_ours() -> None:
    with using(null.Keyring()):  # type: ignore[no-untyped-call]
        assert not await Keys(system_keyring).save("a1", {"runnerToken": "secret"})
        assert await Keys(system_keyring).load("a1") is None


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
    monkeypatch.setattr(keyring, "PATIENCE_SECONDS", 0.05)
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
