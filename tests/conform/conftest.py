"""Hundreds of small processes: what they run is measured elsewhere, and here it would only take time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from unittest import mock

import pytest

from tests.support.unmeasured import unmeasured


@pytest.fixture(autouse=True)
def _unmeasured(_own_home: None) -> Iterator[None]:
    with mock.patch.dict(os.environ, unmeasured(), clear=True):
        yield
