"""How models are named: built-in ones by a word, those of a hub as `owner/repository[:file]`."""

from __future__ import annotations

import re

from trunkline.core.faults import ConfigError

#: No hub lets a name begin with a point: `..` is the folder above.
_REPOSITORY = r"\w[\w.-]*/\w[\w.-]*"
#: How a repository is named.
REPOSITORY = re.compile(_REPOSITORY)
_NAME = re.compile(rf"({_REPOSITORY})(?::(.+))?")


def split(name: str) -> tuple[str, str] | None:
    """The repository of a name and the file of it, or an empty text; None if it is no name of a model on a hub.

    `models/mine.gguf` is taken for a path.
    """
    found = _NAME.fullmatch(name)
    if found is None or (not found[2] and name.endswith(".gguf")):
        return None
    return found[1], found[2] or ""


def check(name: str) -> None:
    """Nothing, if it can be the name of a model, here or on a hub.

    Raises:
        ConfigError: it cannot; the text says what a name looks like.
    """
    if name.strip() and ("/" not in name or split(name) is not None):
        return
    raise ConfigError(
        f"`{name}` is not the name of a model." if name.strip() else "The name of the model is empty.",
        hint="Names are built in (`trunkline models list`) or look like `OWNER/REPOSITORY` or `OWNER/REPOSITORY:FILE`.",
    )
