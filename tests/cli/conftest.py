"""A network that an owner asks from a terminal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.owner_terminal import Site


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    # Wallets take long to import, and most tests of this folder have none.
    from tests.support.owner_terminal import served

    async with served(tmp_path) as site:
        yield site


@pytest.fixture
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.runner.keys.system_keyring", lambda: None)
