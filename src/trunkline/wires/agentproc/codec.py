"""AgentProc 0.1 on the wire: environment variables in, lines with a prefix out. Sans-IO.

    AGENT_SESSION:<id>              the session's id; the last valid one counts
    AGENT_PARTIAL:<JSON string>     a piece of the answer
    AGENT_ERROR:<JSON string>       the turn has failed, and why
    <anything else>                 a line of the reply

`LineReader` reads what an agent prints, `turn_environment` is what a bridge sets; the rest is the agent's side of
both. A prefix counts at the very beginning of a line only, and a line ends at a line feed only. What agents in the
field get wrong is read leniently and reported as `Ignored`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from json.decoder import scanstring  # type: ignore[attr-defined]  # public by name, and missing from the type stubs
from typing import Any, Protocol

from trunkline.base import jsontext
from trunkline.base.jsontext import quote
from trunkline.base.lines import LineSplitter, OverlongLine
from trunkline.core.faults import LocalProtocolError
from trunkline.wires.agentproc.messages import (
    DEFAULT_SESSION_NAME,
    Attachment,
    Body,
    Error,
    Ignored,
    Lost,
    Partial,
    PermissionResponse,
    Said,
    SessionId,
    TurnRequest,
)

PROTOCOL_VERSION = "0.1"

#: What a turn is told by. A bridge sets or leaves out each of them: nothing else can.
VARIABLES = (
    "AGENT_MESSAGE", "AGENT_SESSION_ID", "AGENT_SESSION_NAME", "AGENT_FROM_USER", "AGENT_STREAMING",
    "AGENT_PROTOCOL_VERSION", "AGENT_IMAGE_URL", "AGENT_FILE_URL", "AGENT_ATTACHMENTS",
)  # fmt: skip

SESSION, PARTIAL, ERROR = "AGENT_SESSION:", "AGENT_PARTIAL:", "AGENT_ERROR:"
PREFIXES = (SESSION, PARTIAL, ERROR)

#: The longest line that is read, in bytes. A longer one is skipped, and no more than this is ever held of it.
MAX_LINE = 16 * 1024 * 1024
#: So much of a line that cannot be read is looked at for what it is about: programs say it first.
LOOKED_AT_BYTES = 1024
#: The longest session id, in characters: it travels in an environment variable.
MAX_SESSION_ID = 1024

#: How much of a line is repeated in a warning.
SHOWN_CHARS = 80

#: In words, and as a pattern. An id is the agent's own, in any script; but what a model can be talked into printing
#: must not become a path, nor a second line, whoever makes what of it.
SESSION_ID_RULE = (
    f"an id is at most {MAX_SESSION_ID} characters without white space, control characters, `:`, `/` and `\\`, and "
    "neither `.` nor `..`"
)
SESSION_ID_PATTERN = r"(?!\.{1,2}$)[^\s:/\\\u0000-\u001f\u007f-\u009f\ud800-\udfff]+"
_SESSION_ID = re.compile(SESSION_ID_PATTERN)
#: What stands for itself in an id of ours; everything else, `=` included, becomes `=` and two hexadecimal digits.
_PORTABLE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-")

#: The place in front of a prefix at the beginning of a line: after whatever some reader takes for a line's end. As a
#: text, compiled when first needed: a bridge never does.
_BEFORE_PREFIX = r"(?:(?<=[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])|\A)(?=" + "|".join(PREFIXES) + ")"

#: How an event of protocol 0.4 begins, in a line that is read as 0.1.
_NDJSON_EVENT = re.compile(rb'\{ *"type" *: *"(?:partial|result|error|permission_request)" *[,}]')
_SPEAKS_NDJSON = (
    'the reply holds events of protocol 0.4: if the agent speaks that, set `protocol: "0.4"` (or `auto`) in its profile'
)


class Reader(Protocol):
    """What turns an agent's standard output into what it said."""

    def feed(self, data: bytes) -> list[Said]:
        """Take some bytes and give what they complete."""

    def finish(self) -> list[Said]:
        """The output has ended: a last line may lack its line feed."""


class Dialogue(Reader, Protocol):
    """What talks to a program that has a protocol of its own, both ways."""

    def arguments(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """Arguments that the program needs besides those of the profile, in this environment of its own."""

    def begin(self, turn: TurnRequest) -> bytes:
        """What the program is told first."""

    def outgoing(self) -> bytes:
        """What the program is to be told after what was read."""

    def respond(self, response: PermissionResponse) -> bytes:
        """What tells the program the answer to one of its requests. From any thread, once for each request."""


class LineReader:
    """Reads the lines of a 0.1 agent."""

    def __init__(self, session_prefix: str = SESSION, max_line: int = MAX_LINE) -> None:
        self._lines = LineSplitter(max_line)
        self._session_prefix = session_prefix.encode("utf-8", "surrogateescape")
        self._foreign = False

    def feed(self, data: bytes) -> list[Said]:
        """Take some bytes and give what they complete."""
        read = self.read
        return [read(line) for line in self._lines.feed(data)]

    def finish(self) -> list[Said]:
        """The output has ended: a last line may lack its line feed."""
        said = [self.read(line) for line in self._lines.finish()]
        if self._foreign:
            said.append(Ignored(_SPEAKS_NDJSON))
        return said

    def read(self, line: bytes | OverlongLine) -> Said:
        """What one line says."""
        if isinstance(line, OverlongLine):
            return too_long(line)
        if line.endswith(b"\r"):
            line = line[:-1]
        if line.startswith(self._session_prefix):
            return _session(line[len(self._session_prefix) :])
        if line.startswith(b"AGENT_PARTIAL:"):
            return Partial(payload(line[14:].decode("utf-8", "replace")))
        if line.startswith(b"AGENT_ERROR:"):
            return Error(payload(_text(line[12:])))
        if line.startswith(b"AGENT_SESSION:"):
            # The profile names another prefix; but this one is never text that somebody should read.
            return Ignored(f"`{SESSION}` is not this profile's `session_line_prefix`; the line was ignored")
        if line.startswith(b"{") and _NDJSON_EVENT.match(line):
            self._foreign = True
        return Body(_text(line))


def too_long(line: OverlongLine) -> Lost:
    """What is said of a line over the limit."""
    return Lost(f"a line of more than {MAX_LINE} bytes was ignored ({line.size} bytes)")


def payload(text: str) -> str:
    """The text of a partial or an error. A JSON string is decoded, whatever else stands there is taken as it is."""
    text = text.strip()
    if text[:1] != '"':
        return text
    try:
        decoded, end = scanstring(text, 1, True)
    except ValueError:
        return text
    if end != len(text):
        return text
    return whole(decoded) if "\\" in text else decoded


def whole(text: str) -> str:
    """The text with every half of a character, which JSON can spell and nothing else can carry, replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def is_session_id(text: str) -> bool:
    """Whether it can be the id of a session."""
    return len(text) <= MAX_SESSION_ID and _SESSION_ID.fullmatch(text) is not None


def refused_session_id(text: str) -> str:
    """Why an id was left out."""
    return f"the session id {whole(text)[:SHOWN_CHARS]!r} was ignored: {SESSION_ID_RULE}"


def _session(data: bytes) -> Said:
    try:
        value = data.decode().strip()
    except UnicodeDecodeError:
        # With what replaces a byte it would be another id.
        return Ignored(f"the session id {_text(data).strip()[:SHOWN_CHARS]!r} was ignored: it is not UTF-8")
    if is_session_id(value):
        return SessionId(value)
    return Ignored(refused_session_id(value) if value else "a session line without an id was ignored")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


# A turn as environment variables


def turn_environment(turn: TurnRequest) -> dict[str, str]:
    """The variables that tell an agent its turn."""
    variables = {
        "AGENT_MESSAGE": turn.message,
        "AGENT_SESSION_ID": turn.session_id,
        "AGENT_SESSION_NAME": turn.session_name,
        "AGENT_FROM_USER": turn.from_user,
        "AGENT_STREAMING": "1" if turn.streaming else "0",
        "AGENT_PROTOCOL_VERSION": PROTOCOL_VERSION,
    }
    if turn.attachments:
        for type, name in (("image", "AGENT_IMAGE_URL"), ("file", "AGENT_FILE_URL")):
            urls = [attachment.url for attachment in turn.attachments if attachment.type == type]
            if len(urls) == 1:
                variables[name] = urls[0]
        items = [{"type": each.type, "url": each.url, "name": each.name} for each in turn.attachments]
        variables["AGENT_ATTACHMENTS"] = jsontext.dumps(items).decode()
    return variables


def turn_of(environ: Mapping[str, str]) -> TurnRequest:
    """The turn that the variables tell; what is missing has its default."""
    return TurnRequest(
        message=environ.get("AGENT_MESSAGE", ""),
        session_id=environ.get("AGENT_SESSION_ID", ""),
        session_name=environ.get("AGENT_SESSION_NAME") or DEFAULT_SESSION_NAME,
        from_user=environ.get("AGENT_FROM_USER", ""),
        streaming=environ.get("AGENT_STREAMING") != "0",
        attachments=_attachments(environ),
    )


def _attachments(environ: Mapping[str, str]) -> tuple[Attachment, ...]:
    """All of them where the bridge names all, else the single ones."""
    if listed := environ.get("AGENT_ATTACHMENTS"):
        try:
            items = jsontext.loads(listed.encode("utf-8", "surrogateescape"))
        except ValueError:
            items = None
        if isinstance(items, list):
            return tuple(found for item in items if (found := _attachment(item)) is not None)
    singles = (("image", environ.get("AGENT_IMAGE_URL")), ("file", environ.get("AGENT_FILE_URL")))
    return tuple(Attachment(type, url) for type, url in singles if url)


def _attachment(item: Any) -> Attachment | None:
    if not isinstance(item, dict):
        return None
    type, url, name = item.get("type"), item.get("url"), item.get("name")
    if not isinstance(type, str) or not isinstance(url, str) or not type or not url:
        return None
    return Attachment(type, url, name if isinstance(name, str) else "")


# What an agent writes


def encode_partial(text: str) -> bytes:
    """The line of a piece of the answer."""
    return f"{PARTIAL}{quote(whole(text))}\n".encode()


def encode_error(message: str) -> bytes:
    """The line of a failure."""
    return f"{ERROR}{quote(whole(message))}\n".encode()


def encode_session(session_id: str) -> bytes:
    """The line of a session id.

    Raises:
        LocalProtocolError: it cannot be one; `portable_id` makes one of any text.
    """
    if not is_session_id(session_id):
        raise LocalProtocolError(f"{session_id[:SHOWN_CHARS]!r} cannot be the id of a session: {SESSION_ID_RULE}")
    return f"{SESSION}{session_id}\n".encode()


def encode_body(text: str) -> bytes:
    """The lines of a reply, with a space in front of those that would be taken for protocol.

    Also in the middle of a line, where only some bridges see the beginning of one.
    """
    body = re.sub(_BEFORE_PREFIX, " ", whole(text))
    return (body if body.endswith("\n") else f"{body}\n").encode()


def portable_id(own: str) -> str:
    """An id of ours in letters, digits and `. _ ~ = -`, which every bridge takes."""
    data = own.encode("utf-8", "surrogatepass")
    # A name of dots alone means a directory to some bridges.
    keep = _PORTABLE if own.strip(".") else frozenset[int]()
    return "".join(chr(byte) if byte in keep else f"={byte:02X}" for byte in data)


def own_id(portable: str) -> str:
    """The id that `portable_id` made this of. One that it cannot have made is given back as it is."""
    data = re.sub(
        rb"=([0-9A-F]{2})", lambda code: bytes((int(code[1], 16),)), portable.encode("utf-8", "surrogatepass")
    )
    try:
        own = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return portable
    return own if portable_id(own) == portable else portable
