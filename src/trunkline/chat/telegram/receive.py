"""What people write to a bot, taken from Telegram by long polling, for ever.

Nothing is confirmed before it was noted: the `offset` of a request says what came before is done with. Outages are
waited out, and so is a second program that takes updates with the same token.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from trunkline.chat.commands import HELP
from trunkline.chat.platform import Inbound, NotNow, Pressed, SendFailed, TokenRefused, Unclear
from trunkline.chat.telegram import updates
from trunkline.chat.telegram.api import Api, TelegramRefused
from trunkline.core.faults import ConfigError

#: How long Telegram holds a request until there is something to tell. Longer ones are cut by proxies.
POLL_SECONDS = 50
#: How long its answer may take beyond that.
POLL_GRACE_SECONDS = 15.0
#: The wait after a failed request for updates, doubled up to the longest.
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 30.0
#: The pictures of an album come as single messages, within less than this.
ALBUM_SECONDS = 0.5
#: So often more of them may turn up. Meanwhile everybody waits, and strangers can send albums, too.
ALBUM_LOOKS = 4
#: A predecessor that was killed may be taken for a second program for a moment.
CONFLICT_LOOKS = 3
CONFLICT_SECONDS = 2.0

#: A button's sign that something is going on may as well time out.
ACKNOWLEDGE_SECONDS = 5.0

NO_UPDATES = "The answer holds no update."

#: A line of the help: a command, with what may stand behind it, and what it does.
_HELP = re.compile(r"^`/(\w+)[^`]*` (.+)$", re.MULTILINE)

Sleep = Callable[[float], Awaitable[None]]

logger = logging.getLogger(__name__)


async def who(api: Api) -> updates.Me:
    """The bot that the token belongs to.

    Raises:
        ConfigError: to none; or there is nobody who could tell, which may change (`retryable`).
    """
    try:
        found = await api.call("getMe", {})
        return updates.Me(int(found["id"]), str(found["username"]))
    except (TelegramRefused, TokenRefused) as error:
        # Telegram says 401 to a token that was revoked, and 404 to one that cannot be one.
        if isinstance(error, TelegramRefused) and error.code != 404:
            raise ConfigError(str(error)) from None
        hint = "Compare it with what @BotFather says under `/mybots`, or let it make a new one."
        raise ConfigError("Telegram does not know this bot token.", hint=hint) from None
    except SendFailed as error:
        hint = "Check the network, the proxy variables and `api_url`."
        raise ConfigError(str(error), hint=hint, retryable=_may_pass(error)) from None
    except (KeyError, TypeError, ValueError):
        raise ConfigError("This is not Telegram's Bot API.", hint="Check `api_url`.") from None


async def check(api: Api, sleep: Sleep) -> None:
    """Ask for updates once, confirming none: what is in the way shows now, to somebody who looks.

    Raises:
        ConfigError: there is a webhook, or another program that receives this bot's messages.
    """
    for look in range(1, CONFLICT_LOOKS + 1):
        try:
            await api.call("getUpdates", {"limit": 1, "timeout": 0, "allowed_updates": updates.ALLOWED})
            return
        except TelegramRefused as error:
            if error.code != 409:
                raise ConfigError(str(error)) from None
            if _is_webhook(error) or look == CONFLICT_LOOKS:
                raise _conflict(error) from None
        except SendFailed as error:
            raise ConfigError(str(error), hint="Try again in a moment.", retryable=_may_pass(error)) from None
        await sleep(CONFLICT_SECONDS)


async def receive(api: Api, me: updates.Me, sleep: Sleep) -> AsyncGenerator[Inbound | Pressed, None]:
    """What people write and press, until the connection is closed."""
    await _offer(api)
    offset: int | None = None
    while not api.is_closed():
        batch = await _batch(api, offset, sleep)
        for update in updates.joined(updates.heard(batch, me)):
            yield update.item
            if isinstance(update.item, Pressed):
                await _acknowledge(api, update.item)
        # The next one is asked for, so all of these are noted; what is asked for now confirms them.
        # An empty answer says that all is confirmed. To forget the number then is safe, and to keep it is not: after a
        # quiet week Telegram goes on with another, which may be lower.
        offset = batch[-1]["update_id"] + 1 if batch else None


async def _offer(api: Api) -> None:
    """Put the bridge's commands into the menu that Telegram shows beside the text."""
    menu = [{"command": name, "description": text} for name, text in _HELP.findall(HELP)]
    try:
        await api.call("setMyCommands", {"commands": menu})
    except SendFailed as error:
        logger.debug("The menu of commands could not be set: %s", error)


async def _batch(api: Api, offset: int | None, sleep: Sleep) -> list[dict[str, Any]]:
    """The next updates, with all the pictures of the album that they end with."""
    batch = await _poll(api, offset, POLL_SECONDS, sleep)
    for _ in range(ALBUM_LOOKS):
        if not batch or not updates.is_in_album(batch[-1]):
            break
        await sleep(ALBUM_SECONDS)
        # Nothing is confirmed yet: the same ones come again, and what has come since.
        before, batch = batch, await _poll(api, offset, 0, sleep)
        if len(batch) <= len(before):
            break
    return batch


async def _poll(api: Api, offset: int | None, seconds: int, sleep: Sleep) -> list[dict[str, Any]]:
    """Updates from the offset on, in order, as soon as there are any. Outages are waited out."""
    parameters = {"offset": offset, "timeout": seconds, "allowed_updates": updates.ALLOWED}
    wait = FIRST_WAIT_SECONDS
    while not api.is_closed():
        asked = None
        problem: object
        try:
            found = await api.call("getUpdates", parameters, seconds=seconds + POLL_GRACE_SECONDS)
            batch = updates.in_order(found)
            if batch or found == []:
                return batch
            # Nothing of it could be confirmed: it would come again at once, and without end.
            problem = NO_UPDATES
        except SendFailed as error:
            if api.is_closed():
                break
            asked = error.seconds if isinstance(error, NotNow) else None
            conflict = isinstance(error, TelegramRefused) and error.code == 409
            problem = _conflict(error) if conflict else error
        logger.warning("No messages from Telegram: %s", problem)
        await sleep(asked or wait)
        wait = min(2 * wait, LONGEST_WAIT_SECONDS)
    return []


async def _acknowledge(api: Api, pressed: Pressed) -> None:
    """Stop the button's sign that something is going on."""
    try:
        await api.call("answerCallbackQuery", {"callback_query_id": pressed.id}, seconds=ACKNOWLEDGE_SECONDS)
    except SendFailed as error:
        logger.debug("the press of a button could not be confirmed: %s", error)


def _may_pass(error: SendFailed) -> bool:
    """Whether it is the network's or Telegram's trouble, and not the configuration's."""
    return isinstance(error, NotNow | Unclear) and not isinstance(error, TokenRefused)


def _is_webhook(error: SendFailed) -> bool:
    return "webhook" in str(error).lower()


def _conflict(error: SendFailed) -> ConfigError:
    if _is_webhook(error):
        return ConfigError(
            "The bot's messages go to a webhook, so nothing else can receive them.",
            hint="Remove it by opening `https://api.telegram.org/bot<token>/deleteWebhook`.",
        )
    return ConfigError(
        "Another program receives the messages of this bot.",
        hint="Only one can: stop the other, or let @BotFather make a bot for each.",
    )
