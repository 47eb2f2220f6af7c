"""Placeholders in a script's texts: `{{input}}` is what the user said, `{{name}}` a group of the turn's `when`.

Braces around anything but a name are left alone, so that code may stand in a script as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")


def names_in(value: Any) -> Iterator[str]:
    """The names of all placeholders in a text, or in the texts of lists and objects. Keys are not looked at."""
    if isinstance(value, str):
        yield from _PLACEHOLDER.findall(value)
    elif isinstance(value, Mapping):
        yield from _names_in_each(value.values())
    elif isinstance(value, list | tuple):
        yield from _names_in_each(value)


def fill(value: Any, words: Mapping[str, str]) -> Any:
    """The value with its placeholders replaced. What they are replaced by is not looked through again."""
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda found: words.get(found[1], found[0]), value)
    if isinstance(value, Mapping):
        return {key: fill(member, words) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(fill(item, words) for item in value)
    return value


def _names_in_each(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        yield from names_in(value)
