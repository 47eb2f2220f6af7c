"""What Telegram's failures mean to whoever sent something, and that no failure shows the token."""

from __future__ import annotations

import logging
import traceback
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from tests.support.telegram_server import TelegramServer
from trunkline.chat.platform import InboundFile, NotNow, SendFailed, Unclear
from trunkline.chat.telegram import api as telegram_api
from trunkline.chat.telegram.platform import TelegramPlatform
from trunkline.core.faults import ConfigError


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        server.world.chat(7)
        yield server


@pytest.fixture
async def bot(server: TelegramServer) -> AsyncIterator[TelegramPlatform]:
    platform = TelegramPlatform(server.token, api_url=server.url)
    await platform.open()
    yield platform
    await platform.close()


async def failure(bot: TelegramPlatform, chat: str = "7") -> SendFailed:
    with pytest.raises(SendFailed) as caught:
        await bot.send(chat, "hello", key="k")
    return caught.value


async def test_too_many_requests_is_not_now_with_the_seconds_that_telegram_asks_for(
    server: TelegramServer, bot: TelegramPlatform
) -> None:
    server.fail("sendMessage", 429, "Too Many Requests: retry after 23", retry_after=23)
    error = await failure(bot)
    assert isinstance(error, NotNow)
    assert error.seconds == 23


@pytest.mark.parametrize("body", [b'{"ok":false,"error_code":500,"description":"Internal Server Error"}', b"<html>"])
async def test_trouble_at_telegrams_is_not_now(server: TelegramServer, bot: TelegramPlatform, body: bytes) -> None:
    server.answer("sendMessage", 502, body)
    assert isinstance(await failure(bot), NotNow)


async def test_a_gateway_that_waited_in_vain_leaves_it_unclear(server: TelegramServer, bot: TelegramPlatform) -> None:
    server.answer("sendMessage", 504, b"<html>")
    assert isinstance(await failure(bot), Unclear)


async def test_a_server_that_is_not_there_was_never_reached(server: TelegramServer, bot: TelegramPlatform) -> None:
    await server.stop()
    error = await failure(bot)
    assert isinstance(error, NotNow)
    assert "cannot be reached" in str(error)
    assert str(error).endswith(".")


async def test_what_the_system_says_comes_without_its_number_and_before_a_full_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nobody(self: object, *args: object, **more: object) -> None:
        raise httpx.ConnectError("[Errno -2] Name or service not known")

    monkeypatch.setattr(httpx.AsyncClient, "stream", nobody)
    with pytest.raises(ConfigError) as caught:
        await TelegramPlatform("4200:x", api_url="http://127.0.0.1:9").open()
    assert caught.value.message == "Telegram cannot be reached: Name or service not known."


@pytest.mark.parametrize("handled", [True, False])
async def test_a_connection_that_breaks_before_the_answer_leaves_it_unclear(
    server: TelegramServer, bot: TelegramPlatform, handled: bool
) -> None:
    server.drop("sendMessage", handled=handled)
    assert isinstance(await failure(bot), Unclear)
    assert len(server.world.said(7)) == handled


async def test_an_answer_that_does_not_come_leaves_it_unclear(
    server: TelegramServer, bot: TelegramPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telegram_api.Api.call, "__kwdefaults__", {"seconds": 0.05})
    server.hold("sendMessage")
    assert isinstance(await failure(bot), Unclear)
    server.release("sendMessage")


async def test_a_change_whose_answer_is_lost_may_be_made_again(server: TelegramServer, bot: TelegramPlatform) -> None:
    message = await bot.send("7", "x", key="k")
    server.drop("editMessageText", handled=True)
    with pytest.raises(NotNow):
        await bot.edit("7", message, "y")
    await bot.edit("7", message, "y")
    assert [(shown.text, shown.edits) for shown in server.world.said(7)] == [("y", 1)]


async def test_a_token_that_was_revoked_is_not_the_messages_fault(
    server: TelegramServer, bot: TelegramPlatform
) -> None:
    server.fail("sendMessage", 401, "Unauthorized")
    error = await failure(bot)
    assert isinstance(error, NotNow)
    assert str(error) == "Telegram does not accept the bot token: Unauthorized."
    await bot.send("7", "hello", key="k")


async def test_a_bot_that_was_blocked_cannot_write_there(server: TelegramServer, bot: TelegramPlatform) -> None:
    server.world.blocked.add(7)
    error = await failure(bot)
    assert type(error) is telegram_api.TelegramRefused
    assert "blocked by the user" in str(error)


async def test_a_group_that_moved_is_named_with_its_new_id(server: TelegramServer, bot: TelegramPlatform) -> None:
    server.world.migrated[-5] = -100777
    error = await failure(bot, "-5")
    assert type(error) is telegram_api.TelegramRefused
    assert "`-100777`" in str(error)


@pytest.mark.parametrize("chat", ["99", "nonsense", "7:x"])
async def test_a_chat_that_is_not_there_cannot_be_written_to(bot: TelegramPlatform, chat: str) -> None:
    assert not isinstance(await failure(bot, chat), NotNow | Unclear)


async def test_an_answer_that_is_no_json_leaves_it_unclear(server: TelegramServer, bot: TelegramPlatform) -> None:
    server.answer("sendMessage", 200, b'{"ok":tru')
    assert isinstance(await failure(bot), Unclear)


async def test_an_answer_without_end_is_not_read_to_it(
    server: TelegramServer, bot: TelegramPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telegram_api, "MAX_ANSWER_BYTES", 1000)
    server.answer("sendMessage", 200, b'{"ok":true,"result":{"message_id":1,"chat":{"id":7}}}' + b" " * 1000)
    assert isinstance(await failure(bot), Unclear)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, b'{"ok":true}', None),
        (400, b'{"ok":false,"parameters":7}', telegram_api.TelegramRefused),
        (429, b'{"ok":false,"error_code":429,"parameters":{"retry_after":"x"}}', NotNow),
        (200, b"[]", Unclear),
        (302, b"", SendFailed),
        (404, b"not found", SendFailed),
        (503, b"\xff", NotNow),
    ],
)
def test_every_answer_means_something(status: int, body: bytes, kind: type[SendFailed] | None) -> None:
    if kind is None:
        assert telegram_api.decode(status, body) is None
        return
    with pytest.raises(SendFailed) as caught:
        telegram_api.decode(status, body)
    assert type(caught.value) is kind


class TestTheToken:
    async def test_it_is_in_no_log_of_the_http_library(
        self, server: TelegramServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.DEBUG):
            bot = TelegramPlatform(server.token, api_url=server.url)
            await bot.open()
            await bot.send("7", "hello", key="k")
            await bot.close()
        assert "sendMessage" in caplog.text
        assert server.token not in caplog.text
        assert "[redacted]" in caplog.text

    @pytest.mark.parametrize(
        "trouble",
        [
            lambda server: server.drop("sendMessage", handled=False),
            lambda server: server.fail("sendMessage", 400, f"Bad Request: /bot{server.token}/sendMessage"),
            lambda server: server.fail("sendMessage", 500, f"oops: {server.token}"),
            lambda server: server.fail("sendMessage", 429, f"slow: {server.token}"),
        ],
    )
    async def test_it_is_in_no_error(
        self, server: TelegramServer, bot: TelegramPlatform, trouble: Callable[[TelegramServer], None]
    ) -> None:
        trouble(server)
        error = await failure(bot)
        assert server.token not in "".join(traceback.format_exception(error))
        assert server.token not in repr(error.__dict__)

    async def test_it_is_in_no_error_of_a_download(
        self, server: TelegramServer, bot: TelegramPlatform, tmp_path: Path
    ) -> None:
        with pytest.raises(SendFailed) as caught:
            await bot.fetch(InboundFile("file", "gone"), str(tmp_path / "x"))
        assert server.token not in "".join(traceback.format_exception(caught.value))

    async def test_it_is_in_no_error_of_opening(self) -> None:
        token = "-".join(["4200:a", "very", "secret", "token"])
        for url in ("http://127.0.0.1:9", "http://[", "ftp://x", "http://x y/"):
            with pytest.raises(ConfigError) as caught:
                await TelegramPlatform(token, api_url=url).open()
            assert token not in "".join(traceback.format_exception(caught.value))

    async def test_it_is_not_in_a_repr(self, server: TelegramServer, bot: TelegramPlatform) -> None:
        assert "trunk_bot" in repr(bot)
        assert server.token not in repr(bot) + repr(vars(bot).get("_opened"))

    async def test_the_loggers_are_left_as_they_were(self, server: TelegramServer, bot: TelegramPlatform) -> None:
        logger = logging.getLogger("httpx")
        assert logger.filters
        await bot.close()
        assert not logger.filters
