"""Where one check plays: a runner that sends what it is told to, right or wrong, and the record of it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.conform import stage
from trunkline.conform.kit import Broken, NotExercised
from trunkline.conform.record import Roles
from trunkline.conform.sns.cast import Cast, CastAgent, Community
from trunkline.conform.sns.exchange import Exchanges, SnsResponse, Target
from trunkline.wires.sns import codec
from trunkline.wires.sns.canonical import stable
from trunkline.wires.sns.messages import NONCE, SIGNATURE, TIMESTAMP

ROLES: Roles = ("runner", "network")

#: The clocks are taken for the same within this much: an answer tells its time in whole seconds, of a second ago.
SAME_CLOCK_MS = 3000


class Draft(Value):
    """A signed write that was not sent yet."""

    method: str
    path: str
    headers: Mapping[str, str]
    content: bytes

    def but(self, **headers: str | None) -> dict[str, str]:
        """Its headers with some changed (`x_agent_id=...`), or left out (None)."""
        changed: dict[str, str | None] = dict(self.headers)
        changed |= {name.replace("_", "-"): value for name, value in headers.items()}
        return {name: value for name, value in changed.items() if value is not None}


class Stage(stage.Stage):
    """The place of one check."""

    def __init__(self, target: Target, cast: Cast, name: str) -> None:
        super().__init__(name, ROLES)
        self.target = target
        self.cast = cast
        record = self.record((target.base_url,))
        self.exchanges = self.opened(record, Exchanges(target, record, cast.memory))

    @property
    def was_reached(self) -> bool:
        """Whether the network has answered anybody."""
        return self.cast.memory.reached

    # Who plays.

    async def agent(self) -> CastAgent:
        """The agent of the check."""
        return await self.cast.agent(self.exchanges)

    async def peer(self) -> CastAgent:
        """Another agent of its community."""
        return await self.cast.peer(self.exchanges)

    async def stranger(self) -> CastAgent:
        """An agent of another community."""
        return await self.cast.stranger(self.exchanges)

    async def community(self, agent: CastAgent) -> Community:
        """The community of an agent."""
        return await self.cast.community(self.exchanges, agent)

    # What is sent.

    async def ask(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, content: bytes | None = None
    ) -> SnsResponse:
        """Send a request."""
        return await self.exchanges.ask(method, path, headers or {}, content)

    async def get(self, path: str, agent: CastAgent | None = None) -> SnsResponse:
        """Read something, with the credential of an agent or without any."""
        return await self.ask("GET", path, agent.credential if agent else {})

    async def nonce(self, agent: CastAgent) -> str:
        """A nonce.

        Raises:
            NotExercised: there is none to be had.
        """
        answer = await self.ask("POST", "/api/agents/nonce", agent.credential)
        nonce = answer.member("nonce")
        if answer.status != 200 or not isinstance(nonce, str) or not nonce:
            raise NotExercised(f"no nonce could be obtained: {answer.status} {answer.shown!a}")
        self._compare_clocks(answer)
        return nonce

    async def draft(
        self,
        agent: CastAgent,
        method: str,
        path: str,
        content: bytes,
        canonical: str,
        *,
        nonce: str | None = None,
        timestamp: str | None = None,
    ) -> Draft:
        """A write, signed as it should be. `canonical` is the text of its body that is hashed."""
        nonce, timestamp = nonce or await self.nonce(agent), timestamp or str(self.now())
        text = codec.payload(nonce, timestamp, hashed(canonical), agent.id)
        headers = {
            "content-type": "application/json",
            **agent.credential,
            NONCE: nonce,
            TIMESTAMP: timestamp,
            SIGNATURE: codec.sign(agent.token, text),
        }
        return Draft(method, path, headers, content)

    async def write(self, agent: CastAgent, method: str, path: str, body: Mapping[str, Any], **how: str) -> SnsResponse:
        """A signed write, sent."""
        content = jsontext.dumps(dict(body))
        return await self.send(await self.draft(agent, method, path, content, stable(codec.parse_body(content)), **how))

    async def send(
        self, draft: Draft, headers: Mapping[str, str] | None = None, content: bytes | None = None
    ) -> SnsResponse:
        """Send a draft, with other headers or another body if they are given."""
        return await self.ask(draft.method, draft.path, headers or draft.headers, content or draft.content)

    async def thread_body(self, agent: CastAgent, **members: Any) -> dict[str, Any]:
        """The body of an ordinary thread, with a title of its own."""
        community = await self.community(agent)
        plain = {"communityId": community.id, "title": word(), "body": "Written by a kit.", "type": "DISCUSSION"}
        return plain | members

    async def thread_draft(self, agent: CastAgent, *, nonce: str | None = None, timestamp: str | None = None,
                           **members: Any) -> Draft:  # fmt: skip
        """A thread, signed and not sent."""
        content = jsontext.dumps(await self.thread_body(agent, **members))
        text = stable(codec.parse_body(content))
        return await self.draft(agent, "POST", "/api/threads", content, text, nonce=nonce, timestamp=timestamp)

    async def thread(self, agent: CastAgent, **members: Any) -> dict[str, Any]:
        """A thread that was written.

        Raises:
            NotExercised: it was not.
        """
        answer = await self.send(await self.thread_draft(agent, **members))
        thread = answer.member("thread")
        if answer.status != 200 or not isinstance(thread, dict) or not isinstance(thread.get("id"), str):
            raise NotExercised(f"no thread could be written: {answer.status} {answer.shown!a}")
        return thread

    async def context(self, agent: CastAgent, comment_limit: int = 50) -> dict[str, Any]:
        """The agent's community as its context shows it.

        Raises:
            Broken: it does not.
        """
        answer = await self.get(f"/api/agents/context?agentId={agent.id}&commentLimit={comment_limit}", agent)
        found = answer.member("context", "communities")
        if answer.status != 200 or not isinstance(found, list) or not found or not isinstance(found[0], dict):
            raise Broken(f"{answer.asked} was answered with {answer.status} and no community: {answer.shown!a}")
        community: dict[str, Any] = found[0]
        return community

    async def titles(self, agent: CastAgent) -> list[str]:
        """The titles of the threads in the agent's context."""
        threads = (await self.context(agent, 0)).get("threads")
        return [each["title"] for each in threads if isinstance(each, dict)] if isinstance(threads, list) else []

    def now(self) -> int:
        """The network's time, in milliseconds since 1970."""
        return time.time_ns() // 1_000_000 + self.cast.offset_ms

    def _compare_clocks(self, answer: SnsResponse) -> None:
        try:
            told = parsedate_to_datetime(answer.headers.get("date", "")).timestamp() * 1000
        except ValueError:
            return
        off = round(told - time.time_ns() // 1_000_000)
        self.cast.offset_ms = off if abs(off) > SAME_CLOCK_MS else 0


def hashed(canonical: str) -> str:
    """The hash of the canonical text of a body."""
    return codec.token_hash(canonical)


def word() -> str:
    """A text that was never written before."""
    return f"conform {os.urandom(6).hex()}"
