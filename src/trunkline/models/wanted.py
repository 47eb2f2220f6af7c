"""Which model somebody means who wants to have it: a name of the catalog, or of a hub, which is asked."""

from __future__ import annotations

from trunkline.models import catalog, hub, naming
from trunkline.models.catalog_entry import CatalogEntry
from trunkline.models.hub import HubModel


def named(name: str) -> CatalogEntry | None:
    """The model of that name that is built in or was pulled before; None if only a hub knows it.

    Raises:
        ConfigError: it is not the name of a model; the text suggests another.
    """
    if naming.split(name) is None:
        return catalog.find(name)
    pulled = [entry for entry in catalog.entries() if name in (entry.name, entry.repository)]
    return pulled[0] if len(pulled) == 1 and catalog.path(pulled[0]) is not None else None


async def wanted(name: str) -> HubModel:
    """The same, or the one that the hub has.

    Raises:
        ConfigError: it is not the name of a model, or it is not clear which file is meant; the text lists them.
        DownloadFailed: the hub does not tell, or has no such repository.
    """
    found = named(name)
    return HubModel(found) if found is not None else await hub.find(name)
