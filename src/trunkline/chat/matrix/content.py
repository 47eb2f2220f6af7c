"""What is sent to a room: messages with their formatted form, changes of them, files, and signs to press.

An event has at most 65,536 bytes, all of it counted. A change of a message holds the text twice, for those who do not
know changes; so a text has room for a quarter, and its formatted form goes along where it fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from trunkline.base import jsontext
from trunkline.base.printable import without_controls
from trunkline.chat.platform import Button, FileType

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

#: The longest text, as `measure` counts it.
TEXT_BYTES = 16_000
#: The largest content of an event. What the server adds (hashes, signatures, what the event follows) has the rest.
CONTENT_BYTES = 56_000

#: Where a message keeps what its buttons mean, so that a bridge that was restarted still knows it.
BUTTONS = "io.trunkline.buttons"

_TYPES: dict[FileType, str] = {"image": "m.image", "file": "m.file", "audio": "m.audio", "video": "m.video"}
#: One picture of a character or the other; clients differ in which they send.
_VARIATION = "\ufe0f"


def measure(text: str) -> int:
    """The bytes that a text takes in an event, its quotes not counted."""
    return len(jsontext.quote(clean(text)).encode()) - 2


def clean(text: str) -> str:
    """A text without what no text needs and some servers refuse."""
    return without_controls(text.replace("\r\n", "\n"), "\ufffd")


def message(
    text: str, *, buttons: Sequence[Button] = (), reply_to: str | None = None, thread: str | None = None
) -> dict[str, Any]:
    """A message of Markdown text."""
    content = _text(text, buttons)
    if thread is not None:
        relation = {"rel_type": "m.thread", "event_id": thread, "is_falling_back": reply_to is None}
        content["m.relates_to"] = relation | {"m.in_reply_to": {"event_id": reply_to or thread}}
    elif reply_to is not None:
        content["m.relates_to"] = {"m.in_reply_to": {"event_id": reply_to}}
    return _fitting(content, content)


def change(event: str, text: str, *, buttons: Sequence[Button] = ()) -> dict[str, Any]:
    """A message that takes the place of another."""
    new = _text(text, buttons)
    content = {
        "msgtype": "m.text",
        "body": f"* {new['body']}",
        "m.mentions": {},
        "m.new_content": new,
        "m.relates_to": {"rel_type": "m.replace", "event_id": event},
    }
    return _fitting(content, new)


def notice(text: str) -> dict[str, Any]:
    """What the bridge itself says, and what no other program should answer."""
    return {"msgtype": "m.notice", "body": text, "m.mentions": {}}


def file(type: FileType, ref: str, name: str, mimetype: str, size: int) -> dict[str, Any]:
    """A file that was uploaded."""
    name = clean(name) or "file"
    info = {"mimetype": mimetype, "size": size}
    return {"msgtype": _TYPES[type], "body": name, "filename": name, "url": ref, "info": info, "m.mentions": {}}


def reaction(event: str, key: str) -> dict[str, Any]:
    """A sign under a message, for others to press, too."""
    return {"m.relates_to": {"rel_type": "m.annotation", "event_id": event, "key": key}}


def meanings(event: Mapping[str, Any], me: str) -> dict[str, str]:
    """What the signs under a message of ours mean, as its newest form says; nothing if it is not ours."""
    if event.get("sender") != me:
        return {}
    content = event.get("content")
    replaced = _at(event, "unsigned", "m.relations", "m.replace")
    if isinstance(replaced, dict) and replaced.get("sender") == me:
        content = _at(replaced, "content", "m.new_content")
    found = content.get(BUTTONS) if isinstance(content, dict) else None
    if not isinstance(found, dict):
        return {}
    return {key: data for key, data in found.items() if isinstance(key, str) and isinstance(data, str)}


def same_sign(key: str) -> str:
    """A sign as it is compared."""
    return key.replace(_VARIATION, "").strip()


def html(text: str) -> str:
    """Markdown as HTML. What is HTML in it already is shown as text, and pictures become links to them."""
    rendered: str = _renderer().render(text)
    return rendered.rstrip("\n")


@cache
def _renderer() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # A line feed in a chat is a line feed. Without pictures: readers' clients would ask foreign servers for them.
    return MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"]).disable("image")


def _text(text: str, buttons: Sequence[Button]) -> dict[str, Any]:
    body = clean(text)
    # Without mentions by accident: a name in the text does not ring anybody's phone.
    content: dict[str, Any] = {"msgtype": "m.text", "body": body, "m.mentions": {}}
    formatted = html(body)
    if formatted != f"<p>{body}</p>":
        content |= {"format": "org.matrix.custom.html", "formatted_body": formatted}
    if buttons:
        content[BUTTONS] = {same_sign(button.label): button.data for button in buttons}
    return content


def _fitting(content: dict[str, Any], text: dict[str, Any]) -> dict[str, Any]:
    """The content without the formatted form of its text, if that is too long."""
    if "formatted_body" in text and len(jsontext.dumps(content)) > CONTENT_BYTES:
        del text["format"], text["formatted_body"]
    return content


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
