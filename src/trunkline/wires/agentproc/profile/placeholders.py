"""What a profile's texts leave open, and how it is filled in.

    {{MESSAGE}}  {{SESSION_ID}}  {{SESSION_NAME}}  {{PROFILE_DIR}}    in arguments, `cwd` and the values of `env`
    ${NAME}                                                           in the values of `env` only

A text is gone through once, and what is put in is not looked at again: a message that holds `{{SESSION_ID}}` or
`${SECRET}` comes out as it went in. Whatever is spelled otherwise (`{{message}}`, `{{ MESSAGE }}`, `$NAME`,
`${NAME:-x}`) stays as it is; `mistaken` finds what was probably meant for one of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from trunkline.base.nearest import nearest

#: Whoever writes in the chat decides what these become.
FROM_THE_CHAT = ("MESSAGE", "SESSION_ID", "SESSION_NAME")
NAMES = (*FROM_THE_CHAT, "PROFILE_DIR")

# As texts, compiled when first needed: every start of a process would wait for it, and many profiles have none.
_PLACEHOLDER = r"\{\{(" + "|".join(NAMES) + r")\}\}"
_VARIABLE = r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}"
_EITHER = f"{_PLACEHOLDER}|{_VARIABLE}"
#: A name in two braces. Other things between them (`{{.Name}}`, `{{"a": 1}}`) are nobody's slip of the pen.
_NAMED = r"\{\{\s*([A-Za-z][A-Za-z0-9_-]*)\s*\}\}"


class Values(Protocol):
    """What placeholders stand for, by their names."""

    def __getitem__(self, name: str, /) -> str: ...


def fill(text: str, values: Values) -> str:
    """The text with its placeholders replaced by their values."""
    if "{{" not in text:
        return text
    return re.sub(_PLACEHOLDER, lambda found: values[found[1]], text)


def expand(text: str, values: Values, variable: Callable[[str], str]) -> str:
    """The text with its placeholders replaced, and each `${NAME}` by what `variable` gives for the name."""
    if "${" not in text:
        return fill(text, values)
    return re.sub(_EITHER, lambda found: variable(found[2]) if found[1] is None else values[found[1]], text)


def used(text: str) -> tuple[str, ...]:
    """The names of the placeholders in a text, in order."""
    return tuple(re.findall(_PLACEHOLDER, text)) if "{{" in text else ()


def from_the_chat(text: str) -> str | None:
    """The first placeholder in a text that becomes what somebody in the chat wrote, with its braces."""
    return next((f"{{{{{name}}}}}" for name in used(text) if name in FROM_THE_CHAT), None)


def mistaken(text: str) -> tuple[tuple[str, str | None], ...]:
    """What looks like a placeholder and is none, each with the one that may be meant."""
    if "{{" not in text:
        return ()
    found = [(match[0], match[1]) for match in re.finditer(_NAMED, text) if not re.fullmatch(_PLACEHOLDER, match[0])]
    return tuple((written, _meant(name)) for written, name in found)


def _meant(name: str) -> str | None:
    meant = nearest(name.upper().replace("-", "_"), NAMES)
    return f"{{{{{meant}}}}}" if meant else None


def variables(text: str) -> tuple[str, ...]:
    """The names of the `${VARIABLES}` in a text, in order."""
    return tuple(re.findall(_VARIABLE, text)) if "${" in text else ()
