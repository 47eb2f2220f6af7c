"""Who we are to Amazon: which credentials are used, where, and what their signature says."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import require
from trunkline.core.faults import ConfigError
from trunkline.models.bedrock_auth import AwsIdentity
from trunkline.models.providers import ModelSettings

URL = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/a.b%3A0/invoke-with-response-stream"
HEADERS = {"Content-Type": "application/json"}

FILES = """\
[default]
aws_access_key_id = AKIADEFAULT
aws_secret_access_key = default-secret

[work]
aws_access_key_id = AKIAWORK
aws_secret_access_key = work-secret
"""


@pytest.fixture(autouse=True)
def _an_account_of_nobodys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    require("botocore", find_spec("botocore") is not None, "pip install 'trunkline[bedrock]'")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    # The machine's own role would be asked for over the network.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def identity(environ: Mapping[str, str] | None = None, **settings: Any) -> AwsIdentity:
    return AwsIdentity(ModelSettings("bedrock", **settings), environ or {})


async def signer_of(one: AwsIdentity) -> str:
    """The key's id and the region in a signature."""
    headers = await one.headers(URL, b"{}", HEADERS)
    key, _, region, _, _ = headers["Authorization"].partition("Credential=")[2].partition(",")[0].split("/")
    return f"{key} in {region}"


async def test_a_signature_is_the_one_that_amazon_will_compute() -> None:
    from botocore.auth import SigV4Auth  # type: ignore[import-untyped]  # it has no types
    from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
    from botocore.credentials import Credentials  # type: ignore[import-untyped]

    one = identity(access_key_id="AKIAME", secret_access_key="my-secret", session_token="tok", region="eu-west-1")
    headers = await one.headers(URL, b'{"x":1}', HEADERS)
    assert headers["X-Amz-Security-Token"] == "tok"
    again = SigV4Auth(Credentials("AKIAME", "my-secret", "tok"), "bedrock", "eu-west-1")
    signed = {name: headers[name] for name in ("Content-Type", "X-Amz-Date", "X-Amz-Security-Token")}
    request = AWSRequest("POST", URL, headers=signed, data=b'{"x":1}')
    request.context["timestamp"] = headers["X-Amz-Date"]
    signature = again.signature(again.string_to_sign(request, again.canonical_request(request)), request)
    assert headers["Authorization"].endswith(f"Signature={signature}")
    assert "my-secret" not in str(headers)


async def test_keys_of_the_settings_go_before_everything(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(FILES)
    environ = {"AWS_BEARER_TOKEN_BEDROCK": "bearer"}
    one = identity(environ, access_key_id="AKIAME", secret_access_key="s", profile="work", api_key="k")
    assert await signer_of(one) == "AKIAME in us-east-1"


async def test_a_profile_is_read_from_amazons_files(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(FILES)
    assert await signer_of(identity(profile="work")) == "AKIAWORK in us-east-1"


async def test_without_anything_else_the_default_profile_is_used(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(FILES)
    assert await signer_of(identity()) == "AKIADEFAULT in us-east-1"


async def test_an_api_key_of_the_environment_is_sent_as_it_is() -> None:
    headers = await identity({"AWS_BEARER_TOKEN_BEDROCK": "bearer"}).headers(URL, b"", HEADERS)
    assert headers == {**HEADERS, "Authorization": "Bearer bearer"}


async def test_an_api_key_goes_before_keys_of_the_environment() -> None:
    environ = {"AWS_BEARER_TOKEN_BEDROCK": "bearer", "AWS_ACCESS_KEY_ID": "AKIAENV", "AWS_PROFILE": "work"}
    one = identity(environ, access_key_id="AKIAENV", secret_access_key="s", profile="work")
    assert (await one.headers(URL, b"", HEADERS))["Authorization"] == "Bearer bearer"


async def test_an_api_key_of_the_settings_is_used_when_there_are_no_others() -> None:
    assert (await identity(api_key="k1").headers(URL, b"", HEADERS))["Authorization"] == "Bearer k1"


@pytest.mark.parametrize(
    ("environ", "settings", "region"),
    [
        ({"AWS_REGION": "a", "AWS_DEFAULT_REGION": "b"}, {"region": "c"}, "c"),
        ({"AWS_REGION": "a", "AWS_DEFAULT_REGION": "b"}, {}, "a"),
        ({"AWS_DEFAULT_REGION": "b"}, {}, "b"),
        ({}, {"profile": "far"}, "ap-northeast-1"),
        ({}, {}, "us-east-1"),
        ({}, {"api_key": "k"}, "us-east-1"),
    ],
)
async def test_the_region_is_the_first_that_is_named(
    tmp_path: Path, environ: dict[str, str], settings: dict[str, Any], region: str
) -> None:
    (tmp_path / "credentials").write_text(FILES)
    (tmp_path / "config").write_text(
        "[profile far]\nregion = ap-northeast-1\naws_access_key_id = A\naws_secret_access_key = B\n"
    )
    assert await identity(environ, **settings).region() == region


async def test_no_credentials_are_a_config_error_that_names_the_variables() -> None:
    with pytest.raises(ConfigError, match=r"AWS_ACCESS_KEY_ID.*AWS_SECRET_ACCESS_KEY.*AWS_PROFILE"):
        await identity().find()


async def test_a_profile_that_is_not_there_is_a_config_error_that_names_it() -> None:
    with pytest.raises(ConfigError, match=r"\(nowhere\).*list-profiles"):
        await identity(profile="nowhere").find()


async def test_half_a_profile_is_a_config_error(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("[half]\naws_access_key_id = AKIAHALF\n")
    with pytest.raises(ConfigError, match="Partial credentials"):
        await identity(profile="half").find()


@pytest.mark.parametrize("half", [{"access_key_id": "A"}, {"secret_access_key": "B"}])
def test_half_a_key_is_a_config_error(half: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="`access_key_id` and `secret_access_key`"):
        identity(**half)


def test_without_botocore_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install .*\[bedrock\]'"):
        identity()
