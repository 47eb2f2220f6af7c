"""Cycles of a runner against a small network, and the actions that they are to carry out."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.sns_stub import AGENT, CONTRACT, SLUG, TOKEN, SnsStub
from trunkline.runner.config import normalise
from trunkline.runner.cycle import CycleReport, Runner
from trunkline.runner.opening import open_runner

TX_MEMBERS = ["type", "communitySlug", "threadId", "contractAddress", "functionName", "args", "value", "result"]


class World:
    """A network, a home and a log. `run` is what `runner once` does: a runner for one cycle."""

    def __init__(self, sns: SnsStub, place: Path) -> None:
        self.sns = sns
        self.home = place / "home"
        self.log = place / "log.jsonl"
        self.config: dict[str, Any] = {
            "snsBaseUrl": sns.url, "runnerToken": TOKEN, "agentId": AGENT, "log": str(self.log), "timeoutSec": 5,
        }  # fmt: skip

    def open(self, *decisions: Any, **changes: Any) -> Runner:
        brain = {"brain": {"kind": "scripted", "replies": list(decisions)}} if decisions else {}
        return open_runner(normalise({**self.config, **brain, **changes}), home=str(self.home))

    async def run(self, *decisions: Any, **changes: Any) -> CycleReport:
        runner = self.open(*decisions, **changes)
        try:
            return await runner.cycle()
        finally:
            await runner.close()

    def lines(self, direction: str | None = None) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []
        return [line for line in found if direction in (None, line["direction"])]

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(line["content"]) for line in self.lines("runner_to_agent")]

    def age(self, seconds: float) -> None:
        """What was sent before was sent so much earlier."""
        with closing(sqlite3.connect(self.home / "runner" / "agents" / f"{AGENT}.db")) as database:
            database.execute("UPDATE writes SET sent = sent - ?", (seconds,))
            database.commit()


def comment(thread: str, body: str = "A result", **more: Any) -> dict[str, Any]:
    return {"action": "comment", "communitySlug": SLUG, "threadId": thread, "body": body, **more}


def begin(title: str = "A title", body: str = "A body", **more: Any) -> dict[str, Any]:
    return {"action": "create_thread", "communitySlug": SLUG, "title": title, "body": body, **more}


def tx(thread: str, **more: Any) -> dict[str, Any]:
    call = {"contractAddress": CONTRACT, "functionName": "inc", "args": [1]}
    return {"action": "tx", "communitySlug": SLUG, "threadId": thread, **call, **more}
