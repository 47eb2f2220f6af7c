"""The fields of a profile as the file has them: each is read once, checked, and knows where it stands.

    profile.yaml, line 7: `kill_grace_secs` must be a number of seconds, 0 or more, not a text. Remove the quotes.

A field without a value counts as absent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import isfinite

from trunkline.base.nearest import nearest
from trunkline.core.faults import ConfigError
from trunkline.wires.agentproc.profile.yaml import Listing, Node, Scalar, Table

#: How much of a wrong value is repeated.
SHOWN_CHARS = 80
_TRUE = ("true", "yes", "on")
_KINDS = {"bool": "a truth value", "number": "a number", "null": "nothing", "text": "a text", "other": "a tagged value"}


def hint_for(name: str, known: Iterable[str], synonyms: Mapping[str, str] | None = None) -> str | None:
    """`Did you mean ...?` when `name` looks like one of the known names, or is another word for one."""
    if synonyms is not None and name.lower() in synonyms:
        return f"Did you mean `{synonyms[name.lower()]}`?"
    others = synonyms or {}
    meant = nearest(name.lower(), {*known, *others})
    return f"Did you mean `{others.get(meant, meant)}`?" if meant else None


class Field:
    """One value of a profile. All methods raise `ConfigError` if it is not what they give."""

    def __init__(self, source: str, key: str, line: int, node: Node) -> None:
        self.key = key
        self.line = line
        self._source = source
        self._node = node

    def place(self, problem: str) -> str:
        """Where it stands and what is wrong with it, as people read it."""
        return f"{self._source}, line {self.line}: `{self.key}` {problem}"

    def wrong(self, problem: str, hint: str | None = None) -> ConfigError:
        """The error that says so."""
        return ConfigError(self.place(problem), hint=hint)

    def text(self, empty: bool = True, list_hint: str | None = None) -> str:
        """A text; by default an empty one will do. `list_hint` is for those who wrote a list."""
        node = self._node
        if not isinstance(node, Scalar) or node.kind != "text":
            is_plain = isinstance(node, Scalar) and node.kind in ("bool", "number")
            hint = "Put it in quotes." if is_plain else list_hint if isinstance(node, Listing) else None
            raise self.wrong(f"must be a text, not {self._kind()}.", hint)
        if not empty and not node.text.strip():
            raise self.wrong("must not be empty.")
        return node.text

    def written(self, null_hint: str) -> str:
        """Whatever single value stands there, as it is written: `yes`, `0x10` and `1.50` stay what they are."""
        node = self._node
        if not isinstance(node, Scalar) or node.kind in ("other", "null"):
            hint = null_hint if isinstance(node, Scalar) and node.kind == "null" else None
            raise self.wrong(f"must be a text, not {self._kind()}.", hint)
        return node.text

    def seconds(self) -> float:
        """A length of time."""
        return self._number("a number of seconds, 0 or more")

    def count(self) -> int:
        """A whole number, 0 or more."""
        number = self._number("a whole number, 0 or more")
        if number != int(number):
            raise self.wrong("must be a whole number, 0 or more.")
        return int(number)

    def flag(self) -> bool:
        """True or false."""
        node = self._node
        if not isinstance(node, Scalar) or node.kind != "bool":
            is_quoted = isinstance(node, Scalar) and node.text.lower() in (*_TRUE, "false", "no", "off")
            hint = "Remove the quotes." if is_quoted else None
            raise self.wrong(f"must be `true` or `false`, not {self._kind()}.", hint)
        return node.text.lower() in _TRUE

    def choice(self, known: Collection[str]) -> str:
        """One of the known names; numbers count as they are written."""
        node = self._node
        given = node.text if isinstance(node, Scalar) else ""
        if given in known:
            return given
        names = ", ".join(f"`{name}`" for name in known)
        got = f"`{given[:SHOWN_CHARS]}`" if given else self._kind()
        raise self.wrong(f"must be one of {names}, not {got}.", hint_for(given, known))

    def texts(self) -> tuple[str, ...]:
        """A list of single values, each as it is written."""
        return tuple(item.written('Write "" for an empty text, or remove the line.') for item in self.items())

    def items(self) -> list[Field]:
        """The items of a list."""
        if not isinstance(self._node, Listing):
            hint = "Write one item to a line, each after `- `." if isinstance(self._node, Scalar) else None
            raise self.wrong(f"must be a list, not {self._kind()}.", hint)
        return [
            Field(self._source, f"{self.key}[{index}]", item.line, item) for index, item in enumerate(self._node.items)
        ]

    def members(self) -> dict[str, Field]:
        """The members of a mapping."""
        if not isinstance(self._node, Table):
            raise self.wrong(f"must be a mapping, not {self._kind()}.", "Write `NAME: value`, one to a line.")
        inner = f"{self.key}." if self.key else ""
        return {
            name: Field(self._source, f"{inner}{name}", line, node) for name, (line, node) in self._node.members.items()
        }

    @property
    def as_text(self) -> str:
        """What is written there, whatever it is meant for; nothing if it is no single value."""
        return self._node.text if isinstance(self._node, Scalar) else ""

    @property
    def is_mapping(self) -> bool:
        """Whether it has members."""
        return isinstance(self._node, Table)

    @property
    def is_null(self) -> bool:
        """Whether nothing stands there."""
        return isinstance(self._node, Scalar) and self._node.kind == "null"

    def _number(self, what: str) -> float:
        node = self._node
        try:
            # Python's own reading: what YAML has besides (base 60, octal) nobody means here.
            number = float(node.text) if isinstance(node, Scalar) and node.plain else None
        except ValueError:
            number = None
        if number is None or not isfinite(number) or number < 0:
            is_quoted = isinstance(node, Scalar) and not node.plain and node.text.strip().replace(".", "", 1).isdigit()
            got = (
                f"`{node.text[:SHOWN_CHARS]}`"
                if isinstance(node, Scalar) and node.plain and node.text
                else self._kind()
            )
            raise self.wrong(f"must be {what}, not {got}.", "Remove the quotes." if is_quoted else None)
        return number

    def _kind(self) -> str:
        if isinstance(self._node, Scalar):
            return _KINDS[self._node.kind]
        return "a list" if isinstance(self._node, Listing) else "a mapping"
