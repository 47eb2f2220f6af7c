"""A listening socket without files to spare."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.listening_socket import ListeningSocket, bound

#: A server in a process that may have few files, of which it uses up all; it says how it is afterwards.
PROGRAM = """
import asyncio, os, resource, socket
from trunkline.base.listening_socket import ListeningSocket

async def main():
    complaints = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: complaints.append(context["message"]))
    listener = ListeningSocket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    server = await asyncio.start_server(lambda reader, writer: writer.close(), sock=listener, backlog=100)
    client = socket.socket()
    client.setblocking(False)
    later = socket.socket()
    later.setblocking(False)
    taken = []
    try:
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    await loop.sock_connect(client, listener.getsockname())
    print("refused:", await loop.sock_recv(client, 1) == b"", "complaints:", complaints)
    for file in taken:
        os.close(file)
    await loop.sock_connect(later, listener.getsockname())
    print("answered:", await loop.sock_recv(later, 1) == b"", "complaints:", complaints)
    server.close()

resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
asyncio.run(main())
"""


@pytest.mark.process
def test_a_server_without_files_to_spare_refuses_clients_and_serves_again_afterwards() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert ran.stdout.splitlines() == ["refused: True complaints: []", "answered: True complaints: []"], ran.stderr
    assert ran.stderr.count("connections are refused") == 1


async def test_a_listener_accepts_as_any_other_and_gives_its_reserve_back() -> None:
    listener = ListeningSocket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    listener.setblocking(False)
    loop = asyncio.get_running_loop()
    with socket.socket() as client, listener:
        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
        await loop.sock_connect(client, listener.getsockname())
        accepted, _ = await loop.sock_accept(listener)
        accepted.close()
    assert listener.fileno() == -1
    listener.close()


async def test_a_name_is_bound_at_all_its_addresses_and_one_that_is_taken_leaves_nothing_open() -> None:
    (first, *more) = await bound("127.0.0.1", 0)
    with first:
        assert more == []
        first.listen()
        with pytest.raises(OSError, match="in use"):
            await bound("127.0.0.1", first.getsockname()[1])
    assert first.fileno() == -1
