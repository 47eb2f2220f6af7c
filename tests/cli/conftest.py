"""A network that an owner asks from a terminal, and logs that end with their test."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trunkline.base import log_context
from trunkline.cli import log_format
from trunkline.cli.agent_options import StderrHandler

if TYPE_CHECKING:
    from tests.support.owner_terminal import Site


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """A command's log is for the rest of its process. Here it ends with the test that ran the command."""
    root, hook = logging.getLogger(), sys.excepthook
    before = [each for each in root.handlers if isinstance(each, StderrHandler)]
    yield
    for handler in [each for each in root.handlers if isinstance(each, StderrHandler) and each not in before]:
        root.removeHandler(handler)
    sys.excepthook = hook
    log_format.choose(None)
    log_context.of_process.clear()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    # Wallets take long to import, and most tests of this folder have none.
    from tests.support.owner_terminal import served

    async with served(tmp_path) as site:
        yield site


@pytest.fixture
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.base.keyring.system_keyring", lambda: None)
