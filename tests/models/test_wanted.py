"""Which model somebody means by a name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.hub_server import REPOSITORY, Hub, gguf, hub_serving
from trunkline.core.faults import ConfigError
from trunkline.models import fetch
from trunkline.models.wanted import named, wanted

SMALL, LARGE = "tiny-Q4_K_M.gguf", "tiny-Q8_0.gguf"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    files = {SMALL: gguf("small"), LARGE: gguf("large", 300_000)}
    with hub_serving(Hub(**files), monkeypatch) as served:
        yield served


async def test_a_name_of_the_catalog_needs_no_hub() -> None:
    found = await wanted("smollm2-135m")
    assert (found.entry.name, found.others) == ("smollm2-135m", ())
    assert named("smollm2-135m") == found.entry


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("smollm2-135", "Did you mean `smollm2-135m`"),
        ("a/b/c", "is not the name of a model"),
        ("/etc/passwd", "is not the name of a model"),
    ],
)
async def test_what_is_no_name_is_refused_with_what_names_look_like(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        await wanted(name)


async def test_one_that_only_the_hub_knows_is_asked_for_there(served: Hub) -> None:
    assert named(REPOSITORY) is None
    found = await wanted(REPOSITORY)
    assert (found.entry.name, found.others) == (f"{REPOSITORY}:{SMALL}", (LARGE,))


async def test_one_that_was_pulled_before_is_known_by_its_repository_as_long_as_it_is_the_only_one(
    served: Hub,
) -> None:
    await fetch.pull((await wanted(REPOSITORY)).entry)
    known = named(REPOSITORY)
    assert known is not None
    assert known == named(f"{REPOSITORY}:{SMALL}")
    assert named(f"{REPOSITORY}:{LARGE}") is None
    await fetch.pull((await wanted(f"{REPOSITORY}:{LARGE}")).entry)
    assert named(REPOSITORY) is None
