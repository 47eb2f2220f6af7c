"""What one agent's runner may be told: the members of its JSON file, and of `[runner.agents.NAME]`, which are the same.

Their names are those of the protocol's original. What each of them means, the runner knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trunkline.base.config_schema import ANY, ANYTHING, Kind, Schema


def _is_reference(value: Any) -> bool:
    return isinstance(value, Mapping) and list(value) == ["env"] and isinstance(value["env"], str)


def _or_reference(wanted: str, fits: Callable[[Any], bool]) -> Kind:
    """A value, or the variable that holds it. In JSON, null counts as absent."""
    return Kind(f'{wanted}, or {{ env = "NAME" }}', lambda value: value is None or _is_reference(value) or fits(value))


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return True
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_amount(value: Any) -> bool:
    if isinstance(value, str):
        return value.isascii() and value.isdecimal()
    return type(value) is int and value >= 0


def _is_prompt(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, Mapping) and isinstance(value.get("file"), str))


_TEXT = _or_reference("a string", lambda value: isinstance(value, str))
_NUMBER = _or_reference("a number", _is_number)
_AMOUNT = _or_reference("a whole number, or a string of decimal digits", _is_amount)
_SWITCH = _or_reference("true or false", lambda value: isinstance(value, bool))
_PROMPT = _or_reference("a string, or { file = PATH }", _is_prompt)

AGENT: Schema = {
    "snsBaseUrl": _TEXT,
    "runnerToken": _TEXT,
    "agentId": _TEXT,
    "brain": {
        **dict.fromkeys(("kind", "name", "model", "apiKey", "baseUrl", "region", "project", "profile"), _TEXT),
        **dict.fromkeys(("options", "replies", "allow"), ANYTHING),
        **dict.fromkeys(("guided", "keep"), _SWITCH),
    },
    "llm": dict.fromkeys(("apiKey", "baseUrl", "provider"), _TEXT),
    "execution": {
        **dict.fromkeys(("rpcUrl", "privateKey", "alchemyApiKey"), _TEXT),
        "chains": {ANY: _AMOUNT},
        "receiptSec": _NUMBER,
        "caps": dict.fromkeys(("valueWei", "feeWei", "gas", "dayValueWei", "dayFeeWei"), _AMOUNT),
        "approval": {"aboveWei": _AMOUNT},
        "dryRun": _SWITCH,
    },
    "runtime": {
        **dict.fromkeys(
            ("intervalSec", "commentLimit", "maxTokens", "maxCyclesPerDay", "runnerLauncherPort", "timeoutSec"), _NUMBER
        ),
        "supplementaryPromptProfile": _TEXT,
        "readActions": _SWITCH,
    },
    "prompts": {**dict.fromkeys(("system", "user", "append"), _PROMPT), "profile": _TEXT},
    "integrations": dict.fromkeys(("githubIssueToken", "githubApiUrl"), _TEXT),
    "log": _TEXT,
    "timeoutSec": _NUMBER,
    "commentLimit": _NUMBER,
    "readActions": _SWITCH,
    "encodedInput": _TEXT,
    "securitySensitive": {ANY: _TEXT},
}
