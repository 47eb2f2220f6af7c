"""What `codex app-server` asks a person, as permission requests, and how it is answered. Sans-IO.

item/commandExecution/requestApproval   `Bash`: the command, its shell and directory
item/fileChange/requestApproval         `apply_patch`: what is done to each file, with the diff or the new text
item/permissions/requestApproval        `request_permissions`: what it wants to be let do for the rest of the turn
mcpServer/elicitation/request           `mcp__SERVER__TOOL`, where it is about a tool; other questions are declined

The tools have the names that Codex's own hooks give them. All that is asked about is in the input: what a person reads
there is what will be done.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from trunkline.wires.agentproc.messages import PermissionRequest
from trunkline.wires.agentproc.streams.jsonlines import Event, member, objects, text_of

_PERMISSIONS = "item/permissions/requestApproval"
_ELICITATION = "mcpServer/elicitation/request"

#: What of a request about a command tells only where it comes from, or what its answers may be.
_ABOUT_THE_REQUEST = frozenset((
    "threadId", "turnId", "itemId", "startedAtMs", "approvalId", "environmentId", "reason", "command", "cwd",
    "commandActions", "availableDecisions", "proposedExecpolicyAmendment", "proposedNetworkPolicyAmendments",
))  # fmt: skip


def permission(
    request_id: str, method: str, params: Mapping[str, Any], items: Mapping[str, Event]
) -> PermissionRequest | None:
    """What is asked, or `None` if it is nothing that a yes or no answers. A malformed request names no tool.

    `items` are those that have begun, by their ids: some requests tell only which one they are about.
    """
    item = items.get(text_of(params.get("itemId")), {})
    match method:
        case "item/commandExecution/requestApproval":
            return _command(request_id, params)
        case "item/fileChange/requestApproval":
            return _files(request_id, params, item)
        case "item/permissions/requestApproval":
            wanted = params.get("permissions")
            if not isinstance(wanted, dict) or not _are_texts(params.get("cwd")):
                return PermissionRequest(request_id, "", {})
            given = {"permissions": wanted, "cwd": text_of(params.get("cwd"))}
            return PermissionRequest(request_id, "request_permissions", given, _reason(params), _use(params))
        case "mcpServer/elicitation/request" if member(params, "_meta", "codex_approval_kind") == "mcp_tool_call":
            return _mcp(request_id, params, items)
    return None


def reply_to(method: str, params: Mapping[str, Any], allowed: bool) -> Mapping[str, Any]:
    """The result that says yes or no, once. What is to be allowed always, the session decides."""
    if method == _ELICITATION:
        return {"action": "accept" if allowed else "decline", "content": {} if allowed else None, "_meta": None}
    if method == _PERMISSIONS:
        wanted = params.get("permissions")
        granted = {name: value for name, value in wanted.items() if value} if isinstance(wanted, dict) else {}
        return {"permissions": granted if allowed else {}, "scope": "turn"}
    return {"decision": "accept" if allowed else "decline"}


def _command(request_id: str, params: Mapping[str, Any]) -> PermissionRequest:
    command, cwd = text_of(params.get("command")), text_of(params.get("cwd"))
    words, shell = _unwrapped(command)
    given: dict[str, Any] = {"command": words}
    if shell:
        given["shell"] = shell
    if cwd:
        given["cwd"] = cwd
    # Such as the host that it wants to reach, or that it is input for a program that runs already.
    given |= {name: value for name, value in params.items() if name not in _ABOUT_THE_REQUEST and value is not None}
    if given.get("kind") == "command":
        del given["kind"]
    is_told = _are_texts(params.get("command"), params.get("cwd"))
    if not is_told or (not command and "networkApprovalContext" not in given):
        return PermissionRequest(request_id, "", {})
    return PermissionRequest(request_id, "Bash", given, _reason(params), _use(params), (words, cwd))


def _unwrapped(command: str) -> tuple[str, str]:
    """The command and the shell that it is given to, where there is exactly one: `/bin/bash -lc 'git status'`."""
    from shlex import join, split

    try:
        parts = split(command)
    except ValueError:
        return command, ""
    if len(parts) == 3 and parts[1] in ("-c", "-lc") and join(parts) == command:
        return parts[2], f"{parts[0]} {parts[1]}"
    return command, ""


def _files(request_id: str, params: Mapping[str, Any], item: Event) -> PermissionRequest:
    """The changes come with the item that began before. Without them nobody knows what is asked."""
    listed = item.get("changes")
    changes = objects(listed)
    if not changes or listed != changes or not all(map(_is_told, changes)) or not _are_texts(params.get("grantRoot")):
        return PermissionRequest(request_id, "", {})
    given: dict[str, Any] = {}
    for change in changes:
        # Each by its own name, so that its lines are lines to whoever reads them.
        diff, name = change.get("diff"), _free(_name_of(change), given)
        given[name] = diff if isinstance(diff, str) else dict(change)
    if root := text_of(params.get("grantRoot")):
        given["grantRoot"] = root
    moved = [text_of(member(change, "kind", "move_path")) for change in changes]
    paths = [text_of(change.get("path")) for change in changes]
    named = tuple(filter(None, (*paths, *moved, root)))
    return PermissionRequest(request_id, "apply_patch", given, _reason(params), _use(params), named)


def _is_told(change: Event) -> bool:
    """Whether it is told which file is changed, and where it goes."""
    return bool(text_of(change.get("path"))) and _are_texts(member(change, "kind", "move_path"))


def _are_texts(*values: Any) -> bool:
    """Whether each of them is a text, or left out."""
    return all(isinstance(value, str | None) for value in values)


def _name_of(change: Event) -> str:
    """What is done to which file."""
    kind, moved = text_of(member(change, "kind", "type")) or "change", text_of(member(change, "kind", "move_path"))
    return f"{kind} {text_of(change.get('path'))}" + (f", move to {moved}" if moved else "")


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """The name with a number behind it if there is one of it already: no change hides another."""
    numbered = (f"{name} ({number})" for number in count(2))
    return name if name not in taken else next(each for each in numbered if each not in taken)


def _mcp(request_id: str, params: Mapping[str, Any], items: Mapping[str, Event]) -> PermissionRequest:
    """The tool's name is in the item that began before, and in words for people in the message."""
    server, given = text_of(params.get("serverName")), member(params, "_meta", "tool_params")
    if not server or not isinstance(given, dict | None):
        return PermissionRequest(request_id, "", {})
    given = given or {}
    calls = {
        text_of(item.get("tool")): item_id
        for item_id, item in items.items()
        if item.get("type") == "mcpToolCall" and item.get("server") == server and (item.get("arguments") or {}) == given
    }
    # Of two that are alike in all but their names, the message alone tells which it is.
    tool, item_id = next(iter(calls.items())) if len(calls) == 1 else ("", "")
    name = f"mcp__{server}__{tool}" if tool else f"mcp__{server}"
    return PermissionRequest(request_id, name, given, text_of(params.get("message")), item_id)


def _reason(params: Mapping[str, Any]) -> str:
    return text_of(params.get("reason"))


def _use(params: Mapping[str, Any]) -> str:
    return text_of(params.get("itemId"))
