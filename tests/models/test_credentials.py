"""Which variables are kept from the programs that tools start."""

from __future__ import annotations

import pytest

from trunkline.models import discover, providers
from trunkline.models.credentials import is_credential, without_credentials
from trunkline.wires.agentproc import hub

PLACES = ("region", "project")
#: All that the provider table knows, and what the bundled profiles have for keys. Whoever adds a provider adds to it.
OF_THE_TABLES = {
    *(name for table in providers.VARIABLES.values() for option, name in table.items() if option not in PLACES),
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
        *("anthropic_api_key", "OPENAI_API_KEYS", "TRUNKLINE_API_KEY"),
    ],
)
def test_so_is_what_else_opens_a_model_or_a_cloud(name: str) -> None:
    assert is_credential(name)


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "HOME",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "GOOGLE_CLOUD_PROJECT",
        "GITHUB_TOKEN",
        "OPENAI_ORG_ID",
        "LANG",
    ],
)
def test_what_opens_neither_is_handed_on(name: str) -> None:
    assert not is_credential(name)


def test_a_key_under_any_name_is_kept_back() -> None:
    environ = {"PATH": "/bin", "WORK": "sk-of-mine", "OPENAI_API_KEY": "x"}
    assert without_credentials(environ, ["sk-of-mine"]) == {"PATH": "/bin"}
