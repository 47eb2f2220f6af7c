"""Frozen records: what messages, events and requests are made of.

    class TextDelta(Event):
        text: str

A `Value` has one slot per annotated field, a positional-or-keyword `__init__`, equality by type and fields, a hash,
a `repr`, pattern matching, and no assignment after construction. Type checkers see it as a frozen dataclass.

    class TextDelta(Event, hot=True): ...

A `hot` one, which comes by the thousand, is made in half the time: there only the type checker guards it.

Why not `dataclasses`: thirty of those cost 14 ms at every start of a process that a host is waiting for, thirty of
these half a millisecond, since an `__init__` is compiled when it is first used. Why not `msgspec`: its import costs as
much again, and it refuses the lone surrogates that peers send.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, dataclass_transform


@dataclass_transform(frozen_default=True)
class ValueType(type):
    """Turns annotations into slots and an `__init__`."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], *, hot: bool = False) -> ValueType:
        inherited: dict[str, Any] = {}
        defaults: dict[str, Any] = {}
        for base in reversed(bases):
            inherited |= dict.fromkeys(getattr(base, "__fields__", ()))
            defaults |= getattr(base, "__defaults__", {})
        annotations: dict[str, Any] = namespace.get("__annotations__", {})
        own = [field for field, hint in annotations.items() if not str(hint).startswith("ClassVar")]
        # A default would shadow the slot of the same name: keep it aside.
        defaults |= {field: namespace.pop(field) for field in own if field in namespace}
        fields = tuple(inherited | dict.fromkeys(own))
        namespace |= {"__slots__": tuple(own), "__fields__": fields, "__defaults__": defaults, "__match_args__": fields}
        if hot:
            namespace |= {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
        cls = super().__new__(mcls, name, bases, namespace)
        if own or not bases:
            cls.__init__ = _init_when_used(cls, fields, defaults, hot)  # type: ignore[misc]  # generated per class
        return cls

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], *, hot: bool = False) -> None:
        super().__init__(name, bases, namespace)


def _init_when_used(cls: type, fields: tuple[str, ...], defaults: Mapping[str, Any], hot: bool) -> Any:
    """An `__init__` that makes the real one and steps aside: most classes that a start imports, it never uses."""

    def __init__(self: object, /, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        made = _make_init(cls, fields, defaults, hot)
        cls.__init__ = made  # type: ignore[misc]
        made(self, *args, **kwargs)

    return __init__


def _make_init(cls: type, fields: tuple[str, ...], defaults: Mapping[str, Any], hot: bool) -> Any:
    """Compile an `__init__` that fills the slots directly where `__setattr__` is closed to everybody else."""
    scope: dict[str, Any] = {f"_set_{field}": getattr(cls, field).__set__ for field in fields}
    scope |= {f"_default_{field}": value for field, value in defaults.items()}
    arguments = [f"{field}=_default_{field}" if field in defaults else field for field in fields]
    fill = "\n    self.{0} = {0}" if hot else "\n    _set_{0}(self, {0})"
    body = "".join(fill.format(field) for field in fields) or "\n    pass"
    # The source holds identifiers from class bodies only, never data.
    exec(f"def __init__({', '.join(['self', *arguments])}):{body}", scope)  # noqa: S102
    return scope["__init__"]


class Value(metaclass=ValueType):
    """Base of all frozen records."""

    __fields__: ClassVar[tuple[str, ...]]
    __defaults__: ClassVar[Mapping[str, Any]]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"`{type(self).__name__}.{name}` is frozen; use `replace()`")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"`{type(self).__name__}.{name}` is frozen")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, field) == getattr(other, field) for field in self.__fields__)

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, field) for field in self.__fields__)))

    def __repr__(self) -> str:
        fields = ", ".join(f"{field}={getattr(self, field)!r}" for field in self.__fields__)
        return f"{type(self).__name__}({fields})"

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), tuple(getattr(self, field) for field in self.__fields__)

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return type(self)(**({field: getattr(self, field) for field in self.__fields__} | changes))
