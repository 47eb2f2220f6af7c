"""What SQLite and the system say about a database, as something that a user can act on."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from trunkline.base import paths
from trunkline.core.faults import ConfigError

_HINT = "Check the permissions and the free space there."


@contextmanager
def explained(what: str, path: str) -> Iterator[None]:
    """Raise a `ConfigError` for what goes wrong with a database within. A misuse of ours stays what it is.

    Args:
        what: what it is to people, such as `chat database`.
    """
    try:
        yield
    except sqlite3.ProgrammingError:
        raise
    except sqlite3.OperationalError as error:
        raise ConfigError(f"The {what} `{path}` cannot be used: {error}.", hint=_HINT) from error
    except sqlite3.DatabaseError as error:
        raise ConfigError(
            f"The {what} `{path}` cannot be read: {error}.",
            hint="Move it away to start over, or restore a copy.",
        ) from error
    except OSError as error:
        raise ConfigError(
            f"The {what} `{path}` cannot be opened: {error.strerror or error}.",
            hint=paths.elsewhere(path) or _HINT,
        ) from error
