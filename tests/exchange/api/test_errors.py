"""What goes wrong is told in one form, and no more of it than the other side may know."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.exchange.api_world import world
from trunkline.core.faults import Fault, MayBeDone, StoreUnavailable
from trunkline.exchange.api import errors
from trunkline.store.database import DatabaseGone


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/nothing", 404, "not_found"),
        ("GET", "/api/sessions/", 404, "not_found"),
        ("PUT", "/api/sessions", 405, "method_not_allowed"),
        ("POST", "/api/agents", 405, "method_not_allowed"),
        ("GET", "/api/sessions/%00", 404, "session_not_found"),
    ],
)
async def test_what_there_is_not_is_told_in_the_same_form(
    tmp_path: Path, method: str, path: str, status: int, code: str
) -> None:
    async with world(tmp_path) as net:
        refused = await net.ask(method, path)
        assert (refused.status_code, refused.json()["error"]["code"]) == (status, code)
        assert refused.headers["content-type"] == "application/json"


async def test_what_nobody_foresaw_is_a_500_that_tells_nothing_and_one_entry_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with world(tmp_path) as net:

        async def broken(by: str) -> None:
            raise RuntimeError("a secret of ours")

        monkeypatch.setattr(net.exchange.budgets, "usage", broken)
        with caplog.at_level(logging.ERROR):
            failed = await net.get("/api/usage")
        assert (failed.status_code, failed.json()["error"]["code"]) == (500, "internal")
        assert "secret" not in failed.text
        assert len(caplog.records) == 1


async def test_a_database_that_does_not_answer_is_a_503(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(tmp_path) as net:

        async def gone(id: str) -> None:
            raise DatabaseGone("the disk is gone")

        monkeypatch.setattr(net.exchange.switchboard, "row", gone)
        failed = await net.get("/readyz")
        assert (failed.status_code, failed.headers["retry-after"]) == (503, "5")
        assert (await net.get("/livez", who=None)).status_code == 200


@pytest.mark.parametrize(
    ("fault", "when"),
    [
        (StoreUnavailable("This node is cut off.", retryable=True), "5"),
        (StoreUnavailable("It is longer than NATS takes.", retryable=False), None),
        # Who asks again by itself would have it done twice.
        (MayBeDone("It does not answer.", retryable=True), None),
    ],
)
async def test_who_cannot_have_a_session_now_hears_when_to_ask_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault, when: str | None
) -> None:
    async with world(tmp_path) as net:

        async def failing(id: str) -> None:
            raise fault

        monkeypatch.setattr(net.exchange.switchboard, "row", failing)
        failed = await net.get("/api/sessions/s1")
        assert (failed.status_code, failed.json()["error"]["code"]) == (503, "unavailable")
        assert failed.headers.get("retry-after") == when


@pytest.mark.parametrize("status", [413, 414, 416, 422])
def test_a_code_does_not_depend_on_the_python_that_serves_it(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    told = errors.members(status, "")["error"]["code"]
    monkeypatch.delattr(errors, "HTTPStatus")
    assert errors.members(status, "")["error"]["code"] == told
    assert "content" not in told
