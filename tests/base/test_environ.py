"""Our environment as a dictionary."""

from __future__ import annotations

import os

import pytest

from trunkline.base import environ as module
from trunkline.base.environ import environ


def test_it_is_what_the_environment_holds_now(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environ() == dict(os.environ)
    monkeypatch.setenv("TRUNKLINE_TEST_ONE", "1")
    assert environ()["TRUNKLINE_TEST_ONE"] == "1"
    monkeypatch.setenv("TRUNKLINE_TEST_ONE", "2")
    assert environ()["TRUNKLINE_TEST_ONE"] == "2"
    monkeypatch.delenv("TRUNKLINE_TEST_ONE")
    assert "TRUNKLINE_TEST_ONE" not in environ()


def test_it_is_made_once_while_nothing_changes() -> None:
    assert environ() is environ()


def test_it_works_where_the_bytes_cannot_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RAW", None)
    assert environ() == dict(os.environ)
