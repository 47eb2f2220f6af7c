"""Approvals: what waits for a person, and a person's answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal, get_args

from trunkline.base.values import Value
from trunkline.core.agent import Approve, Decision, Deny
from trunkline.core.events import Category
from trunkline.core.faults import Fault
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.errors import ApiRefused
from trunkline.exchange.api.schemas import MOMENT, TEXT, array, maybe, obj
from trunkline.exchange.approvals import MOST_LISTED, AlreadyDecided, Approval, ApprovalFilter, State

STATES: tuple[State, ...] = get_args(State)
#: In place of a state: every one but `pending`.
DECIDED = "decided"
CATEGORIES: tuple[Category, ...] = get_args(Category)

#: How many sessions are woken at once when several approvals are denied: each may start a program.
AWAKE_AT_ONCE = 8
#: The most calls that are denied at once: a page of them.
MOST_AT_ONCE = 200

#: The longest reason: it is shown to the model.
MAX_REASON_CHARS = 10_000


class ApprovalDecision(Value):
    """What a person decides. `always`: later calls of the same category, too. The reason goes to the model."""

    decision: Literal["approve", "deny"]
    scope: Literal["once", "always"] = "once"
    reason: str = ""


class BulkDenial(Value):
    """Calls to deny, by the ids of their approvals, with one reason, which goes to the model."""

    ids: tuple[str, ...]
    reason: str = ""


async def list_approvals(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/approvals`."""
    board = call.exchange.switchboard
    text, session, before = call.query("state"), call.query("session"), call.query("before")
    _check("state", text, (*STATES, DECIDED))
    _check("category", call.query("category"), CATEGORIES)
    wanted = ApprovalFilter(
        state=next((known for known in STATES if known == text), None),
        is_over=text == DECIDED,
        session=session,
        agent=call.query("agent"),
        tool=call.query("tool"),
        category=call.query("category"),
        by=call.query("by"),
        before=before,
    )
    limit = call.number("limit", 1, MOST_LISTED) or MOST_LISTED
    if before is not None and await board.approvals.get(before) is None:
        raise ApiRefused(404, f"There is no approval `{before[:80]}` here. Begin again without `before`.")
    await board.awaited(None if session is None else [session])
    await board.written()
    return {"approvals": [members(approval) for approval in await board.approvals.listed(wanted, limit)]}


async def show_approval(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/approvals/{id}`."""
    return members(await _approval(call, call.id))


async def decide(call: ApiCall) -> Mapping[str, Any]:
    """`POST /api/approvals/{id}`."""
    wanted = await call.body(ApprovalDecision)
    _check_reason(wanted.reason)
    decision: Decision = Approve(wanted.scope) if wanted.decision == "approve" else Deny(wanted.reason)
    return members(await _decided(call, call.id, decision))


async def deny_several(call: ApiCall) -> Mapping[str, Any]:
    """`POST /api/approvals/deny`: each for itself, whatever becomes of the others."""
    wanted = await call.body(BulkDenial)
    _check_reason(wanted.reason)
    ids = tuple(dict.fromkeys(wanted.ids))
    if not 1 <= len(ids) <= MOST_AT_ONCE:
        raise ApiRefused(400, f"`ids` must have 1 to {MOST_AT_ONCE} ids.")
    several = asyncio.Semaphore(AWAKE_AT_ONCE)

    async def denied(id: str) -> Mapping[str, Any]:
        async with several:
            return await _denied(call, id, Deny(wanted.reason))

    return {"approvals": await asyncio.gather(*map(denied, ids))}


async def _denied(call: ApiCall, id: str, denial: Deny) -> Mapping[str, Any]:
    """What came of it. `error`: why it was not denied now."""
    error = None
    try:
        found: Approval | None = await _decided(call, id, denial)
    except AlreadyDecided as decided:
        found, error = decided.approval, str(decided)
    except (ApiRefused, Fault) as refusal:
        found, error = await call.exchange.switchboard.approvals.get(id), str(refusal)
    return {
        "id": id,
        "state": found.state if found else None,
        "decided_by": found.decided_by if found else None,
        "error": error,
    }


async def _decided(call: ApiCall, id: str, decision: Decision) -> Approval:
    """The approval, once it has this answer.

    Raises:
        AlreadyDecided: it has another.
        ApiRefused: there is none.
        Fault: it could not be answered.
    """
    approval = await _approval(call, id)
    if approval.state != "pending":
        raise AlreadyDecided(approval)
    async with call.exchange.switchboard.attached(approval.session) as live:
        await live.decide(approval, decision, call.person.name)
    return await _approval(call, id)


def _check(name: str, text: str | None, known: tuple[str, ...]) -> None:
    if text is not None and text not in known:
        raise ApiRefused(400, f"`{name}` must be one of {', '.join(f'`{each}`' for each in known)}.")


def _check_reason(reason: str) -> None:
    if len(reason) > MAX_REASON_CHARS:
        raise ApiRefused(400, f"`reason` must have {MAX_REASON_CHARS} characters or fewer.")


async def _approval(call: ApiCall, id: str) -> Approval:
    switchboard = call.exchange.switchboard
    found = await switchboard.approvals.get(id)
    if found is not None and found.state == "pending":
        # It may be about to be closed.
        await switchboard.awaited([found.session])
        found = await switchboard.approvals.get(id)
    if found is None:
        raise ApiRefused(404, f"There is no approval `{id[:80]}` here.")
    return found


def members(approval: Approval) -> Mapping[str, Any]:
    """An approval, as the API tells it."""
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
        "wire": approval.decided_wire,
        "reason": approval.reason,
    }


_APPROVAL = obj(
    id=TEXT,
    session=TEXT,
    agent=TEXT,
    turn={"type": "integer"},
    call_id=TEXT,
    tool=TEXT,
    category={"enum": list(CATEGORIES)},
    description=TEXT,
    args={"type": "object"},
    asked_at=MOMENT,
    state={"enum": list(STATES)},
    decided_by=maybe(TEXT),
    decided_at=maybe(MOMENT),
    wire=maybe(TEXT),
    reason=maybe(TEXT),
)

ENDPOINTS = (
    ApiEndpoint(
        "GET", "/api/approvals", list_approvals, "observer", "What people are asked, oldest first",
        query={
            "state": {"enum": [*STATES, DECIDED]}, "session": TEXT, "agent": TEXT, "tool": TEXT,
            "category": {"enum": list(CATEGORIES)}, "by": TEXT, "before": TEXT,
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_LISTED},
        },
        answer=obj(approvals=array(_APPROVAL)), statuses=(404,),
    ),
    # Before those with an id: no approval is called `deny`.
    ApiEndpoint(
        "POST", "/api/approvals/deny", deny_several, "approver", "Deny several calls", BulkDenial,
        answer=obj(
            approvals=array(
                obj(id=TEXT, state=maybe({"enum": list(STATES)}), decided_by=maybe(TEXT), error=maybe(TEXT))
            )
        ),
    ),
    ApiEndpoint(
        "GET", "/api/approvals/{id}", show_approval, "observer", "One approval", answer=_APPROVAL, statuses=(404,),
    ),
    ApiEndpoint(
        "POST", "/api/approvals/{id}", decide, "approver", "Approve or deny a call", ApprovalDecision, answer=_APPROVAL,
        statuses=(404, 409, 500, 503),
    ),
)  # fmt: skip
