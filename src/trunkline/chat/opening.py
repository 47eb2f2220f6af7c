"""How the bridge opens a session: which agent answers, what may be done unasked, and what must not be shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from trunkline.agents.with_model import made
from trunkline.base import paths
from trunkline.base.chat_platforms import PLATFORMS
from trunkline.base.environ_secrets import environment_secrets
from trunkline.base.redact import Redactor
from trunkline.base.vocabulary import DEFAULT_ALLOW
from trunkline.chat.limiter import TurnLimiter
from trunkline.chat.settings import BridgeSettings
from trunkline.core.agent import Agent
from trunkline.core.approvals import Policy
from trunkline.core.events import UserMessage
from trunkline.core.faults import ConfigError
from trunkline.core.ids import new_id
from trunkline.core.log import SessionStore
from trunkline.core.redaction import Redaction
from trunkline.core.rules import NO_RULES
from trunkline.core.session import Session
from trunkline.wires.agentproc.profile import Profile

Make = Callable[[str, Mapping[str, Any]], Agent]


class Opener:
    """Opens sessions as the settings say. `make` is how agents are made: by the registry, if left out."""

    def __init__(
        self,
        settings: BridgeSettings,
        *,
        make: Make | None = None,
        sessions: SessionStore | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.settings = settings
        self._make = make
        self._sessions = sessions
        self._environ = environ
        self._known = (
            *settings.secrets,
            *(environ[name] for name in variables(settings, PLATFORMS) if environ.get(name)),
        )
        self.redactor = Redactor.from_environ(environ)
        """Knows the secrets of the environment and of the settings."""
        self.redactor.learn(self._known)
        self.limiter = TurnLimiter()
        """For the turns of all bridges that open their sessions here."""

    shares = False
    """Whether others are in these sessions, who must be told apart. Then a turn goes on when the bridge ends, and the
    next run of the bridge shows the rest of it."""

    async def open(self, name: str, session_id: str | None = None, *, chat: str = "") -> Session:
        """A new session with the agent of that name, or the one of that id. `chat` is what agents call the chat.

        Raises:
            SessionNotFound: there is none of that id.
            SessionDamaged: its log cannot be read.
            ConfigError: the agent or the session cannot be had for another reason.
        """
        agent, options = await self._agent(self.settings.agents[name])
        store = self._store()
        workspace = self.settings.workspace
        log = store.create(new_id(), workspace, agent.name) if session_id is None else store.open(session_id)
        try:
            return await Session.open(
                agent,
                log,
                self._policy(agent),
                resume=session_id is not None,
                mode=self.settings.mode,
                workspace=workspace,
                instructions=self.settings.instructions,
                name=chat,
                options=options,
                redact=Redaction(self._secrets(agent)),
            )
        except BaseException:
            if session_id is None:
                log.discard()
            else:
                log.close()
            raise

    async def submit(self, session: Session, message: UserMessage) -> int:
        """Have a message answered; gives the number of its turn, in the tick in which the session has it.

        Raises:
            Fault: it was not taken.
        """
        return session.submit(message)

    async def close(self, session: Session) -> None:
        """End a session that `open` gave. It can be opened again."""
        await session.close()

    async def check(self, name: str) -> str:
        """Whether the agent of that name can be made and, as far as it knows, answer: what it is, for people.

        Raises:
            ConfigError: it cannot.
        """
        agent, _ = await self._agent(self.settings.agents[name])
        from trunkline.agents import registry

        if (problem := registry.problem(agent, self.settings.workspace)) is not None:
            raise ConfigError(problem)
        return agent.name

    async def _agent(self, spec: str) -> tuple[Agent, dict[str, Any]]:
        options: dict[str, Any] = {"workspace": self.settings.workspace}
        agent, _ = await made(partial(self._made, spec), options, self._environ)
        self._learn(agent)
        return agent, options

    def _learn(self, agent: Agent) -> None:
        """Know the secrets that are written down in an agent's profile. Those of its variables are known already."""
        profile = getattr(agent, "profile", None)
        if isinstance(profile, Profile):
            self.redactor.learn(environment_secrets(profile.env))

    def _made(self, spec: str, options: Mapping[str, Any]) -> Agent:
        if self._make is not None:
            return self._make(spec, options)
        from trunkline.agents import registry

        return registry.make(spec, options)

    def _store(self) -> SessionStore:
        if self._sessions is None:
            from trunkline.store.files import FileStore

            self._sessions = FileStore(paths.sessions_dir(self._environ))
        return self._sessions

    def _policy(self, agent: Agent) -> Policy:
        # An agent's own `auto_approve` is not followed: it was said about a terminal whose user is the owner.
        own = getattr(agent, "settings", None)
        allowed = getattr(own, "allow", None)
        rules = getattr(own, "permissions", NO_RULES)
        return Policy(self.settings.mode, allow=DEFAULT_ALLOW if allowed is None else allowed, rules=rules)

    def _secrets(self, agent: Agent) -> Redactor:
        """What must not be shown: an agent's own redactor also knows the secrets of its configuration."""
        own: Redactor | None = getattr(agent, "redactor", None)
        if own is None:
            return self.redactor
        own.learn(self._known)
        return own


def variables(settings: BridgeSettings, served: Iterable[str]) -> tuple[str, ...]:
    """The variables of the environment that hold the platforms' tokens and passwords.

    Those that the settings name, and the usual ones of the platforms that are configured or `served`.
    """
    named = (
        value
        for table in settings.platforms.values()
        for key, value in table.items()
        if key.endswith("_env") and isinstance(value, str)
    )
    usual = (name for platform in (*settings.platforms, *served) for name in PLATFORMS[platform].secrets.values())
    return tuple(dict.fromkeys((*named, *usual)))
