"""The models of this machine that could answer now, without loading any."""

from __future__ import annotations

from trunkline.models import catalog
from trunkline.models.catalog_entry import EMBEDDING, LLM, CatalogEntry
from trunkline.models.installed import missing_extra

#: What needs no weights, and is always here.
MOCK = "mock"
#: The kinds of models that there is a mock of.
_MOCKED = (LLM, EMBEDDING)


def is_here(entry: CatalogEntry) -> bool:
    """Whether a model's files are here, and what runs it. Costs one look at each of its files."""
    return missing_extra(entry.engine) is None and catalog.path(entry) is not None


def models_here(kind: str = LLM) -> tuple[str, ...]:
    """The names of all models of a kind that are here, in the order of the catalog; the mock, if it is one, last."""
    found = [entry.name for entry in catalog.entries() if entry.kind == kind and is_here(entry)]
    return (*found, MOCK) if kind in _MOCKED else tuple(found)
