"""What commands that serve take from flags, variables and files alike."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from trunkline.base.config import FILE_VARIABLE, user_file
from trunkline.base.config_services import settings_of
from trunkline.base.config_settled import EffectiveConfig
from trunkline.base.nearest import suggestion
from trunkline.cli import serving
from trunkline.core import configuration
from trunkline.core.faults import ConfigError

F = TypeVar("F", bound=Callable[..., Any])


def option(service: str, key: str, *, help: str, **how: Any) -> Callable[[F], F]:
    """A flag for a key of a service. It has no default of its own: what it does not say, a variable or a file may."""
    setting = settings_of(service)[key]
    by_default = f" (default: {setting.default})" if isinstance(setting.default, str) else ""
    return click.option(str(setting.flag), key, help=f"{help.rstrip('.')}{by_default}.", **how)


def config_option(command: F) -> F:
    """Give a command the option `--config`: a file in place of all others that it would look for."""

    def choose(context: click.Context, parameter: click.Parameter, said: str | None) -> None:
        if said is not None:
            # A variable: whoever reads the configuration for it, in a process of its own perhaps, reads the same.
            os.environ[FILE_VARIABLE] = os.path.abspath(said)

    return click.option(
        "--config",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        callback=choose,
        expose_value=False,
        is_eager=True,
        help="Read this configuration (TOML), and neither your own nor that of the workspace.",
    )(command)


def settled(service: str, flags: Mapping[str, Any]) -> EffectiveConfig:
    """What holds for a service; what is to be said about its files is said on standard error.

    Raises:
        ConfigError: a file or a variable cannot be used, or names a file that is not there.
    """
    found = configuration.settled(service, flags)
    for warning in found.config.all_warnings():
        serving.told(warning)
    return found


agent_option = click.option("--agent", metavar="NAME", help="An agent of the configuration, `[runner.agents.NAME]`.")


def configured_agent(name: str) -> tuple[dict[str, Any], str]:
    """What the configuration says of an agent of the runner's, and the file that does.

    Raises:
        ConfigError: there is no such agent, or a file cannot be used.
    """
    found = settled("runner", {})
    agents = found.table("agents")
    origin = found.config.origin("runner", "agents", name)
    if name not in agents or origin is None:
        raise ConfigError(
            f"There is no agent `{name}` in the configuration.{suggestion(name, agents)}",
            hint=f"Write `[runner.agents.{name}]` into `{user_file()}`.",
        )
    return agents[name], origin.file


def existing(found: EffectiveConfig, key: str, *, directory: bool = False) -> str | None:
    """A file, or a directory, that must be there.

    Raises:
        ConfigError: it is not.
    """
    path: str | None = found[key]
    if path is None or (os.path.isdir(path) if directory else os.path.isfile(path)):
        return path
    raise ConfigError(
        f"{found.source(key)}: `{key}` names `{path}`, which is not a {'directory' if directory else 'file'}."
    )
