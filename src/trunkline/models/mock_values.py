"""Values that fit a JSON Schema, made up without any model: what the mock answers where a form was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base.values import Value

#: Characters of a message that a text repeats, where the schema says nothing of its length.
MAX_TEXT = 200
#: How deep a value goes; what would be deeper is null. A schema may refer to itself.
MAX_DEPTH = 16
#: The longest list, whatever its schema asks for: a mock does not fill memory.
MAX_ITEMS = 64


def fitting(schema: Any, text: str) -> Any:
    """A value that fits, as far as the schema's words are known here. `text` is for its texts."""
    return _Maker(schema, text).value(schema, 0)


def fitting_arguments(schema: Any, text: str) -> dict[str, Any]:
    """The same for the arguments of a tool, which are an object whatever the schema says."""
    made = fitting({"type": "object", **schema} if isinstance(schema, Mapping) else {"type": "object"}, text)
    return made if isinstance(made, dict) else {}


class _Maker(Value):
    root: Any
    text: str

    def value(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
            return None
        if isinstance(pointer := schema.get("$ref"), str):
            return self.value(_target(self.root, pointer), depth + 1)
        if "const" in schema:
            return schema["const"]
        if isinstance(choices := schema.get("enum"), list) and choices:
            return choices[0]
        for keyword in ("anyOf", "oneOf", "allOf"):
            if isinstance(options := schema.get(keyword), list) and options and "properties" not in schema:
                return self.value(options[0], depth + 1)
        return self._typed(_kind(schema), schema, depth)

    def _typed(self, kind: str, schema: Mapping[str, Any], depth: int) -> Any:
        match kind:
            case "object":
                known = schema.get("properties")
                members = known if isinstance(known, Mapping) else {}
                return {str(name): self.value(inner, depth + 1) for name, inner in members.items()}
            case "array":
                least = schema.get("minItems", 1)
                count = min(least, MAX_ITEMS) if type(least) is int and least > 1 else 1
                return [self.value(schema.get("items"), depth + 1)] * count if "items" in schema else []
            case "string":
                return self._text(schema)
            case "integer" | "number":
                least = schema.get("minimum", 1)
                return least if type(least) in (int, float) and least > 1 else 1
            case "boolean":
                return True
        return None

    def _text(self, schema: Mapping[str, Any]) -> str:
        least, most = schema.get("minLength"), schema.get("maxLength")
        text = self.text[: min(most, MAX_TEXT) if type(most) is int and most >= 0 else MAX_TEXT]
        return text.ljust(min(least, MAX_TEXT), ".") if type(least) is int else text


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
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found
