"""Bytes to members and back: JSON bodies, Server-Sent Events, and the ids that name a session and a turn. No IO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trunkline.base import jsontext
from trunkline.core.usage import Usage
from trunkline.wires.openai.errors import OpenAIRefused, bad, unsupported
from trunkline.wires.openai.messages import MAX_NAME_CHARS, MAX_STOP_CHARS, MAX_STOPS, MAX_TOOLS, MAX_VALUES

#: A line that no client shows: a sign of life.
ALIVE = b": alive\n\n"
DONE = b"data: [DONE]\n\n"

_RESPONSE = "resp_"


class Params:
    """The members of a request, read one by one. `null` is absent."""

    def __init__(self, members: Mapping[str, Any], prefix: str = "") -> None:
        self.members = members
        self._prefix = prefix

    def __contains__(self, name: str) -> bool:
        return self.members.get(name) is not None

    def path(self, name: str) -> str:
        """How a member is called in errors."""
        return f"{self._prefix}{name}"

    def any(self, name: str) -> Any:
        """A member as it is; None if it is absent."""
        return self.members.get(name)

    def text(self, name: str) -> str | None:
        """A string."""
        found: str | None = self._of(name, str, "a string")
        return found

    def required_text(self, name: str) -> str:
        """A string that must be there, and not empty."""
        found = self.text(name)
        if not found:
            raise missing(self.path(name))
        return found

    def flag(self, name: str) -> bool | None:
        """True or false."""
        found: bool | None = self._of(name, bool, "true or false")
        return found

    def list(self, name: str) -> Sequence[Any]:
        """A list; empty if it is absent."""
        return self._of(name, list, "a list") or ()

    def object(self, name: str) -> Params | None:
        """An object."""
        found = self._of(name, dict, "an object")
        return None if found is None else Params(found, f"{self.path(name)}.")

    def count(self, name: str, least: int = 1) -> int | None:
        """An integer."""
        found: int | None = self._of(name, int, "an integer")
        if found is not None and found < least:
            raise bad(self.path(name), f"`{self.path(name)}` must be at least {least}.", "integer_below_min_value")
        return found

    def number(self, name: str, least: float, most: float) -> float | None:
        """A number within bounds."""
        found: float | None = self._of(name, (int, float), "a number")
        if found is not None and not least <= found <= most:
            raise bad(self.path(name), f"`{self.path(name)}` must be between {least:g} and {most:g}.")
        return found

    def _of(self, name: str, kind: Any, what: str) -> Any:
        found = self.members.get(name)
        if found is None or (isinstance(found, kind) and (kind is bool or not isinstance(found, bool))):
            return found
        raise wrong_type(self.path(name), what)


def wrong_type(path: str, what: str) -> OpenAIRefused:
    """A member of the wrong type."""
    return bad(path, f"`{path}` must be {what}.", "invalid_type")


def missing(path: str) -> OpenAIRefused:
    """A member that must be there."""
    return bad(path, f"Missing required parameter: `{path}`.", "missing_required_parameter")


def decode(body: bytes) -> Params:
    """The members of a body.

    Raises:
        OpenAIRefused: it is not a JSON object, or too much of one.
    """
    try:
        found = jsontext.loads(body, max_values=MAX_VALUES)
    except ValueError as error:
        raise bad(None, f"The body is not JSON: {error}.", "invalid_json") from None
    if not isinstance(found, dict):
        raise bad(None, "The body must be a JSON object.", "invalid_type")
    return Params(found)


# What both formats have in common


def model_of(params: Params) -> str:
    """The model's name."""
    found = params.required_text("model")
    # A longer one is nobody's; half a character cannot be told in an answer.
    return jsontext.whole(found[:MAX_NAME_CHARS])


def sampling(params: Params) -> dict[str, Any]:
    """What plain models are told, and other agents are not."""
    found = {
        "temperature": params.number("temperature", 0, 2),
        "top_p": params.number("top_p", 0, 1),
        "seed": params.count("seed", least=-(2**63)),
    }
    params.number("presence_penalty", -2, 2)
    params.number("frequency_penalty", -2, 2)
    return {name: value for name, value in found.items() if value is not None}


def refuse_what_changes_the_answer(params: Params) -> None:
    """See that nothing is asked for that no agent here can do, and that a client would miss.

    Raises:
        OpenAIRefused: something is.
    """
    if (many := params.count("n")) is not None and many != 1:
        raise bad("n", "`n` must be 1: agents give one answer.", "unsupported_value")
    if params.flag("logprobs") or params.count("top_logprobs", least=0):
        raise unsupported("logprobs", "Log probabilities are not known here. Leave `logprobs` out.")
    for name in ("logit_bias", "audio", "web_search_options", "prompt"):
        if params.any(name):
            raise unsupported(name, f"`{name}` is not supported here. Leave it out.")
    for each in params.list("modalities"):
        if each != "text":
            raise unsupported("modalities", "The only modality of answers here is `text`.")


def stops(params: Params) -> tuple[str, ...]:
    """The sequences that end an answer."""
    found = params.any("stop")
    listed = [found] if isinstance(found, str) else params.list("stop")
    if len(listed) > MAX_STOPS:
        raise bad("stop", f"`stop` may have {MAX_STOPS} sequences at most.", "array_above_max_length")
    for each in listed:
        if not isinstance(each, str):
            raise wrong_type("stop", "a string or a list of strings")
        if len(each) > MAX_STOP_CHARS:
            raise bad(
                "stop", f"A stop sequence may have {MAX_STOP_CHARS} characters at most.", "string_above_max_length"
            )
    return tuple(each for each in listed if each)


def schema_of(form: Params | None) -> dict[str, Any]:
    """What `response_format` or `text.format` says: `schema`, or nothing for text. `form` has a `type`."""
    kind = form.text("type") if form is not None else None
    if form is None or kind in (None, "text"):
        return {}
    if kind == "json_object":
        return {"schema": {"type": "object"}}
    if kind != "json_schema":
        path = form.path("type")
        raise bad(path, f"`{path}` must be `text`, `json_object` or `json_schema`.")
    # Chat Completions puts one more object around it.
    inner = form.object("json_schema") or form
    schema = inner.object("schema")
    if schema is None:
        raise missing(inner.path("schema"))
    return {"schema": schema.members}


def tools_of(tools: Sequence[Any], choice: Any) -> dict[str, Any]:
    """A client's own functions, in the form of Chat Completions, and which of them must be called."""
    if len(tools) > MAX_TOOLS:
        raise bad("tools", f"`tools` may have {MAX_TOOLS} entries at most.", "array_above_max_length")
    found = []
    for index, tool in enumerate(tools):
        path = f"tools[{index}]"
        if not isinstance(tool, dict):
            raise wrong_type(path, "an object")
        kind = tool.get("type", "function")
        if kind != "function":
            raise unsupported("tools", f"`{path}.type` must be `function`: there are no tools of other types here.")
        # In Responses what describes the function stands beside its type.
        function = Params(tool, f"{path}.").object("function") or Params(tool, f"{path}.")
        function.required_text("name")
        function.text("description")
        function.object("parameters")
        described = {name: function.any(name) for name in ("name", "description", "parameters") if name in function}
        found.append({"type": "function", "function": described})
    if not found or choice == "none":
        return {}
    return {"tools": found} if choice is None else {"tools": found, "tool_choice": _chosen(choice)}


def _chosen(choice: Any) -> Any:
    """`auto`, `required`, or one function: as in Chat Completions."""
    if choice in ("auto", "required"):
        return choice
    if isinstance(choice, dict) and choice.get("type") == "function":
        function = choice.get("function")
        name = function.get("name") if isinstance(function, dict) else choice.get("name")
        if isinstance(name, str) and name:
            return {"type": "function", "function": {"name": name}}
    raise bad("tool_choice", "`tool_choice` must be `none`, `auto`, `required` or a function.")


# Ids


def response_id(session: str, turn: int) -> str:
    """The id of a response: it names the session and the turn."""
    return f"{_RESPONSE}{turn}_{session}"


def split_id(id: str) -> tuple[str, int] | None:
    """The session and the turn that an id of ours names; None: it is none of ours."""
    number, apart, session = id.removeprefix(_RESPONSE).partition("_")
    is_ours = id.startswith(_RESPONSE) and apart and session and number.isascii() and number.isdecimal()
    # More digits than any turn has are not made a number: that takes time with the square of their count.
    return (session, int(number)) if is_ours and len(number) < 16 and number[0] != "0" else None


def item_id(kind: str, index: int, turn: int, session: str) -> str:
    """The id of an item of a response: it names its place there. `kind`: `msg`, `rs` or `fc`."""
    return f"{kind}_{index}_{turn}_{session}"


def split_item_id(id: str) -> tuple[str, int] | None:
    """The id of the response that has an item, and its place there; None: it is none of ours."""
    _, _, rest = id.partition("_")
    index, _, place = rest.partition("_")
    response = f"{_RESPONSE}{place}"
    if split_id(response) is None or not (index.isascii() and index.isdecimal() and len(index) < 16):
        return None
    return response, int(index)


# Answers


def quoted(text: str) -> bytes:
    """A JSON string literal, lone surrogates as escapes."""
    try:
        return jsontext.quote(text).encode()
    except UnicodeEncodeError:
        return jsontext.quote_ascii(text).encode()


def event(members: Mapping[str, Any], name: str = "") -> bytes:
    """One event of a stream."""
    head = f"event: {name}\n".encode() if name else b""
    return b"%bdata: %b\n\n" % (head, jsontext.dumps(members))


def chat_usage(usage: Usage | None) -> dict[str, Any] | None:
    """Tokens as Chat Completions tells them; None if they are not known."""
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    found: dict[str, Any] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    if usage.cache_read_tokens is not None:
        found["prompt_tokens_details"] = {"cached_tokens": usage.cache_read_tokens}
    if usage.reasoning_tokens is not None:
        found["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return found


def responses_usage(usage: Usage | None) -> dict[str, Any] | None:
    """Tokens as Responses tells them, where the details are numbers in any case; None if they are not known."""
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    details = {"cached_tokens": usage.cache_read_tokens or 0, "cache_write_tokens": usage.cache_write_tokens or 0}
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": details,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
