"""The ways of a request through a network: proxies, certificates, redirects, addresses that are none."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from tests.conftest import require
from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider import Reply, StubProvider
from tests.support.provider_asking import PROXIES, Format, answer, asked, failure, texts
from trunkline.core.faults import ConfigError


@pytest.fixture(params=["anthropic", "openai"])
def form(request: pytest.FixtureRequest) -> Format:
    return Format(request.param)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in PROXIES:
        monkeypatch.delenv(variable, raising=False)


async def test_a_redirect_is_not_followed_with_the_key(form: Format) -> None:
    async with StubProvider() as elsewhere, asked(form) as (stub, model):
        stub.raw(status=307, location=f"{elsewhere.url}/v1/messages")
        error = await failure(model)
        assert elsewhere.url in str(error)
        assert error.retryable is False
        assert elsewhere.requests == []


async def test_a_proxy_is_used_unless_the_host_is_exempt(form: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    async with StubProvider() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        proxy.play(Reply([form.sse(form.text("x"))]))
        async with asked(form, base_url="http://provider.example") as (_, model):
            assert texts(await answer(model)) == "x"
        assert proxy.requests[0].target.startswith("http://provider.example/v1/")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        async with asked(form) as (stub, model):
            stub.play(Reply([form.sse(form.text("x"))]))
            assert texts(await answer(model)) == "x"
        assert len(proxy.requests) == 1


@pytest.mark.parametrize("url", ["http://[zz]", "http://\N{SNOWMAN}..example"])
async def test_an_address_that_cannot_be_one_is_a_matter_of_configuration(form: Format, url: str) -> None:
    async with asked(form, base_url=url) as (_, model):
        with pytest.raises(ConfigError, match="is not a valid URL"):
            await answer(model)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificate of a server on loopback, signed by itself, with its key in the same file."""
    openssl = shutil.which("openssl")
    require("openssl", openssl is not None, "install `openssl`")
    place = tmp_path_factory.mktemp("tls") / "server.pem"
    name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(place.with_suffix(".key")), "-out", str(place)]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command = [str(openssl), "req", "-x509", *kind, *name, *files]
    subprocess.run(command, check=True, timeout=PATIENCE_SECONDS, capture_output=True)
    return place


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
async def test_an_authority_of_the_user_s_own_is_trusted_when_a_variable_names_it_and_else_not(
    form: Format, variable: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    async with StubProvider(lambda request: Reply([form.sse(form.text("x"))]), tls=context) as stub:
        async with asked(form, base_url=stub.url) as (_, model):
            error = await failure(model)
            assert "SSL_CERT_FILE" in str(error)
            assert error.retryable is False
        monkeypatch.setenv(variable, str(certificate))
        async with asked(form, base_url=stub.url) as (_, model):
            assert texts(await answer(model)) == "x"
        assert len(stub.requests) == 1


async def test_a_proxy_that_cannot_be_one_is_a_matter_of_configuration(
    form: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "gopher://proxy")
    async with asked(form) as (_, model):
        with pytest.raises(ConfigError, match="HTTPS_PROXY"):
            model.warm()
