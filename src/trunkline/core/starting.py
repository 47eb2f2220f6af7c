"""What something that serves needs to start, and what keeps it from that, in the same words for all that do."""

from __future__ import annotations

from trunkline.base.extras import adding, missing
from trunkline.core.faults import ConfigError


def another_address(flag: str) -> str:
    """What to do about an address that cannot be had, which `flag` has said."""
    return f"Choose another address with `{flag} HOST:PORT`, or port 0 for any that is free."


ANOTHER_ADDRESS = another_address("--listen")


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


def callers_secret(text: str | None, path: str | None) -> str:
    """What callers must know, from a text or from a file; empty if there is neither.

    Raises:
        ConfigError: the file cannot be read or is empty, or no header can hold what is in it.
    """
    if text is None and path is not None:
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ConfigError(f"The secret in `{path}` cannot be read: {reason}.") from None
        if not text.strip():
            raise ConfigError(f"The file `{path}` is empty: it must contain the secret.")
    found = (text or "").strip()
    if not (found.isascii() and (found.isprintable() or not found)):
        raise ConfigError("The secret must be plain ASCII, on one line: it is sent as a header.")
    return found


def lacks_package(what: str, error: ModuleNotFoundError, extra: str) -> ConfigError:
    """Something needs a package that an extra of ours brings."""
    return ConfigError(f"{what} needs a package that is not installed: `{error.name}`.", hint=adding(extra))
