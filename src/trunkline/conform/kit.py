"""What every kit is made of: requirements with a tier, the checks that exercise them, and a run of all of them.

Two kinds of check:

- an *active* one plays a scene of its own against fresh processes and raises `Broken` or `NotExercised`;
- a *judge* looks at the record of every conversation of the run, whichever check held it. So that there is always
  something to judge, the suite's *tour*, one long ordinary conversation, is held once for all judges.

A requirement that could not be brought about is "not exercised", never passed; for a MUST that counts as failed. One
that is about something which the target does not offer, and need not, is "not applicable", and counts as nothing.
"""

from __future__ import annotations

import asyncio
import pkgutil
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Generic, Literal, TypeVar

from trunkline.base.process_errors import SpawnError
from trunkline.base.values import Value
from trunkline.conform.record import Record
from trunkline.conform.stage import Stage

Tier = Literal["MUST", "SHOULD", "MAY"]
Verdict = Literal["passed", "failed", "not exercised", "not applicable"]

TIERS: tuple[Tier, ...] = ("MUST", "SHOULD", "MAY")
VERDICTS: tuple[Verdict, ...] = ("passed", "failed", "not exercised", "not applicable")
#: What keeps no target from conforming.
HARMLESS: tuple[Verdict, ...] = ("passed", "not applicable")

#: The name under which the judges' own conversation stands in a report.
TOUR = "tour"


class CheckStopped(Exception):
    """A check has no more to see. Raise one of its children."""


class Broken(CheckStopped):
    """The target did what the requirement forbids, or not what it asks for."""


class NotExercised(CheckStopped):
    """The situation that the requirement is about did not come about."""


class NotApplicable(CheckStopped):
    """The requirement is about something that the target says it does not offer, and need not."""


class Check(Value):
    """A requirement: what it is called, how much it counts, where it stands, what it asks for."""

    id: str
    tier: Tier
    section: str
    requirement: str


class CheckResult(Value):
    """What became of a check. `conversations` name the records that show it."""

    check: Check
    verdict: Verdict
    reason: str = ""
    seconds: float = 0.0
    conversations: tuple[str, ...] = ()

    @property
    def counts_as_failed(self) -> bool:
        """Whether this result alone keeps a target from conforming."""
        return self.check.tier == "MUST" and self.verdict not in HARMLESS


class Judgement(Value):
    """What a judge found in one record: how many things it looked at, and the first that was wrong."""

    looked_at: int
    problem: str | None = None


S = TypeVar("S", bound=Stage)
Scene = Callable[[S], Awaitable[None]]
Judge = Callable[[Record], Judgement]


class Suite(Generic[S]):
    """The checks of one wire, in the order in which they are reported."""

    def __init__(
        self, tour: Scene[S], *, package: str | None = None, groups: Sequence[str] = (), gate: str | None = None
    ) -> None:
        """A suite.

        `package` holds the modules with the checks: each is imported when the checks are first asked for, and registers
        its own. `groups`: the second parts of their ids, in the order in which they are reported.
        """
        self.tour = tour
        self.gate = gate
        """A check without which no other makes sense: it is run first, and if it fails the rest is not exercised."""
        self._package = package
        self._groups = groups
        self._checks: dict[str, Check] = {}
        self._needs: dict[str, frozenset[str]] = {}
        self._scenes: dict[str, Scene[S]] = {}
        self._judges: dict[str, Judge] = {}
        self._optional: dict[str, str] = {}

    def add(self, check: Check, scene: Scene[S]) -> None:
        """One more active check."""
        self._register(check)
        self._scenes[check.id] = scene

    def add_judge(self, check: Check, judge: Judge, optional: str = "") -> None:
        """One more judge. `optional` says what need not be there: without it the check is not applicable."""
        self._register(check)
        self._judges[check.id] = judge
        if optional:
            self._optional[check.id] = optional

    def check(self, id: str, tier: Tier, section: str, needs: Iterable[str] = ()) -> Callable[[Scene[S]], Scene[S]]:
        """Decorator form of `add`; the function's docstring is the requirement.

        `needs` is what there must be beyond what every check has; without it the check is not `playable`.
        """

        def register(scene: Scene[S]) -> Scene[S]:
            self.add(Check(id, tier, section, _sentence(scene.__doc__)), scene)
            self._needs[id] = frozenset(needs)
            return scene

        return register

    def judge(self, id: str, tier: Tier, section: str, optional: str = "") -> Callable[[Judge], Judge]:
        """Decorator form of `add_judge`; the function's docstring is the requirement."""

        def register(judge: Judge) -> Judge:
            self.add_judge(Check(id, tier, section, _sentence(judge.__doc__)), judge, optional)
            return judge

        return register

    @property
    def checks(self) -> Mapping[str, Check]:
        """All of them by their ids, in the order in which they are reported."""
        package, self._package = self._package, None
        if package is not None:
            for module in pkgutil.iter_modules(import_module(package).__path__, f"{package}."):
                import_module(module.name)
            ordered = sorted(self._checks.values(), key=lambda check: self._groups.index(check.id.split(".")[1]))
            self._checks = {check.id: check for check in ordered}
        return self._checks

    def select(self, patterns: Sequence[str]) -> list[Check]:
        """The checks whose id matches one of the glob patterns; all of them when there is no pattern."""
        chosen = self.checks.values()
        return [check for check in chosen if not patterns or any(fnmatchcase(check.id, each) for each in patterns)]

    def playable(self, checks: Sequence[Check], has: AbstractSet[str]) -> list[Check]:
        """Those checks for which there is all that they need."""
        return [check for check in checks if self._needs.get(check.id, frozenset()) <= has]

    def _register(self, check: Check) -> None:
        if not check.requirement:
            raise ValueError(f"`{check.id}` does not say what it requires")
        if check.id in self._checks:
            raise ValueError(f"there are two checks named `{check.id}`")
        self._checks[check.id] = check

    async def run(
        self,
        checks: Sequence[Check],
        stage: Callable[[str], S],
        *,
        jobs: int,
        on_result: Callable[[CheckResult], None] = lambda result: None,
    ) -> tuple[list[CheckResult], list[Record]]:
        """Run checks, at most `jobs` at a time.

        `stage` makes the place for the check of that name. Results come in the order of `checks`; `on_result` hears of
        each as soon as it is known.

        Raises:
            SpawnError: the target cannot be started at all.
        """
        return await _Run(self, stage, jobs, on_result).run(checks)

    def scene_of(self, id: str) -> Scene[S] | None:
        """What an active check plays; None for a judge."""
        return self._scenes.get(id)

    def judge_of(self, id: str) -> Judge | None:
        """How a judge judges; None for an active check."""
        return self._judges.get(id)

    def optional_of(self, id: str) -> str:
        """What a judge looks for that need not be there; nothing where it must."""
        return self._optional.get(id, "")


class _Run(Generic[S]):
    def __init__(
        self, suite: Suite[S], stage: Callable[[str], S], jobs: int, on_result: Callable[[CheckResult], None]
    ) -> None:
        self._suite = suite
        self._stage = stage
        self._slots = asyncio.Semaphore(jobs)
        self._on_result = on_result
        self._records: dict[str, list[Record]] = {}
        self._findings: dict[str, list[tuple[str, Judgement]]] = {}
        self._judges: dict[str, Judge] = {}
        self._wanted: set[str] = set()
        self._closed: str | None = None
        self._has_started = False
        self._playing: set[S] = set()

    async def run(self, checks: Sequence[Check]) -> tuple[list[CheckResult], list[Record]]:
        self._judges = {check.id: judge for check in checks if (judge := self._suite.judge_of(check.id))}
        self._wanted = {check.id for check in checks}
        results = {}
        if self._suite.gate is not None and checks:
            gate = await self._play(self._suite.checks[self._suite.gate])
            results[gate.check.id] = gate
            if gate.verdict != "passed":
                # Its own reason stands once, where it can be seen, and not with every other check.
                reason = "" if gate.check.id in self._wanted else f": {gate.reason}"
                self._closed = f"`{gate.check.id}` {gate.verdict}{reason}"
        active = [check for check in checks if check.id not in self._judges and check.id not in results]
        async with asyncio.TaskGroup() as group:
            if self._judges and self._closed is None:
                group.create_task(self._hold_tour(), name=TOUR)
            tasks = [group.create_task(self._play(check), name=check.id) for check in active]
        results |= {task.result().check.id: task.result() for task in tasks}
        results |= {check.id: self._pronounce(check) for check in checks if check.id in self._judges}
        records = [record for name in (TOUR, *self._suite.checks) for record in self._records.get(name, ())]
        return [results[check.id] for check in checks], records

    async def _play(self, check: Check) -> CheckResult:
        scene = self._suite.scene_of(check.id)
        if scene is None:
            raise LookupError(f"`{check.id}` is not an active check")
        async with self._slots:
            began = time.monotonic()
            verdict, reason = await self._perform(check.id, scene)
            names = tuple(record.name for record in self._records.get(check.id, ()))
        result = CheckResult(check, verdict, reason, time.monotonic() - began, names)
        if check.id in self._wanted:
            self._on_result(result)
        return result

    async def _hold_tour(self) -> None:
        async with self._slots:
            await self._perform(TOUR, self._suite.tour)

    async def _perform(self, name: str, scene: Scene[S]) -> tuple[Verdict, str]:
        if self._closed is not None:
            return "not exercised", self._closed
        stage = self._stage(name)
        self._playing.add(stage)
        try:
            await scene(stage)
        except Broken as problem:
            return "failed", str(problem)
        except NotExercised as problem:
            return "not exercised", str(problem)
        except NotApplicable as problem:
            return "not applicable", str(problem)
        except SpawnError as problem:
            # Nobody could start or reach it: nothing can be said of the target.
            if not self._has_started and not any(each.was_reached for each in self._playing):
                raise
            return "not exercised", str(problem)
        finally:
            # However it ended: a scene may be played out, and even be right, without the target.
            self._has_started |= stage.was_reached
            self._playing.discard(stage)
            await stage.close()
            self._keep(name, stage.records)
        self._has_started = True
        return "passed", ""

    def _keep(self, name: str, records: Sequence[Record]) -> None:
        """Judge at once, while the record is whole."""
        self._records[name] = list(records)
        for record in records:
            for id, judge in self._judges.items():
                self._findings.setdefault(id, []).append((record.name, judge(record)))
            record.seal()

    def _pronounce(self, check: Check) -> CheckResult:
        findings = self._findings.get(check.id, [])
        wrong = [(name, found.problem) for name, found in findings if found.problem is not None]
        if wrong:
            name, problem = wrong[0]
            more = f" (and in {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            shown = tuple(name for name, _ in wrong)
            result = CheckResult(check, "failed", f"{problem}, in the conversation `{name}`{more}", 0.0, shown)
        elif sum(found.looked_at for _, found in findings) == 0:
            optional = "" if self._closed else self._suite.optional_of(check.id)
            reason = optional or self._closed or "no conversation contained anything to check"
            result = CheckResult(check, "not applicable" if optional else "not exercised", reason)
        else:
            shown = tuple(name for name, found in findings if found.looked_at)
            result = CheckResult(check, "passed", "", 0.0, shown)
        self._on_result(result)
        return result


def _sentence(docstring: str | None) -> str:
    """A docstring as one line."""
    return " ".join((docstring or "").split())
