"""A conversation as the command line opens it: which agent answers, how it is kept, and what may be done unasked."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from trunkline.agents import registry
from trunkline.agents.with_model import made
from trunkline.base.environ_secrets import url_secrets
from trunkline.base.programs import own_command_here
from trunkline.base.redact import Redactor
from trunkline.base.values import Value
from trunkline.base.vocabulary import Mode
from trunkline.cli import opening as cli
from trunkline.core.agent import Agent, Capabilities, OpenRequest
from trunkline.core.events import Envelope, Event, Gap, ToolJudged, TurnStarted
from trunkline.core.faults import ConfigError, Fault, SessionNotFound
from trunkline.core.log import EventLog, Restored
from trunkline.core.recorder import Sink
from trunkline.core.redaction import Redaction
from trunkline.core.session import Session
from trunkline.core.usage import Usage
from trunkline.store.waiting import until_free

if TYPE_CHECKING:
    from trunkline.agents.coder.settings import CoderSettings
    from trunkline.cli.remote_session import RemoteSession
    from trunkline.cli.talk_voice import TerminalVoice


class ChatOptions(Value):
    """What the command line said."""

    agent: str | None = None
    script: str | None = None
    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    profile: str | None = None
    max_tokens: int | None = None
    max_turns: int | None = None
    thinking_budget: int | None = None
    effort: str | None = None
    sandbox: str | None = None
    system_prompt: str | None = None
    workspace: str | None = None
    session_id: str | None = None
    resume: str | None = None
    anyway: bool = False
    no_session: bool = False
    mode: Mode | None = None
    allow: str | None = None
    auto_approve: bool = False
    quiet: bool = False
    lines: bool = False
    trace: bool = False
    record: str | None = None
    sound: str | None = None
    command: tuple[str, ...] = ("trunkline", "chat")
    """What was typed, without those of the options that are here."""
    attach: bool = False
    """Whether the session is one of the exchange that runs here."""
    given: Agent | None = None
    """Who answers, if the command knows that already."""
    voice: TerminalVoice | None = None
    """How it is spoken with, if it is."""
    notes: tuple[str, ...] = ()
    """What people should know about who that is."""
    sinks: tuple[Sink, ...] = ()
    """Who else is shown what happens."""

    @property
    def directory(self) -> str:
        """The workspace.

        Raises:
            ConfigError: it is no directory.
        """
        return cli.directory(self.workspace)


class Opening(NamedTuple):
    """Who answers: the agent, the options to open it with, and what people should know about the choice."""

    agent: Agent
    options: dict[str, Any]
    notes: tuple[str, ...] = ()
    settings: CoderSettings | None = None
    """What the coding agent is configured to do; other agents have none."""


class AgentElsewhere:
    """An agent of the exchange: here it has a name, and opens nothing."""

    capabilities = Capabilities()

    def __init__(self, name: str) -> None:
        self.name = name

    async def open(self, request: OpenRequest) -> NoReturn:
        """It does not."""
        raise ConfigError("The agent is in the exchange.")


async def opening(options: ChatOptions) -> Opening:
    """Decide who answers. If nobody told the coding agent of a model, it gets the one that is found here.

    Raises:
        ConfigError: nobody can, as configured.
    """
    given = {option: getattr(options, option) for option in cli.MODEL_OPTIONS}
    if options.trace or options.record is not None:
        given["diagnostics"] = True
    if options.attach:
        return Opening(AgentElsewhere(options.agent or ""), given)
    if options.given is not None:
        return Opening(options.given, given, options.notes)
    make = partial(cli.make_agent, options.agent, options.script, options.directory)
    agent, found = await made(make, given, os.environ)
    # What lacks only a model that was replaced is no problem.
    if given.get("model") is None and (why := registry.problem(agent, options.directory)) is not None:
        raise ConfigError(f"The agent `{options.agent}` cannot answer. {why}")
    settings = cli.settings_of(agent)
    notes = (found.told if found else settings.why,) if settings else ()
    return Opening(agent, given, notes, settings)


class TerminalSession:
    """An open session. Made by `open`, ended by `close`."""

    def __init__(self, session: Session, opened: Opening, *, kept: bool, told: str | None = None) -> None:
        self.session = session
        self.told = told
        """What people should know about what the agent knows."""
        self.agent = opened.agent
        settings = opened.settings
        default = getattr(opened.agent, "default_model", None)
        configured = settings.model.model if settings else opened.options.get("model") or default
        self.model: str | None = session.capabilities.model or configured
        """As far as it is known: what prices are looked up by."""
        self._first_model = self.model
        self.kept = kept
        self._remote: RemoteSession | None = None
        self._prices = settings.prices if settings else {}

    @classmethod
    async def open(
        cls,
        options: ChatOptions,
        opened: Opening,
        *,
        interactive: bool,
        on_judged: Callable[[ToolJudged], None],
        tell: Callable[[str], None],
    ) -> TerminalSession:
        """Begin or resume. `on_judged` hears of each call that the approval policy answers, before it begins; `tell`
        what is waited for meanwhile.

        Raises:
            ConfigError: the agent or the session cannot be had.
        """
        if options.attach:
            return await cls._attached(options, opened, interactive=interactive)
        workspace = options.directory
        secrets = cli.redactor(opened.agent)
        policy = cli.policy(options.allow, agent=opened.agent, interactive=interactive)
        is_kept = not options.no_session and cli.keeps_sessions(opened.agent, workspace)
        take = partial(
            cli.session_log,
            workspace,
            session_id=options.session_id,
            resume=options.resume,
            kept=is_kept,
            agent=opened.agent.name,
            given=cli.said_again(options),
            anyway=options.anyway,
        )
        # A person sees that it is in use, and need not wait to be told; one that is being closed is waited for.
        kept = await until_free(take, 0.0, tell=tell)
        log = kept.log if kept.resumed else _NewLog(kept.log)
        try:
            session = await Session.open(
                opened.agent,
                log,
                policy,
                resume=kept.resumed,
                mode=kept.mode(cli.first_mode(options.mode, auto_approve=options.auto_approve), policy),
                workspace=workspace,
                instructions=options.system_prompt,
                options=opened.options,
                said=[name for name in cli.MODEL_OPTIONS if getattr(options, name) is not None],
                redact=_heard(secrets, on_judged),
                goes_on=interactive,
            )
            told = await cli.settle(session, kept)
        except BaseException as error:
            # A start that failed leaves nothing behind.
            log.close()
            if isinstance(error, Fault) and opened.settings is not None:
                error.add(opened.settings.warnings)
            raise
        for sink in options.sinks:
            session.attach(sink)
        return cls(session, opened, kept=is_kept, told=told)

    @classmethod
    async def _attached(cls, options: ChatOptions, opened: Opening, *, interactive: bool) -> TerminalSession:
        from trunkline.base.attach import AttachHeader
        from trunkline.cli.attaching import workspace
        from trunkline.cli.remote_session import RemoteSession

        header = AttachHeader("chat", options.agent, options.session_id, options.resume, workspace(options.workspace))
        remote = await RemoteSession.open(header, interactive=interactive)
        session = cast("Session", remote)
        for sink in options.sinks:
            session.attach(sink)
        talk = cls(session, opened._replace(agent=AgentElsewhere(remote.agent)), kept=True)
        talk._remote = remote
        return talk

    @property
    def joined(self) -> bool:
        """Whether others may be in it, too, and a turn of theirs is in progress."""
        return self._remote is not None and self._remote.turn > 0

    @property
    def in_progress(self) -> bool:
        """Whether there is a turn to follow: somebody else's, or one that an earlier process began."""
        return self.joined or (self._remote is None and self.session.turn > 0)

    @property
    def gone(self) -> Fault | None:
        """Why it can be used no more, if it lived in an exchange that is gone."""
        return None if self._remote is None else self._remote.fault

    async def close(self) -> None:
        """End it. A session in which nothing was said is not kept."""
        await self.session.close()

    async def suspend(self) -> None:
        """The same, but what somebody is being asked is asked again when the session is resumed."""
        await (self.session.close() if self._remote is not None else self.session.suspend())

    def cost(self, usage: Usage | None) -> float | None:
        """US dollars; None where the price or the number of tokens is not known."""
        if usage is None or self.model is None:
            return None
        from trunkline.models import prices

        return prices.cost(self.model, usage, self._prices.get(self.model))

    def as_chosen(self, options: ChatOptions) -> ChatOptions:
        """The options that it was opened with, and the model that was chosen in it since: the session keeps that, but
        what is said when it is resumed counts more."""
        is_said = options.model is not None or options.profile is not None
        return options.replace(model=self.model) if is_said and self.model != self._first_model else options

    @property
    def resumable(self) -> bool:
        """Whether there is something to come back to."""
        return self.kept and self.session.state.turns > 0 and not isinstance(self.gone, SessionNotFound)


def resume_command(options: ChatOptions, session_id: str) -> str:
    """What to type to go on with a session. An address with a key in it is not repeated: people copy what they see."""
    # What was typed first is us, wherever we are.
    words = [*options.command[1:], *([options.agent] if options.agent else [])]
    # The exchange's file sets what answers there.
    given = ("workspace",) if options.attach else (*cli.RESUME_OPTIONS, "workspace")
    for name in given:
        value = getattr(options, name)
        if value is not None:
            words += [f"--{name.replace('_', '-')}", "URL" if any(url_secrets(value)) else value]
    rest = shlex.join([*words, *(["--attach"] if options.attach else []), "--resume", session_id])
    return f"{own_command_here()} {rest}"


def _heard(secrets: Redactor, on_judged: Callable[[ToolJudged], None]) -> Callable[[Event], Sequence[Event]]:
    """Redacts events, and passes on those that are for the log alone and worth showing to the user all the same."""
    redact = Redaction(secrets)

    def hear(event: Event) -> Sequence[Event]:
        clean = redact(event)
        for each in clean:
            if isinstance(each, ToolJudged):
                on_judged(each)
        return clean

    return hear


class _NewLog:
    """The log of a new session, which is discarded if nothing was ever said in it."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._begun = False

    @property
    def session(self) -> str:
        return self._log.session

    @property
    def shows_kept(self) -> bool:
        return self._log.shows_kept

    def append(self, envelope: Envelope) -> int:
        self._begun = self._begun or isinstance(envelope.event, TurnStarted)
        return self._log.append(envelope)

    def flush(self) -> None:
        self._log.flush()

    async def sync(self) -> None:
        await self._log.sync()

    def read(self, since: int = 0) -> Iterator[Envelope | Gap]:
        return self._log.read(since)

    def restore(self) -> Restored:
        return self._log.restore()

    def close(self) -> None:
        if self._begun:
            self._log.close()
        else:
            self._log.discard()

    def ending(self) -> None:
        self._log.ending()

    def discard(self) -> None:
        self._log.discard()


#: Events that may wait to be shown before the agent is asked to wait, too.
MAX_WAITING = 1000


class EventQueue:
    """A sink whose events are taken when there is time to show them. The agent waits if that takes long."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._room = asyncio.Event()
        self.news = asyncio.Event()
        """Set when there is something to take."""

    @property
    def congested(self) -> bool:
        return len(self._events) > MAX_WAITING

    def show(self, envelopes: Sequence[Envelope]) -> None:
        self._events.extend(envelope.event for envelope in envelopes)
        self.news.set()

    async def drain(self) -> None:
        while self.congested:
            self._room.clear()
            await self._room.wait()

    def put(self, event: Event) -> None:
        """An event that did not come through the session."""
        self._events.append(event)
        self.news.set()

    def take(self) -> list[Event]:
        """All that is there."""
        events = list(self._events)
        self._events.clear()
        self.news.clear()
        self._room.set()
        return events
