"""People are told that something waits for approval."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.web import Server
from trunkline.base.redact import Redactor
from trunkline.exchange.approvals import Approval
from trunkline.exchange.webhook import MOST_WAITING, PAUSES, ApprovalWebhook

APPROVAL = Approval(
    "a1", "s1", "helper", 1, "c1", "Bash", "exec", "Run with sk-0123456789", {"command": "secret"}, "d", 5, "pending"
)
SECRETS = Redactor(["sk-0123456789"])


class Hook:
    """An address that answers as it is told, and then well."""

    def __init__(self, *answers: int | Exception) -> None:
        self._answers = list(answers)
        self.got: list[bytes] = []
        self.pauses: list[float] = []
        self.done = asyncio.Event()

    async def post(self, url: str, body: bytes) -> int:
        self.got.append(body)
        answer = self._answers.pop(0) if self._answers else 200
        if not self._answers:
            self.done.set()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


@asynccontextmanager
async def telling(hook: Hook, url: str | None = "http://hook") -> AsyncIterator[ApprovalWebhook]:
    webhook = ApprovalWebhook(lambda: url, SECRETS, hook.post, hook.pause)
    ending = asyncio.Event()
    task = asyncio.create_task(webhook.run(ending))
    try:
        yield webhook
    finally:
        ending.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await task


async def delivered(hook: Hook) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        await hook.done.wait()


async def test_it_is_told_who_wants_what_and_neither_arguments_nor_secrets() -> None:
    hook = Hook()
    async with telling(hook) as webhook:
        webhook.told(APPROVAL)
        await delivered(hook)
    told = json.loads(hook.got[0])
    assert told["event"] == "approval_requested"
    assert (told["approval"]["id"], told["approval"]["tool"], told["approval"]["agent"]) == ("a1", "Bash", "helper")
    assert told["approval"]["description"] == "Run with [redacted]"
    assert b"secret" not in hook.got[0]


async def test_an_address_that_does_not_answer_is_tried_again_after_pauses() -> None:
    hook = Hook(OSError("gone"), 503, 200)
    async with telling(hook) as webhook:
        webhook.told(APPROVAL)
        await delivered(hook)
    assert (len(hook.got), hook.pauses) == (3, list(PAUSES[:2]))


@pytest.mark.parametrize("answers", [(404,), (503, 503, 503, 503)], ids=["refused", "never there"])
async def test_what_cannot_be_delivered_is_left_and_the_next_is_told(answers: tuple[int, ...]) -> None:
    hook = Hook(*answers, 200)
    async with telling(hook) as webhook:
        webhook.told(APPROVAL)
        webhook.told(APPROVAL.replace(id="a2"))
        await delivered(hook)
    assert [json.loads(body)["approval"]["id"] for body in hook.got] == ["a1"] * len(answers) + ["a2"]


async def test_of_a_flood_the_newest_are_told() -> None:
    hook = Hook(*[200] * MOST_WAITING)
    webhook = ApprovalWebhook(lambda: "http://hook", SECRETS, hook.post, hook.pause)
    for number in range(MOST_WAITING + 50):
        webhook.told(APPROVAL.replace(id=f"a{number}"))
    ending = asyncio.Event()
    task = asyncio.create_task(webhook.run(ending))
    await delivered(hook)
    ending.set()
    await task
    assert json.loads(hook.got[0])["approval"]["id"] == "a50"


async def test_without_an_address_nobody_is_told() -> None:
    hook = Hook()
    async with telling(hook, None) as webhook:
        webhook.told(APPROVAL)
    assert hook.got == []


async def test_it_goes_out_over_http() -> None:
    server = Server()
    server.answers["/hook"] = (204, {}, b"")
    try:
        webhook = ApprovalWebhook(lambda: server.url("/hook"), SECRETS)
        await webhook._tell(APPROVAL)
    finally:
        await asyncio.to_thread(server.close)
    headers, body = server.posted[0]
    assert headers["content-type"] == "application/json"
    assert json.loads(body)["approval"]["id"] == "a1"
