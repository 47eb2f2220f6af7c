"""Models of a hub that are built in: known by a name of ours, and checked against what the hub says."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.hub_server import REPOSITORY, Hub, gguf, hub_serving
from trunkline.core.faults import DownloadFailed
from trunkline.models import catalog, fetch, hub
from trunkline.models.catalog_entry import CatalogEntry, ModelFile

SMALL, LARGE = "tiny-Q4_K_M.gguf", "tiny-Q8_0.gguf"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with hub_serving(Hub(**{LARGE: gguf("large", 300_000), SMALL: gguf("small")}), monkeypatch) as served:
        yield served


def content(path: str) -> bytes:
    return Path(path).read_bytes()


async def pulled(name: str) -> None:
    await fetch.pull((await hub.find(name)).entry)


@pytest.fixture
def built_in(served: Hub, monkeypatch: pytest.MonkeyPatch) -> CatalogEntry:
    entry = CatalogEntry("tiny", "llm", "Random bytes.", files=(ModelFile(SMALL),), source=REPOSITORY, about=200_000)
    monkeypatch.setattr(catalog, "ENTRIES", (entry,))
    return entry


async def test_a_built_in_model_of_a_hub_is_checked_against_what_the_hub_says(
    served: Hub, built_in: CatalogEntry
) -> None:
    assert (built_in.is_pinned, built_in.size, built_in.expected) == (False, 0, 200_000)
    served.wrong_hash = "0" * 64
    with pytest.raises(DownloadFailed, match=r"not 0{64}"):
        await fetch.pull(built_in)
    served.wrong_hash = ""
    assert content(await fetch.pull(built_in)) == served.files[SMALL]
    known = catalog.known(catalog.find("tiny"))
    assert (known.files[0].sha256, known.is_about) == (sha256(served.files[SMALL]).hexdigest(), False)


async def test_a_built_in_model_has_one_name_wherever_it_was_pulled_by(served: Hub, built_in: CatalogEntry) -> None:
    await pulled(f"{REPOSITORY}:{SMALL}")
    assert catalog.entries() == (built_in,)
    for name in ("tiny", REPOSITORY, f"{REPOSITORY}:{SMALL}"):
        assert catalog.find(name) == built_in
    await pulled(f"{REPOSITORY}:{LARGE}")
    assert [entry.name for entry in catalog.entries()] == ["tiny", f"{REPOSITORY}:{LARGE}"]
    assert await fetch.remove(built_in)
    assert catalog.path(built_in) is None
    # Of several the one that is here is meant by the name of the repository.
    assert catalog.find(REPOSITORY).name == f"{REPOSITORY}:{LARGE}"
