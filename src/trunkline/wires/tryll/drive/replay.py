"""What a session consists of, in the order in which it came to be, so that a new connection can have it again.

An agent keeps the engines and the storages that it was made with, also when the session has others by now: so the
configurations are gone through again, and a storage that is destroyed is made and destroyed again if somebody was made
in between. What nobody needs any longer is forgotten.

What cannot be made again fails alone: an agent or a voice input raises the reason from then on, until the next
connection, and a storage is only missed by those who use it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Protocol

from trunkline.base.values import Value
from trunkline.wires.tryll.drive.connection import ClientConnection
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import (
    PROTOCOL_VERSION,
    Ack,
    ConfigureSessionRequest,
    ConfigureSessionResponse,
    FromClient,
    FromServer,
    NodeParams,
)

logger = logging.getLogger(__name__)

#: How long anything may take that needs no model.
REQUEST_SECONDS = 30.0
#: How long a server may be silent while it fetches, loads or embeds: not all of them show progress.
MODEL_SECONDS = 300.0

#: After these another connection is tried, also while one is being made: the server may be starting anew.
PASSING = (1001, 1002, 1003, 2001)
#: Steps that nobody needs any longer, beyond which it is worth looking for them.
_STALE = 64


class Reconnect(Value):
    """How hard a lost connection is tried to be made again."""

    attempts: int = 6
    first_seconds: float = 0.1
    """The pause before the second attempt; each later one is twice as long."""
    longest_seconds: float = 5.0

    def pauses(self) -> Iterator[float]:
        """How long it is waited after each attempt but the last."""
        pause = self.first_seconds
        for _ in range(1, self.attempts):
            yield pause
            pause = min(2 * pause, self.longest_seconds)


class Made(Protocol):
    """An agent or a voice input."""

    async def create(self, link: ClientConnection, timeout: float) -> None:
        """Make it again.

        Raises:
            TryllError: it cannot be made.
        """

    def fail(self, error: TryllError) -> None:
        """It cannot be made again."""


class MadeAgent(Made, Protocol):
    """An agent."""

    async def change_again(self, link: ClientConnection, node: str, params: NodeParams) -> None:
        """Give a node the parameters that it had. Raises as `create`."""


class _Step(Value):
    pass


class _Configured(_Step):
    config: ConfigureSessionRequest


class _Stored(_Step):
    key: tuple[type[FromServer], str]
    request: FromClient


class _Dropped(_Step):
    key: tuple[type[FromServer], str]
    request: FromClient


class _Created(_Step):
    made: Made


class _Changed(_Step):
    made: MadeAgent
    node: str
    params: NodeParams


class SessionReplay:
    """The steps of one session. Each is told when the server has done it."""

    def __init__(self, config: ConfigureSessionRequest) -> None:
        self.config = config
        """The one that holds now."""
        self._steps: list[_Step] = [_Configured(config)]
        self._alive: set[Made] = set()
        self._stale = 0

    @property
    def making_seconds(self) -> float:
        """How long the server may be silent while it makes an agent."""
        return _making_seconds(self.config)

    def configured(self, config: ConfigureSessionRequest) -> None:
        """From now on it is another one."""
        self.config = config
        self._add(_Configured(config))

    def stored(self, expected: type[FromServer], name: str, request: FromClient) -> None:
        """There is a storage. What answers the request tells its sort."""
        self._steps.append(_Stored((expected, name), request))

    def dropped(self, expected: type[FromServer], name: str, request: FromClient) -> None:
        """It is no more."""
        self._add(_Dropped((expected, name), request))

    def created(self, made: Made) -> None:
        """There is an agent, or a voice input."""
        self._alive.add(made)
        self._steps.append(_Created(made))

    def changed(self, made: MadeAgent, node: str, params: NodeParams) -> None:
        """One of its nodes has other parameters."""
        self._add(_Changed(made, node, params))

    def released(self, made: Made) -> None:
        """It is no more. Idempotent."""
        self._alive.discard(made)
        self._tire()

    async def replay(self, link: ClientConnection) -> None:
        """Do everything again.

        Raises:
            TryllError: the session cannot be configured, or the connection is of no use.
        """
        self._steps = self._needed()
        config = self.config
        unusable: TryllError | None = None
        for step in list(self._steps):
            try:
                if isinstance(step, _Configured):
                    config, unusable = step.config, None
                    # What lets us in is what holds now.
                    asked = config.replace(token=self.config.token)
                    await link.request(asked, ConfigureSessionResponse, REQUEST_SECONDS)
                elif unusable is not None and not isinstance(step, _Dropped):
                    raise unusable
                else:
                    await self._do(step, link, _making_seconds(config))
            except TryllError as error:
                if link.lost is not None or error.code in PASSING:
                    raise
                if isinstance(step, _Configured):
                    if config is self.config:
                        raise
                    unusable = error
                self._failed(step, error)

    async def _do(self, step: _Step, link: ClientConnection, seconds: float) -> None:
        if isinstance(step, _Stored):
            await link.request(step.request, step.key[0], MODEL_SECONDS)
        elif isinstance(step, _Dropped):
            await link.request(step.request, Ack, REQUEST_SECONDS)
        elif isinstance(step, _Created) and step.made in self._alive:
            await step.made.create(link, seconds)
        elif isinstance(step, _Changed) and step.made in self._alive:
            await step.made.change_again(link, step.node, step.params)

    def _failed(self, step: _Step, error: TryllError) -> None:
        if isinstance(step, _Created | _Changed):
            step.made.fail(error)
        elif isinstance(step, _Stored):
            logger.warning("the storage `%s` no longer exists: %s", step.key[1], error)

    # What nobody needs.

    def _add(self, step: _Step) -> None:
        self._steps.append(step)
        self._tire()

    def _tire(self) -> None:
        """Something is of no use any longer, or may be. It is looked for now and then: that takes a while."""
        self._stale += 1
        if self._stale > max(_STALE, len(self._steps) // 2):
            self._steps = self._needed()
            self._stale = 0

    def _needed(self) -> list[_Step]:
        """The steps without those that nothing follows from, looked at from the last to the first."""
        needed: set[int] = set()
        changed: set[tuple[Made, str]] = set()
        dropped: dict[tuple[type[FromServer], str], int] = {}
        known: set[tuple[type[FromServer], str]] = set()
        used = len(self._steps)
        configure = True
        for at in reversed(range(len(self._steps))):
            step = self._steps[at]
            if isinstance(step, _Configured):
                if configure:
                    needed.add(at)
                configure = False
                continue
            if isinstance(step, _Dropped):
                dropped[step.key] = at
                continue
            if isinstance(step, _Stored):
                until = dropped.pop(step.key, None)
                # Without its end there may be another one of the name: then this one was lost before.
                if (until is None and step.key in known) or (until is not None and used > until):
                    continue
                known.add(step.key)
                if until is not None:
                    needed.add(until)
            elif isinstance(step, _Created):
                if step.made not in self._alive:
                    continue
                used = at
            elif isinstance(step, _Changed):
                if step.made not in self._alive or (step.made, step.node) in changed:
                    continue
                changed.add((step.made, step.node))
                used = at
            needed.add(at)
            configure = True
        return [step for at, step in enumerate(self._steps) if at in needed]


def versioned(config: ConfigureSessionRequest) -> ConfigureSessionRequest:
    """The configuration, for the protocol that we speak."""
    return config.replace(protocol_version=PROTOCOL_VERSION)


def _making_seconds(config: ConfigureSessionRequest) -> float:
    return MODEL_SECONDS if config.allow_auto_model_downloading else REQUEST_SECONDS
