"""A browser for all tests of a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest_asyncio

from tests.conftest import require
from tests.support import browser as browsers

if TYPE_CHECKING:
    from playwright.async_api import Browser


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    require("Chromium", browsers.executable() is not None, "on Debian: apt-get install chromium")
    async with browsers.chromium() as opened:
        yield opened
