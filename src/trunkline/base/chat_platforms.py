"""The chat platforms that there are: one entry for each, and every part of the program that must know them reads it.

To add one, write a package whose `platform` module has a `make` (`chat.platform.MakePlatform`), and an entry here. What
a platform can do (buttons, changes, the length of a message) it says itself, in its `limits`: that may depend on the
account, or on what the terminal is.

The entries are data. A platform's own module is imported when it is used, and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trunkline.base.config_schema import TEXT, Kind, Schema, WholeTable
from trunkline.base.values import Value

#: Everybody. Has to be written out: an empty list is nobody.
EVERYBODY = "*"
#: The one sender at the terminal.
AT_THE_TERMINAL = "you"


class PlatformEntry(Value):
    """What is known of a chat platform without importing it."""

    title: str
    """What it is called in a sentence."""
    module: str
    """What makes it: a module with a `make`."""
    is_id: Callable[[str], bool]
    """Whether somebody there can have this id."""
    ids: str
    """What ids look like, for those who wrote something else."""
    example: str = ""
    """The id of somebody who may be let in."""
    way_in: str = ""
    """How people find out their id; what follows says where it is written down."""
    keys: Mapping[str, Kind] = {}
    """Its keys in the configuration, besides those of `secrets`."""
    secrets: Mapping[str, str] = {}
    """Keys of tokens and passwords, each with the variable that is looked at unless `KEY_env` names another."""
    extra: str | None = None
    """Which extra of this package brings what it imports, if it needs one."""
    needs: tuple[str, ...] = ()
    """The modules that the extra brings."""
    owner: str | None = None
    """Who is there, if it is where the bridge was started: let in anyway, and nothing has to be logged in to."""
    page: str | None = None
    """The page of the documentation that tells how to get an account, below `docs`."""

    @property
    def package(self) -> str:
        """The package that it is made of."""
        return self.module.rpartition(".")[0]

    @property
    def table(self) -> Schema:
        """What its table in a configuration file may hold."""
        secrets = {name: TEXT for key in self.secrets for name in (key, f"{key}_env")}
        return WholeTable({**self.keys, **secrets})


def _is_telegram_id(id: str) -> bool:
    return id.isascii() and id.isdigit()


def _is_matrix_id(id: str) -> bool:
    user, colon, server = id.removeprefix("@").partition(":")
    return bool(id.startswith("@") and user and colon and server)


PLATFORMS: dict[str, PlatformEntry] = {
    "terminal": PlatformEntry(
        "this terminal",
        "trunkline.chat.terminal.platform",
        is_id=lambda id: id == AT_THE_TERMINAL,
        ids=f"at the terminal there is only `terminal:{AT_THE_TERMINAL}`, who is let in anyway",
        owner=AT_THE_TERMINAL,
    ),
    "telegram": PlatformEntry(
        "Telegram",
        "trunkline.chat.telegram.platform",
        is_id=_is_telegram_id,
        ids="Telegram's ids are numbers, as in `telegram:12345`. Write to the bot to learn yours",
        example="12345",
        way_in="write to it to learn your id. Then",
        keys={"api_url": TEXT},
        secrets={"token": "TELEGRAM_BOT_TOKEN"},
        page="how-to/telegram.md",
    ),
    "matrix": PlatformEntry(
        "Matrix",
        "trunkline.chat.matrix.platform",
        is_id=_is_matrix_id,
        ids="Matrix ids look like `@user:server`, as in `matrix:@me:example.org`",
        example="@me:example.org",
        way_in="it declines all invitations. Your client shows your own id in its settings:",
        keys=dict.fromkeys(("homeserver", "user", "state_dir"), TEXT),
        secrets={"token": "MATRIX_TOKEN", "password": "MATRIX_PASSWORD"},
        extra="matrix",
        needs=("markdown_it", "nio"),
        page="how-to/matrix.md",
    ),
}


def remote() -> list[str]:
    """The platforms that people are on elsewhere, and that need an account."""
    return [name for name, entry in PLATFORMS.items() if entry.owner is None]


def wrong_sender(sender: str) -> str | None:
    """Why a sender of a chat is nobody, and what senders look like; None if it is somebody."""
    name, _, id = sender.partition(":")
    if sender == EVERYBODY:
        return None
    entry = PLATFORMS.get(name)
    if entry is None or not id:
        return f"holds `{sender}`, which is not a sender: write `PLATFORM:ID`, such as `telegram:12345`, or `*` for all"
    return None if entry.is_id(id) else f"holds `{sender}`, which is not a valid sender: {entry.ids}"
