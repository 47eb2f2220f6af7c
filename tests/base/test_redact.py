"""Redaction by value."""

from __future__ import annotations

import base64
import io
import json
import logging
import re
import subprocess
import sys
import urllib.parse
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.redact import MASK, RedactingFilter, Redactor
from trunkline.base.values import Value

SECRET = 'sk-live/0123+"456\\789&é'

PEM = """-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj
MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu
-----END PRIVATE KEY-----
"""


class Note(Value):
    title: str
    tags: tuple[str, ...] = ()


def test_a_secret_is_masked_wherever_it_stands() -> None:
    redactor = Redactor(["hunter22"])
    assert redactor.text("hunter22") == MASK
    assert redactor.text("a hunter22b, hunter22") == f"a {MASK}b, {MASK}"


def test_a_text_without_secrets_is_given_back_as_it_is() -> None:
    text = "".join(["no ", "secret ", "here"])
    assert Redactor(["hunter22"]).text(text) is text
    assert Redactor().text(text) is text


SPELLINGS = {
    "plain": SECRET,
    "JSON": json.dumps(SECRET),
    "JSON in UTF-8": json.dumps(SECRET, ensure_ascii=False),
    "JSON in JSON": json.dumps(json.dumps(SECRET)),
    "JSON with escaped slashes": json.dumps(SECRET).replace("/", "\\/"),
    "JSON made safe for HTML": json.dumps(SECRET).replace("&", "\\u0026"),
    "percent-encoded": urllib.parse.quote(SECRET, safe=""),
    "percent-encoded path": urllib.parse.quote(SECRET),
    "percent-encoded form": urllib.parse.quote_plus(SECRET),
    "percent-encoded in lower case": re.sub("%..", lambda code: code[0].lower(), urllib.parse.quote(SECRET, safe="")),
    "base64": base64.b64encode(SECRET.encode()).decode(),
    "base64 without padding": base64.b64encode(SECRET.encode()).decode().rstrip("="),
    "URL-safe base64": base64.urlsafe_b64encode(SECRET.encode()).decode(),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_secret_is_masked_in_every_usual_spelling(spelling: str) -> None:
    text = SPELLINGS[spelling]
    shown = Redactor([SECRET]).text(f"<{text}>")
    assert MASK in shown
    assert "0123" not in shown
    assert len(shown) <= len(f'<"\\"{MASK}\\"">')


@pytest.mark.parametrize("user", ["a", "ab", "abc", "someone@example.org"])
def test_a_secret_inside_basic_credentials_is_masked(user: str) -> None:
    header = base64.b64encode(f"{user}:{SECRET}:and more".encode()).decode()
    shown = Redactor([SECRET]).text(f"Authorization: Basic {header}")
    assert MASK in shown
    assert not any(SECRET[:4].encode() in _decoded_at(shown.split()[-1], start) for start in range(4))


def _decoded_at(text: str, start: int) -> bytes:
    kept = text.replace(MASK, "")[start:]
    return base64.b64decode(kept[: len(kept) // 4 * 4] + "", validate=False)


def test_every_line_of_a_long_secret_is_known_but_not_its_ornaments() -> None:
    redactor = Redactor([PEM])
    for line in PEM.splitlines()[1:3]:
        assert redactor.text(f"read {line}") == f"read {MASK}"
    assert redactor.text(PEM) == MASK
    assert redactor.text(json.dumps({"key": PEM})) == json.dumps({"key": MASK})
    ornament = "-----BEGIN PRIVATE KEY-----"
    assert redactor.text(ornament) is ornament


def test_the_longer_of_two_secrets_wins_where_one_holds_the_other() -> None:
    redactor = Redactor(["abcdefgh", "abcdefghijkl", "efghijkl"])
    assert redactor.text("abcdefghijkl abcdefghXX efghijkl") == f"{MASK} {MASK}XX {MASK}"


@pytest.mark.parametrize("secret", ["", "abc", "    ", "redacted", "[redacted]"])
def test_what_cannot_be_a_secret_is_not_taken_for_one(secret: str) -> None:
    redactor = Redactor([secret])
    assert not redactor
    text = "abc     redacted [redacted]"
    assert redactor.text(text) is text


def test_nested_data_is_masked_in_keys_and_members_and_stays_itself_otherwise() -> None:
    redactor = Redactor(["hunter22"])
    data = {"a": ["x", {"hunter22": 1}], "b": ("hunter22!", 2), "c": None, "d": 1.5, "e": Note("hunter22", ("t",))}
    assert redactor.data(data) == {
        "a": ["x", {MASK: 1}],
        "b": (f"{MASK}!", 2),
        "c": None,
        "d": 1.5,
        "e": Note(MASK, ("t",)),
    }
    clean = {"a": ["x", {"y": 1}], "b": ("z", 2), "c": Note("t", ("u",))}
    assert redactor.data(clean) is clean
    assert Redactor().data(data) is data


def test_a_masked_key_is_noticed_even_where_the_mask_is_a_key_already() -> None:
    assert Redactor(["hunter22"]).data({MASK: None, "hunter22": None}) == {MASK: None}


def test_it_can_learn_more_secrets() -> None:
    redactor = Redactor(["hunter22"])
    redactor.learn(["swordfish"])
    assert redactor.text("hunter22 swordfish") == f"{MASK} {MASK}"


def test_its_repr_shows_no_secret() -> None:
    redactor = Redactor(["hunter22"])
    assert "hunter22" not in repr(redactor)
    assert "hunter22" not in repr(redactor.stream())


# Streams


def test_a_stream_gives_back_at_once_what_cannot_be_a_secret() -> None:
    stream = Redactor(["hunter22"]).stream()
    for piece in ("hello ", "world. ", "hint", "hunting", "x"):
        assert stream.feed(piece) == piece
    assert stream.finish() == ""


def test_a_stream_holds_back_what_may_become_a_secret_and_no_more() -> None:
    stream = Redactor(["hunter22"]).stream()
    assert stream.feed("the hunt") == "the "
    assert stream.feed("er") == ""
    assert stream.feed(" is on, h") == "hunter is on, "
    assert stream.feed("unter22 h") == f"{MASK} "
    assert stream.finish() == "h"


def test_a_stream_waits_for_the_longer_secret_when_a_shorter_one_is_complete() -> None:
    stream = Redactor(["abcdefgh", "abcdefghijkl"]).stream()
    assert stream.feed("abcdefgh") == ""
    assert stream.feed("ijk") == ""
    assert stream.feed("l") == MASK
    assert stream.feed("abcdefgh") + stream.feed("!") == f"{MASK}!"


def test_a_stream_without_secrets_passes_everything_on() -> None:
    stream = Redactor().stream()
    piece = "anything"
    assert stream.feed(piece) is piece
    assert stream.finish() == ""


# Few letters, so that secrets overlap, repeat and contain one another.
secrets_of_few_letters = st.lists(st.text("ab", min_size=4, max_size=9), min_size=1, max_size=4)
pieces_of_few_letters = st.lists(st.text("ab", max_size=6), max_size=12)


@given(secrets_of_few_letters, pieces_of_few_letters)
def test_however_a_text_is_split_the_stream_shows_what_the_whole_would(secrets: list[str], pieces: list[str]) -> None:
    redactor = Redactor(secrets)
    stream = redactor.stream()
    shown = "".join(map(stream.feed, pieces)) + stream.finish()
    assert shown == redactor.text("".join(pieces))
    assert not any(secret in shown for secret in secrets)


@given(
    secret=st.text(min_size=8, max_size=30).filter(lambda text: len(text.strip()) >= 8),
    around=st.tuples(st.text(max_size=20), st.text(max_size=20)),
    cuts=st.lists(st.integers(0, 300), max_size=8),
    spelling=st.sampled_from(["plain", "json", "percent", "base64"]),
)
def test_no_secret_survives_whatever_its_characters_spelling_and_splits(
    secret: str, around: tuple[str, str], cuts: list[int], spelling: str
) -> None:
    spelt = {
        "plain": secret,
        "json": json.dumps(secret)[1:-1],
        "percent": urllib.parse.quote(secret, safe="", errors="surrogatepass"),
        "base64": base64.b64encode(secret.encode("utf-8", "surrogatepass")).decode(),
    }[spelling]
    text = f"{around[0]}{spelt}{around[1]}"
    redactor = Redactor([secret])
    stream = redactor.stream()
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    shown = "".join(stream.feed(text[start:end]) for start, end in pairwise(edges))
    shown += stream.finish()
    assert shown == redactor.text(text)
    assert spelt not in shown
    assert MASK in shown


@given(st.lists(st.text("abc", min_size=4, max_size=9), min_size=1, max_size=3), st.text("abc", max_size=40))
def test_a_stream_never_holds_more_than_the_beginning_of_a_secret(secrets: list[str], text: str) -> None:
    stream = Redactor(secrets).stream()
    for char in text:
        stream.feed(char)
    held = stream.finish()
    assert len(held.replace(MASK, "")) < 2 * max(map(len, secrets))  # base64 is a third longer


# Logging


def _logged(secret: str, *args: object, **extra: object) -> str:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(message)s %(where)s", defaults={"where": ""}))
    handler.addFilter(RedactingFilter(Redactor([secret])))
    logger = logging.Logger("test")  # noqa: LOG001  (nobody else may get hold of this one)
    logger.addHandler(handler)
    logger.error(*args, **extra)  # type: ignore[arg-type]
    return out.getvalue()


def test_logged_messages_arguments_and_extras_are_masked() -> None:
    assert _logged("hunter22", "with hunter22 for %s in %r", "hunter22", {"p": "hunter22"}) == (
        f"with {MASK} for {MASK} in {{'p': '{MASK}'}} \n"
    )
    assert _logged("hunter22", "x", extra={"where": "at hunter22"}) == f"x at {MASK}\n"


def test_a_secret_that_only_the_formatted_message_holds_is_masked() -> None:
    assert _logged("hunter22", "%s%d", "hunter", 22) == f"{MASK} \n"


def test_of_a_text_that_was_cut_no_half_of_a_secret_is_left_at_either_end() -> None:
    secret = "hunter22-and-more"
    redactor = Redactor([secret])
    for place in range(1, len(secret)):
        assert redactor.beginning(f"a {secret} b {secret[:place]}") == f"a {MASK} b "
        assert not any(
            part in redactor.ending(f"{secret[place:]} and then {secret}") for part in ("22", "and-", "more")
        )
    assert Redactor().beginning("as it is") == Redactor().ending("as it is") == "as it is"


def test_half_of_a_character_does_not_hide_the_half_of_a_secret_before_it() -> None:
    assert Redactor(["schlüsselwort"]).beginning("a schl\ufffd") == "a "


def test_lines_stay_where_they_are_when_a_secret_of_several_lines_is_masked() -> None:
    secret = "0123456789abcdef0\n0123456789abcdef1"
    assert Redactor([secret]).lines(f"a\n{secret}\nb") == f"a\n{MASK}\n{MASK}\nb"


def test_logged_exceptions_are_masked() -> None:
    try:
        raise ValueError("bad password hunter22")
    except ValueError:
        shown = _logged("hunter22", "failed", exc_info=True, stack_info=True)
    assert f"ValueError: bad password {MASK}" in shown
    assert "hunter22" not in shown


def test_a_message_that_does_not_fit_its_arguments_is_shown_masked_instead_of_raising() -> None:
    shown = _logged("hunter22", "%d and %d", "hunter22")
    assert "hunter22" not in shown
    assert "TypeError while formatting" in shown


def test_a_filter_without_secrets_leaves_records_alone() -> None:
    record = logging.LogRecord("n", logging.INFO, "p", 1, "%s", ("a",), None)
    assert RedactingFilter(Redactor()).filter(record)
    assert record.args == ("a",)


def test_importing_it_imports_nothing_heavy() -> None:
    code = (
        "import sys, json; before = set(sys.modules); import trunkline.base.redact;"
        "print(*sorted(m for m in set(sys.modules) - before if not m.startswith('trunkline')))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS
    )
    assert not {"logging", "urllib", "pathlib", "asyncio", "hashlib"} & set(done.stdout.split())
