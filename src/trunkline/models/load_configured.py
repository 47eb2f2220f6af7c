"""What the configuration says of how a model is loaded: `[models."NAME"]`, and the variables for all models.

options = options_for("smollm2-135m").over(entry.options)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from trunkline.base import config
from trunkline.base.config_file import ConfigFileError
from trunkline.base.config_models import SCHEMA, of_variables
from trunkline.core.faults import ConfigError
from trunkline.models.load_options import LoadOptions


def options_for(*names: str, workspace: str | None = os.curdir, environ: Mapping[str, str] = os.environ) -> LoadOptions:
    """What is said of a model that goes by any of these names: variables before files, and in these the first name that
    they know. The file of a workspace counts only if the user trusts it.

    Raises:
        ConfigError: a variable or a file cannot be used.
    """
    try:
        said: Mapping[str, Any] = config.load(workspace, environ, SCHEMA).get("models", default={})
        variables = of_variables(environ)
    except ConfigFileError as error:
        raise ConfigError(f"{error}.") from None
    of_file: Mapping[str, Any] = next((said[name] for name in names if name in said), {})
    return LoadOptions(**{**of_file, **variables})
