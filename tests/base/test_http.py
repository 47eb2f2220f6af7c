from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider import HANG, StubProvider
from trunkline.base import http


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (*http._CERTIFICATES, "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(variable, raising=False)


async def test_we_say_who_we_are_and_want_nothing_compressed() -> None:
    async with StubProvider() as stub, http.client(secure=False) as client:
        stub.raw(b"{}")
        await client.get(stub.url)
        assert stub.requests[0].headers["user-agent"] == http.user_agent()
        assert stub.requests[0].headers["accept-encoding"] == "identity"


async def test_a_silent_connection_is_given_up() -> None:
    import httpx

    async with StubProvider() as stub, http.client(secure=False, read=0.05) as client:
        stub.raw(b"x", HANG)
        with pytest.raises(httpx.ReadTimeout):
            await client.get(stub.url)


async def test_redirects_are_followed_only_on_request() -> None:
    async with StubProvider() as stub:
        for redirects, status in ((False, 302), (True, 200)):
            async with http.client(secure=False, redirects=redirects) as client:
                stub.raw(status=302, location=f"{stub.url}/there")
                stub.raw(b"ok")
                assert (await client.get(stub.url)).status_code == status
            stub._replies.clear()


async def test_without_certificates_no_server_is_trusted() -> None:
    async with http.client(secure=False):
        assert http._trusting_nobody().get_ca_certs() == []


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"])
def test_certificates_that_cannot_be_read_are_named(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "none.pem"))
    with pytest.raises(ValueError, match=f"`{variable}`: cannot read certificates"):
        http.client()


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_the_user_s_own_authorities_replace_ours(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import certifi

    first = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----")
    (tmp_path / "own.pem").write_text(first[0] + first[1])
    monkeypatch.setenv(variable, str(tmp_path / "own.pem"))
    assert len(http.trusted().get_ca_certs()) == 1


def test_without_variables_the_usual_authorities_are_trusted() -> None:
    assert len(http.trusted().get_ca_certs()) > 50


def test_a_folder_of_certificates_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for places in (str(tmp_path), f"{tmp_path}{os.pathsep}{other}"):
        monkeypatch.setenv("SSL_CERT_DIR", places)
        # Its files are read when a connection needs them.
        assert http.trusted().get_ca_certs() == []


def test_a_proxy_of_another_kind_says_which_package_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "socksio", None)
    with pytest.raises(ValueError, match="httpx\\[socks\\]"):
        http.client(secure=False)


@pytest.mark.process
def test_loading_brings_no_terminal_library_along_and_leaves_the_package_whole() -> None:
    program = """
import sys
from collections.abc import AsyncIterator
from trunkline.base import http
assert "httpx" not in sys.modules
http.load()
import httpx, httpcore
assert not {"rich", "click", "pygments"} & sys.modules.keys()
assert "httpx._main" not in sys.modules
http.load()
import httpx._main
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE_SECONDS)


async def test_an_answer_is_read_whole_and_no_further_than_anybody_wants() -> None:
    taken: list[bytes] = []

    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"ab", b"cd", b"ef"):
            taken.append(piece)
            yield piece

    assert await http.whole(pieces(), 6) == b"abcdef"
    assert await http.whole(pieces(), 7, b"_") == b"_abcdef"
    taken.clear()
    with pytest.raises(http.BodyTooLong, match="more than 3 bytes"):
        await http.whole(pieces(), 3)
    assert taken == [b"ab", b"cd"]
