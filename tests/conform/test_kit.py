from __future__ import annotations

import asyncio

import pytest

from trunkline.base.process import SpawnError
from trunkline.conform.jsonstream_host.suite import SUITE as HOSTS
from trunkline.conform.kit import TOUR, Broken, Check, CheckResult, Judgement, NotApplicable, NotExercised, Suite
from trunkline.conform.record import HOST_AND_AGENT, REPORT_HEAD_LINES, REPORT_LINE_CHARS, REPORT_TAIL_LINES, Record
from trunkline.conform.stage import Stage


class FakeStage(Stage):
    """A stage without processes: scenes write into its one record."""

    def __init__(self, name: str) -> None:
        super().__init__(name, HOST_AND_AGENT)
        self.told = self.record(("target",))
        self.records.append(self.told)
        self.is_closed = False

    async def close(self) -> None:
        self.is_closed = True


async def tour(stage: FakeStage) -> None:
    stage.told.add("agent", b"tour")


def suite() -> Suite[FakeStage]:
    made: Suite[FakeStage] = Suite(tour)

    @made.check("t.good", "MUST", "1")
    async def good(stage: FakeStage) -> None:
        """It is good."""
        stage.told.add("agent", b"fine")

    @made.check("t.bad", "SHOULD", "2")
    async def bad(stage: FakeStage) -> None:
        """It is not bad."""
        stage.told.add("agent", b"noise")
        raise Broken("it is bad")

    @made.check("t.never", "MUST", "3")
    async def never(stage: FakeStage) -> None:
        """It happens."""
        raise NotExercised("it did not happen")

    @made.judge("t.quiet", "MUST", "4")
    def quiet(record: Record) -> Judgement:
        """There is no noise."""
        noisy = any(entry.line == b"noise" for entry in record.entries)
        return Judgement(len(record.entries), "noise" if noisy else None)

    return made


async def run(made: Suite[FakeStage], *patterns: str, jobs: int = 2) -> list[CheckResult]:
    results, _ = await made.run(made.select(patterns), FakeStage, jobs=jobs)
    return results


async def test_scenes_decide_by_how_they_end() -> None:
    found = {result.check.id: (result.verdict, result.reason) for result in await run(suite(), "t.good", "t.[bn]*")}
    assert found == {
        "t.good": ("passed", ""),
        "t.bad": ("failed", "it is bad"),
        "t.never": ("not exercised", "it did not happen"),
    }


async def test_a_judge_looks_at_the_conversations_of_all_checks() -> None:
    result = (await run(suite()))[-1]
    assert (result.verdict, result.conversations) == ("failed", ("t.bad",))
    assert result.reason == "noise, in the conversation `t.bad`"


async def test_a_judge_has_the_tour_when_no_check_runs() -> None:
    (result,) = await run(suite(), "t.quiet")
    assert (result.verdict, result.conversations) == ("passed", (TOUR,))


async def test_a_judge_that_saw_nothing_has_not_judged() -> None:
    made = suite()
    made.add_judge(Check("t.nothing", "MUST", "5", "Something."), lambda record: Judgement(0))
    (result,) = await run(made, "t.nothing")
    assert result.verdict == "not exercised"


async def test_results_come_in_the_order_of_the_suite_whatever_ends_first() -> None:
    assert [result.check.id for result in await run(suite())] == ["t.good", "t.bad", "t.never", "t.quiet"]


async def test_no_more_than_the_given_number_of_checks_run_at_a_time() -> None:
    made: Suite[FakeStage] = Suite(tour)
    now, most = 0, 0

    async def scene(stage: FakeStage) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        for _ in range(5):
            await asyncio.sleep(0)
        now -= 1

    for number in range(9):
        made.add(Check(f"t.{number}", "MUST", "1", "It runs."), scene)
    await run(made, jobs=3)
    assert most == 3


async def test_a_stage_is_closed_whatever_the_scene_does() -> None:
    made = suite()
    stages: list[FakeStage] = []

    def stage(name: str) -> FakeStage:
        stages.append(FakeStage(name))
        return stages[-1]

    async def crash(stage: FakeStage) -> None:
        raise ZeroDivisionError

    made.add(Check("t.crash", "MUST", "1", "The kit has no defect."), crash)
    with pytest.raises(ExceptionGroup):
        await made.run(made.select(()), stage, jobs=1)
    assert all(each.is_closed for each in stages)


async def test_a_gate_that_fails_leaves_the_rest_unexercised() -> None:
    made = suite()
    made.gate = "t.never"
    results = await run(made, "t.good", "t.quiet")
    reason = "`t.never` not exercised: it did not happen"
    assert {(result.verdict, result.reason) for result in results} == {("not exercised", reason)}


async def test_a_gate_that_was_not_asked_for_is_not_reported() -> None:
    made = suite()
    made.gate = "t.good"
    heard: list[str] = []
    results, _ = await made.run(made.select(["t.bad"]), FakeStage, jobs=1, on_result=lambda r: heard.append(r.check.id))
    assert [result.check.id for result in results] == heard == ["t.bad"]


async def test_a_target_that_cannot_be_started_is_not_judged() -> None:
    made = suite()

    async def unstartable(stage: FakeStage) -> None:
        raise SpawnError("there is no program `x`", "install it", "not-found")

    made.add(Check("t.start", "MUST", "1", "It starts."), unstartable)
    made.gate = "t.start"
    with pytest.raises(SpawnError):
        await run(made)
    made.gate = "t.good"
    (result,) = await run(made, "t.start")
    assert (result.verdict, result.reason) == ("not exercised", "there is no program `x`: install it")


class Connection:
    async def close(self) -> None:
        pass


@pytest.mark.parametrize("end", [None, Broken("it is bad"), NotExercised("it did not happen")])
@pytest.mark.parametrize("jobs", [1, 2])
async def test_a_target_that_was_reached_once_is_judged_though_it_is_not_reached_again(
    end: Exception | None, jobs: int
) -> None:
    made: Suite[FakeStage] = Suite(tour)
    missed = asyncio.Event()

    @made.check("t.first", "MUST", "1")
    async def first(stage: FakeStage) -> None:
        """It is reached."""
        stage.opened(stage.told, Connection())
        if jobs > 1:
            await missed.wait()
        if end is not None:
            raise end

    @made.check("t.late", "MUST", "1")
    async def late(stage: FakeStage) -> None:
        """It is reached again."""
        missed.set()
        raise SpawnError("it cannot be reached", "too late", "other")

    results = await run(made, jobs=jobs)
    assert [(each.check.id, each.verdict) for each in results][1] == ("t.late", "not exercised")


async def test_a_scene_that_ended_without_the_target_has_not_reached_it() -> None:
    made: Suite[FakeStage] = Suite(tour)

    @made.check("t.first", "MUST", "1")
    async def first(stage: FakeStage) -> None:
        """It is offered."""
        raise NotApplicable("there is no need to ask")

    @made.check("t.second", "MUST", "1")
    async def second(stage: FakeStage) -> None:
        """It is reached."""
        raise SpawnError("it cannot be reached", "nobody is there", "other")

    with pytest.raises(ExceptionGroup):
        await run(made, jobs=1)


async def test_what_a_target_need_not_offer_is_not_applicable() -> None:
    made = suite()

    @made.check("t.choice", "MUST", "1")
    async def choice(stage: FakeStage) -> None:
        """It can be chosen."""
        raise NotApplicable("it offers no choice")

    @made.judge("t.nothing", "MUST", "1", "no colour was named")
    def nothing(record: Record) -> Judgement:
        """Colours are bright."""
        return Judgement(0)

    found = [(each.verdict, each.reason) for each in await run(made, "t.choice", "t.nothing")]
    assert found == [("not applicable", "it offers no choice"), ("not applicable", "no colour was named")]


def test_two_checks_of_one_name_are_a_mistake() -> None:
    made = suite()
    with pytest.raises(ValueError, match=r"`t\.good`"):
        made.add(Check("t.good", "MUST", "1", "Again."), tour)


def test_a_check_says_what_it_requires() -> None:
    with pytest.raises(ValueError, match="does not say"):
        suite().check("t.mute", "MUST", "1")(lambda stage: tour(stage))


@pytest.mark.parametrize(
    ("tier", "verdict", "counts"),
    [
        ("MUST", "not exercised", True),
        ("MUST", "failed", True),
        ("MUST", "passed", False),
        ("MUST", "not applicable", False),
        ("SHOULD", "failed", False),
    ],
)
def test_a_must_counts_as_failed_unless_it_passed_or_does_not_apply(tier: str, verdict: str, counts: bool) -> None:
    check = Check("t.x", tier, "1", "It is.")  # type: ignore[arg-type]  # as parametrised
    assert CheckResult(check, verdict).counts_as_failed is counts  # type: ignore[arg-type]  # as parametrised


def test_a_report_keeps_the_beginning_and_the_end_of_a_long_conversation() -> None:
    record = Record("long", ("target",))
    for number in range(1000):
        record.add("agent", b"%d" % number)
    exported = record.export()
    lines = [line["line"] for line in exported["lines"]]
    assert (lines[0], lines[-1], len(lines)) == ("0", "999", REPORT_HEAD_LINES + REPORT_TAIL_LINES)
    assert exported["lines_left_out"] == 1000 - len(lines)


def test_a_report_keeps_the_beginning_of_a_long_line() -> None:
    record = Record("wide", ("target",))
    record.add("agent", "ä".encode() * 1_000_000)
    (line,) = record.export()["lines"]
    assert line["line"] == "ä" * REPORT_LINE_CHARS + "... (2000000 bytes)"


def test_bytes_that_are_no_text_stay_readable_in_a_report() -> None:
    record = Record("bytes", ("target",))
    record.add("agent", b"\xff!")
    assert record.export()["lines"][0]["line"] == "\\xff!"


def test_a_sealed_record_is_exported_as_it_was() -> None:
    record = Record("sealed", ("target",))
    record.add("host", b"hello")
    before = record.export()
    record.seal()
    assert (record.export(), record.entries) == (before, [])


def test_a_check_is_playable_where_there_is_all_that_it_needs() -> None:
    made = suite()

    @made.check("t.needy", "MAY", "5", ("a peer", "time"))
    async def needy(stage: FakeStage) -> None:
        """It has both."""

    def names(*has: str) -> set[str]:
        return {check.id for check in made.playable(made.select(()), {*has})}

    assert names() == names("a peer") == {"t.good", "t.bad", "t.never", "t.quiet"}
    assert names("a peer", "time", "money") == set(made.checks)


def test_a_suite_reports_the_checks_of_its_modules_in_the_order_of_their_groups() -> None:
    found = list(dict.fromkeys(check.split(".")[1] for check in HOSTS.checks))
    assert found[:3] == ["turn", "ready", "start"]
    assert [check.split(".")[1] for check in HOSTS.checks] == [
        group for group in found for check in HOSTS.checks if check.split(".")[1] == group
    ]
