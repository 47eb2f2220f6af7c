"""What one agent's runner is told: the configuration that people and pages write, checked and with its defaults.

Any member that holds a secret may be `{"env": "NAME"}` instead: then it is read from the environment.

The members, and the older form that some pages send (`encodedInput`, `securitySensitive`), are described in
`docs/reference/runner.md`.
"""

from __future__ import annotations

import math
import os
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from trunkline.base import jsontext
from trunkline.base.environ_secrets import url_secrets
from trunkline.base.regular import read_regular
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.models.providers import SERVICES
from trunkline.runner import config_parts, slips
from trunkline.runner.chain.settings import TxSettings, tx_settings
from trunkline.runner.config_parts import Table, at, group, table, text

DEFAULT_SNS = "http://localhost:3000"
#: Seconds for one exchange. A model may take most of a minute; what takes longer is tried again in the next cycle.
DEFAULT_TIMEOUT_SECONDS = 60.0
MAX_TIMEOUT_SECONDS = 3600.0
DEFAULT_INTERVAL_SECONDS = 60
#: A month: what is meant to run less often is not run by us.
MAX_INTERVAL_SECONDS = 30 * 24 * 3600
DEFAULT_COMMENT_LIMIT = 50
MAX_COMMENT_LIMIT = 500
GITHUB_API = "https://api.github.com"
#: Bytes of a prompt: more than any model reads.
MAX_PROMPT = 1024 * 1024

#: Parts of a node's address that say which chain or which kind of node it is. All else may be a key.
_PLAIN_WORDS = frozenset(
    {"avalanche", "base", "blast", "celo", "erigon", "fantom", "false", "geth", "gnosis", "http", "https", "jsonrpc",
     "linea", "main", "mantle", "node", "scroll", "true", "user", "zksync"}
)  # fmt: skip


class Prompts(Value):
    """What replaces or extends the prompts that come with us."""

    system: str | None = None
    user: str | None = None
    append: str | None = None
    """Added to the system prompt."""
    profile: str | None = None
    """The name of a bundled supplement."""


class Github(Value):
    """Where issues are made of reports. Without a token none is."""

    token: str | None = None
    api_url: str = GITHUB_API

    def __repr__(self) -> str:
        return f"Github(api_url={self.api_url!r})"


class RunnerConfig(Value):
    """The configuration of one agent's runner. Its `repr` shows no secret."""

    sns_base_url: str
    runner_token: str
    agent_id: str
    brain: Table | None
    """What decides; None: what the network's general data says, with `llm_api_key`."""
    llm_api_key: str | None
    llm_base_url: str | None
    llm_provider: str | None
    """Whose key it is; None: what the network says."""
    execution: TxSettings | None
    """How transactions are sent; None: they are not."""
    log: str | None
    """The communication log; None: the usual place."""
    timeout_seconds: float
    interval_seconds: int
    comment_limit: int
    max_tokens: int | None
    prompts: Prompts
    github: Github
    read_actions: bool
    given: Table
    """As it was written, references to the environment included."""
    found: Table
    """The same with the values of those references."""

    def __repr__(self) -> str:
        return f"RunnerConfig(agent_id={self.agent_id!r}, sns_base_url={self.sns_base_url!r})"

    def secrets(self) -> tuple[str, ...]:
        """All values that must not be shown."""
        return tuple(dict.fromkeys(_secret_values(self)))

    def without_secrets(self) -> dict[str, Any]:
        """What may be kept in a file: as it was written, without the members that hold a secret."""
        return config_parts.public(self.given)

    def secret_parts(self) -> dict[str, Any]:
        """The rest: `merged(without_secrets(), secret_parts())` is the whole."""
        return config_parts.secret(self.given)

    def redacted(self) -> dict[str, Any]:
        """What a status shows: whether there are secrets, and not which."""
        execution = table(self.found, "execution")
        brain = self.brain or {}
        return {
            "snsBaseUrl": self.sns_base_url,
            "agentId": self.agent_id,
            "brain": {name: brain[name] for name in ("kind", "name", "model") if isinstance(brain.get(name), str)},
            "llm": {"baseUrl": self.llm_base_url, "hasApiKey": self.llm_api_key is not None},
            "runtime": {
                "intervalSec": self.interval_seconds,
                "commentLimit": self.comment_limit,
                "runnerLauncherPort": at(self.found, "runtime", "runnerLauncherPort"),
                "maxTokens": self.max_tokens,
                "timeoutSec": self.timeout_seconds,
            },
            "execution": {
                "hasPrivateKey": bool(_text(execution.get("privateKey"))),
                "hasAlchemyApiKey": bool(_text(execution.get("alchemyApiKey"))),
                "hasRpcUrl": bool(_text(execution.get("rpcUrl"))),
            },
            "integrations": {"hasGithubIssueToken": self.github.token is not None},
            "encodedInput": "encodedInput" in self.given,
            "prompts": {
                "hasSystemPrompt": self.prompts.system is not None,
                "hasUserPrompt": self.prompts.user is not None,
                "supplementaryProfile": self.prompts.profile,
            },
            "auth": {"hasRunnerToken": True, "hasAgentId": True},
            "readActions": self.read_actions,
        }


#: Whose keys `llm.apiKey` may be.
LLM_PROVIDERS = ("openai", "anthropic", "litellm", *SERVICES)


def normalise(mapping: Any, environ: Mapping[str, str] = os.environ) -> RunnerConfig:
    """Check a configuration and fill in what is missing.

    Raises:
        ConfigError: it cannot work.
    """
    if not isinstance(mapping, Mapping) or not mapping:
        raise ConfigError("Runner config is required", hint="It is a JSON object.")
    slips.refuse(mapping)
    found = _with_older_form(config_parts.resolved(mapping, environ))
    token, agent_id = text(found, "runnerToken"), text(found, "agentId")
    if not token:
        raise ConfigError("runnerToken is required")
    if not agent_id:
        raise ConfigError("agentId is required")
    brain = found.get("brain")
    if brain is not None and not isinstance(brain, Mapping):
        raise ConfigError("`brain` must be an object.", hint='Such as {"kind": "scripted", "replies": []}.')
    llm, runtime = group(found, "llm"), group(found, "runtime")
    api_key = text(llm, "apiKey", "llm.")
    if brain is None and not api_key:
        raise ConfigError("securitySensitive.llmApiKey is required", hint="(or `llm.apiKey`, or a `brain`)")
    timeout = _timeout(found.get("timeoutSec", runtime.get("timeoutSec")))
    return RunnerConfig(
        sns_base_url=text(found, "snsBaseUrl").removesuffix("/") or DEFAULT_SNS,
        runner_token=token,
        agent_id=agent_id,
        brain=brain,
        llm_api_key=api_key or None,
        llm_base_url=text(llm, "baseUrl", "llm.").rstrip("/") or None,
        llm_provider=_provider(text(llm, "provider", "llm.")),
        execution=tx_settings(found.get("execution"), timeout_seconds=timeout),
        log=_path(text(found, "log")),
        timeout_seconds=timeout,
        interval_seconds=_whole(runtime.get("intervalSec"), 1, MAX_INTERVAL_SECONDS) or DEFAULT_INTERVAL_SECONDS,
        comment_limit=_comment_limit(runtime.get("commentLimit", found.get("commentLimit"))),
        max_tokens=_whole(runtime.get("maxTokens"), 1, 2**31),
        prompts=_prompts(group(found, "prompts"), runtime),
        github=_github(group(found, "integrations")),
        read_actions=_flag(found.get("readActions", runtime.get("readActions")), "readActions"),
        given=dict(mapping),
        found=found,
    )


def _provider(name: str) -> str | None:
    if name and name.lower() not in LLM_PROVIDERS:
        raise ConfigError(f"`llm.provider` is `{name[:40]}`.", hint=f"Use one of {', '.join(LLM_PROVIDERS)}.")
    return name.lower() or None


def merged(base: Any, extra: Any) -> Any:
    """A configuration with another one's members put in, at every depth; the other one's count."""
    return config_parts.merged(base, extra)


def relocated(mapping: Table, place: Callable[[str], str]) -> dict[str, Any]:
    """The same with the files in it where `place` puts them."""
    found = dict(mapping)
    if isinstance(found.get("log"), str) and found["log"].strip():
        found["log"] = place(found["log"].strip())
    prompts = table(found, "prompts")
    if prompts:
        found["prompts"] = {
            name: value if name == "profile" else _relocated_prompt(value, place) for name, value in prompts.items()
        }
    return found


def _relocated_prompt(value: Any, place: Callable[[str], str]) -> Any:
    path = _file_of(value)
    return value if path is None else {"file": place(path)}


# The older form


def _with_older_form(found: dict[str, Any]) -> dict[str, Any]:
    """The same with what `encodedInput` and `securitySensitive` say in the places of today."""
    decoded = _decoded(found["encodedInput"]) if found.get("encodedInput") else {}
    secrets = {**_filled(group(decoded, "securitySensitive")), **_filled(group(found, "securitySensitive"))}
    runner = group(decoded, "runner")
    places = (
        ("llm", "apiKey", secrets.get("llmApiKey")),
        ("execution", "privateKey", secrets.get("executionWalletPrivateKey")),
        ("execution", "alchemyApiKey", secrets.get("alchemyApiKey")),
        ("integrations", "githubIssueToken", secrets.get("githubIssueToken")),
        ("runtime", "intervalSec", runner.get("intervalSec")),
        ("runtime", "commentLimit", runner.get("commentContextLimit", runner.get("commentLimit"))),
        ("runtime", "maxTokens", runner.get("maxTokens")),
        ("runtime", "supplementaryPromptProfile", runner.get("supplementaryPromptProfile")),
        ("runtime", "runnerLauncherPort", runner.get("runnerLauncherPort")),
    )
    for place, name, value in places:
        if value is not None:
            found[place] = {**group(found, place), name: value}
    return found


def _decoded(encoded: Any) -> Table:
    try:
        data = jsontext.loads(b64decode(str(encoded), validate=False))
    except ValueError:
        data = None
    if not isinstance(data, Mapping):
        raise ConfigError("encodedInput is invalid")
    return data


def _filled(members: Table) -> dict[str, Any]:
    return {name: value for name in members if (value := text(members, name, "securitySensitive."))}


# The parts


def _prompts(given: Table, runtime: Table) -> Prompts:
    user = _prompt(given, "user")
    if user is not None and "{{context}}" not in user:
        raise ConfigError("`prompts.user` has no place for the context.", hint="Write `{{context}}` where it belongs.")
    return Prompts(
        system=_prompt(given, "system"),
        user=user,
        append=_prompt(given, "append"),
        profile=text(runtime, "supplementaryPromptProfile", "runtime.") or text(given, "profile", "prompts.") or None,
    )


def _prompt(given: Table, name: str) -> str | None:
    """A prompt's text; from a file if the value is `{"file": PATH}`, or one word that ends in `.md` or `.txt`."""
    value, where = given.get(name), f"prompts.{name}"
    said = text(value, "file", f"{where}.") if isinstance(value, Mapping) else text(given, name, "prompts.")
    found = _file_of(value)
    if found is None:
        return said or None
    try:
        contents = read_regular(os.path.expanduser(found), MAX_PROMPT)
        if contents.cut:
            raise ConfigError(f"`{where}`: the file `{found}` has more than {MAX_PROMPT} bytes.")
        return contents.data.decode("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"`{where}`: the file `{found}` cannot be read: {reason}.") from None


def _file_of(prompt: Any) -> str | None:
    """The file that a prompt is in; None if it is here, or there is none."""
    is_file = isinstance(prompt, Mapping)
    said = prompt.get("file") if isinstance(prompt, Mapping) else prompt
    found = said.strip() if isinstance(said, str) else ""
    return found if found and (is_file or (found.endswith((".md", ".txt")) and len(found.split()) == 1)) else None


def _github(given: Table) -> Github:
    url = text(given, "githubApiUrl", "integrations.").rstrip("/") or GITHUB_API
    if not url.startswith(("http://", "https://")):
        raise ConfigError("`integrations.githubApiUrl` is not a valid URL.", hint=f"The usual one is `{GITHUB_API}`.")
    return Github(text(given, "githubIssueToken", "integrations.") or None, url)


def _path(given: str) -> str | None:
    # No file can have such a name, and nobody who means it would see why.
    if "\0" in given or any("\ud800" <= char <= "\udfff" for char in given):
        raise ConfigError("`log` is not a valid path: it contains a NUL or half a character.")
    return os.path.abspath(os.path.expanduser(given)) if given else None


def _flag(value: Any, name: str) -> bool:
    if value is not None and not isinstance(value, bool):
        raise ConfigError(f"`{name}` must be true or false.")
    return bool(value)


def _timeout(value: Any) -> float:
    if value is None:
        return DEFAULT_TIMEOUT_SECONDS
    number = _number(value)
    if number is None or number <= 0:
        raise ConfigError("`timeoutSec` must be a number of seconds greater than zero.")
    return min(number, MAX_TIMEOUT_SECONDS)


def _comment_limit(value: Any) -> int:
    number = _number(value)
    if number is None or number < 0:
        return DEFAULT_COMMENT_LIMIT
    return min(math.floor(number), MAX_COMMENT_LIMIT)


def _whole(value: Any, least: int, most: int) -> int | None:
    number = _number(value)
    return None if number is None or number <= 0 else max(least, min(math.floor(number), most))


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return value if isinstance(value, int | float) and math.isfinite(value) else None


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _secret_values(config: RunnerConfig) -> Iterator[str]:
    yield config.runner_token
    yield config.llm_api_key or ""
    yield config.github.token or ""
    yield _text(at(config.found, "execution", "alchemyApiKey"))
    if config.execution is not None:
        yield from _of_a_node(config.execution)
    # What an address holds of a key is secret; the rest of it is what one looks for in a log.
    for value in config_parts.values(config_parts.secret(config.found)):
        yield from url_secrets(value) if "://" in value else (value,)


def _of_a_node(settings: TxSettings) -> Iterator[str]:
    """The wallet's key, and what may be one in the node's address: there even a short one has digits."""
    parts = urlsplit(settings.rpc_url)
    plain = {*_PLAIN_WORDS, parts.username} if parts.password else _PLAIN_WORDS
    short = (part for part in parts.path.split("/") if any(map(str.isdigit, part)))
    yield from (each for each in (*settings.secrets(), *short) if each not in plain)
