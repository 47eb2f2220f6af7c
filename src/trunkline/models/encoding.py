"""What the formats share when they write: JSON that every provider accepts, names, tools and a profile's exceptions.

`Compat` holds what a configuration says about a provider that is a little different from the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from trunkline.base import jsontext
from trunkline.core.faults import ConfigError
from trunkline.models.model import ToolSpec

#: How a tool is described to a model.
ToolShape = Literal["openai_function", "openai_responses", "anthropic_input_schema"]

#: Keys of a profile that every format honours.
COMMON_KEYS = frozenset(
    {
        "api_path", "default_max_tokens", "effort_levels", "emit_tools", "image_input", "max_request_body_bytes",
        "max_tool_count", "sanitize_schema", "strip_patterns", "supports_effort", "supports_thinking",
        "tool_wire_shape",
    }
)  # fmt: skip

#: What is done for every provider, whatever its profile says: of these only `false` has no effect.
ALWAYS_ON = frozenset(
    {
        "clean_orphan_tool_calls", "clean_orphan_tool_results", "dedup_tool_results", "ensure_alternation",
        "merge_assistant_messages", "merge_same_role", "sanitize_malformed_tool_calls",
    }
)  # fmt: skip

#: Keywords of JSON Schema that strict services refuse, and that no model needs.
_UNNEEDED_KEYWORDS = frozenset(
    {"$schema", "$id", "$comment", "additionalProperties", "default", "examples", "exclusiveMaximum",
     "exclusiveMinimum", "patternProperties", "title"}
)  # fmt: skip

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def to_bytes(value: Any) -> bytes:
    """One JSON text for a provider. Half characters, which no provider reads, become U+FFFD."""
    try:
        text = _encode(value)
    except (ValueError, RecursionError):
        text = jsontext.dumps(value).decode("ascii", "replace")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")


def identifier(text: str, otherwise: str) -> str:
    """A call's id or a tool's name in the letters that all providers allow."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", text) or otherwise


def tool(spec: ToolSpec, shape: ToolShape, *, sanitize: bool) -> dict[str, Any]:
    """A tool as a provider wants it described."""
    schema = sanitized(spec.schema) if sanitize else spec.schema
    if shape == "anthropic_input_schema":
        return {"name": spec.name, "description": spec.description, "input_schema": schema}
    function = {"name": spec.name, "description": spec.description, "parameters": schema}
    if shape == "openai_responses":
        # Without a word on it the schema has to be of the strict kind, which few are.
        return {"type": "function", **function, "strict": False}
    return {"type": "function", "function": function}


def sanitized(schema: Any, *, names: bool = False) -> Any:
    """A JSON Schema without what strict services refuse. `names`: the members are properties, not keywords."""
    if isinstance(schema, Mapping):
        return {
            name: sanitized(member, names=not names and name in ("properties", "$defs", "definitions"))
            for name, member in schema.items()
            if names or name not in _UNNEEDED_KEYWORDS
        }
    if isinstance(schema, list | tuple):
        return [sanitized(member) for member in schema]
    return schema


class Compat:
    """A profile's exceptions, by name. A value of the wrong kind is a `ConfigError` that names the key."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data

    def flag(self, name: str, otherwise: bool) -> bool:
        """A switch."""
        return bool(self._get(name, bool, "true or false", otherwise))

    def number(self, name: str) -> int | None:
        """A number from 1 on."""
        value: int | None = self._get(name, int, "a number from 1 on", None)
        if value is not None and (isinstance(value, bool) or value < 1):
            raise ConfigError(f"`compat.{name}` must be a number from 1 on.")
        return value

    def text(self, name: str) -> str | None:
        """A text; None if it is not there or empty."""
        value: str | None = self._get(name, str, "a string", None)
        return value or None

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        value = self._get(name, list | tuple, "a list of strings", ())
        if not all(isinstance(item, str) for item in value):
            raise ConfigError(f"`compat.{name}` must be a list of strings.")
        return tuple(value)

    def shape(self, otherwise: ToolShape) -> ToolShape:
        """How tools are described."""
        match self.text("tool_wire_shape"):
            case None | "native":
                return otherwise
            case "openai_function":
                return "openai_function"
            case "anthropic_input_schema":
                return "anthropic_input_schema"
        choices = "`native`, `openai_function` or `anthropic_input_schema`"
        raise ConfigError(f"`compat.tool_wire_shape` must be {choices}.")

    @property
    def images(self) -> bool:
        """Whether the model can be shown pictures, as far as is known."""
        return self.text("image_input") != "unsupported"

    def _get(self, name: str, kind: Any, expected: str, otherwise: Any) -> Any:
        value = self._data.get(name)
        if value is None:
            return otherwise
        if not isinstance(value, kind):
            raise ConfigError(f"`compat.{name}` must be {expected}.")
        return value
