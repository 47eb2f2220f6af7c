"""The signing client, against a network that checks what it gets."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.closing import closing
from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider import BREAK, HANG, Reply, Request, StubProvider
from tests.support.sns_stub import AGENT, COMMUNITY, TOKEN, SnsStub, hurry
from trunkline.core.faults import AgentBusy, ConfigError
from trunkline.wires.sns.drive import MAX_ANSWER, Sns, SnsError, WriteUnclear

NONCE = "POST /api/agents/nonce"


@pytest.fixture
async def stub() -> AsyncIterator[SnsStub]:
    async with SnsStub() as network:
        yield network


@pytest.fixture
async def sns(stub: SnsStub) -> AsyncIterator[Sns]:
    client = Sns(f"{stub.url}/", AGENT, TOKEN, timeout=PATIENCE_SECONDS)
    yield client
    await client.close()


async def test_reads_carry_the_credential_and_the_parameters_in_their_order(stub: SnsStub, sns: Sns) -> None:
    assert (await sns.general())["agent"]["id"] == AGENT
    assert "communities" in await sns.context(7)

    assert stub.requests[1].target == f"/api/agents/context?commentLimit=7&agentId={AGENT}"
    for request in stub.requests:
        assert (request.headers["x-runner-token"], request.headers["x-agent-id"]) == (TOKEN, AGENT)


async def test_a_write_fetches_a_nonce_and_is_signed_over_what_is_sent(stub: SnsStub, sns: Sns) -> None:
    thread = await sns.create_thread(COMMUNITY, "Größe \ud83d\ude00 \ud800", 'a "b"\n', "DISCUSSION")
    comment = await sns.comment(thread["id"], "hello", "JOKE")
    await sns.set_request_status(thread["id"], "resolved")
    await sns.mark_issued(thread_id=thread["id"])
    await sns.mark_issued(comment_id=comment["id"])

    assert stub.log == [
        NONCE, "POST /api/threads",
        NONCE, f"POST /api/threads/{thread['id']}/comments",
        NONCE, f"PATCH /api/threads/{thread['id']}/request-status",
        NONCE, f"PATCH /api/threads/{thread['id']}/issued",
        NONCE, f"PATCH /api/comments/{comment['id']}/issued",
    ]  # fmt: skip
    assert [body for _, body in stub.writes][1:] == [
        {"body": "hello", "commentKind": "JOKE"}, {"status": "resolved"}, {"isIssued": True}, {"isIssued": True}
    ]  # fmt: skip
    assert stub.requests[0].body == b""
    assert "content-type" not in stub.requests[0].headers
    assert stub.requests[1].headers["content-type"] == "application/json"


async def test_a_refusal_is_the_networks_own_words_or_a_text_with_the_status(stub: SnsStub, sns: Sns) -> None:
    with pytest.raises(SnsError, match=r"^Thread not found$") as refused:
        await sns.comment("cnone", "hello")
    assert (refused.value.status, refused.value.payload) == (404, {"error": "Thread not found"})
    assert not isinstance(refused.value, WriteUnclear)

    stub.refuse("POST /api/threads", 403, "")
    with pytest.raises(SnsError, match=r"^Failed to create thread \(403\)$"):
        await sns.create_thread(COMMUNITY, "t", "b", "DISCUSSION")


@pytest.mark.parametrize("accident", [HANG, BREAK, b"<html>not what was asked for"], ids=["hang", "break", "html"])
async def test_a_write_without_a_usable_answer_is_unclear_and_sent_once(
    stub: SnsStub, sns: Sns, accident: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if accident is HANG:
        hurry(monkeypatch, stub, "POST /api/threads")
    stub.accident("POST /api/threads", accident)
    with pytest.raises(WriteUnclear):
        await sns.create_thread(COMMUNITY, "t", "b", "DISCUSSION")

    assert stub.count("POST /api/threads") == 1
    assert len(stub.threads) == 1


async def test_a_servers_failure_leaves_a_write_unclear(stub: SnsStub, sns: Sns) -> None:
    stub.refuse("POST /api/threads", 502, "Bad gateway")
    with pytest.raises(WriteUnclear, match="Bad gateway") as unclear:
        await sns.create_thread(COMMUNITY, "t", "b", "DISCUSSION")
    assert unclear.value.status == 502


async def test_what_was_never_sent_is_not_unclear(stub: SnsStub, sns: Sns) -> None:
    stub.accident(NONCE, HANG)
    async with closing(Sns(stub.url, AGENT, TOKEN, timeout=0.3)) as client:
        with pytest.raises(SnsError, match=r"no complete answer within 0\.3 s") as hung:
            await client.comment("ct", "b")
    assert not isinstance(hung.value, WriteUnclear)

    async with closing(Sns("http://127.0.0.1:1", AGENT, TOKEN, timeout=PATIENCE_SECONDS)) as gone:
        with pytest.raises(SnsError) as refused:
            await gone.general()
    assert refused.value.status is None
    assert TOKEN not in str(refused.value)


async def test_an_answer_that_drips_is_limited_as_a_whole() -> None:
    def drip(request: Request) -> Reply:
        return Reply([b"{", *[b" "] * 3, HANG], headers={"content-type": "application/json"})

    async with StubProvider(drip) as server, closing(Sns(server.url, AGENT, TOKEN, timeout=0.3)) as client:
        async with asyncio.timeout(PATIENCE_SECONDS):
            with pytest.raises(SnsError, match="no complete answer"):
                await client.general()


async def test_an_answer_without_end_is_refused() -> None:
    def flood(request: Request) -> Reply:
        piece = b" " * (1 << 20)
        return Reply([piece] * (MAX_ANSWER // len(piece) + 1), headers={"content-type": "application/json"})

    async with (
        StubProvider(flood) as server,
        closing(Sns(server.url, AGENT, TOKEN, timeout=PATIENCE_SECONDS)) as client,
    ):
        with pytest.raises(SnsError, match="more than"):
            await client.general()


async def test_an_id_is_never_a_way_to_another_path(stub: SnsStub, sns: Sns) -> None:
    for id in ("..", ".", "", "x" * 300):
        with pytest.raises(SnsError, match="is not an id"):
            await sns.comment(id, "b")
    with pytest.raises(SnsError, match="Thread not found"):
        await sns.comment("a/../../b", "b")
    assert [place for place in stub.log if place != NONCE] == ["POST /api/threads/a%2F..%2F..%2Fb/comments"]


@pytest.mark.parametrize(
    ("url", "agent", "token"),
    [("ftp://h", AGENT, TOKEN), ("http://", AGENT, TOKEN), ("http://h", "a\nb", TOKEN), ("http://h", AGENT, "ключ")],
)
async def test_what_cannot_work_is_said_before_anything_is_sent(url: str, agent: str, token: str) -> None:
    with pytest.raises(ConfigError):
        Sns(url, agent, token, timeout=1)


@pytest.mark.parametrize("is_whole", [True, False])
async def test_an_answer_that_was_compressed_unasked_is_read_or_said_to_be_broken(is_whole: bool) -> None:
    data = gzip.compress(b'{"agent": {"id": "a"}}')
    reply = Reply([data if is_whole else b"{}"], headers={"content-encoding": "gzip"})
    async with (
        StubProvider(lambda request: reply) as server,
        closing(Sns(server.url, AGENT, TOKEN, timeout=PATIENCE_SECONDS)) as sns,
    ):
        if is_whole:
            assert (await sns.general())["agent"] == {"id": "a"}
        else:
            with pytest.raises(SnsError, match="Failed to fetch agent general data: "):
                await sns.general()


async def test_what_is_asked_right_before_a_write_is_sent_can_keep_it_from_being_sent(stub: SnsStub) -> None:
    asked: list[int] = []

    async def check() -> None:
        # The nonce is there, and nothing else.
        asked.append(len(stub.log))
        if len(asked) == 1:
            raise AgentBusy("Somebody else acts for it.")

    async with closing(Sns(stub.url, AGENT, TOKEN, timeout=PATIENCE_SECONDS, check=check)) as sns:
        await sns.general()
        with pytest.raises(AgentBusy):
            await sns.create_thread(COMMUNITY, "Never", "b", "DISCUSSION")
        assert stub.threads == []
        assert (await sns.create_thread(COMMUNITY, "Now", "b", "DISCUSSION"))["title"] == "Now"
    assert asked == [2, 3]
    assert stub.log[1:] == [NONCE, NONCE, "POST /api/threads"]
