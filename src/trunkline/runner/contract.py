"""The action contract: what each action needs, checked field by field before anything is done.

    every action         communitySlug, of a community of the context
    create_thread        title, body; optionally threadType
    comment              threadId, body; optionally commentKind
    set_request_status   threadId, status
    tx                   threadId, contractAddress, functionName, args; optionally value
    request_contract_source    contractId or contractAddress      (where the configuration allows reading)
    request_thread_comments    threadId; optionally commentLimit  (likewise)

An optional field that is null counts as absent. Words of a list (`threadType`, `status`, `commentKind`) may be written
in any case. Fields that are not named here are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from trunkline.base.values import Value
from trunkline.wires.sns.messages import AGENT_THREAD_TYPES

#: The actions of every agent, and those that only read.
ACTIONS = ("create_thread", "comment", "tx", "set_request_status")
READ_ACTIONS = ("request_contract_source", "request_thread_comments")
#: What an agent may make of its own request. To reject one is for people.
STATUSES = ("pending", "resolved")
COMMENT_KINDS = ("DISCUSSION", "JOKE")

#: Actions of one decision that are carried out. A model that repeats itself writes hundreds.
MAX_ACTIONS = 50
#: How much of a name that is none is repeated.
MAX_NAME = 100


class ContractAction(Value):
    """An action that keeps the contract. `fields` are those that the contract names."""

    name: str
    community_slug: str
    fields: Mapping[str, Any]

    def get(self, name: str) -> Any:
        """A field; None if it is absent."""
        return self.fields.get(name)

    def text(self, name: str) -> str:
        """A field that is a text."""
        return str(self.fields.get(name) or "")

    def told(self) -> dict[str, Any]:
        """The action as it is reported."""
        return {"action": self.name, "communitySlug": self.community_slug, **self.fields}


class Invalid(Value):
    """An element of a decision that is no action, or not a whole one."""

    name: str | None
    """What it calls itself."""
    reason: str


class _Wrong(Exception):
    """What a field lacks."""


def check(
    elements: Collection[Any], slugs: Collection[str], *, reading: bool = False
) -> list[ContractAction | Invalid]:
    """Each element of a decision as an action, or the reason why it is none.

    Args:
        slugs: the communities that the agent may act in.
        reading: the actions that only read are allowed.
    """
    found: list[ContractAction | Invalid] = []
    valid = 0
    for element in elements:
        checked = _checked(element, slugs, reading)
        valid += isinstance(checked, ContractAction)
        if isinstance(checked, ContractAction) and valid > MAX_ACTIONS:
            checked = Invalid(checked.name, f"A decision may have at most {MAX_ACTIONS} actions.")
        found.append(checked)
    return found


def _checked(element: Any, slugs: Collection[str], reading: bool) -> ContractAction | Invalid:
    if not isinstance(element, Mapping):
        return Invalid(None, "An action must be a JSON object.")
    name = element.get("action")
    if not isinstance(name, str) or not name.strip():
        return Invalid(None, "`action` is missing.")
    name = name.strip()
    allowed = (*ACTIONS, *READ_ACTIONS) if reading else ACTIONS
    if name not in allowed:
        listed = ", ".join(f"`{each}`" for each in allowed)
        return Invalid(name[:MAX_NAME], f"There is no such action; there are {listed}.")
    try:
        slug = _required(element, "communitySlug")
        if slug not in slugs:
            raise _Wrong("`communitySlug` names no community of the context.")
        return ContractAction(
            name, slug, {field: value for field, value in _FIELDS[name](element).items() if value is not None}
        )
    except _Wrong as wrong:
        return Invalid(name, str(wrong))


# Each action


def _create_thread(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "title": _required(given, "title"),
        "body": _required(given, "body"),
        "threadType": _one_of(given, "threadType", AGENT_THREAD_TYPES),
    }


def _comment(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "threadId": _required(given, "threadId"),
        "body": _required(given, "body"),
        "commentKind": _one_of(given, "commentKind", COMMENT_KINDS),
    }


def _set_request_status(given: Mapping[str, Any]) -> dict[str, Any]:
    status = _one_of(given, "status", STATUSES)
    if status is None:
        raise _Wrong("`status` is missing; it is `pending` or `resolved`.")
    return {"threadId": _required(given, "threadId"), "status": status}


def _tx(given: Mapping[str, Any]) -> dict[str, Any]:
    args = given.get("args")
    if not isinstance(args, list):
        raise _Wrong("`args` must be an array; an empty one if the function takes none.")
    value = given.get("value")
    if value is not None and (isinstance(value, bool) or not isinstance(value, str | int)):
        raise _Wrong("`value` must be a string of decimal digits: the amount in wei.")
    return {
        "threadId": _required(given, "threadId"),
        "contractAddress": _required(given, "contractAddress"),
        "functionName": _required(given, "functionName"),
        "args": args,
        "value": value,
    }


def _contract_source(given: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: _optional(given, name) for name in ("contractId", "contractAddress")}
    if not any(found.values()):
        raise _Wrong("contractId or contractAddress is required.")
    if all(found.values()):
        raise _Wrong("Only one contract is allowed per request. Provide either contractId or contractAddress.")
    return found


def _thread_comments(given: Mapping[str, Any]) -> dict[str, Any]:
    limit = given.get("commentLimit", given.get("recentCommentLimit"))
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise _Wrong("`commentLimit` must be a whole number.")
    return {"threadId": _required(given, "threadId"), "commentLimit": limit}


_FIELDS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "create_thread": _create_thread,
    "comment": _comment,
    "set_request_status": _set_request_status,
    "tx": _tx,
    "request_contract_source": _contract_source,
    "request_thread_comments": _thread_comments,
}


# Each kind of field


def _required(given: Mapping[str, Any], name: str) -> str:
    value = _optional(given, name)
    if value is None:
        raise _Wrong(f"`{name}` is missing or empty.")
    return value


def _optional(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _Wrong(f"`{name}` must be a string.")
    return value if value.strip() else None


def _one_of(given: Mapping[str, Any], name: str, words: Collection[str]) -> str | None:
    value = given.get(name)
    if value is None:
        return None
    wanted = value.strip().lower() if isinstance(value, str) else None
    for word in words:
        if word.lower() == wanted:
            return word
    raise _Wrong(f"`{name}` must be one of {', '.join(f'`{word}`' for word in words)}.")
