"""What a platform makes of a request, as a value: each way it can end has one meaning for the message."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from trunkline.base.values import Value
from trunkline.chat.platform import Gone, NotNow, SendFailed, Unclear

_logger = logging.getLogger(__name__)


class SendVerdict(Value):
    """What came of a request. One of its five children."""

    problem: str = ""
    seconds: float | None = None
    """How long the platform asked to wait."""


class Taken(SendVerdict):
    """It was done; `message` is what the platform calls the message."""

    message: str = ""


class Later(SendVerdict):
    """It was not done, and may be later."""


class SendRefused(SendVerdict):
    """It was not done, and will not be."""


class Unwanted(SendVerdict):
    """It was not done, and there is nobody who could miss it."""


class Doubt(SendVerdict):
    """Whether it was done is not known."""


async def judged(ask: Callable[[], Awaitable[str]], seconds: float) -> SendVerdict:
    """Ask the platform, and say what came of it.

    A platform that hangs, and one that breaks its promise and raises something else, may have done it or not.
    """
    try:
        async with asyncio.timeout(seconds):
            return Taken(message=await ask())
    except NotNow as error:
        return Later(str(error), error.seconds)
    except Unclear as error:
        return Doubt(str(error))
    except Gone as error:
        return Unwanted(str(error))
    except SendFailed as error:
        return SendRefused(str(error))
    except TimeoutError:
        return Doubt(f"No answer within {seconds:g} seconds.")
    except Exception as error:
        # The text is not for the chat: who raised this did not think of who reads it.
        _logger.exception("the platform failed in a way it must not")
        return Doubt(f"The platform failed: `{type(error).__name__}`.")
