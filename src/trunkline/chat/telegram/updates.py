"""What Telegram delivers, read as what somebody wrote or pressed. No network, no clock.

Ids: a message is named by its chat and its number in there, since numbers begin anew in each chat. A topic of a forum
is a chat of its own.

In a group the bot hears what is meant for it: messages that mention it, that answer it, and commands that do not name
another bot. Other bots are never heard: two of them would go on for ever.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Container, Iterable, Mapping
from typing import Any

from trunkline.base.values import Value
from trunkline.chat.platform import FileType, Inbound, InboundFile, Pressed

_logger = logging.getLogger(__name__)

#: What is asked for: nothing else is read here.
ALLOWED = ("message", "callback_query")

#: How much of a message that is answered comes along.
QUOTED_CHARS = 2000

#: What comes after this is no time: the year 5138.
LATEST = 10**11

_COMMAND = re.compile(r"(?P<command>/\w+)(?:@(?P<addressee>\w+))?(?=\s|$)")

#: What reading raises when a member is missing, or is something else than it should be.
_MISSHAPEN = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError)

#: The kinds of attachments, what they are to the bridge, and a name for those that come without.
_KINDS: tuple[tuple[str, FileType, str], ...] = (
    ("animation", "video", "animation.mp4"),
    ("audio", "audio", "audio.mp3"),
    ("document", "file", "document"),
    ("video", "video", "video.mp4"),
    ("video_note", "video", "video.mp4"),
    ("voice", "audio", "voice.ogg"),
)


class Me(Value):
    """The bot itself."""

    id: int
    username: str


class Update(Value):
    """One update that concerns us. `album` is the id of the group of pictures that it is a part of."""

    item: Inbound | Pressed
    album: str = ""


def in_order(found: Any) -> list[dict[str, Any]]:
    """The updates of an answer that have a number to confirm them by, the lowest first."""
    batch = [update for update in found if _has_number(update)] if isinstance(found, list) else []
    return sorted(batch, key=lambda update: update["update_id"])


def _has_number(update: Any) -> bool:
    return isinstance(update, dict) and isinstance(update.get("update_id"), int)


def is_in_album(update: Mapping[str, Any]) -> bool:
    """Whether it is one picture of several."""
    message = update.get("message")
    return isinstance(message, dict) and "media_group_id" in message


def read(update: Mapping[str, Any], me: Me, albums: Container[str] = ()) -> Update | None:
    """What an update says to us; `None` if nothing. `albums` are those that are meant for us.

    Raises:
        ValueError: it does not have the shape that the Bot API documents.
    """
    try:
        if "message" in update:
            message, album = update["message"], _album(update["message"])
            item = _inbound(message, me, album in albums)
            return Update(item, album) if item else None
        if "callback_query" in update:
            pressed = _pressed(update["callback_query"])
            return Update(pressed) if pressed else None
    except _MISSHAPEN as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    return None


def albums_for(batch: Iterable[Mapping[str, Any]], me: Me) -> set[str]:
    """The albums that are meant for the bot: one of their messages has the text that says so."""
    found = set()
    for message in [update["message"] for update in batch if is_in_album(update)]:
        try:
            if _addressed(message, _text(message), me) is not None:
                found.add(_album(message))
        except _MISSHAPEN:
            # `read` will say so.
            continue
    return found


def heard(batch: Iterable[Mapping[str, Any]], me: Me) -> list[Update]:
    """What the updates say to us. One that cannot be read is passed over: it could not be when it comes again."""
    batch = list(batch)
    albums, found = albums_for(batch, me), []
    for update in batch:
        try:
            said = read(update, me, albums)
        except ValueError as error:
            _logger.warning("An update from Telegram that cannot be read: %s", error)
        else:
            found += [said] if said is not None else []
    return found


def joined(updates: Iterable[Update]) -> list[Update]:
    """The updates with each album as one: its pictures come as single messages, and its text with one of them."""
    result: list[Update] = []
    for update in updates:
        first, more = result[-1].item if result else None, update.item
        together = update.album and result and result[-1].album == update.album
        if together and isinstance(first, Inbound) and isinstance(more, Inbound):
            item = first.replace(text=first.text or more.text, files=first.files + more.files)
            result[-1] = Update(item, update.album)
        else:
            result.append(update)
    return result


def chat_of(message: Mapping[str, Any]) -> str:
    """The id of the chat that a message is in, or of the topic."""
    chat = str(message["chat"]["id"])
    return f"{chat}:{message['message_thread_id']}" if message.get("is_topic_message") else chat


def message_id(message: Mapping[str, Any]) -> str:
    """A message's name for good."""
    return f"{message['chat']['id']}/{message['message_id']}"


def _pressed(query: Mapping[str, Any]) -> Pressed | None:
    message = query.get("message")
    # Without a message it was under somebody else's; without data it is a game.
    if message is None or "data" not in query:
        return None
    return Pressed(
        id=str(query["id"]),
        chat=chat_of(message),
        sender=str(query["from"]["id"]),
        message=message_id(message),
        data=str(query["data"]),
    )


def _album(message: Mapping[str, Any]) -> str:
    return str(message.get("media_group_id") or "")


def _text(message: Mapping[str, Any]) -> str:
    return str(message.get("text") or message.get("caption") or "")


def _inbound(message: Mapping[str, Any], me: Me, addressed_by_album: bool) -> Inbound | None:
    sender = message.get("from")
    # Anonymous admins and channels write as bots, or as nobody: there is no id that could be allowed.
    if sender is None or sender.get("is_bot"):
        return None
    private = message["chat"]["type"] == "private"
    text = _text(message)
    addressed = _addressed(message, text, me)
    if addressed is None and (_is_for_another(text, me) or not (private or addressed_by_album)):
        return None
    files = tuple(_files(message))
    said = text if addressed is None else addressed
    if not said.startswith("/"):
        said = _quoted(message, me) + said
    if not said and not files:
        return None
    return Inbound(
        id=message_id(message),
        chat=chat_of(message),
        sender=str(sender["id"]),
        text=said,
        files=files,
        sender_name=_name(sender),
        private=private,
        at=_written(message.get("date")),
    )


def _written(date: Any) -> float | None:
    """When a message was written. Telegram says 0 where it does not want to tell."""
    return float(date) if type(date) is int and 0 < date < LATEST else None


def _name(sender: Mapping[str, Any]) -> str:
    names = [str(sender[part]) for part in ("first_name", "last_name") if sender.get(part)]
    return " ".join(names) or str(sender.get("username", ""))


def _addressed(message: Mapping[str, Any], text: str, me: Me) -> str | None:
    """What is said to the bot, without its name in front; `None` if the message is not for it."""
    name = f"@{me.username}".lower()
    if text.startswith("/"):
        return None if _is_for_another(text, me) else _command(text)
    if text.lower().startswith(name) and not text[len(name) : len(name) + 1].isalnum():
        return text[len(name) :].lstrip(" ,:\n")
    replied = message.get("reply_to_message") or {}
    if (replied.get("from") or {}).get("id") == me.id:
        return text
    return text if _mentions(message, text, name, me) else None


def _is_for_another(text: str, me: Me) -> bool:
    """Whether it is a command that names another bot, as `/stop@other_bot` does."""
    found = _COMMAND.match(text)
    return found is not None and bool(found["addressee"]) and found["addressee"].lower() != me.username.lower()


def _command(text: str) -> str:
    """A command without the bot's name behind it."""
    found = _COMMAND.match(text)
    if found is None:
        return text
    # What Telegram sends when somebody opens a chat with the bot for the first time.
    command = "/help" if found["command"] == "/start" else found["command"]
    return command + text[found.end() :]


def _mentions(message: Mapping[str, Any], text: str, name: str, me: Me) -> bool:
    units = text.encode("utf-16-le", "surrogatepass")
    for entity in message.get("entities") or message.get("caption_entities") or ():
        if entity["type"] == "text_mention" and entity["user"]["id"] == me.id:
            return True
        start, end = 2 * entity["offset"], 2 * (entity["offset"] + entity["length"])
        if entity["type"] == "mention" and units[start:end].decode("utf-16-le", "replace").lower() == name:
            return True
    return False


def _quoted(message: Mapping[str, Any], me: Me) -> str:
    """What the message is about, as a quotation: a part that its sender chose, or what somebody else wrote."""
    replied = message.get("reply_to_message") or {}
    quote = str((message.get("quote") or {}).get("text", ""))
    if not quote and replied and (replied.get("from") or {}).get("id") != me.id:
        quote = str(replied.get("text") or replied.get("caption") or "")
    if not quote.strip():
        return ""
    lines = quote[:QUOTED_CHARS].splitlines()
    return "\n".join(f"> {line}" for line in lines) + "\n\n"


def _files(message: Mapping[str, Any]) -> Iterable[InboundFile]:
    if sizes := message.get("photo"):
        largest = max(sizes, key=lambda size: size["width"] * size["height"])
        yield InboundFile("image", str(largest["file_id"]), "photo.jpg", _size(largest))
    sticker = message.get("sticker")
    if sticker and not sticker.get("is_animated") and not sticker.get("is_video"):
        yield InboundFile("image", str(sticker["file_id"]), "sticker.webp", _size(sticker))
    for field, kind, name in _KINDS:
        found = message.get(field)
        # An animation comes as a document, too.
        if found and not (field == "document" and "animation" in message):
            kind = "image" if str(found.get("mime_type", "")).startswith("image/") else kind
            yield InboundFile(kind, str(found["file_id"]), str(found.get("file_name") or name), _size(found))


def _size(found: Mapping[str, Any]) -> int | None:
    size = found.get("file_size")
    return size if type(size) is int else None
