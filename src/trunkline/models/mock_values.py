"""Values that fit a JSON Schema, made up without any model: what the mock answers where a form was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base import jsontext

#: Characters of a message that a text repeats, where the schema says nothing of its length.
MAX_TEXT = 200
#: How deep a value goes; what would be deeper is null. A schema may refer to itself.
MAX_DEPTH = 16
#: The longest list, whatever its schema asks for: a mock does not fill memory.
MAX_ITEMS = 64
#: Values of one answer, and the letters of all its names, texts and constants; what comes after them is null. A short
#: schema whose lists and references are nested would make billions.
MAX_VALUES = 10_000
MAX_LETTERS = 256 * 1024


def fitting(schema: Any, text: str) -> Any:
    """A value that fits, as far as the schema's words are known here. `text` is for its texts."""
    return _Maker(schema, text).value(schema, 0)


def fitting_arguments(schema: Any, text: str) -> dict[str, Any]:
    """The same for the arguments of a tool, which are an object whatever the schema says."""
    made = fitting({"type": "object", **schema} if isinstance(schema, Mapping) else {"type": "object"}, text)
    return made if isinstance(made, dict) else {}


class _Maker:
    def __init__(self, root: Any, text: str) -> None:
        self._root = root
        self._text = text
        self._values = MAX_VALUES
        self._letters = MAX_LETTERS
        self._open: set[str] = set()
        """References that are being followed: what leads back to one of them would go on for ever."""

    def value(self, schema: Any, depth: int) -> Any:
        self._values -= 1
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH or self._values < 0 or self._letters <= 0:
            return None
        if isinstance(pointer := schema.get("$ref"), str):
            return self._referred(pointer, depth)
        if "const" in schema:
            return self._given(schema["const"])
        if isinstance(choices := schema.get("enum"), list) and choices:
            return self._given(choices[0])
        for keyword in ("anyOf", "oneOf", "allOf"):
            if isinstance(options := schema.get(keyword), list) and options and "properties" not in schema:
                return self.value(options[0], depth + 1)
        return self._typed(_kind(schema), schema, depth)

    def _referred(self, pointer: str, depth: int) -> Any:
        self._letters -= len(pointer)
        if pointer in self._open:
            return None
        self._open.add(pointer)
        found = self.value(_target(self._root, pointer), depth + 1)
        self._open.remove(pointer)
        return found

    def _given(self, value: Any) -> Any:
        """Something that stands in the schema."""
        self._letters -= len(jsontext.dumps(value))
        return value if self._letters >= 0 else None

    def _typed(self, kind: str, schema: Mapping[str, Any], depth: int) -> Any:
        match kind:
            case "object":
                known = schema.get("properties")
                members = known if isinstance(known, Mapping) else {}
                return {name: self._member(name, inner, depth) for name, inner in members.items()}
            case "array":
                least = schema.get("minItems", 1)
                count = min(least, MAX_ITEMS) if type(least) is int and least > 1 else 1
                return [self.value(schema["items"], depth + 1) for _ in range(count)] if "items" in schema else []
            case "string":
                return self._words(schema)
            case "integer" | "number":
                least = schema.get("minimum", 1)
                return least if type(least) in (int, float) and least > 1 else 1
            case "boolean":
                return True
        return None

    def _member(self, name: str, schema: Any, depth: int) -> Any:
        self._letters -= len(name)
        return self.value(schema, depth + 1)

    def _words(self, schema: Mapping[str, Any]) -> str:
        least, most = schema.get("minLength"), schema.get("maxLength")
        text = self._text[: min(most, MAX_TEXT) if type(most) is int and most >= 0 else MAX_TEXT]
        text = text.ljust(min(least, MAX_TEXT), ".") if type(least) is int else text
        self._letters -= len(text)
        return text


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    return (
        kind if isinstance(kind, str) else "object" if "properties" in schema else "array" if "items" in schema else ""
    )


def _target(root: Any, pointer: str) -> Any:
    """What a reference into the same schema points at."""
    found = root
    for part in pointer.removeprefix("#").split("/")[1:]:
        if not isinstance(found, Mapping):
            return None
        found = found.get(part.replace("~1", "/").replace("~0", "~"))
    return found
