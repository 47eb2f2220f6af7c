"""Which variables of an environment open models and clouds: none of them is for the programs that tools start.

That is the provider table's to say, and so a new provider's key is kept back by being entered there. Besides, whatever
else a maker of models or a cloud calls a secret, and all that names an account of a cloud: their own programs have more
ways to find one than we use.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from trunkline.base.environ_secrets import names_a_secret
from trunkline.models.providers import SERVICES, VARIABLES

#: Settings of the table that open nothing.
_PLACES = frozenset({"region", "project"})
#: Variables of ours that stand for a flag.
_OWN = frozenset({"TRUNKLINE_API_KEY", "TRUNKLINE_BASE_URL"})

#: By the table: keys, accounts, and addresses, which may hold a password.
NAMED = _OWN.union(
    (name for table in VARIABLES.values() for option, name in table.items() if option not in _PLACES),
    (service.variable for service in SERVICES.values() if service.variable),
)

#: Clouds, by the beginning of their variables. Of these only places are nobody's secret.
_CLOUDS = ("AWS_", "AZURE_", "ARM_", "GOOGLE_", "GCLOUD_", "GCP_", "CLOUDSDK_", "VERTEX_")
_PLACE_ENDINGS = ("REGION", "LOCATION", "ZONE", "PROJECT", "PROJECT_ID", "OUTPUT", "PAGER")
#: Makers of models that no provider of the table stands for.
_MAKERS = frozenset(
    (
        *("CLAUDE", "CODEX", "CODEBUDDY", "COHERE", "CURSOR", "DASHSCOPE", "DATABRICKS", "FIREWORKS", "GOOSE", "GROK"),
        *("GROQ", "HF", "HUGGINGFACE", "KIMI", "MOONSHOT", "OPENCODE", "PERPLEXITY", "QWEN", "RECURSIVE", "TOGETHER"),
        *("XAI", "ZAI"),
    )
)
_FAMILIES = _MAKERS.union(name.partition("_")[0] for name in NAMED - _OWN)


def is_credential(name: str) -> bool:
    """Whether a variable of that name opens a model or a cloud."""
    upper = name.upper()
    if upper in NAMED:
        return True
    if upper.startswith(_CLOUDS):
        return not upper.endswith(_PLACE_ENDINGS)
    return upper.partition("_")[0] in _FAMILIES and names_a_secret(upper)


def without_credentials(environ: Mapping[str, str], keys: Collection[str] = ()) -> dict[str, str]:
    """An environment without them, and without variables that hold one of these keys, whatever they are called."""
    return {name: value for name, value in environ.items() if value not in keys and not is_credential(name)}
