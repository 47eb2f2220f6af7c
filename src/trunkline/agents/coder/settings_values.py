"""Values in configuration files: those that stand for others, and those that must not be shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from trunkline.base.environ_secrets import FEWEST_CHARS, environment_secrets, names_a_secret
from trunkline.models.providers import PROVIDERS

_REFERENCE = r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}"


class Reference(LookupError):
    """A value refers to a variable that is not set."""

    def __init__(self, variable: str) -> None:
        super().__init__(f"`{variable}` is not set")
        self.variable = variable


def expanded(text: str, environ: Mapping[str, str]) -> str:
    """A text with `${NAME}` replaced by that variable.

    Raises:
        Reference: it is not set, or empty.
    """

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if not environ.get(name):
            raise Reference(name)
        return environ[name]

    return re.sub(_REFERENCE, value, text) if "${" in text else text


def secrets_in(table: Mapping[str, Any]) -> frozenset[str]:
    """The values of a table whose names say that they are secret. What only refers to a variable is none."""
    found = set()
    for name, value in table.items():
        if isinstance(value, str) and "${" not in value and _is_secret(name):
            # `Bearer abc`: the word before it is not part of the secret.
            found |= {value, value.rpartition(" ")[2]}
    return frozenset(value for value in found if len(value) >= FEWEST_CHARS)


def all_secrets(table: Mapping[str, Any], environ: Mapping[str, str]) -> set[str]:
    """Everything in a file's table that must not be shown, whether it is in use or not.

    That are values whose names say so, at any depth, also in a program's arguments; what they refer to in the
    environment; and what is secret in addresses.
    """
    found: set[str] = set()
    for name, value in table.items():
        if isinstance(value, Mapping):
            found |= all_secrets(value, environ)
        elif isinstance(value, list):
            found |= _in_list(value, environ)
        elif isinstance(value, str):
            found |= _in_value(name, value, environ)
    return found


def _in_list(values: list[Any], environ: Mapping[str, str]) -> set[str]:
    """Tables in a list; and `--token VALUE` and `--token=VALUE` among the arguments of a program."""
    found: set[str] = set()
    option = ""
    for value in values:
        if isinstance(value, Mapping):
            found |= all_secrets(value, environ)
        if not isinstance(value, str):
            continue
        name, equals, rest = value.partition("=")
        if equals and name.startswith("-"):
            found |= _in_value(name.lstrip("-"), rest, environ)
        else:
            found |= _in_value(option, value, environ)
        option = value.lstrip("-") if value.startswith("-") and not equals else ""
    return found


def _in_value(name: str, value: str, environ: Mapping[str, str]) -> set[str]:
    if name == "api_key_env":
        # Its name need not say that it holds a key.
        return environment_secrets({"KEY": environ.get(value, "")})
    if name == "credentials":
        return set()
    try:
        value = expanded(value, environ)
    except Reference:
        return set()
    return environment_secrets({name: value}) | secrets_in({name: value})


def _is_secret(name: str) -> bool:
    return names_a_secret(name)


def names(listed: Iterable[str]) -> str:
    """Names for people to choose from."""
    return ", ".join(f"`{name}`" for name in listed)


def told_by(provider: str, variables: tuple[str, ...]) -> str:
    """Why a provider was chosen that nobody named: its variables are set."""
    listed = " and ".join(f"`{each}`" for each in variables)
    # Those of a cloud are often set for something else.
    otherwise = "" if PROVIDERS[provider].has_key else " `--provider` chooses another one."
    return f"The provider is `{provider}`: {listed} {'is' if len(variables) == 1 else 'are'} set.{otherwise}"
