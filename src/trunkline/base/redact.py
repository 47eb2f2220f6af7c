"""Redaction by value: a known secret is masked wherever it turns up, in any of its usual spellings.

    redactor = Redactor.from_environ(os.environ)
    redactor.text("Bearer sk-live-0123456789")        # "Bearer [redacted]"
    stream = redactor.stream()                        # for text that arrives in pieces
    stream.feed("sk-li"), stream.feed("ve-0123456789 ok"), stream.finish()    # "", "[redacted] ok", ""

Spellings: as it is; in a JSON string, once and twice over; percent-encoded; in base64, also in the middle of
something longer such as `user:secret`. A secret of several lines is also known by each of its longer lines.

Which variables of an environment hold secrets is decided by `environment_secrets`.

Known limits: a secret that was reversed, cut, or encoded otherwise is not recognised.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from json.encoder import encode_basestring, encode_basestring_ascii
from operator import is_
from typing import TYPE_CHECKING, Any, NewType, TypeAlias

from trunkline.base.environ_secrets import environment_secrets, octets
from trunkline.base.values import Value

if TYPE_CHECKING:
    from logging import LogRecord

#: What stands where a secret stood.
MASK = "[redacted]"

#: Takes the secrets out of a text. Whoever cuts somebody else's words is given one, and cleans before it cuts: half of
#: a secret would not be known for one.
Clean: TypeAlias = Callable[[str], str]

#: A text without secrets. What cuts takes nothing else, so that nothing is cut before it was cleaned.
Masked = NewType("Masked", str)

#: Shorter ones would mask ordinary words, and are guessed sooner than leaked.
FEWEST_CHARS = 4

#: A line of a longer secret, such as a key in PEM form, that says something by itself.
FEWEST_CHARS_OF_A_LINE = 16

#: The part of a base64 text that does not depend on its neighbours must be this long to be beyond chance.
FEWEST_CHARS_OF_BASE64 = 8

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_URLSAFE = str.maketrans("+/", "-_")


class Redactor:
    """Masks a fixed set of secrets. Never shows them, not even in its `repr`.

    One compiled pattern finds the places where a secret may begin, by its first `FEWEST_CHARS` characters; only
    there it is compared. The pattern of the whole secrets would take six times as long to compile.
    """

    __slots__ = ("_beginnings", "_by_gate", "_gate", "_last_of_beginnings", "_longest", "_secrets")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = frozenset(secret for secret in secrets if _long_enough(secret) and secret not in MASK)
        spellings = {spelling for secret in self._secrets for spelling in _spellings(secret) if _long_enough(spelling)}
        self._longest = max(map(len, spellings), default=0)
        # Longest first: a part of a secret may be another secret.
        self._by_gate: dict[str, list[str]] = {}
        for spelling in sorted(spellings, key=len, reverse=True):
            self._by_gate.setdefault(spelling[:FEWEST_CHARS], []).append(spelling)
        # The ends of a text that are too short for the gate, longest first.
        self._beginnings = [
            (size, frozenset(gate[:size] for gate in self._by_gate)) for size in range(FEWEST_CHARS - 1, 0, -1)
        ]
        self._last_of_beginnings = frozenset(char for gate in self._by_gate for char in gate[:-1])
        self._gate = re.compile("|".join(map(re.escape, self._by_gate))).search

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Redactor:
        """One that knows the secrets in an environment."""
        return cls(environment_secrets(environ))

    def learn(self, secrets: Iterable[str]) -> None:
        """Know some more from now on. A text that is being read in pieces is read on with what was known before."""
        Redactor.__init__(self, self._secrets.union(secrets))

    def __bool__(self) -> bool:
        """Whether it knows any secret at all."""
        return bool(self._secrets)

    def __repr__(self) -> str:
        return f"<Redactor of {len(self._secrets)} secrets>"

    def text(self, text: str) -> Masked:
        """The text with every secret masked; the same object when there is none in it."""
        if not self._secrets or self._gate(text) is None:
            return Masked(text)
        return Masked(self._mask(text, complete=True)[0])

    def lines(self, text: str) -> Masked:
        """The text with every secret masked and every line feed in its place, for those who count lines."""
        masked = self.text(text)
        if masked is text or masked.count("\n") == text.count("\n"):
            return masked
        return Masked("\n".join(map(self.text, text.split("\n"))))

    def beginning(self, text: str) -> Masked:
        """What is left of a text that had to be cut before it was cleaned: neither secrets nor the half of one."""
        if not self._secrets:
            return Masked(text)
        # Half of a character must not hide the half of a secret before it.
        return Masked(self._mask(text.rstrip("\ufffd"), complete=False)[0])

    def ending(self, text: str) -> Masked:
        """The same of a text whose beginning was cut off: what may be the rest of a secret is left out with it."""
        return Masked(self.text(text)[max(self._longest - 1, 0) :])

    def data(self, data: Any) -> Any:
        """Nested JSON data, or a `Value`, with every string in it masked, keys too; the same object if none was."""
        if isinstance(data, str):
            return self.text(data)
        if not self._secrets:
            return data
        if isinstance(data, Mapping):
            members = [(self.data(key), self.data(member)) for key, member in data.items()]
            return data if all(map(_same_member, data.items(), members)) else dict(members)
        if isinstance(data, list | tuple):
            items = [self.data(item) for item in data]
            if all(map(is_, data, items)):
                return data
            return tuple(items) if isinstance(data, tuple) else items
        if isinstance(data, Value):
            fields = {field: getattr(data, field) for field in data.__fields__}
            changed = self.data(fields)
            return data if changed is fields else type(data)(**changed)
        return data

    def stream(self) -> StreamRedactor:
        """A redactor for one text that arrives in pieces."""
        return StreamRedactor(self)

    def _mask(self, text: str, complete: bool) -> tuple[str, str]:
        """The text masked, and the end of it that must wait because it may be the beginning of a secret."""
        shown: list[str] = []
        position = 0
        hit = self._gate(text)
        while hit is not None:
            start = hit.start()
            end = self._end(text, start, complete)
            if end is None:
                shown.append(text[position:start])
                return "".join(shown), text[start:]
            if end > start:
                shown += text[position:start], MASK
                position = end
            hit = self._gate(text, max(end, start + 1))
        cut = len(text) if complete else self._cut(text, position)
        if not shown:
            return text[:cut], text[cut:]
        shown.append(text[position:cut])
        return "".join(shown), text[cut:]

    def _end(self, text: str, start: int, complete: bool) -> int | None:
        """Where the longest secret ends that begins here: `start` if none does, `None` if the text ends too soon."""
        for spelling in self._by_gate[text[start : start + FEWEST_CHARS]]:
            if text.startswith(spelling, start):
                return start + len(spelling)
            # One that may go on comes before a shorter one that is complete: the rest of it may follow.
            if not complete and len(text) - start < len(spelling) and spelling.startswith(text[start:]):
                return None
        return start

    def _cut(self, text: str, position: int) -> int:
        """Where the end of the text begins that is shorter than the gate and may be the beginning of a secret."""
        if text[-1:] not in self._last_of_beginnings:
            return len(text)
        for size, beginnings in self._beginnings:
            if len(text) - size >= position and text[-size:] in beginnings:
                return len(text) - size
        return len(text)


class StreamRedactor:
    """Masks secrets in one text that arrives in pieces, however they are cut.

    The pieces it gives back add up to what `Redactor.text` makes of the whole. It holds back only what may be the
    beginning of a secret, and everything else at once.
    """

    __slots__ = ("_held", "_redactor")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, text: str) -> str:
        """Take the next piece and give back what can be shown by now."""
        if not self._redactor._secrets:
            return text
        shown, self._held = self._redactor._mask(self._held + text, complete=False)
        return shown

    def finish(self) -> str:
        """What was held back: nothing more will come."""
        held, self._held = self._held, ""
        return self._redactor.text(held)


class RedactingFilter:
    """A filter for `logging`: add it to a handler, and no record leaves it with a secret in any of its texts.

    It lets every record pass. (A class of its own instead of a `logging.Filter`, which `logging` does not ask for,
    so that processes that never log need not import it.)
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def filter(self, record: LogRecord) -> bool:
        if self._redactor:
            record.msg, record.args = _message(record), None
            if record.exc_info and not record.exc_text:
                from logging import Formatter

                # Formatters look at the exception only when there is no text of it yet.
                record.exc_text = Formatter().formatException(record.exc_info)
            for name, value in list(vars(record).items()):
                if isinstance(value, str | Mapping | list | tuple) and name != "exc_info":
                    setattr(record, name, self._redactor.data(value))
        return True


def _message(record: LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:  # an argument may raise anything when it is shown, and logging must not
        # Left alone, `logging` would print the arguments as they are.
        return f"{record.msg} {record.args!r:.200} ({type(error).__name__} while formatting)"


def _same_member(before: tuple[Any, Any], after: tuple[Any, Any]) -> bool:
    return before[0] is after[0] and before[1] is after[1]


def _long_enough(text: str) -> bool:
    return len(text.strip()) >= FEWEST_CHARS


def _spellings(secret: str) -> Iterator[str]:
    lines = secret.splitlines()
    parts = [secret, secret.strip()]
    if len(lines) > 1:
        parts += [line for line in lines if len(line) >= FEWEST_CHARS_OF_A_LINE and not line.startswith("-----")]
    for part in parts:
        yield part
        for escape in (encode_basestring, encode_basestring_ascii):
            once = escape(part)[1:-1]
            yield once
            yield escape(once)[1:-1]
            # Some encoders escape a slash, or what HTML would trip over.
            yield once.replace("/", "\\/")
            yield once.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        data = octets(part)
        yield from _percent_encoded(data)
        yield from _base64(data)


def _percent_encoded(data: bytes) -> Iterator[str]:
    if _UNRESERVED.issuperset(data):
        return
    for keep in (_UNRESERVED, _UNRESERVED | set(b"/"), _UNRESERVED | set(b"!$&'()*+,;=:@/?")):
        for pattern in ("%{:02X}", "%{:02x}"):
            encoded = "".join(chr(byte) if byte in keep else pattern.format(byte) for byte in data)
            yield encoded
            yield encoded.replace("%20", "+")


def _base64(data: bytes) -> Iterator[str]:
    whole = b2a_base64(data, newline=False).decode("ascii")
    found = [whole, whole.rstrip("=")]
    for before in range(3):
        # Six bits make a character: those that hold a bit of a neighbour are not ours to know.
        first = -(-before * 8 // 6)
        last = (before + len(data)) * 8 // 6
        inner = b2a_base64(bytes(before) + data, newline=False).decode("ascii")[first:last]
        if len(inner) >= FEWEST_CHARS_OF_BASE64:
            found.append(inner)
    for text in found:
        yield text
        yield text.translate(_URLSAFE)
