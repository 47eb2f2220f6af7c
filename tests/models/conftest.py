"""Model servers have as long to answer as a busy machine needs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.models import discover_servers


@pytest.fixture(autouse=True, scope="module")
def _patient_with_servers() -> Iterator[None]:
    # Not for each test: Hypothesis refuses what is set up for a function.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discover_servers, "PROBE_SECONDS", PATIENCE_SECONDS)
        yield
