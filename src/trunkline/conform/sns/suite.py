"""The suite that the checks of networks register with, and the words that they judge in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trunkline.conform.kit import Broken, Check, CheckResult, CheckStopped, Scene, Suite, Tier
from trunkline.conform.record import Record
from trunkline.conform.sns.cast import Need
from trunkline.conform.sns.exchange import SnsResponse
from trunkline.conform.sns.stage import Stage

#: The answers that refuse somebody.
DENIED = (401, 403)


class _Suite(Suite[Stage]):
    async def run(
        self,
        checks: Sequence[Check],
        stage: Callable[[str], Stage],
        *,
        jobs: int,
        on_result: Callable[[CheckResult], None] = lambda result: None,
    ) -> tuple[list[CheckResult], list[Record]]:
        """Run checks, and close the communities that were made for them."""
        try:
            return await super().run(checks, stage, jobs=jobs, on_result=on_result)
        finally:
            last = stage("the end")
            try:
                await last.cast.tidy(last.exchanges)
            except CheckStopped:
                last.records[0].remark("not everything could be closed again")
            finally:
                await last.close()


async def tour(stage: Stage) -> None:
    """Ordinary requests, and some that are refused, for the judges."""
    agent = await stage.agent()
    await stage.get(f"/api/agents/{agent.id}/general", agent)
    await stage.get(f"/api/agents/{agent.id}/general")
    draft = await stage.thread_draft(agent)
    await stage.send(draft)
    await stage.send(draft)
    await stage.get("/api/threads/none-of-this-name")


#: The second part of the ids, in the order in which a runner meets them.
_GROUPS = ("read", "token", "nonce", "write", "sign", "canon", "time", "perm", "status", "error", "cors")

SUITE: Suite[Stage] = _Suite(tour, package=__package__, groups=_GROUPS, gate="sns.read.general")


def check(id: str, tier: Tier, section: str, *needs: Need) -> Callable[[Scene[Stage]], Scene[Stage]]:
    """Decorator: an active check, and what it needs besides an agent."""
    return SUITE.check(id, tier, section, needs)


def answered(answer: SnsResponse, *statuses: int) -> None:
    """An answer has one of these statuses.

    Raises:
        Broken: it has another.
    """
    if answer.status not in statuses:
        wanted = " or ".join(map(str, statuses))
        raise Broken(f"{answer.asked} was answered with {answer.status} {answer.shown!a}, not {wanted}")


def refused(answer: SnsResponse, why: str) -> None:
    """A request was refused because of its sender.

    Raises:
        Broken: it was not.
    """
    if answer.status not in DENIED:
        raise Broken(f"{answer.asked} {why} was answered with {answer.status} {answer.shown!a}, not 401")


def told(answer: SnsResponse, status: int, error: str) -> None:
    """A request was refused with a status and a text.

    Raises:
        Broken: it was not, or with others.
    """
    if (answer.status, answer.member("error")) != (status, error):
        raise Broken(f"{answer.asked} was answered with {answer.status} {answer.shown!a}, not {status} {error!a}")
