"""The kit against servers with one bad habit each: the right checks notice, and no other complains."""

from __future__ import annotations

import pytest

from tests.conform.bad_habits import complaint
from tests.conform.openai.habits_of_servers import HABITS
from tests.conform.openai.serving import MODULES, results_of, serving
from trunkline.conform.openai.suite import SUITE


async def problem_with(address: str, name: str) -> str | None:
    """What the kit got wrong about a server."""
    habit = HABITS[name]
    results = await results_of(address, name, *habit.among)
    return complaint(name, habit.fails, results)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
async def test_a_bad_habit_fails_its_own_checks_and_no_others(module: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SUITE, "gate", None)
    names = [name for name, each in HABITS.items() if each.made.__module__ == getattr(module, "__name__", "")]
    async with serving() as address:
        found = [await problem_with(address, name) for name in names]
    assert [problem for problem in found if problem is not None] == []


def test_every_check_is_failed_by_some_habit() -> None:
    failed = {check for habit in HABITS.values() for check in habit.fails}
    assert sorted(set(SUITE.checks) ^ failed) == []


@pytest.mark.slow
async def test_a_server_that_follows_the_rules_passes_every_check() -> None:
    async with serving() as address:
        results = await results_of(address, "GoodServer")
    assert [(each.check.id, each.verdict, each.reason) for each in results if each.verdict != "passed"] == []
    assert len(results) == len(SUITE.checks)


async def test_what_a_server_does_not_offer_is_not_applicable() -> None:
    patterns = ("openai.responses.answer", "openai.events.*", "openai.tools.call", "openai.embeddings.*",
                "openai.auth.none", "openai.tools.taken")  # fmt: skip
    async with serving() as address:
        results = await results_of(address, "OffersLittle", *patterns)
    found = {each.check.id: (each.verdict, each.reason) for each in results}
    assert found.pop("openai.tools.taken") == ("passed", "")
    assert {verdict for verdict, _ in found.values()} == {"not applicable"}
    assert "offers no `POST /responses`" in found["openai.responses.answer"][1]
    assert "takes no tools of clients: 400" in found["openai.tools.call"][1]
    assert found["openai.auth.none"][1] == "the server needs no key: it answers without one"
    assert "--embeddings-model" in found["openai.embeddings.many"][1]


async def test_a_route_that_there_is_not_is_not_offered_whatever_is_said_there() -> None:
    async with serving() as address:
        results = await results_of(address, "KnowsFewRoutes", "openai.embeddings.*", "openai.responses.answer")
    assert {each.verdict for each in results} == {"not applicable"}
    assert any("offers no `POST /embeddings`" in each.reason for each in results)


async def test_without_a_key_nothing_is_said_of_keys() -> None:
    async with serving() as address:
        (result,) = await results_of(address, "OffersLittle", "openai.auth.wrong", key="")
    assert (result.verdict, result.reason) == (
        "not applicable",
        "no `OPENAI_API_KEY` is set, so the server is asked without a key",
    )


async def test_when_a_server_never_answers_nothing_else_is_exercised() -> None:
    async with serving() as address:
        results = await results_of(address, "AlwaysFails", "openai.chat.answer", "openai.stream.*")
    assert results[0].verdict == "failed"
    assert "500" in results[0].reason
    assert {result.verdict for result in results[1:]} == {"not exercised"}
