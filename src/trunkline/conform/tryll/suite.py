"""The suite that the checks of Tryll servers register with, and the words that they judge in."""

from __future__ import annotations

from collections.abc import Callable

from trunkline.base import jsontext
from trunkline.conform.expect import same
from trunkline.conform.kit import Broken, Scene, Suite, Tier
from trunkline.conform.tryll.link import Link, ObservedTurn
from trunkline.conform.tryll.stage import Need, Stage
from trunkline.wires.tryll import messages as m

#: An id that no server has given out.
NOBODY = 2**62
#: What the agents of the kit say, where they say the same each time.
LINE = "A line of the kit."


async def tour(stage: Stage) -> None:
    """An ordinary session, and requests that are refused, for the judges."""
    link = await stage.session()
    agent = await link.agent(canned("say", LINE))
    await link.say(agent, "hello")
    await link.say(agent, "")
    await link.refused(m.SendMessageRequest(0, agent + 1, "hello"), 3001, why="to nobody")
    await link.ask(m.DestroyAgentRequest(0, agent), m.Ack)


#: The second part of the ids, in the order in which a client meets them.
_GROUPS = (
    "session", "frame", "verify", "agent", "turn", "graph", "param", "storage", "embedded", "model", "node", "wire",
    "extra", "voice",
)  # fmt: skip

SUITE: Suite[Stage] = Suite(tour, package=__package__, groups=_GROUPS, gate="tryll.session.ready")


def check(id: str, tier: Tier, section: str, *needs: Need) -> Callable[[Scene[Stage]], Scene[Stage]]:
    """Decorator: an active check, and what it needs besides a server."""
    return SUITE.check(id, tier, section, needs)


def canned(name: str, *lines: str, storage: str | None = None, exit: str | None = None) -> m.NodeDescription:
    """A node that answers with its lines, one after the other. It needs no model."""
    return m.NodeDescription(name, m.CannedResponseParams(storage, lines, default_exit=exit))


def guard(name: str, pattern: str, triggered: str | None = None, passed: str | None = None) -> m.NodeDescription:
    """A node that looks for a pattern."""
    return m.NodeDescription(name, m.HumanMessageGuardrailParams(None, (pattern,), triggered, passed))


def ended_well(turn: ObservedTurn, status: int = m.TurnStatus.SUCCESS) -> ObservedTurn:
    """A turn has one final text, the last, and the status that it should have.

    Raises:
        Broken: it has not.
    """
    finals = [answer.is_final for answer in turn.answers]
    if finals.count(True) != 1 or not finals[-1]:
        raise Broken(f"of {len(finals)} frames of text {finals.count(True)} are final; one must be, the last")
    same("the status of the turn", turn.complete.status, status)
    return turn


async def usable(link: Link, why: str) -> None:
    """The session still answers: a message to nobody is refused, in whatever words.

    Raises:
        Broken: it does not.
    """
    request = m.SendMessageRequest(link.next_id(), NOBODY, "hello")
    await link.send(request)
    try:
        await link.answer(request.request_id, "SendMessageRequest")
    except Broken as problem:
        raise Broken(f"after {why} the session is no longer usable: {problem}") from None


def diagnosed(turn: ObservedTurn) -> dict[str, object]:
    """The diagnostics of a turn.

    Raises:
        Broken: they are no JSON object.
    """
    try:
        found = jsontext.loads(turn.complete.debug_info.encode())
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Broken(f"`debug_info` is not a JSON object: {turn.complete.debug_info[:160]!a}")
    return found
