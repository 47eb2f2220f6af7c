"""A program with OpenAI's client, streaming from `/v1/chat/completions` in a session that it names.

The wire has no id for a message, so it is said once. Whoever is gone before the end has stopped the turn, by the wire's
own contract; so nothing is promised to a client whose connection broke, but that its message is not run twice.
"""

from __future__ import annotations

import asyncio
import json

import httpx

from tests.chaos.cluster.clients.wire import PAUSE_SECONDS, TRY_SECONDS, Choose
from tests.chaos.cluster.hearing import Heard, Hearing
from trunkline.wires.openai.messages import SESSION_HEADER

_OK = 200


class OpenAIClient:
    """One program."""

    def __init__(self, session: str, choose: Choose, http: httpx.AsyncClient) -> None:
        self._session = session
        self._choose = choose
        self._http = http

    async def converse(self, hearing: Hearing) -> None:
        node = self._choose()
        heard = hearing.connected(node.name)
        body = {"model": "worker", "stream": True, "messages": [{"role": "user", "content": hearing.text}]}
        request = self._http.build_request(
            "POST",
            f"{node.url}/v1/chat/completions",
            json=body,
            headers={SESSION_HEADER: self._session},
            timeout=httpx.Timeout(TRY_SECONDS, read=None),
        )
        try:
            async with asyncio.timeout(TRY_SECONDS):
                answer = await self._http.send(request, stream=True)
            try:
                if answer.status_code == _OK:
                    await self._listen(answer, hearing, heard)
                else:
                    heard.ends.append(f"status {answer.status_code}")
                    await asyncio.sleep(PAUSE_SECONDS)
            finally:
                await answer.aclose()
        except (httpx.HTTPError, OSError, TimeoutError):
            await asyncio.sleep(PAUSE_SECONDS)

    async def _listen(self, answer: httpx.Response, hearing: Hearing, heard: Heard) -> None:
        async for line in answer.aiter_lines():
            if not line.startswith("data: ") or line == "data: [DONE]":
                continue
            said = json.loads(line[6:])
            if "error" in said:
                heard.ends.append(f"error: {said['error'].get('message')}")
            for choice in said.get("choices", ()):
                heard.text += choice["delta"].get("content") or ""
                if choice.get("finish_reason"):
                    heard.ends.append(choice["finish_reason"])
        if heard.ends == ["stop"]:
            hearing.taken()
            heard.is_whole = True

    def close(self) -> None:
        """Each message has its own connection, which ends with it."""
