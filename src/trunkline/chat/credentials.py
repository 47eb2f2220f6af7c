"""A token or a password of a platform: written down as `KEY`, or in the variable that `KEY_env` names.

`KEY_env` wants a name, and people paste the secret itself. So what may be one is refused and never shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trunkline.base.chat_platforms import PLATFORMS
from trunkline.core.faults import ConfigError

#: What can be no token: those have small letters, or signs. A variable may have any name, but then it is set.
_SURELY_A_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")


def secret(platform: str, table: Mapping[str, Any], key: str, environ: Mapping[str, str]) -> str | None:
    """The secret of that key, from the platform's table or from the environment; None if there is none.

    The usual variable of the platform's entry is looked at unless the table names another one.

    Raises:
        ConfigError: the table names a variable that is not set.
    """
    if table.get(key):
        return str(table[key])
    variable = PLATFORMS[platform].secrets[key]
    named = table.get(f"{key}_env")
    value = environ.get(named or variable, "").strip()
    if value or not named:
        return value or None
    where = f"`bridge.{platform}.{key}_env`"
    if _SURELY_A_NAME.fullmatch(named):
        raise ConfigError(f"{where} names `{named}`, which is not set.", hint=f"Set `{named}` to the {key}.")
    raise ConfigError(
        f"{where} is not the name of a variable that is set.",
        hint=f"Write a name there, such as `{variable}`, and set that variable to the {key}; or write the {key} itself "
        f"as `{key}`.",
    )
