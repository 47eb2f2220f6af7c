"""Which variables of an environment open something: none of them is for a program that only serves tools.

Such a program inherits no variable
1. whose name says that it holds a secret (`base.environ_secrets`), or that the provider table knows;
2. whose value is a secret that we know, or holds one, whatever it is called, or is a URL with a password in it, apart
   from what the way to the network takes (proxies and the indexes of packages);
3. that names an account of a cloud: a cloud's own programs have more ways to find one than we use.
"""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.base.environ_secrets import environment_secrets, names_a_secret
from trunkline.base.redact import MASK, Redactor
from trunkline.models.providers import PROVIDERS, SERVICES

#: Settings of the table that open nothing.
_PLACES = frozenset({"region", "project"})
#: Variables of ours that stand for a flag.
_OWN = frozenset({"TRUNKLINE_API_KEY", "TRUNKLINE_BASE_URL"})

#: By the table: keys, accounts, and addresses, which may hold a password.
NAMED = _OWN.union(
    (name for each in PROVIDERS.values() for option, name in each.variables.items() if option not in _PLACES),
    (service.variable for service in SERVICES.values() if service.variable),
)

#: Clouds, by the beginning of their variables. Of these only places are nobody's secret.
_CLOUDS = ("AWS_", "AZURE_", "ARM_", "GOOGLE_", "GCLOUD_", "GCP_", "CLOUDSDK_", "VERTEX_", "KUBE", "OCI_", "VAULT_")
_PLACE_ENDINGS = ("REGION", "LOCATION", "ZONE", "PROJECT", "PROJECT_ID", "OUTPUT", "PAGER")
#: What is sent along with every request to a model, often with a key in it.
_HEADERS = ("_HEADERS", "_HEADER")
#: Without these no program reaches the network, or the packages that it is made of.
_WAYS = ("_PROXY", "INDEX_URL")


def is_credential(name: str) -> bool:
    """Whether a variable of that name opens something."""
    upper = name.upper()
    if upper in NAMED or names_a_secret(name) or upper.endswith(_HEADERS):
        return True
    return upper.startswith(_CLOUDS) and not upper.endswith(_PLACE_ENDINGS)


def without_credentials(environ: Mapping[str, str], known: Redactor | None = None) -> dict[str, str]:
    """An environment without them, and without variables that hold what `known` masks, whatever they are called."""
    masked = known or Redactor()
    return {
        name: value for name, value in environ.items() if not is_credential(name) and not _opens(name, value, masked)
    }


def _opens(name: str, value: str, known: Redactor) -> bool:
    if known.text(value.strip()) == MASK:
        return True
    if name.upper().endswith(_WAYS):
        return False
    # A place may be named like somebody's password; without `PATH` and `HOME` nothing runs.
    holds_one = not value.startswith("/") and known.text(value) != value
    return holds_one or ("://" in value and bool(environment_secrets({name: value})))
