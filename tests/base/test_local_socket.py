"""Sockets that only their user can open."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from trunkline.base import local_socket


def talk(directory: Path) -> bytes:
    with local_socket.listening(str(directory), "a.sock") as server:
        with local_socket.connected(str(directory), "a.sock", 5.0) as client:
            server.setblocking(True)
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"here")
                return client.recv(10)


def test_a_client_reaches_who_listens_and_nobody_else_may(tmp_path: Path) -> None:
    assert talk(tmp_path) == b"here"
    assert stat.S_IMODE(os.stat(tmp_path / "a.sock").st_mode) == 0o600


@pytest.mark.parametrize("without", ["chmod", "fchmod"])
def test_nobody_else_may_from_the_first_moment_on_and_where_a_system_heeds_only_one_of_the_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    monkeypatch.setattr(os, without, lambda *args: None)
    with local_socket.listening(str(tmp_path), "a.sock"):
        assert stat.S_IMODE(os.stat(tmp_path / "a.sock").st_mode) == 0o600


def test_a_socket_that_an_earlier_process_left_is_replaced(tmp_path: Path) -> None:
    assert talk(tmp_path) == b"here"
    assert talk(tmp_path) == b"here"


def test_a_home_may_have_a_longer_path_than_the_system_takes_for_a_socket(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 30) / ("longer" * 30)
    home.mkdir(parents=True)
    assert talk(home) == b"here"


def test_a_socket_where_nobody_listens_any_more_is_an_error_at_once(tmp_path: Path) -> None:
    local_socket.listening(str(tmp_path), "a.sock").close()
    with pytest.raises(ConnectionRefusedError):
        local_socket.connected(str(tmp_path), "a.sock", 5.0)
