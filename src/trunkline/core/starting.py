"""What keeps something that serves from starting, in the same words for all that do."""

from __future__ import annotations

from trunkline.base.extras import adding, missing
from trunkline.core.faults import ConfigError

ANOTHER_ADDRESS = "Choose another address with `--listen HOST:PORT`, or port 0 for any that is free."


def cannot_listen(host: str, port: int, error: OSError, hint: str = ANOTHER_ADDRESS) -> ConfigError:
    """The address cannot be had."""
    return ConfigError(f"Cannot listen on `{host}:{port}`: {error.strerror}.", hint=hint)


def require(what: str, extra: str) -> None:
    """See to it that what something needs is here, before anything is made for it.

    Raises:
        ConfigError: a package is missing.
    """
    if (module := missing(extra)) is not None:
        raise lacks_package(what, ModuleNotFoundError(name=module), extra)


def lacks_package(what: str, error: ModuleNotFoundError, extra: str) -> ConfigError:
    """Something needs a package that an extra of ours brings."""
    return ConfigError(f"{what} needs a package that is not installed: `{error.name}`.", hint=adding(extra))
