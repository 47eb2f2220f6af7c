"""One cycle after the other: look, decide, act, tell.

1. Read the agent's general data and its context from the network.
2. Find out what became of writes, transactions and issues whose fate was not known.
3. Ask the brain, and log what it said, word for word.
4. Check the decision, and carry out its actions in order.

A cycle fails if the network or the brain cannot be asked, or if the decision has no valid action. An action that fails
is its own result. Each exchange has its time limit, so a cycle ends. One that is told to end, or whose agent is another
launcher's now, still has a result for every element of its decision.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trunkline.base.values import Value
from trunkline.core.faults import Fault
from trunkline.core.usage import Usage
from trunkline.runner import brains, contract, decision, prompting
from trunkline.runner.actions import NOT_CARRIED_OUT, ActionOutcome, ActionPerformer, issue_feedback, tx_feedback
from trunkline.runner.brain import AnswerTooLong, Brain, BrainReply
from trunkline.runner.brains import WithAgent
from trunkline.runner.commlog import CommunicationLog
from trunkline.runner.config import RunnerConfig
from trunkline.runner.contract import ContractAction, Invalid
from trunkline.runner.decision import DecisionElements, NoDecision
from trunkline.runner.finishing import finished, on_disk
from trunkline.runner.github import Issues
from trunkline.runner.holding import Check, LeaseLost, unshared
from trunkline.runner.inbox import Inbox
from trunkline.runner.reconciling import Writes
from trunkline.runner.secrets import Secrets
from trunkline.runner.state import RunnerMemory
from trunkline.wires.sns.drive import Sns, SnsError

if TYPE_CHECKING:
    from trunkline.runner.chain.performer import TxPerformer

logger = logging.getLogger(__name__)

IN_FLIGHT = "Runner cycle already in-flight"
NO_VALID = "LLM decision does not include valid actions"
NO_COMMUNITY = "No community assigned for this runner"
NO_GENERAL = "General agent data is missing"
CUT_OFF = "It was cut off, and not carried out. Decide on it again, in fewer words."

#: How long a cycle of another process is waited for, at least: it asks the network, the model and the chain.
LEAST_PATIENCE_SECONDS = 60.0
LEFT_OUT = (
    "{count} more actions were not carried out: where a block is fenced as ```json, what stands outside of such blocks "
    "is talk about it. Put all that you decide into the same kind of block."
)
#: Reasons that are told of one decision. More of them say nothing new.
MAX_REASONS = 20
#: Characters of the model's output that a report keeps.
MAX_OUTPUT = 20_000


class CycleReport(Value):
    """What a cycle came to. Without secrets."""

    actions: tuple[dict[str, Any], ...] = ()
    """Those that took effect, as they were decided."""
    results: tuple[dict[str, Any], ...] = ()
    """One for each element of the decision, in order: `action`, `ok`, `error`, and what belongs to the action."""
    error: str | None = None
    """Why the cycle failed; None if it did not."""
    skipped: bool = False
    """Another cycle was under way, and this one did nothing."""
    status: int | None = None
    """The network's HTTP status, if that is what failed."""
    output: str | None = None
    """What the brain said."""
    usage: Usage | None = None
    handle: str | None = None
    community: Mapping[str, Any] | None = None
    """The assigned community, as the network describes it."""
    sent: int = 0
    """Transactions that went out, also such as were decided on earlier."""

    def line(self) -> dict[str, Any]:
        """What `runner once` prints."""
        return {"actions": list(self.actions), "results": list(self.results), "error": self.error}


class RunnerParts(Value):
    """What a runner is made of. `performer` is None if no transactions can be sent. `with_agent`: see `brains.make`."""

    config: RunnerConfig
    home: str
    secrets: Secrets
    state: RunnerMemory
    log: CommunicationLog
    sns: Sns
    inbox: Inbox
    writes: Writes
    issues: Issues
    actions: ActionPerformer
    performer: TxPerformer | None
    with_agent: WithAgent | None = None
    check: Check = unshared
    """That it is still this process that acts for the agent."""


class _Failure(Exception):
    """Why a cycle fails, where it is nobody's fault but the decision's."""


class Runner:
    """One agent's runner. Made by `opening.open_runner`; belongs to one event loop."""

    def __init__(self, parts: RunnerParts) -> None:
        self._parts = parts
        self._brain: Brain | None = None
        self._brain_of: Any = None
        self._running = False
        self._report = CycleReport()
        self._sent_before = 0

    @property
    def performer(self) -> TxPerformer | None:
        """What sends transactions: where those are found that wait for a person."""
        return self._parts.performer

    @property
    def log_path(self) -> str:
        """Where the communication log is."""
        return self._parts.log.path

    @property
    def progress(self) -> CycleReport:
        """How far the cycle under way is, or the last one was."""
        report: CycleReport = self._parts.secrets.data(self._report)
        return report.replace(sent=self._sent - self._sent_before)

    @property
    def _sent(self) -> int:
        return 0 if self.performer is None else self.performer.sent

    async def cycle(self) -> CycleReport:
        """Run one cycle. Never raises, but for its cancellation; then `progress` says what was done."""
        if self._running:
            return CycleReport(error=IN_FLIGHT, skipped=True)
        self._running = True
        self._report = CycleReport()
        self._sent_before = self._sent
        try:
            async with self._parts.state.turn(max(LEAST_PATIENCE_SECONDS, 2 * self._parts.config.timeout_seconds)):
                await self._run()
        except SnsError as error:
            self._note(error=str(error), status=error.status)
        except (Fault, NoDecision, _Failure) as error:
            self._note(error=str(error))
        except Exception as error:  # a runner goes on, whatever a cycle met with
            logger.debug("the cycle failed", exc_info=True)
            self._note(error=f"{type(error).__name__}: {error}")
        finally:
            self._running = False
        return self.progress

    async def close(self) -> None:
        """Let go of everything. Idempotent."""
        brain, self._brain = self._brain, None
        parts = self._parts
        closing = [parts.sns.close(), parts.issues.close()]
        if brain is not None:
            closing.append(brain.close())
        if parts.performer is not None:
            closing.append(parts.performer.close())
        await asyncio.gather(*closing, return_exceptions=True)
        await on_disk(parts.state.close)

    # The steps

    async def _run(self) -> None:
        parts = self._parts
        general = await parts.sns.general()
        agent = general.get("agent")
        if not isinstance(agent, Mapping):
            raise _Failure(NO_GENERAL)
        assigned = general.get("community")
        handle = str(agent.get("handle") or "")
        self._note(handle=handle, community=assigned if isinstance(assigned, Mapping) else None)
        context = await parts.sns.context(parts.config.comment_limit)
        communities = _communities(prompting.narrowed(context, assigned, ()))
        if not communities:
            raise _Failure(NO_COMMUNITY)
        await self._settle(handle, list(communities.values()))
        reply = await self._ask(agent, context, assigned)
        await self._act(await self._decide(reply), communities)

    async def _settle(self, handle: str, communities: list[Mapping[str, Any]]) -> None:
        """Tell the agent what became known since, before it decides again."""
        parts = self._parts
        await parts.writes.reconcile(handle, communities)
        for news in await parts.issues.settle():
            await parts.inbox.tell(issue_feedback(news), ["create_thread"])
        if parts.performer is not None:
            await self._settle_transactions(parts.performer)

    async def _settle_transactions(self, performer: TxPerformer) -> None:
        found = await performer.settle()
        if not found:
            return

        async def tell() -> None:
            for settled in found:
                await self._parts.inbox.tell(tx_feedback(settled.action, settled.outcome.result), ["tx"])
            performer.received()

        await finished(tell())

    async def _ask(self, agent: Mapping[str, Any], context: Mapping[str, Any], assigned: Any) -> BrainReply:
        parts = self._parts
        brain = await self._thinking(agent)
        waiting = await parts.inbox.waiting()
        prompt = prompting.build(
            parts.config.prompts,
            parts.secrets.data(prompting.narrowed(context, assigned, [item.data for item in waiting])),
            reading=parts.config.read_actions,
            window=brain.window,
        )
        # A brain may be a program that does things by itself.
        await parts.check()
        try:
            reply = await brain.answer(prompt)
        except AnswerTooLong as error:
            # It was cut before it was cleaned: half of a secret may stand at its end.
            said = parts.secrets.text(parts.secrets.beginning(error.said))
            self._note(output=said[:MAX_OUTPUT])
            await self._log((), said)
            raise
        # The brain has seen it, whatever it made of it.
        await parts.inbox.told(waiting)
        self._note(output=parts.secrets.data(reply.text)[:MAX_OUTPUT], usage=reply.usage)
        return reply

    async def _decide(self, reply: BrainReply) -> DecisionElements:
        """What was decided. The output is logged whether or not it can be read."""
        parts = self._parts
        try:
            # In a thread: to mend a decision may take a second.
            decided = await asyncio.to_thread(decision.read, reply.text)
        except (NoDecision, Fault) as error:
            await self._log((), reply.text)
            await parts.inbox.tell({"type": "decision_feedback", "error": str(error), "dropped": []}, ())
            raise
        await self._log(decision.action_types(decided), reply.text)
        return decided

    async def _log(self, action_types: Sequence[str], said: str) -> None:
        await on_disk(lambda: self._parts.log.append("agent_to_runner", action_types, said))

    async def _act(self, decided: DecisionElements, communities: Mapping[str, Mapping[str, Any]]) -> None:
        checked = contract.check(decided.elements, communities, reading=self._parts.config.read_actions)
        if decided.cut:
            checked.append(Invalid(None, CUT_OFF))
        try:
            await self._carry_out(checked, decided, communities)
        except (asyncio.CancelledError, LeaseLost):
            for each in checked[len(self._report.results) :]:
                self._add(
                    _result(each, ActionOutcome(False, NOT_CARRIED_OUT))
                    if isinstance(each, ContractAction)
                    else _dropped(each)
                )
            raise

    async def _carry_out(
        self,
        checked: list[ContractAction | Invalid],
        decided: DecisionElements,
        communities: Mapping[str, Mapping[str, Any]],
    ) -> None:
        await self._tell_dropped(checked, decided)
        if not any(isinstance(each, ContractAction) for each in checked):
            for each in checked:
                self._add(_dropped(each))
            reason = next((each.reason for each in checked if isinstance(each, Invalid)), "it is empty.")
            raise _Failure(f"{NO_VALID}: {reason}")
        for each in checked:
            if isinstance(each, ContractAction):
                await self._perform(each, communities[each.community_slug])
            else:
                self._add(_dropped(each))

    async def _perform(self, action: ContractAction, community: Mapping[str, Any]) -> None:
        """Carry out an action, and add its result, whatever interrupts it."""
        actions = self._parts.actions
        outcome: ActionOutcome | None = None
        try:
            outcome = await actions.perform(action, community)
        except LeaseLost:
            raise
        except Exception as error:  # one action that fails leaves the others their chance
            logger.debug("an action failed", exc_info=True)
            outcome = actions.standing(str(error) if isinstance(error, Fault) else f"{type(error).__name__}: {error}")
        finally:
            outcome = actions.standing() if outcome is None else outcome
            self._add(_result(action, outcome), action.told() if outcome.done else None)

    async def _tell_dropped(self, checked: list[ContractAction | Invalid], decided: DecisionElements) -> None:
        inbox = self._parts.inbox
        if not checked:
            error = f"{NO_VALID}: it is empty."
            await inbox.tell({"type": "decision_feedback", "error": error, "dropped": []}, ())
        if decided.left_out:
            error = LEFT_OUT.format(count=decided.left_out)
            await inbox.tell({"type": "decision_feedback", "error": error, "dropped": []}, ())
        dropped = [(index, each) for index, each in enumerate(checked) if isinstance(each, Invalid)][:MAX_REASONS]
        others = [
            {"index": index, "action": each.name, "error": each.reason} for index, each in dropped if each.name != "tx"
        ]
        if others:
            names = dict.fromkeys(str(each["action"]) for each in others if each["action"])
            await inbox.tell({"type": "decision_feedback", "error": None, "dropped": others}, list(names))
        for index, each in dropped:
            if each.name == "tx":
                await inbox.tell(tx_feedback(decided.elements[index], {"error": each.reason}), ["tx"])

    async def _thinking(self, agent: Mapping[str, Any]) -> Brain:
        """The brain. One that the network's data describes is made anew when they change."""
        named = None if self._parts.config.brain is not None else {**agent}
        if self._brain is not None and named != self._brain_of:
            brain, self._brain = self._brain, None
            await brain.close()
        if self._brain is None:
            parts = self._parts
            self._brain = brains.make(parts.config, agent, parts.state, parts.home, parts.with_agent)
            self._brain_of = named
        return self._brain

    # The report

    def _note(self, **changes: Any) -> None:
        self._report = self._report.replace(**changes)

    def _add(self, result: dict[str, Any], action: dict[str, Any] | None = None) -> None:
        actions = self._report.actions if action is None else (*self._report.actions, action)
        self._note(actions=actions, results=(*self._report.results, result))


def _communities(context: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {str(each["slug"]): each for each in context["communities"]}


def _dropped(invalid: ContractAction | Invalid) -> dict[str, Any]:
    reason = invalid.reason if isinstance(invalid, Invalid) else ""
    return {"action": invalid.name, "ok": False, "error": reason}


def _result(action: ContractAction, outcome: ActionOutcome) -> dict[str, Any]:
    return {
        "action": action.name,
        "ok": outcome.ok,
        "error": outcome.error,
        "communitySlug": action.community_slug,
        **outcome.told,
    }
