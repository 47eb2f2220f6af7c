"""What a homeserver's answer to `/sync` says, as things that the bridge knows. No network, no clock.

What comes here was written by strangers: their clients send what they like, and servers pass it on. What has not the
form that it should have is no message, and never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from trunkline.base.values import Value
from trunkline.chat.platform import FileType, InboundFile

#: What we want to hear of. The rest (receipts, presence, settings) would wake us for nothing.
TYPES = ("m.room.message", "m.room.encrypted", "m.room.member", "m.reaction")
#: Events of one room that come at once; with more there is a gap, which is filled by asking for them.
TIMELINE_EVENTS = 100

FILTER: dict[str, Any] = {
    "presence": {"not_types": ["*"]},
    "account_data": {"not_types": ["*"]},
    "room": {
        "account_data": {"not_types": ["*"]},
        "ephemeral": {"not_types": ["*"]},
        "state": {"not_types": ["*"]},
        "timeline": {"types": list(TYPES), "limit": TIMELINE_EVENTS},
    },
}

_FILE_TYPES: dict[str, FileType] = {"m.image": "image", "m.file": "file", "m.audio": "audio", "m.video": "video"}
#: What somebody wrote, and what somebody does (`/me`). Notices are what programs write: to answer them is how two
#: programs talk to each other for ever.
_TEXT_TYPES = ("m.text", "m.emote")
#: Before clients could do without, a reply began with a quotation of what it answers.
_QUOTED = re.compile(r"> (?:\* )?<@[^\n]*\n(?:>[^\n]*\n)*\n?")
#: The server and the name of a file in it; nothing that could lead elsewhere when it becomes part of an address.
_MEDIA = re.compile(r"mxc://[A-Za-z0-9.:\[\]-]{1,255}/[A-Za-z0-9_-]{1,255}")
#: What comes after this is no time: the year 5138.
_LATEST = 10**11
#: More is no name.
_NAME_CHARS = 255


class MatrixMessage(Value):
    """What somebody wrote in a room."""

    id: str
    room: str
    sender: str
    text: str
    files: tuple[InboundFile, ...] = ()
    thread: str | None = None
    """The message that the thread began with, if it is in one."""
    at: float | None = None
    """When it was written, as its sender's homeserver says. Nobody checks that."""


class Reaction(Value):
    """A sign that somebody put under a message."""

    id: str
    room: str
    sender: str
    message: str
    key: str


class EncryptedMessage(Value):
    """Somebody wrote something encrypted."""

    id: str
    room: str
    sender: str


class Moved(Value):
    """Somebody came, went or took another name."""

    room: str


Happened = MatrixMessage | Reaction | EncryptedMessage | Moved


class Invite(Value):
    """Somebody wants us in a room."""

    room: str
    sender: str


class MatrixRoom(Value):
    """What happened in a room that we are in."""

    id: str
    events: tuple[Mapping[str, Any], ...]
    gap: str | None
    """Where the events begin, when others came before them that are not here."""


class Synced(Value):
    """One answer."""

    next: str
    """Where the next answer goes on."""
    rooms: tuple[MatrixRoom, ...]
    invites: tuple[Invite, ...]


def read(answer: Mapping[str, Any], me: str) -> Synced:
    """Take an answer apart.

    Raises:
        ValueError: it says not where to go on.
    """
    following = answer.get("next_batch")
    if not isinstance(following, str) or not following:
        raise ValueError("there is no `next_batch` in it")
    rooms = _mapping(answer.get("rooms"))
    joined = tuple(_room(name, _mapping(room)) for name, room in _mapping(rooms.get("join")).items())
    invites = (_invite(name, _mapping(room), me) for name, room in _mapping(rooms.get("invite")).items())
    return Synced(following, joined, tuple(invite for invite in invites if invite))


def since_we_came(events: Sequence[Mapping[str, Any]], me: str) -> tuple[int, bool]:
    """Where to begin in a room's events, and whether we came in them.

    What was said before we were invited was not said to us, although we can read it. What was said between the
    invitation and our joining was.
    """
    for wanted in ("invite", "join"):
        for index in reversed(range(len(events))):
            if _came(events[index], me, wanted):
                return index + 1, True
    return 0, False


def happened(room: str, events: Sequence[Mapping[str, Any]], me: str) -> Iterator[Happened]:
    """What others said and did, in order."""
    for event in events:
        if event.get("type") == "m.room.member":
            yield Moved(room)
        event_id, sender, content = event.get("event_id"), event.get("sender"), event.get("content")
        if not (_is_text(event_id) and _is_text(sender) and isinstance(content, dict)) or sender == me:
            continue
        found: Happened | None = None
        if event.get("type") == "m.room.message":
            found = _message(event_id, room, sender, content)
            found = found and found.replace(at=_written(event.get("origin_server_ts")))
        elif event.get("type") == "m.reaction":
            found = _reaction(event_id, room, sender, content)
        # Nothing is left of the content of what was taken back.
        elif event.get("type") == "m.room.encrypted" and content:
            found = EncryptedMessage(event_id, room, sender)
        if found is not None:
            yield found


def media(ref: str) -> tuple[str, str] | None:
    """The server and the name of a file, if it is the address of one."""
    if not _MEDIA.fullmatch(ref):
        return None
    server, _, name = ref.removeprefix("mxc://").partition("/")
    return server, name


def names(members: Mapping[str, Any]) -> dict[str, str]:
    """Who is in a room, and what they call themselves."""
    joined = _mapping(members.get("joined"))
    return {who: _name(_mapping(member).get("display_name")) for who, member in joined.items()}


def _room(name: str, room: Mapping[str, Any]) -> MatrixRoom:
    timeline = _mapping(room.get("timeline"))
    before = timeline.get("prev_batch") if timeline.get("limited") is True else None
    return MatrixRoom(name, events_of(timeline.get("events")), before if _is_text(before) else None)


def events_of(events: Any) -> tuple[Mapping[str, Any], ...]:
    """A list of events, without what is none."""
    return tuple(event for event in events if isinstance(event, dict)) if isinstance(events, list) else ()


def _invite(room: str, invited: Mapping[str, Any], me: str) -> Invite | None:
    for event in events_of(_mapping(invited.get("invite_state")).get("events")):
        sender = event.get("sender")
        if _is_about(event, me, "invite") and _is_text(sender):
            return Invite(room, sender)
    return None


def _is_about(event: Mapping[str, Any], who: str, membership: str) -> bool:
    is_member = event.get("type") == "m.room.member" and event.get("state_key") == who
    return is_member and _mapping(event.get("content")).get("membership") == membership


def _came(event: Mapping[str, Any], me: str, membership: str) -> bool:
    if not _is_about(event, me, membership):
        return False
    # Somebody who is in and takes another name joins once more, so to say.
    before = _mapping(_mapping(event.get("unsigned")).get("prev_content")).get("membership")
    return before != "join"


def _message(event_id: str, room: str, sender: str, content: Mapping[str, Any]) -> MatrixMessage | None:
    relation = _mapping(content.get("m.relates_to"))
    if relation.get("rel_type") == "m.replace":
        # An agent has long begun to work on what was there before.
        return None
    kind, body = content.get("msgtype"), content.get("body")
    if not isinstance(body, str) or not isinstance(kind, str):
        return None
    root = relation.get("event_id") if relation.get("rel_type") == "m.thread" else None
    thread = root if _is_text(root) else None
    if kind in _TEXT_TYPES:
        text = _QUOTED.sub("", body, count=1) if _is_reply(relation) and _QUOTED.match(body) else body
        return MatrixMessage(event_id, room, sender, text, (), thread)
    if kind not in _FILE_TYPES:
        return None
    ref = content.get("url")
    if not isinstance(ref, str) or media(ref) is None:
        # It cannot be had, as `fetch` will say; who sent it should hear that, too.
        ref = ""
    given = content.get("filename")
    # The body is a caption if the file's name is elsewhere, and the name if not.
    name, caption = (given, body if body != given else "") if _is_text(given) else (body, "")
    file = InboundFile(_FILE_TYPES[kind], ref, _name(name), _size(_mapping(content.get("info")).get("size")))
    return MatrixMessage(event_id, room, sender, caption, (file,), thread)


def _is_reply(relation: Mapping[str, Any]) -> bool:
    return isinstance(relation.get("m.in_reply_to"), dict)


def _reaction(event_id: str, room: str, sender: str, content: Mapping[str, Any]) -> Reaction | None:
    relation = _mapping(content.get("m.relates_to"))
    message, key = relation.get("event_id"), relation.get("key")
    if relation.get("rel_type") != "m.annotation" or not (_is_text(message) and _is_text(key)):
        return None
    return Reaction(event_id, room, sender, message, key)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and value != ""


def _name(value: Any) -> str:
    return value[:_NAME_CHARS] if isinstance(value, str) else ""


def _written(milliseconds: Any) -> float | None:
    return milliseconds / 1000 if type(milliseconds) is int and 0 < milliseconds < _LATEST * 1000 else None


def _size(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
