"""The Telegram platform against a server that behaves as the Bot API's documentation says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.telegram_server import TelegramServer
from trunkline.chat.commands import NAMES
from trunkline.chat.platform import Button, Inbound, NotNow, Platform, Pressed, SendFailed
from trunkline.chat.telegram.platform import GROUP_SECONDS, TelegramPlatform, make
from trunkline.chat.telegram.receive import FIRST_WAIT_SECONDS
from trunkline.core.faults import ConfigError

GROUP = -10050
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 64


class Clock:
    """Time that passes when it is waited for, or moved on."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        server.world.chat(7)
        server.world.chat(GROUP)
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def bot(server: TelegramServer, clock: Clock) -> AsyncIterator[TelegramPlatform]:
    platform = TelegramPlatform(server.token, api_url=server.url, sleep=clock.sleep, clock=clock)
    await platform.open()
    yield platform
    await platform.close()


async def take(bot: TelegramPlatform, count: int) -> list[Inbound | Pressed]:
    """The next items; none of them counts as noted but those before the last."""
    taken: list[Inbound | Pressed] = []
    async with aclosing(bot.receive()) as items:
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for item in items:
                taken.append(item)
                if len(taken) == count:
                    return taken
    raise AssertionError("it ended")


def test_it_is_a_platform() -> None:
    platform: Platform = TelegramPlatform("1:x")
    assert platform.name == "telegram"
    assert platform.limits.buttons
    assert platform.limits.text_chars == 4096
    assert not platform.limits.idempotent
    assert platform.measure("😀") == 2


class TestOpening:
    async def test_a_wrong_token_is_a_fault_of_the_configuration(self, server: TelegramServer) -> None:
        for token in ("4200:wrong", "nonsense"):
            with pytest.raises(ConfigError, match=r"does not know this bot token.*BotFather") as caught:
                await TelegramPlatform(token, api_url=server.url).open()
            assert token not in str(caught.value)
            assert not caught.value.retryable

    async def test_an_address_where_nobody_answers_is_one_too(self) -> None:
        with pytest.raises(ConfigError, match=r"cannot be reached.*api_url") as caught:
            await TelegramPlatform("4200:x", api_url="http://127.0.0.1:9").open()
        assert caught.value.retryable

    @pytest.mark.parametrize("method", ["getMe", "getUpdates"])
    async def test_trouble_of_telegrams_may_pass(self, server: TelegramServer, method: str) -> None:
        server.fail(method, 502, "Bad Gateway")
        bot = TelegramPlatform(server.token, api_url=server.url)
        with pytest.raises(ConfigError, match="Bad Gateway") as caught:
            await bot.open()
        assert caught.value.retryable
        await bot.open()
        await bot.close()

    async def test_a_webhook_in_the_way_is_named_with_its_remedy(self, server: TelegramServer) -> None:
        server.world.webhook = "https://example.org/hook"
        with pytest.raises(ConfigError, match=r"webhook.*deleteWebhook"):
            await TelegramPlatform(server.token, api_url=server.url).open()

    async def test_another_program_with_the_same_token_is_named(self, server: TelegramServer, clock: Clock) -> None:
        server.fail("getUpdates", 409, "Conflict: terminated by other getUpdates request", times=3)
        with pytest.raises(ConfigError, match="Another program receives"):
            await TelegramPlatform(server.token, api_url=server.url, sleep=clock.sleep).open()

    async def test_the_shadow_of_a_killed_predecessor_is_waited_out(self, server: TelegramServer, clock: Clock) -> None:
        server.fail("getUpdates", 409, "Conflict: terminated by other getUpdates request", times=2)
        bot = TelegramPlatform(server.token, api_url=server.url, sleep=clock.sleep)
        await bot.open()
        await bot.close()

    async def test_something_else_than_the_bot_api_is_found_out(self, server: TelegramServer) -> None:
        server.answer("getMe", 200, b"<html>hello</html>")
        with pytest.raises(ConfigError, match="api_url"):
            await TelegramPlatform(server.token, api_url=server.url).open()

    async def test_closing_twice_is_fine_and_nothing_can_be_sent_after_it(self, bot: TelegramPlatform) -> None:
        await bot.close()
        await bot.close()
        with pytest.raises(NotNow):
            await bot.send("7", "x", key="k")
        await bot.typing("7")

    def test_it_is_made_from_a_section_of_the_configuration(self) -> None:
        assert isinstance(make({"token_env": "MINE"}, {"MINE": "1:x"}), TelegramPlatform)
        assert isinstance(make({"token": "1:x", "api_url": "http://127.0.0.1:1"}, {}), TelegramPlatform)
        assert isinstance(make({}, {"TELEGRAM_BOT_TOKEN": "1:x"}), TelegramPlatform)
        with pytest.raises(ConfigError, match=r"`bridge.telegram.token_env` names `MINE`, which is not set"):
            make({"token_env": "MINE"}, {})


class TestReceiving:
    async def test_what_people_write_comes_in_order(self, server: TelegramServer, bot: TelegramPlatform) -> None:
        for text in ("one", "two", "three"):
            server.world.says(7, 7, text)
        assert [item.text for item in await take(bot, 3) if isinstance(item, Inbound)] == ["one", "two", "three"]

    async def test_a_message_that_comes_while_it_waits_is_delivered_at_once(
        self, server: TelegramServer, bot: TelegramPlatform
    ) -> None:
        taking = asyncio.ensure_future(take(bot, 1))
        await server.until(lambda: server.polling)
        server.world.says(7, 7, "hello")
        [item] = await taking
        assert isinstance(item, Inbound)
        assert item.text == "hello"

    async def test_only_messages_and_buttons_are_asked_for(self, server: TelegramServer, bot: TelegramPlatform) -> None:
        server.world.says(7, 7, "x")
        await take(bot, 1)
        assert server.called("getUpdates")[-1]["allowed_updates"] == ["message", "callback_query"]

    async def test_the_bridges_commands_are_offered_in_the_menu(
        self, server: TelegramServer, bot: TelegramPlatform
    ) -> None:
        server.world.says(7, 7, "x")
        await take(bot, 1)
        assert set(server.world.menu) == set(NAMES)

    async def test_what_was_not_noted_is_delivered_again_under_the_same_id(
        self, server: TelegramServer, bot: TelegramPlatform
    ) -> None:
        server.world.says(7, 7, "one")
        server.world.says(7, 7, "two")
        first = await take(bot, 2)
        assert await take(bot, 2) == first

    async def test_what_was_noted_is_confirmed_with_the_next_request(
        self, server: TelegramServer, bot: TelegramPlatform
    ) -> None:
        server.world.says(7, 7, "one")
        receiving = asyncio.ensure_future(take(bot, 2))
        await server.until(lambda: server.polling and not server.world.updates)
        server.world.says(7, 7, "two")
        await receiving
        # The second one was taken, and never noted.
        assert [update["message"]["text"] for update in server.world.updates] == ["two"]

    async def test_after_a_quiet_time_a_lower_number_is_not_missed(
        self, server: TelegramServer, bot: TelegramPlatform
    ) -> None:
        server.world.says(7, 7, "one")
        receiving = asyncio.ensure_future(take(bot, 2))
        await server.until(lambda: server.polling and not server.world.updates)
        # The wait for news ends without any.
        server.give_up_waiting()
        await server.until(lambda: server.polling and "offset" not in server.called("getUpdates")[-1])
        server.world.number_updates_from(5)
        server.world.says(7, 7, "two")
        assert len(await receiving) == 2

    async def test_a_pressed_button_comes_and_stops_blinking_when_it_is_noted(
        self, server: TelegramServer, bot: TelegramPlatform
    ) -> None:
        message = await bot.send("7", "May I?", key="k", buttons=[Button("Yes", "y:1"), Button("No", "n:1")])
        query = server.world.presses(7, 7, "No")
        receiving = asyncio.ensure_future(take(bot, 2))
        await server.until(lambda: server.world.answered)
        server.world.says(7, 7, "x")
        assert (await receiving)[0] == Pressed(query, "7", "7", message, "n:1")

    async def test_an_album_is_one_message_though_its_pictures_come_one_by_one(
        self, server: TelegramServer, bot: TelegramPlatform, clock: Clock
    ) -> None:
        def one(name: str, text: str = "") -> None:
            server.world.says(7, 7, text, files={"document": (name, b"x")}, media_group_id="A")

        one("a", "look")
        server.hold("getUpdates")
        receiving = asyncio.ensure_future(take(bot, 1))
        await server.until(lambda: len(server.called("getUpdates")) == 2)
        one("b")
        server.release("getUpdates")
        [item] = await receiving
        assert isinstance(item, Inbound)
        assert item.text == "look"
        assert [file.name for file in item.files] == ["a", "b"]

    async def test_outages_are_waited_out_and_nothing_is_lost(
        self, server: TelegramServer, bot: TelegramPlatform, clock: Clock
    ) -> None:
        server.world.says(7, 7, "one")
        server.fail("getUpdates", 502, "Bad Gateway")
        server.drop("getUpdates", handled=True)
        server.fail("getUpdates", 429, "Too Many Requests: retry after 17", retry_after=17)
        server.fail("getUpdates", 409, "Conflict: terminated by other getUpdates request")
        assert len(await take(bot, 1)) == 1
        assert clock.waits == [FIRST_WAIT_SECONDS, 2 * FIRST_WAIT_SECONDS, 17, 8 * FIRST_WAIT_SECONDS]

    @pytest.mark.parametrize("result", ['[{"message":{"message_id":1}}]', '"none"', "null", "{}"])
    async def test_what_can_never_be_confirmed_is_not_asked_for_without_a_pause(
        self, server: TelegramServer, bot: TelegramPlatform, clock: Clock, result: str
    ) -> None:
        server.world.says(7, 7, "one")
        for _ in range(2):
            server.answer("getUpdates", 200, f'{{"ok":true,"result":{result}}}'.encode())
        assert len(await take(bot, 1)) == 1
        assert clock.waits == [FIRST_WAIT_SECONDS, 2 * FIRST_WAIT_SECONDS]

    async def test_an_update_that_cannot_be_read_does_not_stop_the_others(
        self, server: TelegramServer, bot: TelegramPlatform, caplog: pytest.LogCaptureFixture
    ) -> None:
        server.world.updates.append({"update_id": 1, "message": {"message_id": 1, "from": {}}})
        server.world.says(7, 7, "one")
        [item] = await take(bot, 1)
        assert isinstance(item, Inbound)
        assert item.text == "one"
        assert "cannot be read" in caplog.text

    async def test_it_ends_when_the_platform_is_closed(self, server: TelegramServer, bot: TelegramPlatform) -> None:
        async def everything() -> list[Inbound | Pressed]:
            return [item async for item in bot.receive()]

        receiving = asyncio.ensure_future(everything())
        await server.until(lambda: server.polling)
        await bot.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await receiving == []


class TestSending:
    async def test_markdown_is_shown_formatted(self, server: TelegramServer, bot: TelegramPlatform) -> None:
        await bot.send("7", "A **bold** 😀 *claim*:\n```py\nx\n```", key="k")
        [shown] = server.world.said(7)
        assert shown.text == "A bold 😀 claim:\nx"
        assert (shown.styled("bold"), shown.styled("italic"), shown.styled("pre")) == (["bold"], ["claim"], ["x"])

    async def test_the_longest_text_that_measures_right_is_taken(
        self, server: TelegramServer, bot: TelegramPlatform
    ) -> None:
        text = "😀" * 2048
        assert bot.measure(text) == bot.limits.text_chars
        await bot.send("7", text, key="k")
        with pytest.raises(SendFailed, match="too long"):
            await bot.send("7", text + "a", key="k")

    async def test_formatting_that_telegram_does_not_take_is_left_out(
        self, server: TelegramServer, bot: TelegramPlatform
    ) -> None:
        server.fail("sendMessage", 400, "Bad Request: entity begins in a middle of a UTF-16 symbol at byte offset 3")
        await bot.send("7", "**bold**", key="k")
        assert [(shown.text, shown.entities) for shown in server.world.said(7)] == [("**bold**", [])]

    async def test_an_answer_refers_to_what_it_answers_if_that_is_still_there(
        self, server: TelegramServer, bot: TelegramPlatform
    ) -> None:
        asked = server.world.says(7, 7, "?")["message_id"]
        await bot.send("7", "!", key="a", reply_to=f"7/{asked}")
        server.world.deletes(7, asked)
        await bot.send("7", "!!", key="b", reply_to=f"7/{asked}")
        assert [shown.replies_to for shown in server.world.said(7)] == [asked, None]

    async def test_a_topic_gets_its_answers_in_the_topic(self, server: TelegramServer, bot: TelegramPlatform) -> None:
        message = await bot.send(f"{GROUP}:9", "x", key="k")
        assert server.world.said(GROUP)[0].thread == 9
        assert message == f"{GROUP}/{server.world.said(GROUP)[0].id}"

    async def test_a_change_replaces_text_and_buttons(self, server: TelegramServer, bot: TelegramPlatform) -> None:
        message = await bot.send("7", "May I?", key="k", buttons=[Button("Yes", "y")])
        assert server.world.said(7)[0].buttons == ["Yes"]
        await bot.edit("7", message, "**You** may.")
        [shown] = server.world.said(7)
        assert (shown.text, shown.buttons, shown.styled("bold")) == ("You may.", [], ["You"])

    async def test_a_change_that_changes_nothing_is_fine(self, server: TelegramServer, bot: TelegramPlatform) -> None:
        message = await bot.send("7", "x", key="k")
        await bot.edit("7", message, "x")
        assert server.world.said(7)[0].edits == 0

    async def test_a_message_that_is_gone_cannot_be_changed(
        self, server: TelegramServer, bot: TelegramPlatform
    ) -> None:
        message = await bot.send("7", "x", key="k")
        server.world.deletes(7, server.world.said(7)[0].id)
        with pytest.raises(SendFailed, match="message to edit not found") as caught:
            await bot.edit("7", message, "y")
        assert not isinstance(caught.value, NotNow)

    async def test_in_groups_changes_keep_to_twenty_a_minute(
        self, server: TelegramServer, bot: TelegramPlatform, clock: Clock
    ) -> None:
        message = await bot.send(str(GROUP), "x", key="k")
        clock.now += 1
        with pytest.raises(NotNow) as caught:
            await bot.edit(str(GROUP), message, "xy")
        assert caught.value.seconds == pytest.approx(GROUP_SECONDS - 1)
        clock.now += GROUP_SECONDS
        await bot.edit(str(GROUP), message, "xyz")
        assert server.world.said(GROUP)[0].text == "xyz"

    async def test_typing_is_shown_and_its_failure_is_nobodys_concern(
        self, server: TelegramServer, bot: TelegramPlatform
    ) -> None:
        await bot.typing("7")
        server.fail("sendChatAction", 429, "Too Many Requests", retry_after=5)
        await bot.typing("7")
        await bot.typing("nonsense")
        assert server.world.actions == [(7, "typing")]


class TestFiles:
    @pytest.mark.parametrize(
        ("name", "data", "kind"),
        [("p.png", PNG, "photo"), ("p.svg", b"<svg/>", "document"), ("p.jpg", b"?", "document")],
    )
    async def test_a_picture_is_sent_as_one_if_telegram_takes_it(
        self, server: TelegramServer, bot: TelegramPlatform, tmp_path: Path, name: str, data: bytes, kind: str
    ) -> None:
        path = tmp_path / "out"
        path.write_bytes(data)
        await bot.send_file("7", str(path), type="image", name=name, key="k")
        [shown] = server.world.said(7)
        file = shown.file[-1] if kind == "photo" else shown.file
        assert server.world.files[file["file_id"]] == data
        assert kind in server.world.messages[7][shown.id]

    async def test_other_files_keep_their_name(
        self, server: TelegramServer, bot: TelegramPlatform, tmp_path: Path
    ) -> None:
        path = tmp_path / "x"
        path.write_bytes(b"data")
        await bot.send_file("7", str(path), type="file", name="zahlen für Ö.csv", key="k")
        assert server.world.said(7)[0].file["file_name"] == "zahlen für Ö.csv"

    async def test_what_cannot_be_read_is_not_sent(self, bot: TelegramPlatform, tmp_path: Path) -> None:
        for path in (tmp_path, tmp_path / "none"):
            with pytest.raises(SendFailed, match="is not a file"):
                await bot.send_file("7", str(path), type="file", name="x", key="k")

    async def test_a_file_that_came_is_saved_for_its_owner_alone(
        self, server: TelegramServer, bot: TelegramPlatform, tmp_path: Path
    ) -> None:
        server.world.says(7, 7, "see", files={"photo": ("", PNG)})
        [item] = await take(bot, 1)
        assert isinstance(item, Inbound)
        path = tmp_path / "in.png"
        await bot.fetch(item.files[0], str(path))
        assert path.read_bytes() == PNG
        assert path.stat().st_mode & 0o077 == 0

    async def test_a_file_that_is_too_large_leaves_nothing(
        self, server: TelegramServer, bot: TelegramPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("trunkline.chat.telegram.platform.DOWNLOAD_BYTES", 10)
        server.world.says(7, 7, files={"document": ("x", b"y" * 11)})
        [item] = await take(bot, 1)
        assert isinstance(item, Inbound)
        with pytest.raises(SendFailed, match="more than the 1 MB"):
            await bot.fetch(item.files[0], str(tmp_path / "x"))
        assert not (tmp_path / "x").exists()

    async def test_a_place_that_is_taken_is_not_written_to(
        self, server: TelegramServer, bot: TelegramPlatform, tmp_path: Path
    ) -> None:
        (tmp_path / "x").symlink_to(tmp_path / "elsewhere")
        server.world.says(7, 7, files={"document": ("x", b"y")})
        [item] = await take(bot, 1)
        assert isinstance(item, Inbound)
        with pytest.raises(SendFailed, match="cannot be saved"):
            await bot.fetch(item.files[0], str(tmp_path / "x"))
        assert not (tmp_path / "elsewhere").exists()
