"""What a client may say of a plain model's answer: `SetOptions` by name, checked, as the model takes it.

Messages and tools have the form of OpenAI's Chat Completions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.core.turns import SHOWN_CHARS
from trunkline.models.messages import Block, Image, Message, Text, ToolResultBlock, ToolUse
from trunkline.models.model import AnswerOptions, ToolSpec

#: The most messages of a conversation that a client brings along.
MAX_MESSAGES = 10_000
#: The most tools: OpenAI's own limit.
MAX_TOOLS = 128
#: The most texts that end an answer, and the longest one. OpenAI takes 4.
MAX_STOPS = 16
MAX_STOP_CHARS = 1000
#: The largest schema of an answer or a tool: a grammar is made of it while others wait.
MAX_SCHEMA_BYTES = 64 * 1024
#: The largest seed: the engines take 32 bits.
SEED_BITS = 32

_DATA, _BASE64 = "data:", ";base64,"
_CHOICES = ("auto", "none", "required")
_ROLES = ("system", "developer", "user", "assistant", "tool")


class PlainOptions(Value):
    """What holds until it is changed."""

    instructions: str = ""
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    """`auto`, `none`, `required`, or the name of a tool."""
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    schema: Any = None

    @property
    def offered(self) -> tuple[ToolSpec, ...]:
        """The tools that the model may call."""
        if self.tool_choice in _CHOICES:
            return () if self.tool_choice == "none" else self.tools
        return tuple(tool for tool in self.tools if tool.name == self.tool_choice)

    @property
    def answer(self) -> AnswerOptions:
        """What the model is told of its answer."""
        must_call = bool(self.offered) and self.tool_choice != "auto"
        return AnswerOptions(self.temperature, self.top_p, self.seed, self.stop, must_call, self.schema)


def changed(options: PlainOptions, said: Mapping[str, Any]) -> PlainOptions:
    """The options with what was said; None puts one back. Names that are not ours change nothing.

    Raises:
        ConfigError: a value means nothing.
    """
    news = {
        name: _READ[name](value) if value is not None else PlainOptions.__defaults__[name]
        for name, value in said.items()
        if name in _READ
    }
    wanted = options.replace(**news) if news else options
    if wanted.tool_choice not in _CHOICES and all(tool.name != wanted.tool_choice for tool in wanted.tools):
        raise _wrong("tool_choice", f"there is no tool `{wanted.tool_choice[:SHOWN_CHARS]}`")
    if wanted.tool_choice == "required" and not wanted.tools:
        raise _wrong("tool_choice", "there is no tool to call")
    return wanted


def _wrong(name: str, what: str) -> ConfigError:
    return ConfigError(f"`{name}`: {what}.")


def _text(name: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise _wrong(name, "a text is needed")
        return value

    return read


def _number(name: str, least: float, most: float) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise _wrong(name, f"a number from {least:g} to {most:g} is needed")
        return value

    return read


def _longest(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise _wrong("max_tokens", "a whole number from 1 on is needed")
    return value


def _seed(value: Any) -> int:
    if type(value) is not int:
        raise _wrong("seed", "a whole number is needed")
    return value % (1 << SEED_BITS)


def _stops(value: Any) -> tuple[str, ...]:
    stops = [value] if isinstance(value, str) else value
    if not isinstance(stops, list | tuple) or not all(isinstance(stop, str) for stop in stops):
        raise _wrong("stop", "a text or a list of texts is needed")
    if len(stops) > MAX_STOPS or any(len(stop) > MAX_STOP_CHARS for stop in stops):
        raise _wrong("stop", f"at most {MAX_STOPS} texts of {MAX_STOP_CHARS} characters are taken")
    return tuple(stop for stop in stops if stop)


def _schema(value: Any) -> Any:
    if not isinstance(value, Mapping | bool):
        raise _wrong("schema", "a JSON Schema is needed")
    if len(jsontext.dumps(value)) > MAX_SCHEMA_BYTES:
        raise _wrong("schema", f"it has more than {MAX_SCHEMA_BYTES} bytes")
    return value


def _tools(value: Any) -> tuple[ToolSpec, ...]:
    if not isinstance(value, list | tuple):
        raise _wrong("tools", "a list is needed")
    if len(value) > MAX_TOOLS:
        raise _wrong("tools", f"at most {MAX_TOOLS} are taken")
    tools = tuple(map(_tool, value))
    if len({tool.name for tool in tools}) < len(tools):
        raise _wrong("tools", "two have the same name")
    return tools


def _tool(value: Any) -> ToolSpec:
    if not isinstance(value, Mapping) or value.get("type", "function") != "function":
        raise _wrong("tools", "each is an object of the type `function`")
    # In Chat Completions the description is one level deeper than in Responses.
    function = value.get("function", value)
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str) or not name:
        raise _wrong("tools", "each needs a `name`")
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    if not isinstance(schema, Mapping):
        raise _wrong("tools", f"the `parameters` of `{name[:SHOWN_CHARS]}` must be a JSON Schema")
    return ToolSpec(name, str(function.get("description") or ""), _schema(schema))


def _choice(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        function = value.get("function", value)
        name = function.get("name") if isinstance(function, Mapping) else None
        if isinstance(name, str):
            return name
    raise _wrong("tool_choice", "`auto`, `none`, `required` or a function is needed")


_READ: dict[str, Callable[[Any], Any]] = {
    "instructions": _text("instructions"),
    "tools": _tools,
    "tool_choice": _choice,
    "stop": _stops,
    "max_tokens": _longest,
    "temperature": _number("temperature", 0, 2),
    "top_p": _number("top_p", 0, 1),
    "seed": _seed,
    "schema": _schema,
}


# Messages


def conversation(value: Any) -> tuple[str, list[Message]]:
    """What a client brings along: what the system messages say, and the others.

    Raises:
        ConfigError: something in it is no message.
    """
    if not isinstance(value, list | tuple):
        raise _wrong("messages", "a list is needed")
    if len(value) > MAX_MESSAGES:
        raise _wrong("messages", f"at most {MAX_MESSAGES} are taken")
    system: list[str] = []
    messages: list[Message] = []
    for number, each in enumerate(value):
        role = each.get("role") if isinstance(each, Mapping) else None
        if role not in _ROLES:
            raise _wrong(f"messages[{number}]", f"its role is one of {', '.join(_ROLES)}")
        content = _content(each.get("content"), number)
        if role in ("system", "developer"):
            system += [block.text for block in content if isinstance(block, Text)]
        elif role == "tool":
            said = "".join(block.text for block in content if isinstance(block, Text))
            messages.append(Message("user", (ToolResultBlock(str(each.get("tool_call_id") or ""), said),)))
        elif role == "assistant":
            messages.append(Message("assistant", (*content, *_calls(each.get("tool_calls"), number))))
        else:
            messages.append(Message("user", content))
    return "\n\n".join(system), messages


def outputs(value: Any) -> list[Message]:
    """The results of the calls that the model made: `{"id", "output"}` each.

    Raises:
        ConfigError: something in it is none.
    """
    if not isinstance(value, list | tuple) or len(value) > MAX_TOOLS:
        raise _wrong("tool_outputs", f"a list of at most {MAX_TOOLS} is needed")
    if not all(isinstance(each, Mapping) and isinstance(each.get("id"), str) for each in value):
        raise _wrong("tool_outputs", "each needs the `id` of its call")
    return [Message("user", (ToolResultBlock(each["id"], _written(each.get("output"))),)) for each in value]


def _written(output: Any) -> str:
    return output if isinstance(output, str) else jsontext.dumps(output).decode()


def _content(value: Any, number: int) -> tuple[Block, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (Text(value),)
    if not isinstance(value, list):
        raise _wrong(f"messages[{number}]", "its content is a text or a list of parts")
    return tuple(_part(part, number) for part in value)


def _part(part: Any, number: int) -> Block:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in ("text", "input_text", "output_text", "refusal"):
        said = part.get("refusal" if kind == "refusal" else "text")
        if isinstance(said, str):
            return Text(said)
    if kind in ("image_url", "input_image"):
        url = part.get("image_url")
        url = url.get("url") if isinstance(url, Mapping) else url
        if isinstance(url, str) and url.startswith(_DATA) and _BASE64 in url:
            media_type, _, data = url.removeprefix(_DATA).partition(_BASE64)
            return Image(media_type, data)
    raise _wrong(
        f"messages[{number}]", f"a part of the type `{str(kind)[:SHOWN_CHARS]}` cannot be read by a model here"
    )


def _calls(value: Any, number: int) -> Sequence[Block]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise _wrong(f"messages[{number}].tool_calls", "a list is needed")
    calls = []
    for each in value:
        function = each.get("function") if isinstance(each, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise _wrong(f"messages[{number}].tool_calls", "each has an `id` and a `function` with a `name`")
        calls.append(_call(str(each.get("id") or ""), function["name"], function.get("arguments")))
    return calls


def _call(call_id: str, name: str, arguments: Any) -> ToolUse:
    if isinstance(arguments, str):
        try:
            arguments = jsontext.loads(arguments.encode("utf-8", "replace")) if arguments.strip() else {}
        except ValueError:
            return ToolUse(call_id, name, None, raw=arguments)
    return ToolUse(call_id, name, arguments) if isinstance(arguments, dict) else ToolUse(call_id, name, {})
