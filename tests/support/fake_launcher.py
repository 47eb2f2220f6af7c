"""The launcher on a reader's machine, as far as a browser can tell: answers that are put between page and network."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Route

#: Where pages look for a launcher. Any port of five digits could be the network's own.
LAUNCHERS = re.compile(r"http://127\.0\.0\.1:43(1[89]|2[0-4])/.*")
LOG = [
    {"id": "1", "direction": "agent_to_runner", "actionTypes": ["tx"], "content": '[{"action":"tx","note":"<b>"}]'},
    {"id": "2", "direction": "runner_to_agent", "actionTypes": ["tx"], "content": {"type": "tx_feedback"}},
]


class FakeLauncher:
    """Answers for `LAUNCHERS`, on port 4319, and keeps what it was told."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self.secrets: list[str | None] = []
        self.started: list[dict[str, Any]] = []
        self.decided: list[dict[str, Any]] = []
        self._running = False

    async def answer(self, route: Route) -> None:
        path, port = urlsplit(route.request.url).path, urlsplit(route.request.url).port
        if path != "/health":
            self.secrets.append(route.request.headers.get("x-runner-secret"))
        # On the usual port somebody else is at home.
        members = {"ok": True, **self._members(path, route.request.post_data_json)} if port == 4319 else {}
        await route.fulfill(json=members, headers={"access-control-allow-origin": self._origin})

    def _members(self, path: str, body: Any) -> dict[str, Any]:
        if path == "/health":
            return {"service": "runner-launcher"}
        if path == "/runner/log":
            return {"entries": LOG}
        if path == "/runner/approvals":
            return {"approvals": [] if self.decided else [{"id": "tx1", "shown": "inc()\n  wei: <U+202E>"}]}
        if path == "/runner/approve":
            self.decided.append(body)
            return {}
        if path == "/runner/start":
            self.started.append(body)
        self._running = path == "/runner/start" or (self._running and path != "/runner/stop")
        agent = {"agentId": "a", "running": self._running, "state": "running" if self._running else "stopped"}
        agent |= {"cycleCount": 7, "cyclesToday": 3, "waitingApprovals": 2, "lastError": None, "secretsKept": True}
        status = {**agent, "selectedAgentRunning": self._running, "selectedAgentStatus": agent, "agents": [agent]}
        return {"status": status, "message": "Runner stopped"}
