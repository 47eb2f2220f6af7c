"""How the commands that hold a conversation open it: where, with whom, what may be done unasked, and how it is kept."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trunkline.agents import registry
from trunkline.base import paths
from trunkline.base.redact import Redactor
from trunkline.core.agent import Agent
from trunkline.core.approvals import DEFAULT_ALLOW, Policy
from trunkline.core.faults import ConfigError
from trunkline.core.ids import new_id
from trunkline.core.log import EventLog, MemoryLog
from trunkline.models.providers import NAMES
from trunkline.store.files import FileStore

if TYPE_CHECKING:
    from trunkline.agents.coder.settings import CoderSettings

#: Who answers unless somebody else is named.
DEFAULT_AGENT = "coder"
#: In place of a session's id: the one used last in the workspace.
LATEST = "latest"

#: What only an agent with a model understands.
MODEL_OPTIONS = (
    "provider",
    "model",
    "base_url",
    "profile",
    "max_tokens",
    "max_turns",
    "thinking_budget",
    "effort",
)


def directory(workspace: str | None) -> str:
    """The workspace, in full.

    Raises:
        ConfigError: it is no directory.
    """
    found = os.path.realpath(workspace or ".")
    if not os.path.isdir(found):
        raise ConfigError(f"`--workspace`: `{found}` is not a directory.")
    return found


def make_agent(name: str | None, script: str | None, workspace: str, options: Mapping[str, Any]) -> Agent:
    """Who answers.

    Raises:
        ConfigError: there is no such agent, or it lacks what it needs.
    """
    name = name or (DEFAULT_AGENT if script is None else "scripted")
    provider = options.get("provider")
    # The coding agent knows those of the configuration files, too.
    if name != DEFAULT_AGENT and provider is not None and provider not in NAMES:
        raise ConfigError(f"There is no provider `{provider}`.")
    return registry.make(name, {**options, "script": script, "workspace": workspace})


def settings_of(agent: Agent) -> CoderSettings | None:
    """What the coding agent is configured to do; other agents have none."""
    return getattr(agent, "settings", None)


def policy(allow: str | None, *, auto_approve: bool, agent: Agent, interactive: bool = True) -> Policy:
    """What needs approval: as the flags say, else as the agent's own configuration does."""
    settings = settings_of(agent)
    allowed = settings.allow if settings else None
    if allow is not None:
        allowed = tuple(filter(None, allow.split(",")))
    return Policy(
        (settings.mode if settings else None) or "default",
        auto_approve=auto_approve or (settings is not None and settings.auto_approve),
        allow=DEFAULT_ALLOW if allowed is None else allowed,
        interactive=interactive,
    )


def redactor(agent: Agent | None = None) -> Redactor:
    """Knows the secrets of the environment; an agent's own one also those of its configuration."""
    own: Redactor | None = getattr(agent, "redactor", None)
    return own if own is not None else Redactor.from_environ(os.environ)


def session_log(
    workspace: str, *, session_id: str | None, resume: str | None, kept: bool, agent: str | None = None
) -> EventLog:
    """The log to write, held by this process from here on. With `agent`, it is kept who answers, and nobody else may.

    Raises:
        ConfigError: there is no session to resume, it is another agent's, the id is taken, or another process holds it.
    """
    if not kept:
        return MemoryLog(new_id(), keep=0)
    store = FileStore(paths.sessions_dir())
    if resume is not None:
        log = store.open(store.latest(workspace) if resume == LATEST else resume)
        if agent is not None and log.agent not in (None, agent):
            log.close()
            raise ConfigError(
                f"This conversation is with `{log.agent}`, and here is `{agent}`.", hint="Begin a new conversation."
            )
        return log
    return store.create(new_id() if session_id is None else session_id, workspace, agent)
