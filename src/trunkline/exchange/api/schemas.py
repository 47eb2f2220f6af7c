"""The shapes of the API's answers, as JSON Schema, from small pieces."""

from __future__ import annotations

from trunkline.exchange.api.endpoint import Schema

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
MOMENT: Schema = {"type": "integer", "description": "Milliseconds since 1970."}


def obj(**members: Schema) -> Schema:
    """An object that has these members, and perhaps others."""
    return {"type": "object", "required": list(members), "properties": members}


def array(of: Schema) -> Schema:
    """An array of things of one shape."""
    return {"type": "array", "items": of}


def maybe(schema: Schema) -> Schema:
    """Such a thing, or null."""
    return {"anyOf": [schema, {"type": "null"}]}
