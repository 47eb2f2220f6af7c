"""Approvals: what waits for a person, and a person's answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from trunkline.base.values import Value
from trunkline.core.agent import Approve, Decision, Deny
from trunkline.core.events import Category
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.errors import ApiRefused
from trunkline.exchange.api.schemas import MOMENT, TEXT, array, maybe, obj
from trunkline.exchange.approvals import AlreadyDecided, Approval, State

STATES: tuple[State, ...] = get_args(State)

#: The longest reason: it is shown to the model.
MAX_REASON_CHARS = 10_000


class ApprovalDecision(Value):
    """What a person decides. `always`: later calls of the same category, too. The reason goes to the model."""

    decision: Literal["approve", "deny"]
    scope: Literal["once", "always"] = "once"
    reason: str = ""


async def list_approvals(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/approvals`."""
    text = call.query("state")
    state = next((known for known in STATES if known == text), None)
    if text is not None and state is None:
        raise ApiRefused(400, f"`state` must be one of {', '.join(f'`{known}`' for known in STATES)}.")
    session = call.query("session")
    await call.exchange.switchboard.awaited(None if session is None else [session])
    await call.exchange.switchboard.written()
    found = await call.exchange.switchboard.approvals.found(state, session)
    return {"approvals": [_members(approval) for approval in found]}


async def show_approval(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/approvals/{id}`."""
    return _members(await _approval(call))


async def decide(call: ApiCall) -> Mapping[str, Any]:
    """`POST /api/approvals/{id}`."""
    wanted = await call.body(ApprovalDecision)
    if len(wanted.reason) > MAX_REASON_CHARS:
        raise ApiRefused(400, f"`reason` must have {MAX_REASON_CHARS} characters or fewer.")
    approval = await _approval(call)
    if approval.state != "pending":
        raise AlreadyDecided(approval)
    decision: Decision = Approve(wanted.scope) if wanted.decision == "approve" else Deny(wanted.reason)
    async with call.exchange.switchboard.attached(approval.session) as live:
        await live.decide(approval, decision, call.person.name)
    return _members(await _approval(call))


async def _approval(call: ApiCall) -> Approval:
    switchboard = call.exchange.switchboard
    found = await switchboard.approvals.get(call.id)
    if found is not None and found.state == "pending":
        # It may be about to be closed.
        await switchboard.awaited([found.session])
        found = await switchboard.approvals.get(call.id)
    if found is None:
        raise ApiRefused(404, f"There is no approval `{call.id[:80]}` here.")
    return found


def _members(approval: Approval) -> Mapping[str, Any]:
    return {
        "id": approval.id,
        "session": approval.session,
        "agent": approval.agent,
        "turn": approval.turn,
        "call_id": approval.call_id,
        "tool": approval.tool,
        "category": approval.category,
        "description": approval.description,
        "args": approval.args,
        "asked_at": approval.asked_at,
        "state": approval.state,
        "decided_by": approval.decided_by,
        "decided_at": approval.decided_at,
        "reason": approval.reason,
    }


_APPROVAL = obj(
    id=TEXT,
    session=TEXT,
    agent=TEXT,
    turn={"type": "integer"},
    call_id=TEXT,
    tool=TEXT,
    category={"enum": list(get_args(Category))},
    description=TEXT,
    args={"type": "object"},
    asked_at=MOMENT,
    state={"enum": list(STATES)},
    decided_by=maybe(TEXT),
    decided_at=maybe(MOMENT),
    reason=maybe(TEXT),
)

ENDPOINTS = (
    ApiEndpoint(
        "GET", "/api/approvals", list_approvals, "observer", "What people are asked, oldest first",
        query={"state": {"enum": list(STATES)}, "session": TEXT}, answer=obj(approvals=array(_APPROVAL)),
    ),
    ApiEndpoint(
        "GET", "/api/approvals/{id}", show_approval, "observer", "One approval", answer=_APPROVAL, statuses=(404,),
    ),
    ApiEndpoint(
        "POST", "/api/approvals/{id}", decide, "approver", "Approve or deny a call", ApprovalDecision, answer=_APPROVAL,
        statuses=(404, 409, 500, 503),
    ),
)  # fmt: skip
