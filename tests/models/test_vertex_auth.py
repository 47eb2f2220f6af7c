"""Tokens of Google: asked for over loopback, kept, renewed in time, and refused."""

from __future__ import annotations

import asyncio
import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import require
from tests.models.google_account import EMAIL, claims_of, token_reply, write_account
from tests.support.provider import Reply, Request, StubProvider
from trunkline.core.faults import ConfigError, ProviderError
from trunkline.models.vertex_auth import GoogleIdentity

#: Nothing of the person's who runs the tests.
NOTHING = {"CLOUDSDK_CONFIG": "/nowhere"}


@pytest.fixture(autouse=True)
def _with_google_auth() -> None:
    require("google-auth", find_spec("google") is not None, "pip install 'trunkline[vertex]'")


def json_reply(body: object, status: int = 200) -> Reply:
    return Reply([json.dumps(body).encode()], status=status, headers={"content-type": "application/json"})


async def test_a_service_account_gets_a_token_for_a_signed_claim(tmp_path: Path) -> None:
    async with StubProvider(lambda _: token_reply("t1")) as stub:
        file = write_account(tmp_path / "account.json", stub.url + "/token")
        identity = GoogleIdentity(str(file), NOTHING)
        assert await identity.token() == "t1"
        assert await identity.project() == "some-project"
        claims = claims_of(stub.requests[0])
        assert claims["iss"] == EMAIL
        assert claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"


async def test_a_token_is_asked_for_once_however_many_want_it(tmp_path: Path) -> None:
    async with StubProvider(lambda _: token_reply("t1")) as stub:
        identity = GoogleIdentity(str(write_account(tmp_path / "account.json", stub.url)), NOTHING)
        assert await asyncio.gather(*(identity.token() for _ in range(5))) == ["t1"] * 5
        assert len(stub.requests) == 1


async def test_a_token_that_is_about_to_expire_is_renewed(tmp_path: Path) -> None:
    async with StubProvider() as stub:
        stub.play(token_reply("short", seconds=60))
        stub.play(token_reply("long"))
        identity = GoogleIdentity(str(write_account(tmp_path / "account.json", stub.url)), NOTHING)
        assert [await identity.token() for _ in range(3)] == ["short", "long", "long"]


async def test_the_file_may_be_named_by_the_environment(tmp_path: Path) -> None:
    async with StubProvider(lambda _: token_reply("t1")) as stub:
        file = str(write_account(tmp_path / "account.json", stub.url))
        for settings_file in (None, file):
            identity = GoogleIdentity(settings_file, {"GOOGLE_APPLICATION_CREDENTIALS": file})
            assert (await identity.token(), await identity.project()) == ("t1", "some-project")


async def test_what_gcloud_left_is_found(tmp_path: Path) -> None:
    async with StubProvider(lambda _: token_reply("t1")) as stub:
        write_account(tmp_path / "application_default_credentials.json", stub.url)
        assert await GoogleIdentity(None, {"CLOUDSDK_CONFIG": str(tmp_path)}).token() == "t1"


async def test_credentials_of_another_cloud_are_exchanged_if_the_environment_names_them(tmp_path: Path) -> None:
    async with StubProvider(lambda _: token_reply("t1")) as stub:
        (tmp_path / "subject").write_text("their-token")
        account = {
            "type": "external_account",
            "audience": "//iam.googleapis.com/locations/global/workforcePools/p/providers/q",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": stub.url,
            "credential_source": {"file": str(tmp_path / "subject")},
        }
        file = tmp_path / "external.json"
        file.write_text(json.dumps(account))
        identity = GoogleIdentity(None, {"GOOGLE_APPLICATION_CREDENTIALS": str(file)})
        assert await identity.token() == "t1"
        assert b"subject_token=their-token" in stub.requests[0].body


async def test_a_persons_own_login_is_understood(tmp_path: Path) -> None:
    login = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r1"}
    (tmp_path / "login.json").write_text(json.dumps(login | {"quota_project_id": "mine"}))
    assert await GoogleIdentity(str(tmp_path / "login.json"), NOTHING).project() == "mine"


async def test_a_refusal_is_a_provider_error_that_says_what_to_do(tmp_path: Path) -> None:
    body = {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
    async with StubProvider(lambda _: json_reply(body, 400)) as stub:
        identity = GoogleIdentity(str(write_account(tmp_path / "account.json", stub.url)), NOTHING)
        with pytest.raises(ProviderError, match=r"Invalid JWT Signature.*GOOGLE_APPLICATION_CREDENTIALS") as caught:
            await identity.token()
        assert not caught.value.retryable
        assert "PRIVATE KEY" not in str(caught.value)


async def test_a_token_service_that_is_not_there_may_come_back(tmp_path: Path) -> None:
    identity = GoogleIdentity(str(write_account(tmp_path / "account.json", "http://127.0.0.1:1/token")), NOTHING)
    with pytest.raises(ProviderError, match="did not issue a token") as caught:
        await identity.token()
    assert caught.value.retryable


@pytest.mark.parametrize(
    "content",
    ["", "[]", "no JSON", '{"type": "service_account"}', '{"type": "authorized_user"}', '{"type": "external_account"}'],
)
async def test_a_file_that_holds_no_credentials_is_a_config_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "wrong.json").write_text(content)
    with pytest.raises(ConfigError, match=r"wrong\.json.*GOOGLE_APPLICATION_CREDENTIALS"):
        await GoogleIdentity(str(tmp_path / "wrong.json"), NOTHING).token()


async def test_a_file_that_is_not_there_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.json"):
        await GoogleIdentity(str(tmp_path / "missing.json"), NOTHING).token()


async def test_a_variable_that_names_no_file_is_a_config_error(tmp_path: Path) -> None:
    environ = {"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "missing.json")}
    with pytest.raises(ConfigError, match=r"missing\.json.*No such file.*GOOGLE_APPLICATION_CREDENTIALS"):
        await GoogleIdentity(None, environ).token()


async def test_no_credentials_anywhere_is_a_config_error_that_names_the_variable() -> None:
    with pytest.raises(ConfigError, match=r"GOOGLE_APPLICATION_CREDENTIALS.*gcloud auth application-default login"):
        await GoogleIdentity(None, NOTHING).token()


def metadata_server(*tokens: Reply) -> StubProvider:
    left = list(tokens)

    def answer(request: Request) -> Reply:
        assert request.headers["metadata-flavor"] == "Google"
        return Reply([b"cloud-project"]) if request.target.endswith("/project-id") else left.pop(0)

    return StubProvider(answer)


async def test_a_machine_of_googles_has_a_token_of_its_own() -> None:
    async with metadata_server(token_reply("m1")) as stub:
        identity = GoogleIdentity(None, NOTHING | {"GCE_METADATA_HOST": f"127.0.0.1:{stub.port}"})
        assert [await identity.token() for _ in range(2)] == ["m1", "m1"]
        assert await identity.project() == "cloud-project"


async def test_the_machines_token_is_renewed_in_time() -> None:
    async with metadata_server(token_reply("m1", seconds=60), token_reply("m2")) as stub:
        identity = GoogleIdentity(None, NOTHING | {"GCE_METADATA_HOST": f"127.0.0.1:{stub.port}"})
        assert [await identity.token() for _ in range(3)] == ["m1", "m2", "m2"]


@pytest.mark.parametrize("reply", [json_reply({}), json_reply([]), Reply([b"?"]), json_reply({}, 404)])
async def test_a_metadata_server_without_a_token_is_an_error_that_may_pass(reply: Reply) -> None:
    async with metadata_server(reply) as stub:
        identity = GoogleIdentity(None, NOTHING | {"GCE_METADATA_HOST": f"127.0.0.1:{stub.port}"})
        with pytest.raises(ProviderError, match="metadata server") as caught:
            await identity.token()
        assert caught.value.retryable


def test_without_google_auth_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install .*\[vertex\]'"):
        GoogleIdentity(None, NOTHING)
