"""`trunkline conform tryll` as people and programs call it, against a server on a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.conform.tryll.place import serving
from tests.support.beside import beside
from tests.support.certificates import own_certificate, showing
from trunkline.cli.conform_tryll import command
from trunkline.conform.tryll.suite import SUITE


def conform(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


@asynccontextmanager
async def addressed(folder: Path, **settings: Any) -> AsyncIterator[str]:
    """The address of a server."""
    async with serving(folder, **settings) as server:
        yield f"{server.host}:{server.port}"


def test_a_server_is_certified_and_told_of(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    with beside(addressed(tmp_path)) as address:
        done = conform(address, "--only", "tryll.agent.*", "--only", "tryll.wire.*", "--json", "--report", str(report))
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["conforms"] is True
    assert data["wire"] == "tryll"
    assert data["protocol_version"] == "2"
    assert data["target"]["argv"] == [address]
    assert {each["result"] for each in data["results"]} == {"passed"}
    lines = [line for each in data["conversations"] for line in each["lines"]]
    assert {"client", "server"} <= {line["from"] for line in lines}
    assert any(line["line"].startswith("SessionReady(") for line in lines)
    assert "`>` is the client, `<` the server" in report.read_text()


@asynccontextmanager
async def over_websocket(folder: Path) -> AsyncIterator[str]:
    """The same, for WebSockets."""
    async with serving(folder) as server:
        _, port = await server.server.listen_websocket("127.0.0.1", 0)
        yield f"ws://127.0.0.1:{port}"


def test_a_server_is_certified_over_websockets_too(tmp_path: Path) -> None:
    with beside(over_websocket(tmp_path)) as address:
        done = conform(address, "--only", "tryll.frame.*", "--json")
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["conforms"] is True
    assert data["target"]["argv"] == [address]
    results = {each["id"]: each["result"] for each in data["results"]}
    # All that TCP alone can say: a length without its frame.
    left_out = {"tryll.frame.announced", "tryll.frame.before"}
    assert {id for id, result in results.items() if result == "not applicable"} == left_out
    assert {result for id, result in results.items() if id not in left_out} == {"passed"}


@asynccontextmanager
async def over_tls(folder: Path, certificate: Path) -> AsyncIterator[tuple[str, str]]:
    """The addresses for TCP and for WebSockets, both with TLS."""
    tls = showing(certificate)
    async with serving(folder) as server:
        _, tcp = await server.server.listen("127.0.0.1", 0, tls)
        _, port = await server.server.listen_websocket("127.0.0.1", 0, tls)
        yield f"127.0.0.1:{tcp}", f"wss://127.0.0.1:{port}"


def test_a_server_is_certified_over_tls_too(tmp_path: Path) -> None:
    certificate = own_certificate(tmp_path)
    ca = ("--tls-ca", str(certificate))
    with beside(over_tls(tmp_path, certificate)) as (tcp, websocket):
        for address, left_out in ((tcp, {"tryll.session.half-close"}), (websocket, set[str]())):
            done = conform(address, *ca, "--only", "tryll.session.*", "--no-mock", "--json")
            assert done.exit_code == 0, done.output
            results = {each["id"]: each["result"] for each in json.loads(done.stdout)["results"]}
            assert {id for id, result in results.items() if result == "not applicable"} == left_out
            assert {result for id, result in results.items() if id not in left_out} == {"passed"}
        # Whose certificate nobody vouches for is not talked to.
        done = conform(websocket)
        assert done.exit_code == 2
        assert "CERTIFICATE_VERIFY_FAILED" in done.output
    assert conform(tcp, "--tls-ca", str(certificate.with_suffix(".key"))).exit_code == 2


def test_a_form_that_the_kit_does_not_check_is_wrong_usage() -> None:
    done = conform("ws://127.0.0.1:1/?format=json")
    assert (done.exit_code, "say `ws://127.0.0.1:1`" in done.output) == (2, True), done.output


def test_a_certificate_for_an_address_without_tls_is_wrong_usage(tmp_path: Path) -> None:
    done = conform("ws://127.0.0.1:1", "--tls-ca", str(own_certificate(tmp_path)))
    assert (done.exit_code, "goes with `HOST:PORT` or `wss://`" in done.output) == (2, True), done.output


@pytest.mark.long
def test_the_whole_kit_passes_over_websockets(tmp_path: Path) -> None:
    with beside(over_websocket(tmp_path)) as address:
        done = conform(address, "--storage-root", str(tmp_path / "root"), "--json")
    assert done.exit_code == 0, done.output
    results = [each["result"] for each in json.loads(done.stdout)["results"]]
    assert len(results) == len(SUITE.checks)
    assert set(results) == {"passed", "not applicable"}
    assert results.count("not applicable") == 2


def test_a_token_is_used_and_never_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with beside(addressed(tmp_path, token="s3cret-of-theirs")) as address:
        assert conform(address, "--only", "tryll.session.configure").exit_code == 1
        monkeypatch.setenv("TRUNKLINE_TRYLL_TOKEN", "s3cret-of-theirs")
        done = conform(address, "--only", "tryll.session.*", "--only", "tryll.verify.older", "--json")
    assert done.exit_code == 0, done.output
    assert "s3cret" not in done.output


@pytest.mark.parametrize("relative", [False, True], ids=["absolute", "relative"])
def test_files_are_put_into_the_storage_folder_and_removed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    with beside(addressed(tmp_path)) as address:
        root = "root" if relative else str(tmp_path / "root")
        done = conform(address, "--only", "tryll.storage.*", "--storage-root", root, "--strict")
    assert done.exit_code == 0, done.output
    assert "tryll.storage.files" in done.stdout
    assert list((tmp_path / "root").iterdir()) == []


def test_without_the_mock_engine_its_checks_are_left_out(tmp_path: Path) -> None:
    with beside(addressed(tmp_path)) as address:
        done = conform(address, "--no-mock", "--only", "tryll.turn.*")
    assert done.exit_code == 0, done.output
    assert "tryll.turn.canned" in done.stdout
    assert "tryll.turn.busy" not in done.stdout
    assert "conforms, as far as checked" in done.stdout


async def test_what_is_no_tryll_server_does_not_conform() -> None:
    """One that takes connections and says nothing of use: the first check fails, and no other is tried."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    address = "{}:{}".format(*server.sockets[0].getsockname())
    done = await asyncio.to_thread(conform, address, "--only", "tryll.agent.*")
    server.close()
    assert done.exit_code == 1
    assert "`tryll.session.ready` failed" in done.stdout


def test_what_cannot_be_reached_is_wrong_usage(unused_tcp_port: int) -> None:
    done = conform(f"127.0.0.1:{unused_tcp_port}", "--only", "tryll.session.ready")
    assert done.exit_code == 2
    told = " ".join(done.output.split())
    assert "cannot be reached: Connection refused. Is a Tryll server running there?" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Name the address of the server"),
        (("localhost",), "The address of a server is `HOST:PORT`"),
        (("127.0.0.1:99999",), "The address of a server is `HOST:PORT`"),
        (("http://127.0.0.1:1",), "The address of a server is `HOST:PORT`, `ws://HOST:PORT` or"),
        (("192.0.2.1:9100",), "Add `--yes`"),
        (("ws://game.example:9101",), "Add `--yes`"),
        (("127.0.0.1:1", "--no-mock", "--only", "tryll.node.tools"), "need more than was given"),
        (("127.0.0.1:1", "--only", "tryll.storage.files"), "`--storage-root`"),
        (("127.0.0.1:1", "--only", "no.*"), "No check matches"),
    ],
)
def test_what_is_wrong_with_the_command_line_is_told(arguments: tuple[str, ...], told: str) -> None:
    done = conform(*arguments)
    assert done.exit_code == 2
    assert told in " ".join(done.output.split())


def test_the_checks_can_be_listed_without_a_server() -> None:
    listed = json.loads(conform("--list", "--json").stdout)
    assert [each["id"] for each in listed] == list(SUITE.checks)
