"""What goes wrong with NATS, and what that means to us.

StreamError
├── StreamGone      no server answers, or too few of them do: what was sent may have arrived
└── StreamRefused   the servers refuse for good: no JetStream, no right, no room

core.log.LogLost    another node owns the session now
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from trunkline.core.faults import StoreUnavailable
from trunkline.store.database import Conflict

#: The stream's last message on a subject is not the one that was expected: somebody else was there.
WRONG_LAST_SEQUENCE = frozenset((10071, 10070))
#: The same while another write to the stream is on its way: nobody knows yet, and it can be tried again.
STILL_WRITING = 10164
#: Servers that are electing a leader, or are too few.
_PASSING = frozenset((10005, 10008, 10009, 10023, 10074, 10077))


class StreamError(StoreUnavailable):
    """NATS did not do what it was asked for. Raise one of its children."""


class StreamGone(StreamError):
    """No server answers, or too few of them do. What was sent may have arrived all the same."""


class StreamRefused(StreamError):
    """The servers refuse, and will do so again."""


class WrongSequence(Conflict):
    """Somebody else has written to a subject since it was read."""


@contextmanager
def translated() -> Iterator[None]:
    """Tell what the client library raises in our words; every call of it is made in here.

    Raises:
        WrongSequence: the expected sequence number was wrong.
        StreamGone, StreamRefused: see there.
        CancelledError: the task was cancelled meanwhile. The library forgets that while it waits for its own buffers,
            and whoever waits for the task's end would wait for ever.
    """
    # The package takes a tenth of a second to import, and whoever is here has it.
    from nats import errors
    from nats.js.errors import APIError, Error

    task = asyncio.current_task()
    before = task.cancelling() if task is not None else 0
    try:
        yield
    except APIError as error:
        if error.err_code in WRONG_LAST_SEQUENCE:
            raise WrongSequence from None
        # Where nobody answers for JetStream, there is neither.
        number = f"error {error.err_code}" if error.err_code else "no JetStream answers"
        told = error.description or number
        passing = error.err_code == STILL_WRITING or error.err_code in _PASSING or (error.code or 500) >= 500
        raise (StreamGone if passing else StreamRefused)(f"NATS refuses: {told}.") from error
    except (errors.Error, Error, OSError, TimeoutError) as error:
        told = str(error) or type(error).__name__
        raise StreamGone(f"NATS does not answer: {told.removeprefix('nats: ')}.", retryable=True) from error
    except asyncio.CancelledError as error:
        if task is None or task.cancelling() > before:
            raise
        # Nobody has cancelled us: the library has given up what it waited for, as it does with its connection.
        raise StreamGone("NATS does not answer: the connection was lost.", retryable=True) from error
    finally:
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError
