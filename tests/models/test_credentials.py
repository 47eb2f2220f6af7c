"""Which variables are kept from the programs that tools start."""

from __future__ import annotations

import pytest

from trunkline.base.redact import Redactor
from trunkline.models import discover, providers
from trunkline.models.credentials import is_credential, without_credentials
from trunkline.wires.agentproc import hub

PLACES = ("region", "project")
#: All that the provider table knows, and what the bundled profiles have for keys. Whoever adds a provider adds to it.
OF_THE_TABLES = {
    *(name for each in providers.PROVIDERS.values() for option, name in each.variables.items() if option not in PLACES),
    *(service.variable for service in providers.SERVICES.values() if service.variable),
    *discover.KEYS,
    *discover.AWS_VARIABLES,
    *(key for program in hub.PROGRAMS.values() for key in program.keys),
}


@pytest.mark.parametrize("name", sorted(OF_THE_TABLES))
def test_every_key_that_a_table_knows_is_kept_back(name: str) -> None:
    assert is_credential(name)


@pytest.mark.parametrize(
    "name",
    [
        *("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
        *("AWS_ROLE_ARN", "AWS_CONFIG_FILE", "AWS_SECURITY_TOKEN", "GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_CONFIG"),
        *("AZURE_CLIENT_SECRET", "AZURE_OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_ADMIN_KEY", "HF_TOKEN"),
        *("anthropic_api_key", "OPENAI_API_KEYS", "OPENAI_API_KEY_2", "TRUNKLINE_API_KEY", "ANTHROPIC_CUSTOM_HEADERS"),
        *("NVIDIA_API_KEY", "OLLAMA_API_KEY", "CEREBRAS_API_KEY", "LITELLM_API_KEY", "HUGGING_FACE_HUB_TOKEN"),
        *("CLOUDFLARE_API_TOKEN", "DIGITALOCEAN_TOKEN", "KUBECONFIG", "GITHUB_TOKEN", "PGPASSWORD", "WEB_TOKEN"),
        *("ADMIN_API_KEY", "RUNNER_LAUNCHER_SECRET", "TRUNKLINE_TRYLL_TOKEN", "aws_role_arn"),
    ],
)
def test_so_is_what_else_opens_something(name: str) -> None:
    assert is_credential(name)


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "HOME",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "GOOGLE_CLOUD_PROJECT",
        "OPENAI_ORG_ID",
        "SSH_AUTH_SOCK",
        "PWD",
        "LANG",
    ],
)
def test_what_opens_nothing_is_handed_on(name: str) -> None:
    assert not is_credential(name)


def test_a_key_under_any_name_is_kept_back() -> None:
    environ = {"PATH": "/bin", "WORK": "sk-of-mine", "OPENAI_API_KEY": "x"}
    assert without_credentials(environ, Redactor(["sk-of-mine"])) == {"PATH": "/bin"}


@pytest.mark.parametrize(
    "value", ["Bearer {}", '{{"model": {{"key": "{}"}}}}', "x={};y=1", "https://models.example/?k={}"]
)
def test_so_is_a_variable_that_holds_one_among_other_things(value: str) -> None:
    environ = {"HOME": "/home/sk-of-mine", "PATH": "/opt/sk-of-mine/bin:/bin"}
    settings = {"WORK_SETTINGS": value.format("sk-of-mine")}
    assert without_credentials({**environ, **settings}, Redactor(["sk-of-mine"])) == environ


def test_a_password_in_an_address_is_kept_back_unless_it_is_the_way_to_the_network() -> None:
    ways = {
        "HTTPS_PROXY": "http://me:long-password@proxy.example:8080",
        "UV_INDEX_URL": "https://me:long-password@packages.example/simple",
        "HOMEPAGE": "https://www.example/",
    }
    assert without_credentials({**ways, "DATABASE_URL": "postgres://me:long-password@db.example/x"}) == ways
