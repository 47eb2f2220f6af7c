"""The application as a whole: routes, errors in their form, limits, roles, and files."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from tests.support.keeper import FAKE
from tests.support.loop import until
from tests.support.openai_world import ECHO, MODEL, error_of, openai_world
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import http_public
from trunkline.core import events as core
from trunkline.core.faults import AgentBusy, BudgetExceeded
from trunkline.wires.openai import files
from trunkline.wires.openai.messages import MAX_BODY, MAX_VALUES

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 20
PNG_URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


async def test_models_are_the_agents_and_then_the_models_of_this_machine() -> None:
    async with openai_world() as world:
        found = (await world.get("models")).json()
        assert found["object"] == "list"
        assert [each["id"] for each in found["data"]] == [ECHO, FAKE, MODEL]
        assert all(each["object"] == "model" and isinstance(each["created"], int) for each in found["data"])
        assert (await world.get("models/model:mock")).json()["id"] == MODEL
        for path in ("models/nobody", "models/a/b"):
            assert error_of(await world.get(path), 404)["code"] == "model_not_found"


async def test_an_unknown_model_is_404() -> None:
    async with openai_world() as world:
        for response in (await world.chat(model="gpt-9"), await world.respond(model="gpt-9")):
            found = error_of(response, 404)
            assert (found["param"], found["code"]) == ("model", "model_not_found")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "nothing", 404),
        ("POST", "models", 405),
        ("GET", "chat/completions", 405),
        ("PUT", "responses/resp_1_x", 405),
        ("POST", "chat/completions/", 404),
    ],
)
async def test_what_is_not_there_is_told_in_the_same_form(method: str, path: str, status: int) -> None:
    async with openai_world() as world:
        error_of(await world.ask(method, path), status)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b'"x"', b"\xff", b"[" * 100_000, b'{"a":NaN}', b"{}garbage", b"null"]
)
async def test_a_body_that_is_no_json_object_is_400(content: bytes) -> None:
    async with openai_world() as world:
        for path in ("chat/completions", "responses"):
            error_of(await world.ask("POST", path, content=content), 400)


async def test_a_body_of_another_type_is_415() -> None:
    async with openai_world() as world:
        headers = {"content-type": "application/x-www-form-urlencoded"}
        found = error_of(await world.ask("POST", "chat/completions", content=b"a=b", headers=headers), 415)
        assert "application/json" in found["message"]
        headers = {"content-type": "Application/JSON; charset=utf-8"}
        assert error_of(await world.ask("POST", "chat/completions", {}, headers=headers), 400)


@pytest.mark.parametrize(("more", "status"), [(0, 200), (1, 413)])
async def test_a_body_may_be_so_large_and_no_larger(more: int, status: int) -> None:
    start = b'{"model":"echo","messages":[{"role":"user","content":"Hello"}],"user":"'
    content = start + b"x" * (MAX_BODY - len(start) - 2 + more) + b'"}'
    async with openai_world() as world:
        response = await world.ask("POST", "chat/completions", content=content)
        assert response.status_code == status
        if status != 200:
            error_of(response, status)


async def test_a_body_may_be_made_of_so_many_values_and_no_more() -> None:
    async with openai_world() as world:
        for more, status in ((0, 200), (1, 400)):
            # The object, its members and the list, and what is in the list.
            many = [0] * (MAX_VALUES - 6 + more)
            body = {"model": "echo", "messages": [{"role": "user", "content": "Hello"}], "user": many}
            content = json.dumps(body, separators=(",", ":")).encode()
            assert (await world.ask("POST", "chat/completions", content=content)).status_code == status


async def test_a_client_that_leaves_before_its_body_is_there_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    async with openai_world() as world:
        caller = world.call("chat/completions", {})
        caller.cut_off()
        await caller.whole()
        assert caplog.text == ""
        assert world.keeper.seats == []


async def test_a_lone_surrogate_does_no_harm() -> None:
    async with openai_world() as world:
        for path, body in (
            ("chat/completions", b'{"model":"echo","messages":[{"role":"user","content":"a\\ud800b"}]}'),
            ("responses", b'{"model":"echo","input":"a\\ud800b"}'),
        ):
            response = await world.ask("POST", path, content=body)
            assert response.status_code == 200
            assert "a\\ud800b" in response.text
        response = await world.ask("POST", "chat/completions", content=b'{"model":"\\ud800","messages":[]}')
        assert response.status_code == 400


async def test_who_may_only_watch_may_list_models_and_no_more() -> None:
    async with openai_world() as world:
        world.keeper.may_ask = False
        assert (await world.get("models")).status_code == 200
        made = await world.ask("POST", "conversations")
        read = await world.get("responses/resp_1_s1")
        for response in (await world.chat(), await world.respond(), made, read):
            assert error_of(response, 403)["code"] == "insufficient_permissions"


async def test_a_spent_budget_is_429_and_says_when_to_try_again() -> None:
    async with openai_world() as world:
        world.keeper.refusal = BudgetExceeded("Nothing left for today.", retry_after=90.4)
        for stream in (True, False):
            response = await world.chat(stream=stream)
            assert error_of(response, 429)["code"] == "insufficient_quota"
            assert response.headers["retry-after"] == "90"


async def test_a_busy_agent_is_409() -> None:
    async with openai_world() as world:
        world.keeper.refusal = AgentBusy("Too many messages are waiting.")
        assert error_of(await world.respond(), 409)["code"] == "busy"


async def test_what_nobody_foresaw_is_500_and_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with openai_world() as world:
        world.keeper.refusal = RuntimeError("a secret")
        response = await world.chat()
        assert error_of(response, 500)["message"] == "Internal error."
        assert "a secret" in caplog.text


async def heard_with(content: list[dict[str, Any]]) -> tuple[core.UserMessage, dict[str, bytes]]:
    """The message that an agent hears, and the files that were kept for it."""
    async with openai_world() as world:
        caller = world.call("chat/completions", {"messages": [{"role": "user", "content": content}]})
        await until(lambda: world.keeper.fakes and world.fake.busy)
        (message,) = world.fake.heard
        world.fake.say(core.TurnEnded("success"))
        await caller.whole()
        return message, world.keeper.kept


async def test_pictures_and_files_are_files_for_the_agent() -> None:
    message, kept = await heard_with(
        [
            {"type": "text", "text": "Look"},
            {"type": "image_url", "image_url": {"url": PNG_URL}},
            {"type": "input_image", "image_url": PNG_URL},
            {"type": "file", "file": {"filename": "../../a b.txt", "file_data": base64.b64encode(b"text").decode()}},
            {"type": "input_file", "filename": "é", "file_data": "data:text/plain,hello%20there"},
        ]
    )
    assert message.text == "Look"
    assert list(kept.values()) == [PNG, PNG, b"text", b"hello there"]
    assert message.files == tuple(kept)
    names = [path.partition("-")[2] for path in kept]
    assert names == ["image.png", "image.png", "a-b.txt", "file.txt"]


async def test_a_picture_without_a_word_is_a_message() -> None:
    message, _ = await heard_with([{"type": "image_url", "image_url": {"url": PNG_URL}}])
    assert message.text == ""


BAD_PARTS: list[dict[str, Any]] = [
    {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
    {"type": "image_url", "image_url": {"url": "/etc/passwd"}},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,!!!"}},
    {"type": "image_url", "image_url": {"url": "data:image/png"}},
    {"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/x.png"}},
    {"type": "image_url", "image_url": {}},
    {"type": "image_url"},
    {"type": "input_image", "file_id": "file-1"},
    {"type": "file", "file": {"file_id": "file-1"}},
    {"type": "file", "file": {"filename": "x"}},
]


@pytest.mark.parametrize("part", BAD_PARTS)
async def test_a_file_that_cannot_be_had_is_400(part: dict[str, Any]) -> None:
    async with openai_world() as world:
        content = [{"type": "text", "text": "Look"}, part]
        found = error_of(await world.chat(messages=[{"role": "user", "content": content}]), 400)
        assert found["param"].startswith("messages[0].content[1]")
        assert world.keeper.seats == []


async def test_all_files_of_a_message_have_a_limit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_ALL_BYTES", 3 * len(PNG))
    async with openai_world() as world:
        for count, status in ((3, 200), (4, 400)):
            many = [{"type": "image_url", "image_url": {"url": PNG_URL}}] * count
            assert (await world.chat(messages=[{"role": "user", "content": many}])).status_code == status


@pytest.mark.parametrize("fails", [True, False])
async def test_few_addresses_are_asked_at_once_and_none_is_when_there_is_nobody_who_waits(
    fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, most_running = 0, 0

    async def fetch(url: str, *, most: int, seconds: float) -> bytes:
        nonlocal running, most_running
        running += 1
        most_running = max(most_running, running)
        try:
            if fails and running == files.AT_ONCE:
                raise http_public.NotFetched("it is gone")
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]  # never there
        finally:
            running -= 1

    monkeypatch.setattr(http_public, "fetch", fetch)
    monkeypatch.setattr(files, "SECONDS", PATIENCE_SECONDS if fails else 0.05)
    parts = [{"type": "image_url", "image_url": {"url": f"http://example.org/{each}"}} for each in range(10)]
    async with openai_world() as world:
        refused = error_of(await world.chat(messages=[{"role": "user", "content": parts}]), 400)
        assert refused["code"] == "invalid_image_url"
        assert (running, most_running) == (0, files.AT_ONCE)


@pytest.mark.parametrize(("more", "status"), [(0, 200), (1, 400)])
async def test_files_have_limits(more: int, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 99)
    async with openai_world() as world:
        many = [{"type": "image_url", "image_url": {"url": PNG_URL}}] * (files.MOST_FILES + more)
        assert (await world.chat(messages=[{"role": "user", "content": many}])).status_code == status
        large = {"type": "file", "file": {"file_data": base64.b64encode(b"x" * (99 + more)).decode()}}
        assert (await world.chat(messages=[{"role": "user", "content": [large]}])).status_code == status
