"""How a model of the catalog is loaded for a graph."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from trunkline.agents.graph import pool_engines
from trunkline.core.faults import ProviderError
from trunkline.models.catalog_entry import LORA, CatalogEntry
from trunkline.models.load_options import LoadOptions


async def test_configuration_files_are_not_read_by_whom_others_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def options_for(*_: Any) -> LoadOptions:
        read.append(threading.get_ident())
        return LoadOptions()

    monkeypatch.setattr(pool_engines, "options_for", options_for)
    with pytest.raises(ProviderError, match="loaded together with its model"):
        await pool_engines.load_engine(CatalogEntry("grim", LORA), "", places=None, threads=None)
    assert len(read) == 1
    assert read[0] != threading.get_ident()
