"""Which parts of an environment are secret. The rule, whole:

1. A variable whose name says so holds a secret: it ends in a word such as `KEY`, `TOKEN`, `AUTH`, `JWT`, `PAT` or
   `DSN` (`OPENAI_API_KEY`, `token`), or has `SECRET`, `PASSWORD`, `PASSPHRASE`, `CREDENTIAL`, `APIKEY`, `BEARER` or
   `MNEMONIC` anywhere in it. A number behind that changes nothing (`OPENAI_API_KEY_2`). `NAME_FILE`, `NAME_PATH`
   and `NAME_DIR` are places, not secrets. A plural such as `API_KEYS` may hold a list, and a JSON object has
   members of its own that the same rule is applied to.
2. Whatever its name, a value that holds URLs gives up what is secret in them: the password, or the user where there
   is no password; query members whose name says so (rule 1, and `sig`); and parts of the path that are long and look
   like a key, as in the addresses of RPC services and webhooks. Host names and the rest of the URL stay readable.
3. Never a secret: what is shorter than `FEWEST_CHARS`, words that everybody uses, and paths of files.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from trunkline.base import jsontext

#: Of `prctl`, in Linux's `prctl.h`.
_PR_SET_DUMPABLE = 4

#: Shorter values are switches, numbers and words; masking them would make logs unreadable.
FEWEST_CHARS = 8

#: Keys in paths are long and random; the names of resources seldom have twenty characters with digits among them.
FEWEST_CHARS_OF_A_KEY_IN_A_PATH = 20

#: Values found in such variables that are no secret, and would be masked in ordinary sentences.
# fmt: off
COMMON_WORDS = frozenset((
    "administrator", "anonymous", "changeme", "changeit", "database", "default-token", "development", "disabled",
    "localhost", "notasecret", "password", "password1", "passw0rd", "placeholder", "postgres", "postgresql",
    "production", "redacted", "required", "secret-key", "sk-placeholder", "test-key", "test-token", "undefined",
    "unlimited", "username", "your-api-key", "your_api_key", "12345678", "00000000",
))
# fmt: on

_SECRET_ANYWHERE = ("SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY", "BEARER", "MNEMONIC")
# fmt: off
_SECRET_LAST_WORDS = frozenset((
    "KEY", "KEYS", "TOKEN", "TOKENS", "AUTH", "AUTHORIZATION", "COOKIE", "DSN", "JWT", "PAT", "PASS", "PWD",
))
# fmt: on
_PLACE_LAST_WORDS = frozenset(("FILE", "PATH", "DIR", "SOCK"))
# The shell's own, although its name says otherwise.
_NO_SECRET_NAMES = frozenset(("PWD",))

# Compiled when first needed: every start of a process would wait for it, and most environments need none of them.
_URL = r"(?i)(?<![a-z0-9+.-])[a-z0-9][a-z0-9+.-]*://(?:([^/?#\s]*)@)?[^/?#@\s]*([^?#\s]*)(?:\?([^#\s]*))?(?:#\S*)?"
_KEY_IN_PATH = r"(?a)(?=[^/]*[0-9])(?=[^/]*[A-Za-z])[\w.~%+=:-]+"
_FILE = r"(?s)(?:/|~/|\.\.?/|[A-Za-z]:\\).*\.\w{1,5}"


def environment_secrets(environ: Mapping[str, str]) -> set[str]:
    """The secret values in an environment, by the rule above."""
    return {secret for name, value in environ.items() for secret in _secrets_of(name, value) if _is_secret(secret)}


def withhold(names: Iterable[str]) -> None:
    """Take variables out of our environment, which the programs of agents inherit, once their values are known."""
    for name in names:
        os.environ.pop(name, None)


def hide_process() -> None:
    """Have nobody but root look into this process: `/proc/PID/environ` shows what it was started with, to the programs
    of agents, too, whoever has taken it out of `os.environ`. So no core is dumped, and debuggers need root.

    Programs that are started are as open as ever. Where the system has no such thing, nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def names_a_secret(name: str) -> bool:
    """Whether a variable, header or member of that name holds a secret (rule 1)."""
    upper = name.upper().replace("-", "_")
    if upper[-1:].isdecimal():
        upper = upper.rstrip("0123456789").rstrip("_")
    last = upper.rpartition("_")[2]
    if last in _PLACE_LAST_WORDS or upper in _NO_SECRET_NAMES:
        return False
    if last in _SECRET_LAST_WORDS or name.endswith(("Key", "Token")):
        return True
    return any(word in upper for word in _SECRET_ANYWHERE)


def url_secrets(text: str) -> Iterator[str]:
    """What is secret in the URLs of a text (rule 2), as it stands there and decoded."""
    for user, path, query in re.findall(_URL, text):
        for secret in _in_url(user, path, query):
            yield secret
            yield _decoded(secret)


def _secrets_of(name: str, value: str) -> Iterator[str]:
    has_url = "://" in value
    if has_url:
        yield from url_secrets(value)
    # Of a URL only the secret parts: its host is what one looks for in a log.
    if names_a_secret(name) and not (has_url and re.fullmatch(_URL, value.strip())):
        yield value
        yield value.strip()
        if value.lstrip().startswith("{"):
            yield from _in_object(value)
        elif name.upper().endswith(("KEYS", "TOKENS")) and "\n" not in value:
            yield from (part for part in re.split(r"[,; \t]+", value) if not part.isdecimal())


def _in_object(text: str) -> Iterator[str]:
    try:
        found = jsontext.loads(octets(text))
    except ValueError:
        return
    for name, member in found.items():
        if isinstance(member, str) and names_a_secret(name):
            yield member


def _in_url(user: str, path: str, query: str) -> Iterator[str]:
    name, colon, password = user.partition(":")
    yield password if colon and password else name
    for part in path.split("/"):
        if len(part) >= FEWEST_CHARS_OF_A_KEY_IN_A_PATH and re.fullmatch(_KEY_IN_PATH, part):
            yield part
    for member in query.split("&"):
        key, _, value = member.partition("=")
        if names_a_secret(key) or key.lower() == "sig":
            yield value


def _is_secret(value: str) -> bool:
    return len(value) >= FEWEST_CHARS and value.lower() not in COMMON_WORDS and not _is_path(value)


def _is_path(value: str) -> bool:
    if not value.startswith(("/", "~/", "./", "../")) and value[1:3] != ":\\":
        return False
    # A random value may well begin with a slash, so that alone proves nothing; a dot and an ending does.
    if re.fullmatch(_FILE, value):
        return True
    return "\0" not in value and os.path.exists(os.path.expanduser(value))


def octets(text: str) -> bytes:
    """The bytes of a text: what an environment holds that is not UTF-8 comes as surrogates, and becomes itself."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _decoded(text: str) -> str:
    if "%" not in text:
        return text
    data = re.sub(rb"%([0-9A-Fa-f]{2})", lambda code: bytes((int(code[1], 16),)), octets(text))
    return data.decode("utf-8", "surrogateescape")
