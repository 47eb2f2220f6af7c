"""A Matrix account as a platform of the bridge: rooms are chats, a direct chat is a room of two.

- What was received is confirmed by the sync token, which is kept in a file once its events were taken. After a restart
  it goes on there: nothing is lost, and what was not confirmed comes again under the same id.
- The key of a message is its transaction id: a homeserver shows one message for one id, as long as the account stays
  the same device. That is why a device that was logged in with a password is kept.
- An invitation is accepted from those who may invite, and declined from everybody else.
- Buttons are reactions that the account puts under its own message; whoever adds the same one has pressed it. What they
  mean is kept in the message itself.
- Encrypted messages cannot be read; their room is told so, once.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from hashlib import sha256
from typing import Any
from uuid import uuid4

from trunkline.chat.matrix import content, events
from trunkline.chat.matrix.account import Account, Credentials
from trunkline.chat.matrix.client import Homeserver
from trunkline.chat.matrix.state import StateKeeper
from trunkline.chat.matrix.stream import SyncStream
from trunkline.chat.platform import (
    Button,
    FileType,
    Inbound,
    InboundFile,
    Limits,
    NotNow,
    Pressed,
    SendFailed,
    StateShelf,
    Unclear,
    nobody,
)

#: Most homeservers let one account write once in five seconds for long, and ten times at once. At this rate an answer
#: of a minute is never throttled.
EDIT_SECONDS = 3.0
TYPING_SECONDS = 10.0
#: Files of more than this are not taken, whatever the homeserver allows.
MOST_FILE_BYTES = 100 * 1024 * 1024
#: Rooms whose members are remembered, and messages whose threads are.
MOST_ROOMS = 200
MOST_THREADS = 1000
#: Messages whose signs are remembered. What is forgotten is asked for again.
MOST_SIGNS = 500

ENCRYPTED = (
    "This room is encrypted, and I cannot read encrypted messages. Please write to me in a room without encryption: it "
    "is switched off when a room is made, and cannot be later."
)

#: What needs no quoting in an address, and no server has trouble with.
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,200}")


class Signs:
    """The newest messages, what the signs under them mean, and which events put those there.

    A message holds that itself; this only saves asking for it.
    """

    def __init__(self) -> None:
        self._meanings: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._events: dict[str, dict[str, str]] = {}

    def know(self, message: str, meanings: Mapping[str, str]) -> None:
        """What the signs under a message mean, none included."""
        self._meanings[message] = dict(meanings)
        self._meanings.move_to_end(message)
        while len(self._meanings) > MOST_SIGNS:
            forgotten, _ = self._meanings.popitem(last=False)
            self._events.pop(forgotten, None)

    def meanings(self, message: str) -> dict[str, str] | None:
        """What they mean; None if that is not known here."""
        return self._meanings.get(message)

    def put(self, message: str, sign: str, event: str) -> None:
        """An event put a sign under a message."""
        if message in self._meanings:
            self._events.setdefault(message, {})[content.same_sign(sign)] = event

    def missing(self, message: str, buttons: Sequence[Button]) -> list[str]:
        """The signs that are to be put there."""
        there = self._events.get(message, {})
        return [button.label for button in buttons if content.same_sign(button.label) not in there]

    def take_superfluous(self, message: str, buttons: Sequence[Button]) -> list[str]:
        """The events whose signs are to go; they count as gone."""
        wanted = {content.same_sign(button.label) for button in buttons}
        there = self._events.get(message, {})
        return [there.pop(sign) for sign in list(there) if sign not in wanted]


class MatrixPlatform:
    """One account on one homeserver. `state_dir` is a directory for this account alone."""

    def __init__(
        self,
        homeserver: str,
        *,
        state_dir: str,
        token: str | None = None,
        user: str | None = None,
        password: str | None = None,
        may_invite: Callable[[str], bool] = nobody,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """Connects to nobody yet. `may_invite` says who is let in: others' invitations and presses count for nothing.

        Raises:
            ConfigError: there are no credentials, the address is none, or `matrix-nio` is missing.
        """
        credentials = Credentials(token, user, password)
        self._account = Account(homeserver, credentials, StateKeeper.file(state_dir), environ)
        self._may_invite = may_invite
        self._limits = Limits(
            content.TEXT_BYTES,
            edit_seconds=EDIT_SECONDS,
            buttons=True,
            typing_seconds=TYPING_SECONDS,
            file_bytes=MOST_FILE_BYTES,
            idempotent=True,
        )
        self._signs = Signs()
        self._members: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._threads: OrderedDict[str, str] = OrderedDict()

    @property
    def name(self) -> str:
        return "matrix"

    @property
    def limits(self) -> Limits:
        return self._limits

    @property
    def user(self) -> str:
        """Our own id, such as `@bot:example.org`. Known when it is open."""
        return self._account.user

    def keep_state_in(self, shelf: StateShelf) -> None:
        self._account.keeper = StateKeeper.shelf(shelf)

    async def open(self) -> None:
        allowed = await self._account.open()
        if allowed is not None:
            self._limits = self._limits.replace(file_bytes=min(allowed, MOST_FILE_BYTES))

    async def receive(self) -> AsyncIterator[Inbound | Pressed]:
        account = self._account
        stream = SyncStream(
            account.server, account.keeper, account.user, may_invite=self._may_invite, renew=account.renew
        )
        async with aclosing(stream.events()) as events:
            async for found in events:
                item = await self._item(found, stream)
                if item is not None:
                    yield item

    async def send(
        self, chat: str, text: str, *, key: str, buttons: Sequence[Button] = (), reply_to: str | None = None
    ) -> str:
        thread = self._threads.get(reply_to) if reply_to is not None else None
        data = content.message(text, buttons=buttons, reply_to=reply_to, thread=thread)
        message = await self._send(chat, data, key)
        await self._show_buttons(chat, message, buttons, key)
        return message

    async def edit(self, chat: str, message: str, text: str, *, buttons: Sequence[Button] = ()) -> None:
        key = uuid4().hex
        await self._send(chat, content.change(message, text, buttons=buttons), key)
        for event in self._signs.take_superfluous(message, buttons):
            await self._quietly(self._api.room_redact("", chat, event, uuid4().hex))
        await self._show_buttons(chat, message, buttons, key)

    async def send_file(self, chat: str, path: str, *, type: FileType, name: str, key: str) -> str:
        from mimetypes import guess_type

        mimetype = guess_type(name)[0] or "application/octet-stream"
        try:
            size = os.stat(path).st_size
            if size > self._limits.file_bytes:
                raise SendFailed(f"`{name}` has {size} bytes; the homeserver takes {self._limits.file_bytes}")
            ref = await self._server.upload(path, mimetype)
        except OSError as error:
            raise SendFailed(f"`{name}` cannot be read: {error.strerror or error}") from None
        except Unclear as error:
            # A file without a message is seen by nobody: it can be uploaded again.
            raise NotNow(str(error)) from None
        return await self._send(chat, content.file(type, ref, name, mimetype, size), key)

    async def fetch(self, file: InboundFile, path: str) -> None:
        limit = self._limits.file_bytes
        place = events.media(file.ref)
        if place is None:
            raise SendFailed("that is not the address of a file on a homeserver")
        if file.size is not None and file.size > limit:
            raise SendFailed(f"the file is larger than {limit} bytes")
        part = f"{path}.part"
        try:
            await self._server.download(*place, part, limit)
            os.replace(part, path)
        except OSError as error:
            raise SendFailed(f"the file cannot be saved: {error.strerror or error}") from None
        finally:
            _remove(part)

    async def typing(self, chat: str) -> None:
        await self._quietly(self._api.room_typing("", chat, self.user, True, int(TYPING_SECONDS * 1000)))

    def measure(self, text: str) -> int:
        return content.measure(text)

    async def close(self) -> None:
        await self._server.close()

    @property
    def _server(self) -> Homeserver:
        return self._account.server

    @property
    def _api(self) -> Any:
        return self._account.server.api

    async def _send(self, chat: str, data: dict[str, Any], key: str, type: str = "m.room.message") -> str:
        answer = await self._server.call(self._api.room_send("", chat, type, data, _transaction(key)))
        event = answer.get("event_id")
        if not isinstance(event, str):
            raise Unclear("the homeserver accepted the message but did not return its id")
        return event

    async def _quietly(self, request: tuple[Any, ...]) -> dict[str, Any] | None:
        """Do what is good to have, and nothing more."""
        try:
            return await self._server.call(request)
        except SendFailed:
            return None

    async def _show_buttons(self, chat: str, message: str, buttons: Sequence[Button], key: str) -> None:
        """Put the signs under a message. Without them it can be answered in words."""
        meanings = {content.same_sign(button.label): button.data for button in buttons}
        self._signs.know(message, meanings)
        for label in self._signs.missing(message, buttons):
            try:
                event = await self._send(chat, content.reaction(message, label), f"{key}:{label}", type="m.reaction")
            except SendFailed:
                return
            self._signs.put(message, label, event)

    async def _item(self, found: events.Happened, stream: SyncStream) -> Inbound | Pressed | None:
        match found:
            case events.MatrixMessage():
                return await self._inbound(found)
            case events.Reaction():
                return await self._pressed(found, stream)
            case events.EncryptedMessage():
                await self._tell(found.room)
            case events.Moved():
                self._members.pop(found.room, None)
        return None

    async def _inbound(self, message: events.MatrixMessage) -> Inbound:
        if message.thread is not None:
            self._threads[message.id] = message.thread
            if len(self._threads) > MOST_THREADS:
                self._threads.popitem(last=False)
        members = await self._names(message.room)
        return Inbound(
            message.id,
            message.room,
            message.sender,
            message.text,
            message.files,
            sender_name=members.get(message.sender, ""),
            private=members.keys() == {self.user, message.sender},
            at=message.at,
        )

    async def _names(self, room: str) -> dict[str, str]:
        """Who is in a room; nobody if the homeserver does not say."""
        known = self._members.get(room)
        if known is None:
            answer = await self._quietly(self._api.joined_members("", room))
            if answer is None:
                return {}
            known = self._members[room] = events.names(answer)
            if len(self._members) > MOST_ROOMS:
                self._members.popitem(last=False)
        return known

    async def _pressed(self, reaction: events.Reaction, stream: SyncStream) -> Pressed | None:
        meanings = self._signs.meanings(reaction.message)
        if meanings is None:
            if not self._may_invite(reaction.sender):
                # Anybody in a room can react to anything, all day, and everybody would wait for the looking.
                return None
            request = self._api.room_get_event("", reaction.room, reaction.message)
            event = await stream.business(f"`{reaction.room}`: looking at what somebody reacted to", request)
            meanings = content.meanings(event or {}, self.user)
            self._signs.know(reaction.message, meanings)
        data = meanings.get(content.same_sign(reaction.key))
        if data is None:
            return None
        return Pressed(reaction.id, reaction.room, reaction.sender, reaction.message, data)

    async def _tell(self, room: str) -> None:
        """Say once that what is encrypted cannot be read."""
        keeper = self._account.keeper
        if room in keeper.state.told:
            return
        try:
            await self._send(room, content.notice(ENCRYPTED), f"encrypted:{room}")
        except SendFailed:
            # The next message there is as good an occasion.
            return
        keeper.keep(told=keeper.state.with_notified(room).told)


def make(
    table: Mapping[str, Any],
    environ: Mapping[str, str],
    is_allowed: Callable[[str], bool] = nobody,
) -> MatrixPlatform:
    """The account that the configuration's `[bridge.matrix]` describes.

    Raises:
        ConfigError: it does not describe one.
    """
    from trunkline.chat.matrix.account import configured

    homeserver, credentials, state_dir = configured(table, environ)
    return MatrixPlatform(
        homeserver,
        state_dir=state_dir,
        token=credentials.token,
        user=credentials.user,
        password=credentials.password,
        may_invite=is_allowed,
        environ=environ,
    )


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def _transaction(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else sha256(key.encode(errors="replace")).hexdigest()
