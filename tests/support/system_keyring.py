"""Keyrings of the system, for tests: backends of the `keyring` package."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import keyring
from keyring.backend import KeyringBackend

#: The module and class of `FileKeyring`, and where it keeps its entries: for programs of a test's own.
BACKEND, FILE = "PYTHON_KEYRING_BACKEND", "TEST_KEYRING_FILE"


class Memory(KeyringBackend):
    """A backend that keeps its entries in memory."""

    priority: float = 5

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.entries: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.entries[service, username]


class Plain(Memory):
    """One that the package itself does not recommend."""

    priority = 0.5


class FileKeyring(Memory):
    """One that several processes share."""

    def get_password(self, service: str, username: str) -> str | None:
        self.entries = dict(map(_entry, json.loads(_file().read_text()))) if _file().exists() else {}
        return super().get_password(service, username)

    def set_password(self, service: str, username: str, password: str) -> None:
        self.get_password(service, username)
        super().set_password(service, username, password)
        self._write()

    def delete_password(self, service: str, username: str) -> None:
        self.get_password(service, username)
        super().delete_password(service, username)
        self._write()

    def _write(self) -> None:
        _file().write_text(json.dumps([[*key, password] for key, password in self.entries.items()]))


def _file() -> Path:
    return Path(os.environ[FILE])


def _entry(row: list[str]) -> tuple[tuple[str, str], str]:
    service, username, password = row
    return (service, username), password


def shared_keyring(file: Path) -> dict[str, str]:
    """The variables with which a program has a keyring whose entries are in a file."""
    root = str(Path(__file__).parents[2])
    return {BACKEND: f"{__name__}.{FileKeyring.__name__}", FILE: str(file), "PYTHONPATH": root}


@contextmanager
def using(backend: KeyringBackend) -> Iterator[None]:
    """Within the block it is the system's."""
    before = keyring.get_keyring()
    keyring.set_keyring(backend)
    try:
        yield
    finally:
        keyring.set_keyring(before)
