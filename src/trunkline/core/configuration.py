"""The configuration of a service, with errors as everybody above sees them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from trunkline.base.config import ConfigFileError, load
from trunkline.base.config_services import schema_of
from trunkline.base.config_settled import EffectiveConfig
from trunkline.core.faults import ConfigError


def settled(
    service: str,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
    workspace: str | None = os.curdir,
) -> EffectiveConfig:
    """What holds for a service: its flags, its variables, the files. Without a workspace, only the user's own file.

    Raises:
        ConfigError: a file or a variable cannot be used.
    """
    try:
        found = EffectiveConfig(service, load(workspace, environ, schema_of(service)), flags, environ)
    except ConfigFileError as error:
        raise ConfigError(f"{error}.") from None
    found.config.warnings += found.exposed()
    return found
