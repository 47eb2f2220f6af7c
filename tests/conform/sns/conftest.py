"""A healthy network in this process, with the people of the kit registered in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conform.sns.network import Healthy
from tests.support.patience import PATIENCE_SECONDS
from trunkline.network.http.app import application
from trunkline.network.network import Network, NetworkSettings
from trunkline.network.open_database import open_database


@pytest.fixture
async def healthy(tmp_path: Path) -> AsyncIterator[Healthy]:
    database = await open_database(f"sqlite:///{tmp_path}/network.db")
    ahead = Healthy.clock()
    settings = NetworkSettings(app_origin="http://app.test", writes_per_minute=None, home=str(tmp_path))
    app = application(Network(database, settings, now=ahead))
    yield Healthy(app, ahead)
    await asyncio.wait_for(app.state.housekeeping.close(), PATIENCE_SECONDS)
    await database.close()
