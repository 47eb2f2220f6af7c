"""The filter grammar of embedded storages: a JSON predicate over the fields of records.

    {"op": "and", "args": [
        {"op": "le", "lhs": {"knowledge": "level"}, "rhs": {"value": 3}},
        {"op": "in", "needle": {"value": "smith"}, "haystack": {"knowledge": "roles"}}]}

`and` and `or` have `args`, `not` has `arg`, `eq ne lt le gt ge` have `lhs` and `rhs`, `in` has `needle` and
`haystack`. Whole and other numbers compare with each other, everything else with its own type only; only numbers have
an order. A comparison with a field that a record does not have is false, `ne` included.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trunkline.agents.graph.errors import GraphTextError
from trunkline.agents.graph.fields import Column, typed
from trunkline.base import jsontext
from trunkline.base.values import Value

if TYPE_CHECKING:
    from numpy import bool_
    from numpy.typing import NDArray

    Mask = NDArray[bool_]

#: Predicates within predicates.
MAX_DEPTH = 16
#: Predicates of one filter.
MAX_NODES = 256
#: Bytes of one filter.
MAX_BYTES = 256 * 1024

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
_MEMBERS = {
    **dict.fromkeys(("and", "or"), ("args",)),
    **dict.fromkeys(_COMPARE, ("lhs", "rhs")),
    "not": ("arg",),
    "in": ("needle", "haystack"),
}
_NUMBERS = ("int", "float")

#: Gives for a number of records which of them fit.
Predicate = Callable[[int], "Mask"]


class FilterError(GraphTextError):
    """It is no filter, or none for this storage. `str()` is `filter.WHAT: at PLACE: why`."""

    def __init__(self, what: str, place: str, why: str) -> None:
        super().__init__(f"filter.{what}: at {place or 'the top'}: {why}")


class _Operand(Value):
    """One side of a comparison: a field's column, or one value for all records."""

    type: str
    """A field's type, or `[string]` for a list of texts."""
    column: Column | None
    value: Any = None

    def values(self, count: int) -> Any:
        return self.column.values if self.column is not None else [self.value] * count


def compile_filter(text: str, columns: Mapping[str, Column]) -> Predicate | None:
    """The predicate that a text describes; None for an empty one.

    Raises:
        FilterError: it is none.
    """
    if not text.strip():
        return None
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > MAX_BYTES:
        raise FilterError("too_large", "", f"more than {MAX_BYTES} bytes")
    try:
        tree = jsontext.loads(data)
    except ValueError as error:
        raise FilterError("bad_json", "", str(error)) from None
    return _Compiler(columns).predicate(tree, "", 1)


class _Compiler:
    def __init__(self, columns: Mapping[str, Column]) -> None:
        self._columns = columns
        self._nodes = 0

    def predicate(self, tree: Any, place: str, depth: int) -> Predicate:
        self._nodes += 1
        if depth > MAX_DEPTH:
            raise FilterError("too_deep", place, f"more than {MAX_DEPTH} levels")
        if self._nodes > MAX_NODES:
            raise FilterError("too_large", place, f"more than {MAX_NODES} predicates")
        if not isinstance(tree, dict):
            raise FilterError("bad_node", place, "a predicate is an object with an `op`")
        op = tree.get("op")
        if not isinstance(op, str) or op not in _MEMBERS:
            raise FilterError("unknown_op", _in(place, "op"), f"must be one of {', '.join(_MEMBERS)}")
        wanted = {"op", *_MEMBERS[op]}
        for key in sorted(wanted ^ tree.keys()):
            raise FilterError(
                "bad_node", _in(place, key), "is missing" if key in wanted else f"`{op}` has no such member"
            )
        if op in ("and", "or"):
            return self._several(op, tree["args"], _in(place, "args"), depth)
        if op == "not":
            inner = self.predicate(tree["arg"], _in(place, "arg"), depth + 1)
            return lambda count: ~inner(count)
        if op == "in":
            return self._membership(tree, place)
        return self._comparison(op, tree, place)

    def _several(self, op: str, args: Any, place: str, depth: int) -> Predicate:
        import numpy as np

        if not isinstance(args, list) or not args:
            raise FilterError("bad_node", place, "must be a list of at least one predicate")
        inner = [self.predicate(each, f"{place}[{number}]", depth + 1) for number, each in enumerate(args)]
        combine = np.all if op == "and" else np.any
        return lambda count: combine([each(count) for each in inner], axis=0)

    def _comparison(self, op: str, tree: dict[str, Any], place: str) -> Predicate:
        left, right = self._operand(tree["lhs"], _in(place, "lhs")), self._operand(tree["rhs"], _in(place, "rhs"))
        for side, operand in (("lhs", left), ("rhs", right)):
            if operand.type == "[string]":
                raise FilterError("type_mismatch", _in(place, side), "a list can only be a haystack")
        both_numbers = left.type in _NUMBERS and right.type in _NUMBERS
        if not both_numbers and left.type != right.type:
            raise FilterError("type_mismatch", _in(place, "rhs"), f"cannot compare {left.type} with {right.type}")
        if op not in ("eq", "ne") and not both_numbers:
            raise FilterError("type_mismatch", _in(place, "lhs"), f"`{op}` is for numbers, not for {left.type}")
        compare = _COMPARE[op]
        return _each_pair(left, right, lambda one, other: bool(compare(one, other)))

    def _membership(self, tree: dict[str, Any], place: str) -> Predicate:
        needle = self._operand(tree["needle"], _in(place, "needle"))
        haystack = self._operand(tree["haystack"], _in(place, "haystack"))
        if needle.type != "string":
            raise FilterError("type_mismatch", _in(place, "needle"), f"must be a string, not {needle.type}")
        if haystack.type not in ("set<string>", "[string]"):
            raise FilterError("type_mismatch", _in(place, "haystack"), f"must be a set<string>, not {haystack.type}")
        return _each_pair(needle, haystack, lambda one, others: one in others)

    def _operand(self, given: Any, place: str) -> _Operand:
        if not isinstance(given, dict) or len(given) != 1:
            raise FilterError("bad_operand", place, 'must be {"knowledge": FIELD} or {"value": VALUE}')
        namespace, inner = next(iter(given.items()))
        if namespace == "value":
            return _literal(inner, place)
        if namespace != "knowledge":
            raise FilterError("unknown_namespace", place, f"`{namespace}` is neither `knowledge` nor `value`")
        column = self._columns.get(inner) if isinstance(inner, str) else None
        if column is None:
            raise FilterError("unknown_field", place, f"the storage has no field `{inner}`")
        if not column.field.filterable:
            raise FilterError("not_filterable", place, f"the field `{inner}` is not filterable")
        return _Operand(column.field.type, column)


def _literal(value: Any, place: str) -> _Operand:
    for kind in ("bool", "int", "float", "string"):
        found = typed(value, kind)
        if found is not None:
            return _Operand(kind, None, found)
    found = typed(value, "set<string>")
    if found is not None:
        return _Operand("[string]", None, found)
    raise FilterError("type_mismatch", place, "must be a number, a string, true, false, or a list of strings")


def _each_pair(left: _Operand, right: _Operand, holds: Callable[[Any, Any], bool]) -> Predicate:
    """Ask for each record, once: storages do not change, so that the answer can be kept."""
    kept: dict[int, Mask] = {}

    def ask(count: int) -> Mask:
        import numpy as np

        if count not in kept:
            pairs = zip(left.values(count), right.values(count), strict=True)
            answers = (one is not None and other is not None and holds(one, other) for one, other in pairs)
            kept[count] = np.fromiter(answers, bool, count)
        return kept[count]

    return ask


def _in(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_NODES", "FilterError", "Predicate", "compile_filter"]
