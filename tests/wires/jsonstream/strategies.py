"""Every message of the JSON stream, made by Hypothesis from the annotations of its type.

No message is listed here: a new one, or a new field, is tried by every property as soon as it is declared.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from trunkline.base.values import Value
from trunkline.wires.jsonstream.messages import COMMANDS, EVENTS, Command, Event, UserMessage

_HIGH, _LOW = "\ud800", "\udc00"


def _paired(text: str) -> str:
    """The text with each high surrogate that a low one follows turned into the character that both mean.

    JSON has one escape for such a pair and for that character: it cannot carry the difference.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


#: Text as hosts and agents send it, lone surrogates, NULs and exotic line ends included.
texts = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=20),
    st.lists(
        st.sampled_from([_HIGH, _LOW, "\0", "\r", "\n", "\u2028", "\x85", '"', "\\", "\ufeff", "é", "\U0001f600", "a"]),
        max_size=8,
    ).map("".join),
).map(_paired)

#: The largest number of digits that Python reads in one integer is 4300.
integers = st.integers() | st.just(10**4299)

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | integers | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def values_of(kind: type[Value]) -> st.SearchStrategy[Any]:
    """Any value of a type."""
    hints = get_type_hints(kind)
    return st.builds(kind, **{field: _of(hints[field]) for field in kind.__fields__})


def _of(hint: Any) -> st.SearchStrategy[Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return json_values
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (types.UnionType, Union):
        return st.one_of(*(st.none() if option is types.NoneType else _of(option) for option in arguments))
    if origin is tuple:
        return st.lists(_of(arguments[0]), max_size=3).map(tuple)
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(texts, _of(arguments[1]), max_size=3)
    if issubclass(hint, Value):
        return values_of(hint)
    return {str: texts, int: integers, bool: st.booleans()}[hint]


commands: st.SearchStrategy[Command] = st.one_of(*map(values_of, COMMANDS.values())).filter(
    # The one rule that no annotation tells.
    lambda command: not isinstance(command, UserMessage) or bool(command.msg_id)
)
events: st.SearchStrategy[Event] = st.one_of(*map(values_of, EVENTS.values()))
