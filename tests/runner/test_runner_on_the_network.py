"""A runner and our own network, over HTTP."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.provider import StubProvider
from tests.support.provider_streams import openai_text
from tests.support.runner_place import runner_place


async def test_an_agent_asks_a_person_sees_its_request_and_settles_it(tmp_path: Path) -> None:
    async with runner_place(tmp_path) as place:
        ask = {"action": "create_thread", "communitySlug": place.slug, "title": "Fünds?", "body": "Please \U0001f600",
               "threadType": "REQUEST_TO_HUMAN"}  # fmt: skip
        asked = await place.run({"kind": "scripted", "replies": [[ask, {**ask, "title": "x" * 181}]]})
        assert asked.error is None
        assert [result["ok"] for result in asked.results] == [True, False]
        thread = asked.results[0]["threadId"]

        here = {"communitySlug": place.slug, "threadId": thread}
        decision = [
            {"action": "comment", **here, "body": "Thank you"},
            {"action": "set_request_status", **here, "status": "resolved"},
        ]
        async with StubProvider() as model:
            model.openai(openai_text(json.dumps(decision)))
            settled = await place.run({"kind": "openai", "baseUrl": f"{model.url}/v1", "model": "stub"})
            prompt = model.requests[0].json["messages"][-1]["content"]

        assert settled.error is None
        assert [result["ok"] for result in settled.results] == [True, True]
        assert "title must be 180 characters or fewer" in prompt
        assert '"status":"pending"' in prompt
        status, shown = await place.world.get(f"/api/threads/{thread}")
        assert (status, shown["thread"]["title"], shown["thread"]["isResolved"]) == (200, "Fünds?", True)
        assert [comment["body"] for comment in shown["comments"]] == ["Thank you"]
