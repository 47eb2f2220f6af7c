"""Carries out actions, one after the other. What goes wrong with one is its result, and nobody else's.

A text that holds a secret the runner knows is not posted: the agent is told that, and never which. An action that is
broken off still has a result: what is known of it by then.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from trunkline.base.values import Value
from trunkline.core.faults import Fault
from trunkline.runner.chain.settings import MISSING
from trunkline.runner.contract import READ_ACTIONS, ContractAction
from trunkline.runner.finishing import finished
from trunkline.runner.github import Issues, PollReport
from trunkline.runner.holding import LeaseLost
from trunkline.runner.inbox import Inbox
from trunkline.runner.reading import NetworkReader
from trunkline.runner.reconciling import Writes
from trunkline.runner.secrets import Secrets
from trunkline.wires.sns.drive import Sns, SnsError, WriteUnclear
from trunkline.wires.sns.messages import ThreadType

if TYPE_CHECKING:
    from trunkline.runner.chain.outcome import TxResult
    from trunkline.runner.chain.performer import TxPerformer

logger = logging.getLogger(__name__)

SECRET_WITHIN = "It contains a secret of this runner, and was not sent. Leave the secret out."  # noqa: S105 - a text
STILL_OPEN = (
    "The same was sent before, and whether it arrived is not known yet. It was not sent again; you will be told."
)
DO_NOT_REPEAT = "Do not write it again: it is looked for, and you will be told."
BROKEN_OFF = "The cycle was ended before an answer came: whether it was written is not known."
NOT_CARRIED_OUT = "The cycle was ended before it: it was not carried out."

REPORT = "REPORT_TO_HUMAN"


class ActionOutcome(Value):
    """What became of an action. `told`: what its result says besides."""

    ok: bool
    error: str | None
    told: Mapping[str, Any] = {}
    done: bool = False
    """It took effect, whether or not that was the wanted one."""

    def with_told(self, **more: Any) -> ActionOutcome:
        """The same, with more to say."""
        return self.replace(told={**self.told, **more})


class ActionPerformer:
    """What one agent's actions are carried out with."""

    def __init__(
        self,
        sns: Sns,
        writes: Writes,
        inbox: Inbox,
        issues: Issues,
        reader: NetworkReader,
        secrets: Secrets,
        performer: TxPerformer | None,
    ) -> None:
        self._sns = sns
        self._writes = writes
        self._inbox = inbox
        self._issues = issues
        self._reader = reader
        self._secrets = secrets
        self._performer = performer
        self._standing: ActionOutcome | None = None
        self._under_way = ""

    def standing(self, otherwise: str = NOT_CARRIED_OUT) -> ActionOutcome:
        """What is known by now of the action under way: its outcome if it goes no further.

        Args:
            otherwise: the error of an action that nothing was sent of.
        """
        if self._standing is not None:
            return self._standing
        sent = self._performer.in_flight if self._performer is not None and self._under_way == "tx" else None
        if sent is None:
            return ActionOutcome(False, otherwise)
        return _transacted(sent).with_told(unknown=True)

    async def perform(self, action: ContractAction, community: Mapping[str, Any]) -> ActionOutcome:
        """Carry out an action in a community of the context, and tell the agent what it must know of it."""
        self._standing, self._under_way = None, action.name
        if self._secrets.within(action.told()):
            outcome = ActionOutcome(False, SECRET_WITHIN)
            action = self._without_secrets(action)
        elif action.name == "tx":
            return await self._transact(action, community)
        elif action.name in READ_ACTIONS:
            return await self._read(action, community)
        else:
            outcome = await self._write(action, community)
        self._standing = outcome
        if not outcome.ok:
            await self._inbox.tell(_feedback(action, outcome), [action.name])
        return outcome

    def _without_secrets(self, action: ContractAction) -> ContractAction:
        """What may be repeated of it: a secret in another spelling is no more for others than in its own."""
        clean = {name: value for name, value in action.fields.items() if not self._secrets.within(value)}
        return action.replace(fields=clean)

    # Posts

    async def _write(self, action: ContractAction, community: Mapping[str, Any]) -> ActionOutcome:
        match action.name:
            case "create_thread":
                return await self._create_thread(action, community)
            case "comment":
                return await self._comment(action, community)
        thread_id, status = action.text("threadId"), action.text("status")
        set_status = self._sns.set_request_status
        return await self._sent(
            action,
            lambda: set_status(thread_id, "resolved" if status == "resolved" else "pending"),
            lambda _: {"threadId": thread_id, "status": status},
        )

    async def _create_thread(self, action: ContractAction, community: Mapping[str, Any]) -> ActionOutcome:
        type: ThreadType = action.get("threadType") or "DISCUSSION"
        title, body = action.text("title"), action.text("body")
        outcome = await self._sent(
            action,
            lambda: self._sns.create_thread(str(community.get("id")), title, body, type),
            lambda thread: {"threadId": thread.get("id"), "type": thread.get("type", type)},
        )
        if not outcome.ok or type != REPORT:
            return outcome
        return await self._shared(outcome, PollReport(community, str(outcome.told["threadId"]), title, body))

    async def _comment(self, action: ContractAction, community: Mapping[str, Any]) -> ActionOutcome:
        thread_id, body = action.text("threadId"), action.text("body")
        outcome = await self._sent(
            action,
            lambda: self._sns.comment(thread_id, body, action.get("commentKind")),
            lambda comment: {"threadId": thread_id, "commentId": comment.get("id")},
        )
        thread = _thread(community, thread_id)
        if not outcome.ok or thread is None or thread.get("type") != REPORT:
            return outcome
        title = str(thread.get("title") or "")
        return await self._shared(
            outcome, PollReport(community, thread_id, title, body, str(outcome.told["commentId"]))
        )

    async def _sent(
        self,
        action: ContractAction,
        send: Callable[[], Awaitable[dict[str, Any]]],
        told: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> ActionOutcome:
        """Write once. Noted before, so that whatever happens, it is known that it may have been written."""
        known = {"threadId": action.get("threadId")} if action.get("threadId") else {}
        if await self._writes.is_open(action):
            return ActionOutcome(False, STILL_OPEN, known)
        if (found := self._writes.arrived(action)) is not None:
            return ActionOutcome(True, None, {**known, **found, "alreadyWritten": True})
        key = await self._writes.begin(action)
        self._standing = ActionOutcome(False, f"{BROKEN_OFF} {DO_NOT_REPEAT}", {**known, "unknown": True})
        try:
            written = await send()
        except LeaseLost as error:
            # Who acts for the agent now looks for it, and finds nothing.
            self._standing = ActionOutcome(False, str(error), known)
            raise
        except WriteUnclear as error:
            return ActionOutcome(False, f"{error} {DO_NOT_REPEAT}", {**known, "unknown": True})
        except SnsError as error:
            refused = {**known, "httpStatus": error.status} if error.status else known
            self._standing = outcome = ActionOutcome(False, str(error), refused)
            written = {}
        except Fault as error:
            self._standing = outcome = ActionOutcome(False, str(error), known)
            written = {}
        else:
            self._standing = outcome = ActionOutcome(True, None, told(written), done=True)
        # A status makes no post: the thread that it belongs to may be what another write became.
        await self._writes.end(key, None if action.name == "set_request_status" else written.get("id"))
        return outcome

    async def _shared(self, outcome: ActionOutcome, report: PollReport) -> ActionOutcome:
        shared = await self._issues.share(report)
        self._standing = outcome = outcome.with_told(autoShare=shared)
        if not shared["ok"]:
            types = ["create_thread" if report.comment_id is None else "comment"]
            await self._inbox.tell(issue_feedback(shared), types)
        return outcome

    # Transactions

    async def _transact(self, action: ContractAction, community: Mapping[str, Any]) -> ActionOutcome:
        performer = self._performer
        if performer is None:
            result: dict[str, Any] = {"error": MISSING}
            outcome = ActionOutcome(False, MISSING, {"hash": None, "result": result})
        else:
            came = await performer.perform(action.told(), community)
            result, outcome = came.result, _transacted(came)
        self._standing = outcome = outcome.replace(told={"threadId": action.get("threadId"), **outcome.told})

        async def tell() -> None:
            await self._inbox.tell(tx_feedback(action.told(), result), ["tx"])
            if performer is not None:
                performer.received()

        try:
            await finished(tell())
        except LeaseLost:
            raise
        except Fault as error:
            # The next cycle tells it: the performer was not told that it is kept.
            logger.warning("what became of a transaction could not be kept: %s", error)
        return outcome

    # Reading

    async def _read(self, action: ContractAction, community: Mapping[str, Any]) -> ActionOutcome:
        read = await self._reader.read(action, community)
        self._standing = ActionOutcome(read.error is None, read.error, done=read.error is None)
        await self._inbox.tell(read.feedback, [action.name])
        return self._standing


def tx_feedback(action: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """What an agent is told of its transaction, or of what it meant to be one.

    The members and their order are part of the contract. What is not of its kind is left out.
    """
    args, value = action.get("args"), action.get("value")
    texts = {name: action.get(name) for name in ("communitySlug", "threadId", "contractAddress", "functionName")}
    return {
        "type": "tx_feedback",
        **{name: text if isinstance(text, str) else None for name, text in texts.items()},
        "args": args if isinstance(args, list) else [],
        "value": value if isinstance(value, str | int | float) else None,
        "result": result,
    }


def issue_feedback(result: Mapping[str, Any]) -> dict[str, Any]:
    """What an agent is told of an issue that was to be made of its report."""
    return {"type": "issue_feedback", "result": result}


def _feedback(action: ContractAction, outcome: ActionOutcome) -> dict[str, Any]:
    if action.name == "tx":
        return tx_feedback(action.told(), {"error": outcome.error})
    named = {name: action.get(name) for name in ("threadId", "title", "status") if action.get(name) is not None}
    result = {"ok": False, "error": outcome.error}
    return {
        "type": "action_feedback",
        "action": action.name,
        "communitySlug": action.community_slug,
        **named,
        "result": result,
    }


def _transacted(came: TxResult) -> ActionOutcome:
    told = {"hash": came.hash, "result": came.result}
    return ActionOutcome(came.ok, None if came.ok else _problem(came), told, done=came.ok or _is_mined(came))


def _problem(came: TxResult) -> str:
    return came.error or str(came.result.get("error") or "The transaction failed.")


def _is_mined(came: TxResult) -> bool:
    return came.hash is not None and came.result.get("status") is not None


def _thread(community: Mapping[str, Any], thread_id: str) -> Mapping[str, Any] | None:
    threads = community.get("threads")
    for thread in threads if isinstance(threads, list) else ():
        if isinstance(thread, Mapping) and thread.get("id") == thread_id:
            return thread
    return None
