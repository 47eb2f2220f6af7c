from __future__ import annotations

import asyncio
import shlex
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.tools.bash import BashTool
from trunkline.tools.sandbox import proxy
from trunkline.tools.sandbox.proxy import AllowedHosts, Entry, SandboxProxy, is_entry
from trunkline.tools.sandbox.sandbox import Sandbox
from trunkline.tools.tool import ToolOutput


class TestAllowedHosts:
    @pytest.mark.parametrize(
        ("entry", "host", "port", "allowed"),
        [
            ("pypi.org", "pypi.org", 443, True),
            ("pypi.org", "PyPI.org.", 80, True),
            ("pypi.org", "pypi.org", 22, False),
            ("pypi.org", "evil-pypi.org", 443, False),
            ("pypi.org", "files.pypi.org", 443, False),
            ("*.github.com", "api.github.com", 443, True),
            ("*.github.com", "a.b.github.com", 443, True),
            ("*.github.com", "github.com", 443, False),
            ("*.github.com", "evilgithub.com", 443, False),
            ("*", "anybody.example", 443, True),
            ("localhost:5432", "localhost", 5432, True),
            ("localhost:5432", "localhost", 80, False),
            ("[::1]:8080", "::1", 8080, True),
        ],
    )
    def test_a_host_is_reached_by_its_name_and_port(self, entry: str, host: str, port: int, allowed: bool) -> None:
        assert (AllowedHosts([entry]).find(host, port) is not None) == allowed

    def test_none_is_by_default(self) -> None:
        assert AllowedHosts().find("pypi.org", 443) is None
        assert not AllowedHosts()

    def test_who_is_named_comes_before_who_is_meant(self) -> None:
        assert AllowedHosts(["*", "localhost:80"]).find("localhost", 80) == Entry("localhost", 80, below=False)

    @pytest.mark.parametrize(
        "text", ["", "http://pypi.org", "a/b", "*.*", "a b", "pypi.org:", "*github.com", "a:99999999", "a:65536", "a:0"]
    )
    def test_what_names_no_host_is_no_entry(self, text: str) -> None:
        assert not is_entry(text)


@asynccontextmanager
async def sandboxed(workspace: Path, *network: str) -> AsyncIterator[BashTool]:
    bash = BashTool(str(workspace), sandbox=Sandbox(str(workspace), network=network))
    try:
        yield bash
    finally:
        await bash.close()


@asynccontextmanager
async def web_server() -> AsyncIterator[int]:
    """Somebody on this machine who answers with the line that was asked."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nyou asked: " + head.splitlines()[0])
        writer.write(b" proxied" if b"proxy" in head.lower() else b"")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def fetch(bash: BashTool, url: str, code: str = "") -> ToolOutput:
    """What Python's own library makes of an address, in the sandbox."""
    program = code or f"import urllib.request; print(urllib.request.urlopen({url!r}, timeout=20).read())"
    # Else it would go by itself to what is on this machine, as it does without a sandbox.
    command = f"no_proxy= NO_PROXY= {shlex.quote(sys.executable)} -c {shlex.quote(program)}"
    return await bash.run({"command": command}, lambda line: None)


@pytest.mark.process
class TestReached:
    async def test_a_host_on_the_list_is_reached_and_no_other(self, workspace: Path) -> None:
        async with web_server() as port, web_server() as other, sandboxed(workspace, f"127.0.0.1:{port}") as bash:
            assert "you asked: GET /a?b=c HTTP/1.1'" in (await fetch(bash, f"http://127.0.0.1:{port}/a?b=c")).text
            refused = await fetch(bash, f"http://127.0.0.1:{other}/")
            assert "403" in refused.text
            assert f"The sandbox was why: 127.0.0.1:{other} cannot be reached from it" in refused.text
            assert f"reaches only 127.0.0.1:{port}" in bash.description

    async def test_a_connection_through_is_made(self, workspace: Path) -> None:
        async with web_server() as port, sandboxed(workspace, f"localhost:{port}") as bash:
            code = (
                "import http.client, os, urllib.parse; p = urllib.parse.urlsplit(os.environ['HTTPS_PROXY'])\n"
                "c = http.client.HTTPConnection(p.hostname, p.port, timeout=20)\n"
                f"c.set_tunnel('localhost', {port}); c.request('GET', '/x'); print(c.getresponse().read())"
            )
            assert "you asked: GET /x HTTP/1.1" in (await fetch(bash, "", code)).text

    async def test_a_port_of_this_machine_is_there_for_programs_that_know_no_proxy(self, workspace: Path) -> None:
        async with web_server() as port, web_server() as other, sandboxed(workspace, f"localhost:{port}") as bash:
            ask = (
                "import socket; s = socket.create_connection(('localhost', {}), 5)\n"
                "s.sendall(b'GET /direct HTTP/1.1\\r\\n\\r\\n'); print(s.recv(1000))"
            )
            assert "you asked: GET /direct HTTP/1.1'" in (await fetch(bash, "", ask.format(port))).text
            assert "Connection refused" in (await fetch(bash, "", ask.format(other))).text

    async def test_where_nobody_listens_there_nobody_answers(self, workspace: Path) -> None:
        async with web_server() as port:
            pass
        async with sandboxed(workspace, f"localhost:{port}") as bash:
            code = f"import socket; print(socket.create_connection(('localhost', {port}), 5).recv(10))"
            assert "b''" in (await fetch(bash, "", code)).text

    async def test_who_is_not_named_is_not_on_this_machine(self, workspace: Path) -> None:
        """Else `*` would be a way to its own services."""
        async with web_server() as port, sandboxed(workspace, f"*:{port}") as bash:
            output = await fetch(bash, f"http://localhost:{port}/")
            assert "502" in output.text
            assert "you asked" not in output.text

    @pytest.mark.parametrize(
        "words", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET ftp://a/ HTTP/1.1\r\n\r\n"]
    )
    async def test_nonsense_is_answered(self, workspace: Path, words: bytes) -> None:
        async with sandboxed(workspace, "pypi.org") as bash:
            code = (
                "import os, socket, urllib.parse; p = urllib.parse.urlsplit(os.environ['HTTPS_PROXY'])\n"
                f"s = socket.create_connection((p.hostname, p.port)); s.sendall({words!r}); print(s.recv(1000))"
            )
            assert "400 Bad Request" in (await fetch(bash, "", code)).text

    @pytest.mark.parametrize("name", ["a" * 70, "a..b", "", "x%00y"])
    async def test_what_is_no_name_is_answered(
        self, workspace: Path, name: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with sandboxed(workspace, "*.pypi.org") as bash:
            code = (
                "import os, socket, urllib.parse; p = urllib.parse.urlsplit(os.environ['HTTPS_PROXY'])\n"
                "s = socket.create_connection((p.hostname, p.port))\n"
                f"s.sendall(b'CONNECT {name}.pypi.org:443 HTTP/1.1\\r\\n\\r\\n'); print(s.recv(1000))"
            )
            assert "502 Bad Gateway" in (await fetch(bash, "", code)).text
        assert not caplog.records

    async def test_too_many_at_once_are_refused(self, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(proxy, "MOST_CONNECTIONS", 0)
        async with sandboxed(workspace, "pypi.org") as bash:
            assert "503" in (await fetch(bash, "http://pypi.org/")).text


async def test_who_gives_up_waiting_for_a_launcher_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "TAKE_SECONDS", 0.05)
    made = SandboxProxy(AllowedHosts(["example.org"]), str(tmp_path))
    with pytest.raises(TimeoutError):
        await made.take()
    monkeypatch.setattr(proxy, "TAKE_SECONDS", PATIENCE_SECONDS)
    taking = asyncio.create_task(made.take())
    await asyncio.wait({taking}, timeout=0.05)
    taking.cancel()
    await asyncio.wait({taking})
    await made.close()
    # No thread holds it, or looks at a number that is somebody else's by now.
    assert made._waiting.fileno() == -1
    assert not [thread for thread in threading.enumerate() if "asyncio" in thread.name]
