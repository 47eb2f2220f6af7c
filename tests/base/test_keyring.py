"""The system's keyring: which one counts, and how long anybody waits for it."""

from __future__ import annotations

import threading

import pytest
from keyring.backend import KeyringBackend
from keyring.backends import chainer, fail, null

from tests.support.system_keyring import Memory, Plain, using
from trunkline.base import keyring
from trunkline.base.keyring import asked, entry, system_keyring


def test_an_entry_that_somebody_put_there_is_found_by_its_name() -> None:
    backend = Memory()
    backend.set_password("trunkline", "ana", "a token")
    with using(backend):
        assert (entry("ana"), entry("ben")) == ("a token", None)
    with using(fail.Keyring()):  # type: ignore[no-untyped-call]
        assert entry("ana") is None


def test_nobody_waits_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring, "PATIENCE_SECONDS", 0.01)
    answering, backend = threading.Event(), Memory()
    backend.get_password = lambda service, username: str(answering.wait())  # type: ignore[method-assign]
    with pytest.raises(TimeoutError):
        entry("ana", lambda: backend)
    answering.set()


def test_one_that_fails_says_nothing_of_what_it_was_asked(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_: object) -> str:
        raise OSError("cannot keep s3cret")

    assert asked(fails, "otherwise", Memory) == "otherwise"
    assert "keyring cannot be used: OSError" in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("backend", [fail.Keyring, null.Keyring, Plain])
def test_a_backend_that_keeps_nothing_or_a_plain_file_is_none(backend: type[KeyringBackend]) -> None:
    with using(backend()):
        assert system_keyring() is None


def test_of_a_chain_only_what_is_recommended_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    good = Memory()
    for chain, expected in (([], None), ([Plain()], None), ([Plain(), good], good)):
        monkeypatch.setattr(chainer.ChainerBackend, "backends", chain)
        with using(chainer.ChainerBackend()):  # type: ignore[no-untyped-call]
            assert system_keyring() is expected
