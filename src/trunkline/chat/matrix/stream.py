"""The stream of what happens in an account's rooms: asked for without end, without gaps, and confirmed when taken.

The homeserver gives what came after a token, and the next token. The token is kept when all that came with it was
taken; so a crash repeats some of it, and loses nothing. What one answer does not hold is asked for.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

from trunkline.chat.matrix.client import Homeserver, MatrixRefused
from trunkline.chat.matrix.events import (
    FILTER,
    TIMELINE_EVENTS,
    TYPES,
    Happened,
    Invite,
    MatrixRoom,
    Synced,
    events_of,
    happened,
    read,
    since_we_came,
)
from trunkline.chat.matrix.state import StateKeeper
from trunkline.chat.platform import NotNow, SendFailed, TokenRefused, Unclear
from trunkline.core.faults import ConfigError

#: How long the server holds a request for news when there are none, and what it may take on top of that.
POLL_SECONDS = 30.0
POLL_MARGIN_SECONDS = 30.0
#: The first and the longest wait before the server is asked again after a failure.
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0
#: Times that one room's business may fail on the server's side before the other rooms go on without it.
TRIES = 5
#: Events of one room that are asked for after a long absence. Nobody waits for answers to more than that.
MOST_MISSED = 1000

T = TypeVar("T")

_logger = logging.getLogger(__name__)


class SyncStream:
    """What happens in the rooms of one account.

    `may_invite` says whose invitations are accepted; `renew` gets a new token when the old one is refused, and raises
    when there is none to be had.
    """

    def __init__(
        self,
        server: Homeserver,
        keeper: StateKeeper,
        me: str,
        *,
        may_invite: Callable[[str], bool],
        renew: Callable[[], Awaitable[None]],
    ) -> None:
        self._server = server
        self._keeper = keeper
        self._me = me
        self._may_invite = may_invite
        self._renew = renew

    async def events(self) -> AsyncGenerator[Happened, None]:
        """What others do, until the connection is closed. The next is asked for when the one before is safe.

        Raises:
            ConfigError: the token is refused, and there is no other.
        """
        while not self._server.closed.is_set():
            answer = await self._repeated(self._sync)
            if answer is None:
                return
            since, synced = answer
            for invite in synced.invites:
                await self._answer(invite)
            # Who begins without a token begins now: what was said before was not said to us.
            for room in synced.rooms if since else ():
                for found in happened(room.id, await self._complete(room, since), self._me):
                    yield found
            if not self._server.closed.is_set():
                self._keeper.keep(since=synced.next)

    async def _sync(self) -> tuple[str, Synced]:
        """What came after the token that is kept, and that token."""
        since = self._keeper.state.since
        poll = POLL_SECONDS if since else 0.0
        request = self._server.api.sync("", since or None, int(poll * 1000), FILTER, set_presence="online")
        try:
            return since, read(await self._server.call(request, seconds=poll + POLL_MARGIN_SECONDS), self._me)
        except MatrixRefused as error:
            if since and error.status == 400:
                # A server that was set up anew does not know the token, and never will.
                _logger.warning("the homeserver does not know the sync token; going on from now (%s)", error)
                self._keeper.keep(since="")
            raise NotNow(str(error)) from None
        except ValueError as error:
            raise NotNow(f"the homeserver's answer cannot be understood: {error}") from None

    async def _complete(self, room: MatrixRoom, since: str) -> tuple[Mapping[str, Any], ...]:
        """The events of a room since the token, or since we came."""
        begin, came = since_we_came(room.events, self._me)
        if room.gap is None or came:
            return room.events[begin:]
        events: list[Mapping[str, Any]] = []
        start: str | None = room.gap
        while start is not None and len(events) < MOST_MISSED:
            page = await self.business(f"`{room.id}`: what was missed", self._page(room.id, start, since))
            chunk = events_of(page.get("chunk")) if page else ()
            events += chunk
            following = page.get("end") if page and chunk else None
            start = following if isinstance(following, str) and following != start else None
        if start is not None:
            _logger.warning("`%s`: more than %d events were missed; the oldest are skipped", room.id, MOST_MISSED)
        # They come newest first.
        missed = tuple(reversed(events))
        begin, _ = since_we_came(missed, self._me)
        return missed[begin:] + room.events

    def _page(self, room: str, start: str, end: str) -> tuple[Any, ...]:
        wanted = {"types": list(TYPES)}
        request: tuple[Any, ...] = self._server.api.room_messages("", room, start, end, "b", TIMELINE_EVENTS, wanted)
        return request

    async def _answer(self, invite: Invite) -> None:
        api = self._server.api
        if self._may_invite(invite.sender):
            if await self.business(f"`{invite.room}`: joining it", api.join("", invite.room)) is not None:
                _logger.info("`%s` invited us to `%s`", invite.sender, invite.room)
        else:
            await self.business(f"`{invite.room}`: declining to join it", api.room_leave("", invite.room))
            _logger.warning("`%s` is not on the allow-list and was declined: an invitation to a room", invite.sender)

    async def business(self, what: str, request: tuple[Any, ...]) -> dict[str, Any] | None:
        """Do something in one room. None when it cannot be done: the other rooms do not wait for it for ever."""
        tries = 0

        async def attempt() -> dict[str, Any] | None:
            nonlocal tries
            tries += 1
            try:
                return await self._server.call(request)
            except (MatrixRefused, Unclear) as error:
                if isinstance(error, Unclear) and tries < TRIES:
                    raise
                _logger.warning("%s did not work: %s", what, error)
                return None

        return await self._repeated(attempt)

    async def _repeated(self, attempt: Callable[[], Awaitable[T]]) -> T | None:
        """Try until it works; None when the connection was closed meanwhile."""
        wait = FIRST_WAIT_SECONDS
        while not self._server.closed.is_set():
            try:
                return await attempt()
            except TokenRefused as error:
                if self._server.closed.is_set():
                    return None
                _logger.warning("%s", error)
                await self._renewed()
                seconds: float | None = None
            except SendFailed as error:
                seconds = error.seconds if isinstance(error, NotNow) else None
                _logger.debug("trying again: %s", error)
            # Not all at the same moment, when many wait for one server.
            await self._pause(seconds if seconds is not None else wait * random.uniform(0.5, 1.0))  # noqa: S311  # no secret
            wait = min(wait * 2, LONGEST_WAIT_SECONDS)
        return None

    async def _renewed(self) -> None:
        """Get a new token, unless the server cannot be asked for one now.

        Raises:
            ConfigError: there is none to be had.
        """
        try:
            await self._renew()
        except ConfigError as error:
            if not error.retryable:
                raise
            _logger.warning("%s", error)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._server.closed.wait()
        except TimeoutError:
            return
