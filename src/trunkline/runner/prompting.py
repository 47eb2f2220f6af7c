"""The prompts of one cycle: files of ours, or what the configuration puts in their place, and the context.

The system prompt says who the agent is and what it may do; the user prompt has the context, as JSON, in the place of
its one `{{context}}`. The context is what the network gave, narrowed to the agent's community, and `runnerInbox`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.runner.config import Prompts

PLACE = "{{context}}"

#: The bundled supplements, by name.
SUPPLEMENTS = ("attack-defense", "optimization", "ux-improvement", "scalability-compatibility")

#: Characters of a token, on the careful side: JSON has many short ones.
CHARS_PER_TOKEN = 2.5
#: The share of a model's window that prompts may fill; the rest is for the answer.
SHARE_OF_WINDOW = 0.75
#: Characters of a long text that are left when the context must be shortened.
SHORT_TEXT = 300

_CUT = " [cut]"


class DecisionPrompt(Value):
    """What a model is asked."""

    system: str
    user: str
    context: Mapping[str, Any] = {}
    """What the user prompt holds as text, for brains that make their own of it."""


def build(prompts: Prompts, context: Mapping[str, Any], *, reading: bool, window: int | None = None) -> DecisionPrompt:
    """The prompts of a cycle.

    Args:
        reading: the actions that only read are allowed.
        window: tokens that the model can take, if known. A context that does not fit is shortened.

    Raises:
        ConfigError: a supplement that is not there.
    """
    system = _system(prompts, reading)
    template = prompts.user or bundled("user")
    room = None
    if window is not None:
        room = int(window * SHARE_OF_WINDOW * CHARS_PER_TOKEN) - len(system) - len(template)
    return DecisionPrompt(system, template.replace(PLACE, _fitting(context, room), 1), context)


def narrowed(context: Mapping[str, Any], community: Any, inbox: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The context for one agent: its own community if that is among them, without jokes, and what it is told."""
    communities = [each for each in _objects(context.get("communities")) if isinstance(each.get("slug"), str)]
    if isinstance(community, Mapping):
        own = [each for each in communities if _is_same(each, community)]
        communities = own or communities
    return {**context, "communities": [_without_jokes(each) for each in communities], "runnerInbox": list(inbox)}


def _system(prompts: Prompts, reading: bool) -> str:
    parts = [prompts.system or bundled("agent")]
    if reading and prompts.system is None:
        parts.append(bundled("reading"))
    if prompts.profile is not None:
        if prompts.profile not in SUPPLEMENTS:
            listed = ", ".join(f"`{name}`" for name in SUPPLEMENTS)
            raise ConfigError(f"There is no supplement `{prompts.profile}`.", hint=f"There are {listed}.")
        parts.append(f"Supplementary analysis profile guidance:\n{bundled(prompts.profile)}")
    if prompts.append:
        parts.append(f"Additional runtime system guidance:\n{prompts.append}")
    return "\n\n".join(part.strip() for part in parts)


@cache
def bundled(name: str) -> str:
    """A prompt that comes with us."""
    with open(os.path.join(os.path.dirname(__file__), "prompts", f"{name}.md"), encoding="utf-8") as file:
        return file.read()


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return any(one.get(name) is not None and one.get(name) == other.get(name) for name in ("id", "slug"))


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _without_jokes(community: Mapping[str, Any]) -> dict[str, Any]:
    comments = [each for each in _objects(community.get("recentComments")) if each.get("kind") != "JOKE"]
    return {**community, "recentComments": comments}


# A context that fits


def _fitting(context: Mapping[str, Any], room: int | None) -> str:
    text = _written(context)
    if room is None or len(text) <= room:
        return text
    for shorter in _shortened(context):
        text = _written(shorter)
        if len(text) <= room:
            break
    # One that does not fit at all is sent as it is: the model's own error says it best.
    return text


def _written(context: Mapping[str, Any]) -> str:
    return jsontext.dumps(context).decode("utf-8", "surrogatepass")


def _shortened(context: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The same with less and less of what can be spared: whole interfaces, long texts, what is old."""
    communities = [_without_interfaces(each) for each in context["communities"]]
    yield {**context, "communities": communities}
    communities = [_with_short_texts(each) for each in communities]
    yield {**context, "communities": communities}
    most = max((len(_objects(each.get(name))) for each in communities for name in _LISTS), default=0)
    while most > 1:
        most //= 2
        yield {**context, "communities": [_with_fewer(each, most) for each in communities]}


_LISTS = ("threads", "recentComments")


def _without_interfaces(community: Mapping[str, Any]) -> dict[str, Any]:
    """What a function takes stays, in `abiFunctions`."""
    kept = {name: value for name, value in community.items() if name not in ("abi", "source")}
    contracts = [
        {name: value for name, value in each.items() if name not in ("abi", "source")}
        for each in _objects(community.get("contracts"))
    ]
    return {**kept, "contracts": contracts}


def _with_short_texts(community: Mapping[str, Any]) -> dict[str, Any]:
    lists = {name: [_short(each) for each in _objects(community.get(name))] for name in _LISTS}
    return {**community, **lists}


def _short(post: Mapping[str, Any]) -> Mapping[str, Any]:
    body = post.get("body")
    if not isinstance(body, str) or len(body) <= SHORT_TEXT:
        return post
    return {**post, "body": body[:SHORT_TEXT] + _CUT}


def _with_fewer(community: Mapping[str, Any], most: int) -> dict[str, Any]:
    """The newest come first, in both lists."""
    return {**community, **{name: _objects(community.get(name))[:most] for name in _LISTS}}
