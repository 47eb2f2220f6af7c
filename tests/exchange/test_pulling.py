"""Pulls of models in the background: how they tell what goes on."""

from __future__ import annotations

import pytest

from tests.support.loop import until
from trunkline.core.faults import ConfigError, DownloadFailed
from trunkline.exchange.pulling import MOST_KEPT, ModelPull, ModelPulls
from trunkline.models import catalog, fetch
from trunkline.models.catalog_entry import CatalogEntry
from trunkline.models.fetch_files import Report


def test_the_rate_is_that_of_what_comes_over_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    pull = ModelPull("one", "ana", 0)
    # What was there before counts as nothing.
    pull.report("fetching", 5_000, 20_000)
    now = 0.5
    pull.report("fetching", 6_000, 20_000)
    assert pull.members()["bytes_per_second"] is None
    now = 2.0
    pull.report("fetching", 9_000, 20_000)
    assert pull.members()["bytes_per_second"] == 2_000
    assert pull.members()["percent"] == 45
    now = 9.0
    pull.report("checking", 20_000, 20_000)
    assert pull.members()["bytes_per_second"] == 2_000
    pull.over("done")
    assert (pull.members()["bytes_per_second"], pull.members()["percent"]) == (None, 100)


@pytest.fixture
def entry(monkeypatch: pytest.MonkeyPatch) -> CatalogEntry:
    entry = CatalogEntry("one", files=())
    monkeypatch.setattr(catalog, "ENTRIES", (entry,))
    return entry


async def test_secrets_in_what_went_wrong_are_told_to_nobody(
    entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(entry: CatalogEntry, report: Report | None = None) -> str:
        raise DownloadFailed("The mirror says: bad key s3cret.")

    monkeypatch.setattr(fetch, "pull", failing)
    pulls = ModelPulls(lambda: 7, lambda text: text.replace("s3cret", "***"))
    pull = await pulls.start("one", "ana")
    await until(lambda: pull.state != "running")
    assert (pull.state, pull.error, pull.began_at) == ("failed", "The mirror says: bad key ***.", 7)


async def test_a_disk_that_refuses_ends_a_pull_in_words(entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(entry: CatalogEntry, report: Report | None = None) -> str:
        raise OSError(30, "Read-only file system", "/models")

    monkeypatch.setattr(fetch, "pull", failing)
    pulls = ModelPulls(lambda: 0)
    pull = await pulls.start("one", "ana")
    await until(lambda: pull.state != "running")
    assert pull.error.startswith("Cannot use `/models`: Read-only file system.")


async def test_only_the_last_are_remembered(entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(entry: CatalogEntry, report: Report | None = None) -> str:
        return "/there"

    monkeypatch.setattr(fetch, "pull", at_once)
    pulls = ModelPulls(lambda: 0)
    made = []
    for _ in range(MOST_KEPT + 5):
        made.append(await pulls.start("one", "ana"))
        await until(lambda: made[-1].state != "running")
    await pulls.close()
    assert pulls.listed() == made[: -MOST_KEPT - 1 : -1]


async def test_one_that_is_given_up_before_it_has_begun_is_over(entry: CatalogEntry) -> None:
    pulls = ModelPulls(lambda: 0)
    pull = await pulls.start("one", "ana")
    await pulls.close()
    assert pull.state == "cancelled"
    with pytest.raises(ConfigError):
        await pulls.start("two", "ana")
