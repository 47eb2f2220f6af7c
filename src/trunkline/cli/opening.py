"""How the commands that hold a conversation open it: where, with whom, what may be done unasked, and how it is kept."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trunkline.agents import registry
from trunkline.base import paths
from trunkline.base.environ_secrets import environment_secrets, names_a_secret, url_secrets
from trunkline.base.redact import Redactor
from trunkline.base.values import Value
from trunkline.base.vocabulary import DEFAULT_ALLOW, Mode
from trunkline.core.agent import AddHistory, Agent
from trunkline.core.approvals import BUILT_IN, Policy, unknown_tool
from trunkline.core.faults import ConfigError, SessionDamaged, SessionNotFound, Unsupported
from trunkline.core.ids import new_id
from trunkline.core.log import EventLog, MemoryLog
from trunkline.core.rules import EXPLAINED, read_rule
from trunkline.models.providers import NAMES
from trunkline.store.files import FileStore

if TYPE_CHECKING:
    from trunkline.agents.coder.settings import CoderSettings
    from trunkline.core.session import Session

#: Who answers unless somebody else is named.
DEFAULT_AGENT = "coder"
_TOOLS = (
    f"There are {', '.join(BUILT_IN)}, and those of MCP servers; "
    "if one of theirs looks like a typo, put it into `allow_list` under `[tools]`."
)
#: A comma between two tools, and none in the parentheses of a rule.
_AT_COMMA = re.compile(r",(?![^()]*\))")
#: In place of a session's id: the one used last in the workspace.
LATEST = "latest"

#: What decides who answers in a session, besides the agent's name, and whether commands are confined: to be said again
#: by whoever goes on with it.
RESUME_OPTIONS = ("script", "provider", "model", "base_url", "profile", "sandbox")
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
    "sandbox",
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


def policy(allow: str | None, *, agent: Agent, interactive: bool = True, more_tools: bool = False) -> Policy:
    """What needs approval: as the agent's own configuration says, less what the flag `--allow` adds.

    `more_tools`: the agent may get more of them later, from MCP servers that a host brings.

    Raises:
        ConfigError: `--allow` names a tool that there is not.
    """
    settings = settings_of(agent)
    named = tools_named(allow or "", agent, more_tools=more_tools)
    if settings is None:
        return Policy(allow=(*DEFAULT_ALLOW, *named), interactive=interactive)
    return Policy(
        settings.mode or "default",
        allow=(*(DEFAULT_ALLOW if settings.allow is None else settings.allow), *named),
        allow_outside=settings.allow_outside,
        interactive=interactive,
        rules=settings.permissions,
    )


def tools_named(allow: str, *agents: Agent, more_tools: bool = False) -> tuple[str, ...]:
    """The tools that `--allow` names, and the rules in it. The tools are those of our own agents; what tools others
    have, only they know.

    Raises:
        ConfigError: it names a tool that there is not, or has a rule that cannot be read.
    """
    named = tuple(word for part in _AT_COMMA.split(allow) if (word := part.strip()))
    for rule in named:
        if "(" in rule and (problem := read_rule(rule)[1]):
            raise ConfigError(f"`--allow`: the rule `{rule}`: {problem}.", hint=f"`{EXPLAINED}` says how to write it.")
    known = [settings for agent in agents if (settings := settings_of(agent)) is not None]
    more_tools = more_tools or any(settings.mcp_servers for settings in known)
    for name in named if known and len(known) == len(agents) else ():
        if problem := unknown_tool(name, more_tools=more_tools):
            raise ConfigError(f"`--allow`: {problem}", hint=_TOOLS)
    return named


def first_mode(mode: Mode | None, *, auto_approve: bool) -> Mode | None:
    """The mode that the flags say to begin with: `--auto-approve` is `yolo`, and can be left like any other.

    Whoever also says `plan` wants to agree to a plan first.
    """
    return "yolo" if auto_approve and mode != "plan" else mode


def keeps_sessions(agent: Agent, workspace: str) -> bool:
    """Whether conversations are kept: as the configuration files say, of which only some agents know."""
    settings = settings_of(agent)
    if settings is not None:
        return settings.sessions
    from trunkline.base.config import ConfigFileError, load

    try:
        return load(workspace).keeps_sessions
    except ConfigFileError:
        # What else is wrong with the files is of no concern to an agent that does not heed them.
        return True


def redactor(agent: Agent | None = None, *secrets: str) -> Redactor:
    """Knows these secrets and those of the environment; an agent's own one also those of its configuration."""
    own: Redactor | None = getattr(agent, "redactor", None)
    return own if own is not None else Redactor([*secrets, *environment_secrets(os.environ)])


class OfAnotherAgent(ConfigError):
    """The session to resume is another agent's."""

    def __init__(self, session: str, agent: str) -> None:
        super().__init__(
            f"Session `{session}` is with the agent `{agent}`.",
            hint="Name that agent, or use `--anyway` to start a new session that is given the earlier conversation.",
        )
        self.agent = agent


class OfAnotherDirectory(ConfigError):
    """The session to resume is another directory's."""

    def __init__(self, session: str, workspace: str) -> None:
        super().__init__(
            f"Session `{session}` belongs to the directory `{workspace}`.",
            hint="Go there, name it with `--workspace`, or continue here with `--anyway`.",
        )


class OpenedLog(Value):
    """A log that this process holds."""

    log: EventLog
    resumed: bool
    """Whether it is one that there was before."""
    before: str | None = None
    """What was said in the session that this one goes on from, which was another agent's."""
    is_moved: bool = False
    """Whether it was begun in another directory: what was granted there was not granted here."""

    def mode(self, said: Mode | None, policy: Policy) -> Mode | None:
        """The mode to begin with; None: the one that the session was left in."""
        return said or (policy.mode if self.is_moved else None)

    def give_up(self) -> None:
        """A start that failed leaves nothing behind: the same id may be tried again."""
        self.log.close() if self.resumed else self.log.discard()


def check_session(workspace: str, *, session_id: str | None, resume: str | None) -> None:
    """See whether there can be a session of that id, before anything is done for it. Nothing is held or made.

    Raises:
        ConfigError: there is none to resume, or the id is no id. One that is taken is told by `session_log`.
    """
    if resume is None and session_id is None:
        return
    store = FileStore(paths.sessions_dir())
    try:
        store.peek(_latest(store, workspace) if resume == LATEST else resume or session_id or "")
    except (SessionNotFound, SessionDamaged):
        if resume is not None:
            raise


def _latest(store: FileStore, workspace: str, agent: str | None = None) -> str:
    try:
        return store.latest(workspace, agent)
    except SessionNotFound as error:
        hint = "Leave `--resume` out to begin one; `trunkline sessions list` shows those of other directories."
        raise SessionNotFound(f"{error.message}.", hint=hint) from None


def said_again(options: object) -> dict[str, str]:
    """What options say of who answers, for whoever goes on with the session later, from elsewhere. Nothing secret.

    `agent` is part of it where it says more than the agent's name does: a program, a script.
    """
    said = {name: getattr(options, name, None) for name in RESUME_OPTIONS}
    found = {name: value for name, value in said.items() if value is not None and not any(url_secrets(value))}
    if os.path.isfile(script := found.get("script", "")):
        found["script"] = os.path.abspath(script)
    kind, colon, rest = (getattr(options, "agent", None) or "").partition(":")
    if colon and not _may_hold_secret(rest):
        is_file = kind in registry.FILE_FORMS and not registry.is_bundled(kind, rest) and os.path.isfile(rest)
        found["agent"] = f"{kind}:{os.path.abspath(rest) if is_file else rest}"
    return found


def _may_hold_secret(command: str) -> bool:
    from trunkline.base.secret_shapes import masked

    if masked(command) != command or any(url_secrets(command)):
        return True
    options = (word.partition("=")[0].strip("-").replace("-", "_") for word in command.split() if word.startswith("-"))
    return any(map(names_a_secret, options))


def session_log(
    workspace: str,
    *,
    session_id: str | None,
    resume: str | None,
    kept: bool,
    agent: str,
    given: Mapping[str, str] | None = None,
    anyway: bool = False,
    roams: bool = False,
) -> OpenedLog:
    """The log to write, held by this process from here on. It is kept who answers, and where; and `given`, the options
    that somebody who goes on with it has to say again: see `said_again`.

    Another agent cannot go on with a session: it knows nothing of what the first one kept for itself. `anyway` begins
    a new one then, which `settle` tells what was said. It also takes a session to another directory, where one
    that `roams` is at home anyhow. One that a process holds can be had later: see `store.waiting`.

    Raises:
        OfAnotherAgent, OfAnotherDirectory: whose the session to resume is.
        SessionHeld: another process holds it.
        ConfigError: there is none, or the id is taken.
    """
    if not kept:
        if resume is not None:
            raise SessionNotFound("Sessions are not kept here: `[session] enabled = false` in a configuration file.")
        return OpenedLog(MemoryLog(new_id(), keep=0), False)
    store = FileStore(paths.sessions_dir())
    if resume is None:
        begun = new_id() if session_id is None else session_id
        return OpenedLog(store.create(begun, workspace, agent, given), False)
    session = _latest(store, workspace, agent) if resume == LATEST else resume
    log = store.open(session)
    owner = log.agent or agent
    is_moved = log.workspace != workspace
    if owner == agent and (anyway or roams or not is_moved):
        return OpenedLog(log, True, is_moved=is_moved and not roams)
    if not anyway:
        log.close()
        raise OfAnotherAgent(log.session, owner) if owner != agent else OfAnotherDirectory(log.session, log.workspace)
    from trunkline.core.transcript import dialogue

    before = dialogue(log.read())
    log.close()
    return OpenedLog(store.create(new_id(), workspace, agent, given), False, before)


async def settle(session: Session, opened: OpenedLog) -> str | None:
    """Tell an agent what was said in the session of another, and take back what was granted in another directory.

    Gives what people should know of it.
    """
    known = len(session.state.grants)
    # Of what was granted before it was noted where, nobody can say that it was here.
    for grant in session.grants if opened.is_moved else ():
        if not grant.workspace:
            session.revoke(grant)
    if len(session.grants) < known:
        return "What was granted to this session in other directories is not granted here."
    if not opened.before:
        return None
    try:
        await session.configure(AddHistory(opened.before))
    except Unsupported:
        return "This is a new session; its agent cannot be given the earlier conversation."
    return "This is a new session; its agent is given the earlier conversation."
