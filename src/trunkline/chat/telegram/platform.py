"""A Telegram bot as a platform of the bridge: private chats, groups, and topics of forums.

- What was received is confirmed by the `offset` of the next request, so not before it was noted. What was not confirmed
  is delivered again, for a day, under the same id.
- Telegram knows no key that would make a message appear once: whether one arrived that was sent as the connection
  broke cannot be found out.
- Answers are Markdown, shown as Telegram can; see `telegram.text`.
- In groups, where a bot may send 20 messages a minute and changes count, changes are put off rather than refused by
  Telegram, which would then refuse everything for a while.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any, BinaryIO

from trunkline.base.chat_platforms import PLATFORMS
from trunkline.chat.credentials import secret
from trunkline.chat.platform import (
    Button,
    FileType,
    Inbound,
    InboundFile,
    Limits,
    NotNow,
    Pressed,
    SendFailed,
    Unclear,
    nobody,
)
from trunkline.chat.telegram.api import Api, TelegramRefused, megabytes
from trunkline.chat.telegram.receive import check, receive, who
from trunkline.chat.telegram.text import render, units
from trunkline.chat.telegram.updates import Me, message_id
from trunkline.core.faults import ConfigError

API_URL = "https://api.telegram.org"
TOKEN_VARIABLE = PLATFORMS["telegram"].secrets["token"]

#: The longest message.
TEXT_UNITS = 4096
#: One message a second in a chat is what Telegram advises, and a change counts as one; some room for what else is sent.
EDIT_SECONDS = 1.5
#: The same for groups: 20 a minute.
GROUP_SECONDS = 3.0
#: A sign of typing that comes late is of no use.
TYPING_SECONDS = 5.0
#: For an upload to be answered: Telegram stores it first.
UPLOAD_SECONDS = 120.0
#: What a bot may download, and upload. `Limits` has one number for both: the smaller one.
DOWNLOAD_BYTES = 20 * 1024 * 1024
UPLOAD_BYTES = 50 * 1024 * 1024
#: Buttons whose labels are longer together do not fit into one row on a telephone.
ROW_CHARS = 36

#: How each type is sent, and which files are taken that way. Others go as documents, and so do those that are refused.
_METHODS: Mapping[FileType, tuple[str, str, tuple[str, ...]]] = {
    "image": ("sendPhoto", "photo", (".jpg", ".jpeg", ".png", ".webp")),
    "audio": ("sendAudio", "audio", (".mp3", ".m4a")),
    "video": ("sendVideo", "video", (".mp4",)),
}
_DOCUMENT = ("sendDocument", "document")

logger = logging.getLogger(__name__)


def make(
    table: Mapping[str, Any], environ: Mapping[str, str], is_allowed: Callable[[str], bool] = nobody
) -> TelegramPlatform:
    """The bot of a `[bridge.telegram]` section: `token`, or `token_env` with the name of a variable; `api_url`.

    Everybody can write to a bot: who is let in makes no difference to it.

    Raises:
        ConfigError: there is no token.
    """
    token = secret("telegram", table, "token", environ)
    if not token:
        raise ConfigError(
            "There is no token for the Telegram bot.",
            hint=f"Get one from @BotFather in Telegram, and set `{TOKEN_VARIABLE}` to it.",
        )
    return TelegramPlatform(token, api_url=table.get("api_url", API_URL))


class TelegramPlatform:
    """One bot.

    Args:
        token: what @BotFather gave.
        api_url: another server of the Bot API, such as one's own.
        sleep: waits between attempts.
        clock: seconds, for the pace in groups.
    """

    def __init__(
        self,
        token: str,
        *,
        api_url: str = API_URL,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._token = token.strip()
        self._url = api_url
        self._sleep = sleep
        self._clock = clock
        self._opened: Api | None = None
        self._me = Me(0, "")
        self._group_used: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"<TelegramPlatform @{self._me.username or '?'}>"

    @property
    def name(self) -> str:
        return "telegram"

    @property
    def limits(self) -> Limits:
        return Limits(
            text_chars=TEXT_UNITS,
            edit_seconds=EDIT_SECONDS,
            buttons=True,
            typing_seconds=TYPING_SECONDS,
            file_bytes=DOWNLOAD_BYTES,
        )

    def measure(self, text: str) -> int:
        # Rendering takes away and adds nothing, so that the source fits if it does. Its length is known without
        # rendering, and grows with each character: that makes it good to split by.
        return units(text)

    async def open(self) -> None:
        if not self._url.startswith(("https://", "http://")):
            raise ConfigError(
                "`api_url` is not a valid address.", hint=f"It begins with `https://`, as `{API_URL}` does."
            )
        if self._opened is None:
            try:
                self._opened = Api(self._token, self._url)
            except ValueError as error:
                raise ConfigError(str(error)) from None
        try:
            self._me = await who(self._opened)
            await check(self._opened, self._sleep)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        api, self._opened = self._opened, None
        if api is not None:
            await api.close()

    def receive(self) -> AsyncGenerator[Inbound | Pressed, None]:
        return receive(self._api, self._me, self._sleep)

    async def send(
        self, chat: str, text: str, *, key: str, buttons: Sequence[Button] = (), reply_to: str | None = None
    ) -> str:
        replied = None if reply_to is None else _number(reply_to)
        parameters = {
            **_place(chat),
            "reply_parameters": replied and {"message_id": replied, "allow_sending_without_reply": True},
        }
        self._note_use(chat)
        return _id_of(await self._say("sendMessage", parameters, text, buttons))

    async def edit(self, chat: str, message: str, text: str, *, buttons: Sequence[Button] = ()) -> None:
        self._keep_pace(chat)
        # The chat alone: a topic is no part of a message's name.
        parameters = {"chat_id": _place(chat)["chat_id"], "message_id": _number(message)}
        try:
            await self._say("editMessageText", parameters, text, buttons)
        except Unclear as error:
            # To change it once more does no harm.
            raise NotNow(str(error)) from None
        except TelegramRefused as error:
            if "message is not modified" not in error.description:
                raise

    async def send_file(self, chat: str, path: str, *, type: FileType, name: str, key: str) -> str:
        method, field, endings = _METHODS.get(type, (*_DOCUMENT, ()))
        if not name.lower().endswith(endings):
            method, field = _DOCUMENT
        self._note_use(chat)
        with _opened(path) as file:
            try:
                return await self._upload(method, field, chat, file, name)
            except TelegramRefused as error:
                # A picture of strange proportions, say. As a document everything is taken.
                if error.code != 400 or (method, field) == _DOCUMENT:
                    raise
            # The HTTP library reads it from the beginning again.
            return await self._upload(*_DOCUMENT, chat, file, name)

    async def fetch(self, file: InboundFile, path: str) -> None:
        found = await self._api.call("getFile", {"file_id": file.ref})
        place = found.get("file_path") if isinstance(found, dict) else None
        if not isinstance(place, str):
            raise SendFailed("Telegram does not say where the file is.")
        try:
            await self._api.download(place, path, self.limits.file_bytes)
        except OSError as error:
            raise SendFailed(f"The file cannot be saved: {error.strerror or error}.") from None

    async def typing(self, chat: str) -> None:
        try:
            await self._api.call("sendChatAction", {**_place(chat), "action": "typing"}, seconds=TYPING_SECONDS)
        except SendFailed as error:
            logger.debug("typing could not be shown: %s", error)

    @property
    def _api(self) -> Api:
        if self._opened is None:
            raise NotNow("The connection to Telegram is closed.")
        return self._opened

    async def _say(self, method: str, parameters: Mapping[str, Any], text: str, buttons: Sequence[Button]) -> Any:
        rendered = render(text)
        said = {
            **parameters,
            "text": rendered.text,
            "entities": rendered.entities or None,
            # A preview would jump in and out while an answer is being written.
            "link_preview_options": {"is_disabled": True},
            "reply_markup": _keyboard(buttons),
        }
        try:
            return await self._api.call(method, said)
        except TelegramRefused as error:
            if error.code != 400 or "entit" not in error.description.lower():
                raise
        logger.warning("Telegram rejected the formatting of a message; it is sent as plain text")
        return await self._api.call(method, {**said, "text": text, "entities": None})

    async def _upload(self, method: str, field: str, chat: str, file: BinaryIO, name: str) -> str:
        result = await self._api.upload(method, _place(chat), field, file, name=name, seconds=UPLOAD_SECONDS)
        return _id_of(result)

    def _note_use(self, chat: str) -> None:
        group = chat.partition(":")[0]
        if group.startswith("-"):
            now = self._clock()
            recent = {other: at for other, at in self._group_used.items() if now - at < GROUP_SECONDS}
            self._group_used = {**recent, group: now}

    def _keep_pace(self, chat: str) -> None:
        used = self._group_used.get(chat.partition(":")[0], float("-inf"))
        rest = used + GROUP_SECONDS - self._clock()
        if rest > 0:
            raise NotNow("A group takes 20 messages a minute.", rest)
        self._note_use(chat)


def _place(chat: str) -> dict[str, int]:
    """Where a message goes: a chat, and the topic in it."""
    number, colon, thread = chat.partition(":")
    try:
        return {"chat_id": int(number), **({"message_thread_id": int(thread)} if colon else {})}
    except ValueError:
        raise SendFailed(f"`{chat}` is not a Telegram chat id.") from None


def _number(message: str) -> int:
    """A message's number in its chat."""
    try:
        return int(message.rpartition("/")[2])
    except ValueError:
        raise SendFailed(f"`{message}` is not a Telegram message id.") from None


def _id_of(message: Any) -> str:
    try:
        return message_id(message)
    except (KeyError, TypeError):
        raise Unclear("Telegram accepted the message but did not return its id.") from None


def _keyboard(buttons: Sequence[Button]) -> dict[str, Any] | None:
    if not buttons:
        return None
    keys = [{"text": button.label, "callback_data": button.data} for button in buttons]
    in_one_row = sum(len(button.label) for button in buttons) <= ROW_CHARS
    return {"inline_keyboard": [keys] if in_one_row else [[key] for key in keys]}


def _opened(path: str) -> BinaryIO:
    """A file to upload.

    Raises:
        SendFailed: it cannot be read, or is too large.
    """
    try:
        if not os.path.isfile(path):
            raise SendFailed(f"`{path}` is not a file.")
        size = os.path.getsize(path)
        if size > UPLOAD_BYTES:
            raise SendFailed(f"`{path}` has {megabytes(size)}; a bot may send {megabytes(UPLOAD_BYTES)}.")
        return open(path, "rb")
    except OSError as error:
        raise SendFailed(f"`{path}` cannot be read: {error.strerror or error}.") from None
