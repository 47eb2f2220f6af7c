"""Events for property tests: any of them, with any content that JSON can carry."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from trunkline.base.values import Value
from trunkline.core.events import EVENTS, Envelope, Event

#: What text codecs trip over.
AWKWARD = [
    "\0",
    "\n",
    "\r",
    "\u2028",
    '"',
    "\\",
    "\x7f",
    "\ud800",
    "\udc80",
    "\udfff",
    "\U0001f600",
    "é",
    "%",
    "\ufeff",
]


def paired(text: str) -> str:
    """With surrogates that make a pair joined, as they come back from JSON."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


texts: st.SearchStrategy[str] = st.one_of(
    st.text(max_size=20), st.lists(st.sampled_from([*AWKWARD, "a", " "]), max_size=8).map(lambda c: paired("".join(c)))
)
numbers = st.one_of(st.integers(-(2**63), 2**64), st.floats(allow_nan=False, allow_infinity=False))
json_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)


def values_of(kind: type[Value]) -> st.SearchStrategy[Any]:
    """Any value of a type, by the types of its fields."""
    hints = get_type_hints(kind)
    return st.builds(kind, **{field: _members_of(hints[field]) for field in kind.__fields__})


def _members_of(hint: Any) -> st.SearchStrategy[Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return json_values
    if isinstance(hint, type) and issubclass(hint, Value):
        return values_of(hint)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is types.UnionType or origin is Union:
        return st.one_of(*(st.none() if option is types.NoneType else _members_of(option) for option in arguments))
    if origin is tuple:
        return st.lists(_members_of(arguments[0]), max_size=3).map(tuple)
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(texts, _members_of(arguments[1]), max_size=3)
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: texts,
        int: st.integers(0, 2**40),
        float: st.floats(0, 1e9).map(lambda number: round(number, 3)),
        bool: st.booleans(),
        bytes: st.binary(max_size=20),
    }
    return simple[hint]


events: st.SearchStrategy[Event] = st.sampled_from(EVENTS).flatmap(values_of)


def envelopes(session: str) -> st.SearchStrategy[list[Envelope]]:
    """Some events of a session, numbered from 1."""
    times = st.floats(0, 4e9).map(lambda at: round(at, 3))
    stamped = st.lists(st.tuples(st.integers(0, 1000), times, events), max_size=5)
    return stamped.map(
        lambda found: [Envelope(session, seq, turn, at, event) for seq, (turn, at, event) in enumerate(found, start=1)]
    )
