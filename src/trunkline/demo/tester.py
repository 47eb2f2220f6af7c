"""The demonstration's agent: it tests the vault as a person would, one step in each cycle. No model.

What it does next follows from what stands on the network and in its inbox alone, so that it can be stopped and
started at any time:

1. it opens a thread with a hypothesis: small deposits are free;
2. it deposits 1000 wei and 999 wei, and posts what came of each;
3. it asks people which of the two is meant, and waits for the answer while it watches the vault;
4. when somebody has answered, it closes the request and writes a report.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from trunkline.core.agent import Capabilities, Change, Decision, OpenRequest
from trunkline.core.events import Event, TextDelta, TurnEnded, UserMessage
from trunkline.core.usage import NOTHING_USED

HYPOTHESIS = "Hypothesis: deposits below 1000 wei pay no fee"
REQUEST = "Which fee is meant for a deposit of 999 wei?"
REPORT = "Report: `fee` divides before it multiplies"

_HYPOTHESIS_BODY = """\
`fee(amount)` is documented as 3 per mille, rounded down. It computes `amount / 1000 * 3`.

**Test**: deposit 1000 wei, then 999 wei, and compare `fees` with what 3 per mille would be (3 and 2)."""
_REQUEST_BODY = """\
A deposit of 999 wei paid no fee at all, one of 1000 wei paid 3. By the documentation 999 wei should pay 2.

Is it meant that amounts below 1000 wei are free? An answer in this thread is enough; I close the request then."""
_REPORT_BODY = """\
- **Function**: `fee(uint256)`, called by `deposit()`
- **Input**: 999 wei
- **Expected**: 2 wei, 3 per mille rounded down
- **Actual**: 0 wei, because `amount / 1000` is computed first
- **Effect**: whoever splits a deposit into parts of 999 wei pays nothing
- **Transactions**: in the thread "{thread}\""""

#: What is tried, in this order: value in wei, and the fee that is expected.
_TRIALS = ((1000, 3), (999, 2))

Action = dict[str, Any]
Thread = Mapping[str, Any]


def decide(context: Mapping[str, Any]) -> list[Action]:
    """The next step. Never nothing: a cycle without an action would count as failed."""
    community = context["communities"][0]
    threads: Sequence[Thread] = community["threads"]
    actions = [_told(feedback) for feedback in context.get("runnerInbox") or () if _is_deposit(feedback)]
    actions += _next(community, threads) if not actions else []
    for action in actions:
        action["communitySlug"] = community["slug"]
    return actions


def _next(community: Mapping[str, Any], threads: Sequence[Thread]) -> list[Action]:
    hypothesis, request = _titled(threads, HYPOTHESIS), _titled(threads, REQUEST)
    if hypothesis is None:
        return [_thread(HYPOTHESIS, _HYPOTHESIS_BODY, "DISCUSSION")]
    done = int(hypothesis["commentCount"])
    if done < len(_TRIALS):
        return [_deposit(community, hypothesis, _TRIALS[done][0])]
    if request is None:
        return [_thread(REQUEST, _REQUEST_BODY, "REQUEST_TO_HUMAN")]
    if not request.get("isResolved") and int(request["commentCount"]) > 0:
        return [{"action": "set_request_status", "threadId": request["id"], "status": "resolved"}]
    if request.get("isResolved") and _titled(threads, REPORT) is None:
        return [_thread(REPORT, _REPORT_BODY.format(thread=HYPOTHESIS), "REPORT_TO_HUMAN")]
    return [_look(community, hypothesis)]


def _titled(threads: Sequence[Thread], title: str) -> Thread | None:
    return next((thread for thread in threads if thread["title"] == title), None)


def _thread(title: str, body: str, type: str) -> Action:
    return {"action": "create_thread", "title": title, "body": body, "threadType": type}


def _deposit(community: Mapping[str, Any], thread: Thread, wei: int) -> Action:
    return {
        "action": "tx",
        "threadId": thread["id"],
        "contractAddress": community["address"],
        "functionName": "deposit()",
        "args": [],
        "value": str(wei),
    }


def _look(community: Mapping[str, Any], thread: Thread) -> Action:
    """Read what the vault has earned: this changes nothing and costs nothing."""
    return {
        "action": "tx",
        "threadId": thread["id"],
        "contractAddress": community["address"],
        "functionName": "fees",
        "args": [],
    }


def _is_deposit(feedback: Mapping[str, Any]) -> bool:
    return feedback.get("type") == "tx_feedback" and feedback.get("functionName") == "deposit()"


def _told(feedback: Mapping[str, Any]) -> Action:
    """A transaction's result, as a comment."""
    result = feedback["result"]
    wei = str(feedback.get("value"))
    if "error" in result and "hash" not in result:
        body = f"The deposit of {wei} wei was not sent: {result['error']}"
    else:
        expected = dict(_TRIALS).get(int(wei))
        body = (
            f"Deposited {wei} wei; 3 per mille would be {expected}.\n\n"
            f"- Transaction: `{result.get('hash')}`\n"
            f"- Block: {result.get('blockNumber')}, gas used: {result.get('gasUsed')}"
        )
    return {"action": "comment", "threadId": feedback["threadId"], "body": body}


class Tester:
    """The agent: opens conversations that `decide`."""

    name = "tester"
    capabilities = Capabilities(approval=True, resume=True)

    async def open(self, request: OpenRequest) -> TesterConversation:
        return TesterConversation()


class TesterConversation:
    """One dialogue. What it is told ends with the context, as JSON."""

    session_id: str | None = None

    async def turn(self, message: UserMessage) -> AsyncIterator[Event]:
        yield TextDelta(json.dumps(decide(found_context(message.text))))
        yield TurnEnded("success", NOTHING_USED)

    async def decide(self, call_id: str, decision: Decision) -> None:
        """Nothing is ever asked."""

    async def configure(self, change: Change) -> None:
        """There is nothing to change."""

    async def cancel(self) -> None:
        """It has ended before anybody could."""

    async def close(self) -> None:
        """There is nothing to let go of."""


def found_context(prompt: str) -> dict[str, Any]:
    """The context in a prompt: the first JSON object that holds communities.

    Raises:
        ValueError: there is none.
    """
    decoder = json.JSONDecoder()
    at = prompt.find("{")
    while at >= 0:
        try:
            value, _ = decoder.raw_decode(prompt, at)
        except ValueError:
            value = None
        if isinstance(value, dict) and "communities" in value:
            return value
        at = prompt.find("{", at + 1)
    raise ValueError("the prompt holds no context")
