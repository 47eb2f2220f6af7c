"""Session ids as names of files: any id gives a safe name, no two ids the same one.

    a-plain_id.7      a-plain_id.7
    Ab/../é           %41b%2f..%2f%c3%a9
    .hidden           %2ehidden
    (10,000 letters)  the first of them, `~`, and the SHA-256 of the id

Capitals are encoded because some file systems do not tell them from small letters. `~` stands in no encoded id, so
that a cut name is never the name of another id.
"""

from __future__ import annotations

from trunkline.core.faults import ConfigError

#: File systems allow 255 bytes; the rest is for the endings that stores append.
LONGEST_NAME = 200

#: Enough of a long id to recognise it in a listing, with room for the hash.
_PREFIX = 100

#: Enough of an id for an error text.
_SHOWN_CHARS = 200

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-.")


def key(session: str) -> bytes:
    """The bytes that identify a session.

    Surrogates that make a pair count as the character they mean: that is how they come back from JSON.

    Raises:
        ConfigError: the id is empty.
    """
    if not session:
        raise ConfigError("A session id must not be empty.", hint="Leave it out to get a new one.")
    try:
        return session.encode("utf-8")
    except UnicodeEncodeError:
        paired = session.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return paired.encode("utf-8", "surrogatepass")


def file_name(session: str) -> str:
    """The name of a session's files, without an ending. Never empty, never a path, never hidden.

    Raises:
        ConfigError: the id is empty.
    """
    identity = key(session)
    # Nothing is encoded in more than three characters a byte: what comes after is cut off anyway.
    name = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in identity[: LONGEST_NAME + 1])
    if name.startswith("."):
        name = "%2e" + name[1:]
    if len(name) <= LONGEST_NAME:
        return name
    # Imported here: hardly any id is that long, and every process would wait for it.
    from hashlib import sha256

    return f"{name[:_PREFIX]}~{sha256(identity).hexdigest()}"


def shown(session: str) -> str:
    """An id for an error text."""
    return session if len(session) <= _SHOWN_CHARS else f"{session[:_SHOWN_CHARS]}..."
