"""Whether commands run in the sandbox: what was asked for, and what this machine has."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from trunkline.base import paths
from trunkline.core.faults import ConfigError

if TYPE_CHECKING:
    from trunkline.agents.coder.settings import CoderSettings
    from trunkline.base.redact import Redactor
    from trunkline.tools.sandbox.sandbox import Sandbox


def with_sandbox(settings: CoderSettings) -> CoderSettings:
    """The settings with `sandbox` as it will be: on or off. Only who asks for one waits for the trial.

    Raises:
        ConfigError: it must be on, and cannot be had; or its allow-list names something other than hosts.
    """
    if settings.sandbox in (None, "off"):
        return settings.replace(sandbox="off")
    from trunkline.tools.sandbox.availability import problem
    from trunkline.tools.sandbox.proxy import is_entry

    for entry in settings.sandbox_hosts:
        if not is_entry(entry):
            raise ConfigError(
                f"`[sandbox] network`: `{entry}` is not the name of a host.",
                hint="Write `pypi.org`, `*.github.com` or `localhost:5432`.",
            )
    why_not = problem()
    if not why_not:
        return settings.replace(sandbox="on")
    if settings.sandbox == "on":
        raise ConfigError(
            f"There is no sandbox here: {why_not}.",
            hint="`--sandbox auto` uses one where it can be had, `--sandbox off` none.",
        )
    return settings.replace(
        sandbox="off",
        warnings=(*settings.warnings, f"There is no sandbox here, so commands run without one: {why_not}."),
    )


def sandbox_for(settings: CoderSettings, workspace: str, redactor: Redactor) -> Sandbox | None:
    """The sandbox of a conversation, if it has one. `redactor` knows values that no command is to have.

    Raises:
        ConfigError: it would keep nothing out.
    """
    if settings.sandbox != "on":
        return None
    import trunkline
    from trunkline.agents.coder.extending.folders import NAMES
    from trunkline.base import config_aionrs
    from trunkline.base.config import PROJECT_FILE
    from trunkline.models.credentials import without_credentials
    from trunkline.tools.sandbox.sandbox import Sandbox

    if os.path.realpath(workspace) == os.sep:
        raise ConfigError(
            "There is no sandbox where the workspace is the whole file system.", hint="Work in a directory of its own."
        )
    return Sandbox(
        workspace,
        network=settings.sandbox_hosts,
        clean=lambda environ: without_credentials(environ, redactor),
        # Our code, too, wherever it lies: what is loaded later, and the launcher itself, run outside of the sandbox.
        ours=(paths.config_dir(), paths.state_dir(), sys.prefix, sys.base_prefix, os.path.dirname(trunkline.__file__)),
        # What it says there would be run outside of the sandbox by the next session, or loosen what is asked about.
        reserved=(PROJECT_FILE, config_aionrs.PROJECT_FILE, *NAMES) if settings.trusted else (),
    )
