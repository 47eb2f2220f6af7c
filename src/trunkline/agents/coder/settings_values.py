"""Values in configuration files: those that stand for others, and those that must not be shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from trunkline.base.environ_secrets import FEWEST_CHARS, names_a_secret

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


def _is_secret(name: str) -> bool:
    return names_a_secret(name) or name.lower().endswith("authorization")


def names(listed: Iterable[str]) -> str:
    """Names for people to choose from."""
    return ", ".join(f"`{name}`" for name in listed)
