"""What a chat platform is to the bridge: it brings what people write, and takes what agents answer.

A platform knows nothing of agents, and keeps no state that must survive: what was received and what is to be sent is
the bridge's to remember. Its methods raise `SendFailed` and its children, and nothing else that is the network's fault.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from trunkline.base.values import Value

FileType = Literal["image", "file", "audio", "video"]


class Limits(Value):
    """What a platform can do, and how much of it."""

    text_chars: int
    """The longest message, as `Platform.measure` counts it."""
    edits: bool = True
    """Whether a message that was sent can be changed."""
    edit_seconds: float = 1.0
    """The shortest time between two changes of one message that the platform is fine with."""
    buttons: bool = False
    typing_seconds: float = 5.0
    """How long a sign of typing lasts; it is renewed before that."""
    file_bytes: int = 20 * 1024 * 1024
    idempotent: bool = False
    """Whether a message that is sent twice with one key appears once."""
    history: bool = True
    """Whether people still see, after a restart, what they wrote before."""
    remarks: bool = True
    """Whether what the bridge remarks about a conversation belongs into it: no person reads along in a pipe."""


class Button(Value):
    """Something to press under a message. `data` comes back in `Pressed`; at most 64 bytes of ASCII."""

    label: str
    data: str


class InboundFile(Value):
    """A file that came with a message. `ref` is the platform's own name for it: a URL, a file id."""

    type: FileType
    ref: str
    name: str = ""
    size: int | None = None


class Inbound(Value):
    """What somebody wrote. `id` is unique within the platform and stays the same when it is delivered again."""

    id: str
    chat: str
    """Where answers go: a room, a channel, a private chat."""
    sender: str
    text: str
    files: tuple[InboundFile, ...] = ()
    sender_name: str = ""
    """For people; it proves nothing."""
    private: bool = False
    """Nobody else reads along."""
    at: float | None = None
    """When it was written, by the platform's clock: seconds since 1970. None: not known."""
    message: str = ""
    """What the platform calls it, where that is not `id`: a message that is asked again has an id of its own."""

    @property
    def message_id(self) -> str:
        """What an answer is a reply to."""
        return self.message or self.id


class Pressed(Value):
    """Somebody pressed a button."""

    id: str
    chat: str
    sender: str
    message: str
    """The id of the message that the button is under."""
    data: str


class SendFailed(Exception):
    """The platform did not take it: certainly not, and trying again will not help (a chat that is gone, say)."""


class Gone(SendFailed):
    """Nobody is there to take it, and nobody will ask for it later: a screen that was closed. It need not be kept."""


class NotNow(SendFailed):
    """It did not take it now: certainly not, but it may later. `seconds` is what it asked to wait, if it did."""

    def __init__(self, message: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


class TokenRefused(NotNow):
    """It does not accept our token, or not any more. What was to be sent can be, once there is another."""


class Unclear(SendFailed):
    """Whether it took it is not known: the connection broke after the request was sent."""


class Platform(Protocol):
    """One account on one chat service."""

    @property
    def name(self) -> str:
        """A short name, such as `telegram`. With `Inbound.id` it names a message for good."""

    @property
    def limits(self) -> Limits:
        """What it can do."""

    async def open(self) -> None:
        """Connect and check the credentials.

        Raises:
            ConfigError: it cannot work as configured: a wrong token, say; or not now, and maybe later (`retryable`):
                nobody answers. Then it may be opened again.
        """

    def receive(self) -> AsyncIterator[Inbound | Pressed]:
        """What people write and press, as it comes, for ever. Reconnects by itself.

        The next item is asked for only when the one before is safely noted; a platform that confirms what it received
        (Telegram's `offset`, Matrix' sync token) does so then. What was not confirmed is delivered again.
        """

    async def send(
        self, chat: str, text: str, *, key: str, buttons: Sequence[Button] = (), reply_to: str | None = None
    ) -> str:
        """Send a message of Markdown text that fits the limits; gives its id. `key` is unique to this message.

        Raises:
            SendFailed: or one of its children.
        """

    async def edit(self, chat: str, message: str, text: str, *, buttons: Sequence[Button] = ()) -> None:
        """Replace a message's text and buttons.

        Raises:
            SendFailed: or one of its children.
        """

    async def send_file(self, chat: str, path: str, *, type: FileType, name: str, key: str) -> str:
        """Send a file; gives the message's id.

        Raises:
            SendFailed: or one of its children.
        """

    async def fetch(self, file: InboundFile, path: str) -> None:
        """Save a file that came with a message under `path`.

        Raises:
            SendFailed: or one of its children; also when it is larger than the limit.
        """

    async def typing(self, chat: str) -> None:
        """Show that an answer is being written. Failures are nobody's concern and raise nothing."""

    def measure(self, text: str) -> int:
        """How long a text is by the platform's own count."""

    async def close(self) -> None:
        """Let go of everything. May be called again."""


@runtime_checkable
class OnStandardOutput(Protocol):
    """What a platform has besides that writes to our own standard output: to a screen, or to somebody who may leave."""

    is_screen: bool
    on_lost: Callable[[OSError], None]
    """Called when nothing can be written any more, with the reason."""


#: How a platform is made, as the function `make` of its module: of its table in the configuration, of the environment,
#: and of a function that tells whether somebody of an id is let in. Raises `ConfigError` if something is missing.
MakePlatform: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, str], Callable[[str], bool]], Platform]


def nobody(id: str) -> bool:
    """Nobody is let in."""
    return False


class StateShelf(Protocol):
    """Where a platform keeps what it needs to go on where it was."""

    def recall(self) -> bytes:
        """What was kept last; nothing at first.

        Raises:
            Fault: it cannot be read now.
        """

    def remember(self, state: bytes) -> None:
        """Keep this instead.

        Raises:
            Fault: it cannot be written now.
        """


@runtime_checkable
class KeepsState(Protocol):
    """A platform that keeps something between two runs: beside the bridge's own memory, where machines share that."""

    def keep_state_in(self, shelf: StateShelf) -> None:
        """Keep it there, and not where the settings say. Before `open`.

        Raises:
            Fault: it cannot be read now.
        """
