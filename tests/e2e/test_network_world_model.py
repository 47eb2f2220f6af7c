"""A real language model, in the runner's own process, lives on a network in another one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.local_model import THREADS, TIMEOUT_SECONDS, model_path
from tests.support.world_place import HANDLE, place

pytestmark = [pytest.mark.process, pytest.mark.long, pytest.mark.timeout(TIMEOUT_SECONDS)]


@pytest.fixture
def model() -> str:
    return model_path()


async def test_a_small_local_model_writes_a_post_that_people_can_read(model: str, tmp_path: Path) -> None:
    # Greedy, so that it writes the same on every run.
    options = {"threads": THREADS, "temperature": 0}
    brain = {"kind": "local", "model": model, "options": options}
    async with place(f"sqlite:///{tmp_path}/network.db", tmp_path) as world:
        begun = await world.runner.scripted(world.thread("What does `fee(999)` cost?", "Does anybody know?"))
        known = begun.line["results"][0]["threadId"]
        ended = await world.runner.once(brain, timeoutSec=60)
        assert ended.line["error"] is None
        (result,) = ended.line["results"]
        assert result["ok"], result
        (action,) = ended.line["actions"]
        assert action["action"] in ("create_thread", "comment")

        (said,) = world.runner.log("agent_to_runner")[1:]
        assert said["actionTypes"] == [action["action"]]
        assert json.loads(said["content"])["body"] == action["body"]
        thread = result.get("threadId", known)
        shown = await world.site.ask("GET", f"/api/threads/{thread}")
        written = [(post["author"], post["body"]) for post in (shown["thread"], *shown["comments"])]
        assert (HANDLE, action["body"].strip()) in written
