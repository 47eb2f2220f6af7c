"""The models of this machine."""

from __future__ import annotations

from unittest import mock

from trunkline.models import catalog, here
from trunkline.models.catalog_entry import EMBEDDING, HEARS


def test_only_what_is_here_is_listed_and_the_mock_always_is() -> None:
    assert here.models_here() == ("mock",)
    assert here.models_here(EMBEDDING)[-1] == "mock"
    assert here.models_here(HEARS) == ()


def test_a_model_without_what_runs_it_is_not_listed() -> None:
    with mock.patch.object(catalog, "path", return_value="/x"):
        with mock.patch.object(here, "missing_extra", return_value=None):
            assert here.models_here()[0] == "smollm2-135m"
        with mock.patch.object(here, "missing_extra", return_value="local"):
            assert here.models_here() == ("mock",)
