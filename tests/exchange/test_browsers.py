"""Browsers that are signed in: by a link that works once, or with a token, for as long as that counts."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trunkline.exchange.browsers import (
    LINK_SECONDS,
    LONGEST_SECRET,
    MOST_LINKS,
    UNUSED_MS,
    Browsers,
    forgery_token,
)
from trunkline.exchange.people import LOCAL, People, Person
from trunkline.exchange.schema import FORM
from trunkline.exchange.settings import PersonSettings
from trunkline.store.database import Database
from trunkline.store.database.opening import open_database

TOKEN = "the token of ana"
DIGEST = hashlib.sha256(TOKEN.encode()).hexdigest()


class World:
    """A clock and the people, which tests change."""

    def __init__(self, database: Database) -> None:
        self.now = 1_000_000
        self.people = People([PersonSettings("ana", DIGEST, "approver")])
        self.browsers = Browsers(database, lambda: self.now, lambda: self.people)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    database = await open_database(f"sqlite:///{tmp_path / 'exchange.db'}", FORM)
    try:
        yield World(database)
    finally:
        await database.close()


async def test_a_link_lets_one_browser_in_as_the_user_who_runs_it(world: World) -> None:
    code = world.browsers.code()
    secret = await world.browsers.by_code(code)
    assert secret is not None
    assert await world.browsers.find(secret) == (LOCAL, "")
    assert await world.browsers.by_code(code) is None
    await world.browsers.sign_out(secret)
    assert await world.browsers.find(secret) is None


async def test_a_link_lasts_a_day(world: World) -> None:
    early, late = world.browsers.code(), world.browsers.code()
    world.now += LINK_SECONDS * 1000 - 1
    assert await world.browsers.by_code(early) is not None
    world.now += 1
    assert await world.browsers.by_code(late) is None


async def test_of_very_many_links_the_oldest_ones_count_no_more(world: World) -> None:
    first, second = world.browsers.code(), world.browsers.code()
    for _ in range(MOST_LINKS - 1):
        world.browsers.code()
    assert await world.browsers.by_code(first) is None
    assert await world.browsers.by_code(second) is not None


async def test_a_token_lets_its_person_in_until_it_is_taken_away(world: World) -> None:
    assert await world.browsers.by_token("another") is None
    secret = await world.browsers.by_token(TOKEN)
    linked = await world.browsers.by_code(world.browsers.code(DIGEST))
    assert secret is not None
    assert linked is not None
    assert await world.browsers.find(secret) == await world.browsers.find(linked) == (Person("ana", "approver"), DIGEST)
    world.people = People([PersonSettings("ana", DIGEST, "observer")])
    assert await world.browsers.find(secret) == (Person("ana", "observer"), DIGEST)
    world.people = People([])
    assert await world.browsers.find(secret) is None
    # Another node of a cluster may know the person already.
    world.people = People([PersonSettings("ana", DIGEST, "observer")])
    assert await world.browsers.find(secret) is not None


async def test_a_browser_that_is_not_used_for_a_month_is_signed_out(world: World) -> None:
    used = await world.browsers.by_code(world.browsers.code())
    unused = await world.browsers.by_code(world.browsers.code())
    assert used is not None
    assert unused is not None
    world.now += UNUSED_MS
    assert await world.browsers.find(used) is not None
    world.now += 1
    assert await world.browsers.find(used) is not None
    assert await world.browsers.find(unused) is None


@pytest.mark.parametrize("secret", ["", "x", "x" * LONGEST_SECRET, "x" * 100_000, "\ud800", "' OR 1=1 --"])
async def test_what_is_no_secret_of_ours_lets_nobody_in(world: World, secret: str) -> None:
    world.browsers.code()
    assert await world.browsers.find(secret) is None
    assert await world.browsers.by_code(secret) is None


def test_what_pages_show_depends_on_the_secret_and_does_not_tell_it() -> None:
    assert forgery_token("a") == forgery_token("a") != forgery_token("b")
    assert "secret" not in forgery_token("secret")
