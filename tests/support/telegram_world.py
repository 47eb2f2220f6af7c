"""What Telegram keeps, and what the methods of the Bot API do to it, as its documentation says. No network, no clock.

Checked as the real one checks: the token by the server around it; here the chat, the length in UTF-16 units, the
entities and how they nest, the buttons' data, the message that is answered or changed, the sizes of files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate, count
from typing import Any

Json = dict[str, Any]

MAX_UNITS = 4096
MAX_BUTTON_BYTES = 64
MAX_DOWNLOAD = 20 * 1024 * 1024
MAX_PHOTO = 10 * 1024 * 1024
MAX_UPLOAD = 50 * 1024 * 1024
#: What may be in everything, and contain everything, but code.
STYLES = ("bold", "italic", "underline", "strikethrough", "spoiler")
ENTITIES = (*STYLES, "code", "pre", "text_link", "blockquote")
NOT_MODIFIED = (
    "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a "
    "current content and reply markup of the message"
)


class No(Exception):
    """The Bot API's refusal."""

    def __init__(self, code: int, description: str, parameters: Mapping[str, Any] | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters

    @property
    def answer(self) -> Json:
        more = {"parameters": self.parameters} if self.parameters else {}
        return {"ok": False, "error_code": self.code, "description": self.description, **more}


class Upload:
    """A file in a request."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.data = data


class Shown:
    """A message as a person sees it."""

    def __init__(self, message: Json, edits: int) -> None:
        self.id: int = message["message_id"]
        self.by_bot: bool = message["from"]["is_bot"]
        self.text: str = message.get("text") or message.get("caption") or ""
        self.entities: list[Json] = message.get("entities", [])
        markup = message.get("reply_markup", {})
        self.buttons = [key["text"] for row in markup.get("inline_keyboard", ()) for key in row]
        self.replies_to: int | None = message.get("reply_to_message", {}).get("message_id")
        self.thread: int | None = message.get("message_thread_id")
        self.file: Any = next(
            (message[kind] for kind in ("photo", "document", "audio", "video") if kind in message), None
        )
        self.edits = edits

    def styled(self, kind: str) -> list[str]:
        """The parts of the text that are shown in one way."""
        data = self.text.encode("utf-16-le")
        ranges = [(2 * e["offset"], 2 * (e["offset"] + e["length"])) for e in self.entities if e["type"] == kind]
        return [data[start:end].decode("utf-16-le") for start, end in ranges]

    def __repr__(self) -> str:
        return f"<Shown {self.id} {'bot' if self.by_bot else 'person'} {self.text!r} {self.buttons} edits={self.edits}>"


class World:
    """Chats, messages, files and updates of one bot."""

    def __init__(self, username: str = "trunk_bot") -> None:
        self.me: Json = {"id": 4200, "is_bot": True, "first_name": "Trunk", "username": username}
        self.chats: dict[int, Json] = {}
        self.messages: dict[int, dict[int, Json]] = {}
        self.edits: dict[tuple[int, int], int] = {}
        self.files: dict[str, bytes] = {}
        self.updates: list[Json] = []
        self.allowed: Sequence[str] = ()
        self.webhook = ""
        self.blocked: set[int] = set()
        self.migrated: dict[int, int] = {}
        self.actions: list[tuple[int, str]] = []
        self.answered: list[str] = []
        self.menu: list[str] = []
        self._queries: set[str] = set()
        self._message_ids, self._update_ids, self._other_ids = count(100), count(70_000), count(1)
        self.changed: Callable[[], None] = lambda: None

    # What people do.

    def chat(self, chat: int, title: str = "") -> Json:
        """The chat of an id: negative ones are groups."""
        kind = {"type": "private", "first_name": "Ada"} if chat > 0 else {"type": "supergroup", "title": title or "G"}
        return self.chats.setdefault(chat, {"id": chat, **kind})

    def says(
        self,
        chat: int,
        sender: int,
        text: str = "",
        *,
        files: Mapping[str, tuple[str, bytes]] | None = None,
        reply_to: int | None = None,
        is_bot: bool = False,
        **more: Any,
    ) -> Json:
        """Somebody writes. `files`: what the Bot API calls the kind, and a name with the bytes."""
        message = self._new(chat, {"id": sender, "is_bot": is_bot, "first_name": "Ada"})
        if text:
            message["caption" if files else "text"] = text
            if mentions := self._mentions(text):
                message["caption_entities" if files else "entities"] = mentions
        for kind, (name, data) in (files or {}).items():
            message[kind] = self._file(kind, name, data)
        if reply_to is not None:
            message["reply_to_message"] = self.messages[chat][reply_to]
        message |= more
        self._announce({"message": message})
        return message

    def presses(self, chat: int, sender: int, label: str) -> str:
        """Somebody presses the newest button of that label."""
        for message in reversed(list(self.messages[chat].values())):
            for row in message.get("reply_markup", {}).get("inline_keyboard", ()):
                for key in row:
                    if key["text"] == label:
                        return self._press(message, sender, key["callback_data"])
        raise AssertionError(f"there is no button {label!r} in {self.shown(chat)}")

    def _press(self, message: Json, sender: int, data: str) -> str:
        query = f"9{next(self._other_ids):017}"
        self._queries.add(query)
        person = {"id": sender, "is_bot": False, "first_name": "Ada"}
        self._announce({"callback_query": {"id": query, "from": person, "message": message, "data": data}})
        return query

    def number_updates_from(self, number: int) -> None:
        """As after a quiet week: the next update has this number."""
        self._update_ids = count(number)

    def deletes(self, chat: int, message: int) -> None:
        del self.messages[chat][message]
        self.changed()

    def shown(self, chat: int) -> list[Shown]:
        """The chat as a person sees it."""
        messages = self.messages.get(chat, {})
        return [Shown(message, self.edits.get((chat, number), 0)) for number, message in messages.items()]

    def said(self, chat: int) -> list[Shown]:
        """What the bot has said there."""
        return [message for message in self.shown(chat) if message.by_bot]

    # What the bot does.

    def call(self, method: str, parameters: Json, files: Mapping[str, Upload]) -> Any:
        """The result of a method.

        Raises:
            No: as the Bot API would.
        """
        known: dict[str, Callable[[], Any]] = {
            "getme": lambda: self.me,
            "sendmessage": lambda: self._send_message(parameters),
            "editmessagetext": lambda: self._edit(parameters),
            "sendchataction": lambda: self._action(parameters),
            "answercallbackquery": lambda: self._answer(parameters),
            "getfile": lambda: self._get_file(parameters),
            "deletewebhook": self._delete_webhook,
            "setmycommands": lambda: self._set_commands(parameters),
            **{f"send{kind}": partial(self._send_file, kind, parameters, files) for kind in UPLOADS},
        }
        if method.lower() not in known:
            raise No(404, "Not Found: method not found")
        result = known[method.lower()]()
        self.changed()
        return result

    def take(self, parameters: Json) -> list[Json]:
        """The updates that `getUpdates` gives now, after confirming those before its offset."""
        if self.webhook:
            raise No(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete "
                          "the webhook first")  # fmt: skip
        if "allowed_updates" in parameters:
            self.allowed = parameters["allowed_updates"]
        offset = int(parameters.get("offset", 0))
        if offset < 0:
            self.updates = self.updates[offset:]
        self.updates = [update for update in self.updates if update["update_id"] >= offset]
        return self.updates[: min(max(int(parameters.get("limit", 100)), 1), 100)]

    def _send_message(self, parameters: Json) -> Json:
        chat = self._reached(parameters)
        text, entities = _checked_text(parameters)
        message = {**self._content(text, entities, parameters), **self._reply(chat, parameters)}
        return self._said(chat, parameters, message)

    def _edit(self, parameters: Json) -> Json:
        chat = self._reached(parameters)
        message = self.messages.get(chat, {}).get(int(parameters.get("message_id", 0)))
        if message is None:
            raise No(400, "Bad Request: message to edit not found")
        if not message["from"]["is_bot"]:
            raise No(400, "Bad Request: message can't be edited")
        text, entities = _checked_text(parameters)
        content = self._content(text, entities, parameters)
        if content == {key: message[key] for key in ("text", "entities", "reply_markup") if key in message}:
            raise No(400, NOT_MODIFIED)
        for key in ("text", "entities", "reply_markup"):
            message.pop(key, None)
        message |= content
        number = chat, message["message_id"]
        self.edits[number] = self.edits.get(number, 0) + 1
        return message

    def _content(self, text: str, entities: list[Json], parameters: Json) -> Json:
        markup = parameters.get("reply_markup")
        for row in (markup or {}).get("inline_keyboard", ()):
            for key in row:
                if not 1 <= len(key["callback_data"].encode()) <= MAX_BUTTON_BYTES:
                    raise No(400, "Bad Request: BUTTON_DATA_INVALID")
        return {
            "text": text,
            **({"entities": entities} if entities else {}),
            **({"reply_markup": markup} if markup else {}),
        }

    def _reply(self, chat: int, parameters: Json) -> Json:
        wanted = parameters.get("reply_parameters")
        if not wanted:
            return {}
        replied = self.messages[chat].get(wanted["message_id"])
        if replied is None and not wanted.get("allow_sending_without_reply"):
            raise No(400, "Bad Request: message to be replied not found")
        return {"reply_to_message": replied} if replied else {}

    def _send_file(self, kind: str, parameters: Json, files: Mapping[str, Upload]) -> Json:
        chat = self._reached(parameters)
        if kind not in files:
            raise No(400, f"Bad Request: there is no {kind} in the request")
        file = files[kind]
        if kind == "photo" and (len(file.data) > MAX_PHOTO or not file.data.startswith((b"\x89PNG", b"\xff\xd8"))):
            raise No(400, "Bad Request: IMAGE_PROCESS_FAILED")
        if len(file.data) > MAX_UPLOAD:
            raise No(413, "Request Entity Too Large")
        return self._said(chat, parameters, {kind: self._file(kind, file.name, file.data)})

    def _said(self, chat: int, parameters: Json, content: Json) -> Json:
        thread = parameters.get("message_thread_id")
        topic = {"message_thread_id": int(thread), "is_topic_message": True} if thread else {}
        message = self._new(chat, self.me)
        message |= content | topic
        return message

    def _action(self, parameters: Json) -> bool:
        self.actions.append((self._reached(parameters), parameters["action"]))
        return True

    def _answer(self, parameters: Json) -> bool:
        query = parameters.get("callback_query_id", "")
        if query not in self._queries:
            raise No(400, "Bad Request: query is too old and response timeout expired or query ID is invalid")
        self._queries.discard(query)
        self.answered.append(query)
        return True

    def _get_file(self, parameters: Json) -> Json:
        file = parameters.get("file_id", "")
        if file not in self.files:
            raise No(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        if len(self.files[file]) > MAX_DOWNLOAD:
            raise No(400, "Bad Request: file is too big")
        return {"file_id": file, "file_size": len(self.files[file]), "file_path": f"documents/{file}"}

    def _set_commands(self, parameters: Json) -> bool:
        for command in parameters["commands"]:
            if not re.fullmatch(r"[a-z0-9_]{1,32}", command["command"]) or not 1 <= len(command["description"]) <= 256:
                raise No(400, "Bad Request: BOT_COMMAND_INVALID")
        self.menu = [command["command"] for command in parameters["commands"]]
        return True

    def _delete_webhook(self) -> bool:
        self.webhook = ""
        return True

    def _reached(self, parameters: Json) -> int:
        """The chat of a request, if the bot can write there."""
        chat = int(parameters.get("chat_id", 0))
        if chat in self.migrated:
            moved = {"migrate_to_chat_id": self.migrated[chat]}
            raise No(400, "Bad Request: group chat was upgraded to a supergroup chat", moved)
        if chat not in self.chats:
            raise No(400, "Bad Request: chat not found")
        if chat in self.blocked:
            raise No(403, "Forbidden: bot was blocked by the user")
        return chat

    def _new(self, chat: int, sender: Json) -> Json:
        number = next(self._message_ids)
        message: Json = {"message_id": number, "date": 1_700_000_000, "chat": self.chat(chat), "from": sender}
        self.messages.setdefault(chat, {})[number] = message
        return message

    def _announce(self, update: Json) -> None:
        if not self.allowed or next(iter(update)) in self.allowed:
            # A copy: an update tells how it was.
            self.updates.append(json.loads(json.dumps({"update_id": next(self._update_ids), **update})))
        self.changed()

    def _mentions(self, text: str) -> list[Json]:
        name = f"@{self.me['username']}"
        at = text.find(name)
        if at < 0:
            return []
        return [{"type": "mention", "offset": len(text[:at].encode("utf-16-le")) // 2, "length": len(name)}]

    def _file(self, kind: str, name: str, data: bytes) -> Any:
        file = f"F{next(self._other_ids)}"
        self.files[file] = data
        described = {"file_id": file, "file_size": len(data), "file_name": name}
        if kind != "photo":
            return described
        self.files[f"{file}small"] = data[:1]
        small = {"file_id": f"{file}small", "width": 90, "height": 90, "file_size": 1}
        return [small, {"file_id": file, "width": 800, "height": 600, "file_size": len(data)}]


UPLOADS = ("photo", "document", "audio", "video")


def _checked_text(parameters: Json) -> tuple[str, list[Json]]:
    text = parameters.get("text", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise No(400, "Bad Request: strings must be encoded in UTF-8") from None
    if not text.strip():
        raise No(400, "Bad Request: message text is empty")
    entities = parameters.get("entities", [])
    check_entities(text, entities)
    if len(text.encode("utf-16-le")) // 2 > MAX_UNITS:
        raise No(400, "Bad Request: message is too long")
    return text, entities[:100]


def check_entities(text: str, entities: Sequence[Json]) -> None:
    """Refuses entities that end outside of the text or in the middle of a character, or do not nest as they may."""
    places = list(accumulate((2 if char > "\uffff" else 1 for char in text), initial=0))
    starts, size = frozenset(places), places[-1]
    for entity in entities:
        start, end = entity["offset"], entity["offset"] + entity["length"]
        if entity["type"] not in ENTITIES or entity["length"] <= 0:
            raise No(400, f"Bad Request: can't parse MessageEntity: wrong entity {entity['type']}")
        if end > size:
            raise No(400, f"Bad Request: entity beginning at UTF-16 offset {start} ends after the end of the text at "
                          f"UTF-16 offset {end}")  # fmt: skip
        if start not in starts or end not in starts:
            raise No(400, f"Bad Request: entity begins in a middle of a UTF-16 symbol at byte offset {start}")
    for first in entities:
        for second in entities:
            if first is not second:
                _check_pair(first, second)


def _check_pair(first: Json, second: Json) -> None:
    start, end = first["offset"], first["offset"] + first["length"]
    other, other_end = second["offset"], second["offset"] + second["length"]
    if end <= other or other_end <= start:
        return
    nested = (start <= other and other_end <= end) or (other <= start and end <= other_end)
    allowed = first["type"] in STYLES or second["type"] in STYLES
    code = {"code", "pre"} & {first["type"], second["type"]}
    if not nested or not allowed or code:
        raise No(400, f"Bad Request: can't parse entities: {first['type']} and {second['type']} at {start} and {other}")
