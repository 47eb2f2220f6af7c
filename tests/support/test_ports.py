"""The ports that tests give to servers which bind them later."""

from __future__ import annotations

import os
import socket
from itertools import cycle

import pytest

from tests.support import ports
from tests.support.ports import free_port, slice_of


@pytest.mark.parametrize("ephemeral", [32_768, 49_152, 20_000, 1024])
@pytest.mark.parametrize("workers", [1, 4, 66])
def test_each_test_process_has_many_ports_of_its_own_which_the_system_hands_to_nobody(
    workers: int, ephemeral: int
) -> None:
    slices = [slice_of(worker, workers, ephemeral) for worker in range(workers)]
    found = [port for each in slices for port in each]
    assert len(set(found)) == len(found)
    assert min(map(len, slices)) > 100
    assert (min(found) > 1024, max(found) < max(ephemeral, 32_768)) == (True, True)


def test_no_port_comes_twice_and_each_is_free_and_of_this_process() -> None:
    found = [free_port() for _ in range(100)]
    assert len(set(found)) == 100
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    assert set(found) <= set(slice_of(worker, workers, ports._first_ephemeral()))
    for port in found:
        socket.create_server(("127.0.0.1", port)).close()


def test_one_that_somebody_has_is_left_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = free_port(), free_port()
    order = cycle([one, other])
    monkeypatch.setattr(ports, "_order", lambda: order)
    assert [free_port() for _ in range(4)] == [one, other, one, other]
    with socket.create_server(("127.0.0.1", one)):
        assert [free_port() for _ in range(2)] == [other, other]


def test_the_fixture_of_another_gives_these_ports(unused_tcp_port: int) -> None:
    assert unused_tcp_port < max(ports._first_ephemeral(), 32_768)
