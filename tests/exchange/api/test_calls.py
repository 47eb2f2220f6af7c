"""The calls that nobody was asked about, over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exchange.api_world import world
from tests.support.loop import until
from trunkline.core.events import ToolFinished, ToolRequested, ToolStarted, TurnEnded
from trunkline.exchange.api import calls


async def test_what_the_policy_allowed_is_told_with_its_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        await net.post(f"/api/sessions/{id}/mode", {"mode": "yolo"})
        reader = net.read(id)
        await net.say(id)
        await until(lambda: net.fake.busy)
        for name in ("c1", "c2"):
            net.fake.say(
                ToolRequested(name, "Bash", "exec", {"command": f"echo {name}"}, "Say it"),
                ToolStarted(name, "Bash"),
                ToolFinished(name, "Bash", "success", name),
            )
        net.fake.say(TurnEnded("success"))
        await until(lambda: "turn_ended" in reader.kinds)
        assert "tool_requested" not in reader.kinds
        first, second = (await net.get(f"/api/sessions/{id}/calls", who="observer")).json()["calls"]
        assert (first["call_id"], first["name"], first["category"]) == ("c1", "Bash", "exec")
        assert (first["args"], first["description"], first["verdict"]) == ({"command": "echo c1"}, "Say it", "allow")
        later = await net.get(f"/api/sessions/{id}/calls?since={first['seq']}")
        assert later.json() == {"calls": [second]}
        monkeypatch.setattr(calls, "MOST_LISTED", 1)
        assert (await net.get(f"/api/sessions/{id}/calls")).json() == {"calls": [first]}


async def test_there_are_no_calls_of_what_does_not_exist(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        assert (await net.get("/api/sessions/none/calls")).status_code == 404
