"""Embeddings: what a request asks for, and how vectors are written. No IO."""

from __future__ import annotations

import sys
from array import array
from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Literal

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.core.machine import Embedded
from trunkline.wires.openai.codec import Params, missing, model_of, wrong_type
from trunkline.wires.openai.errors import bad

#: Texts in one request, as OpenAI has it.
MAX_INPUTS = 2048
#: The longest text: far more than any of these models reads of one.
MAX_INPUT_CHARS = 100_000
#: The largest body: so many texts of a page each.
MAX_EMBEDDINGS_BODY = 16 * 1024 * 1024

_FORMS = ("float", "base64")


class AskedEmbeddings(Value):
    """One request for vectors."""

    model: str
    texts: tuple[str, ...]
    form: Literal["float", "base64"] = "float"
    dimensions: int | None = None


def read_embeddings(params: Params) -> AskedEmbeddings:
    """What a request asks for.

    Raises:
        OpenAIRefused: it is not one.
    """
    model = model_of(params)
    given = params.any("input")
    if given is None:
        raise missing("input")
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list):
        raise wrong_type("input", "a string or a list of strings")
    if not listed:
        raise bad("input", "`input` is empty.", "empty_array")
    if len(listed) > MAX_INPUTS:
        raise bad("input", f"`input` may have {MAX_INPUTS} texts at most.", "array_above_max_length")
    for index, text in enumerate(listed):
        _check(text, "input" if isinstance(given, str) else f"input[{index}]")
    form = params.text("encoding_format") or "float"
    if form not in _FORMS:
        raise bad("encoding_format", "`encoding_format` must be `float` or `base64`.")
    return AskedEmbeddings(model, tuple(listed), "base64" if form == "base64" else "float", params.count("dimensions"))


def _check(text: Any, path: str) -> None:
    if isinstance(text, int | list) and not isinstance(text, bool):
        told = "Tokens are each model's own, and those of other models mean nothing to the models here."
        raise bad("input", f"`{path}` holds tokens. {told} Send text.", "unsupported_value")
    if not isinstance(text, str):
        raise wrong_type(path, "a string")
    if not text:
        raise bad("input", f"`{path}` is empty.", "empty_string")
    if len(text) > MAX_INPUT_CHARS:
        raise bad("input", f"`{path}` may have {MAX_INPUT_CHARS} characters at most.", "string_above_max_length")


def check_dimensions(asked: AskedEmbeddings, found: Embedded) -> None:
    """See that the vectors have the length that was asked for: these models cannot make others.

    Raises:
        OpenAIRefused: they have not.
    """
    own = len(found.vectors[0])
    if asked.dimensions not in (None, own):
        told = f"The model `{asked.model[:80]}` makes vectors of {own} numbers, and no others."
        raise bad("dimensions", f"{told} Leave `dimensions` out.", "unsupported_value")


def write_embeddings(asked: AskedEmbeddings, found: Embedded) -> bytes:
    """The answer. Takes a while for many: for a thread."""
    data = [
        {"object": "embedding", "index": index, "embedding": _written(vector, asked.form)}
        for index, vector in enumerate(found.vectors)
    ]
    members: dict[str, Any] = {"object": "list", "data": data, "model": asked.model}
    if found.tokens is not None:
        members["usage"] = {"prompt_tokens": found.tokens, "total_tokens": found.tokens}
    return jsontext.dumps(members)


def _written(vector: Sequence[float], form: str) -> str | list[float]:
    numbers = array("f", vector)
    if form == "float":
        return numbers.tolist()
    if sys.byteorder != "little":
        numbers.byteswap()
    return b64encode(numbers.tobytes()).decode("ascii")
