"""The keys at the prompt for what is pasted: text, files that are dropped, the picture on the clipboard."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from trunkline.cli.terminal.pasting import PastedThings, ends_folded, without_last
from trunkline.core.faults import Fault


def paste_keys(pasted: PastedThings, tell: Callable[[str], None]) -> KeyBindings:
    """`tell` is for what people should know, such as that there is no picture."""
    keys = KeyBindings()

    @keys.add(Keys.BracketedPaste)
    def _paste(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(pasted.take(event.data))

    @keys.add("c-v")
    def _paste_picture(event: KeyPressEvent) -> None:
        event.app.create_background_task(_insert_picture(event.current_buffer, pasted, tell))

    @keys.add("backspace", filter=Condition(_is_behind_pasted))
    def _rub_out(event: KeyPressEvent) -> None:
        before = event.current_buffer.document.text_before_cursor
        event.current_buffer.delete_before_cursor(len(before) - len(without_last(before)))

    return keys


async def _insert_picture(buffer: Buffer, pasted: PastedThings, tell: Callable[[str], None]) -> None:
    from trunkline.cli.terminal import clipboard

    try:
        picture = await clipboard.picture()
    except Fault as fault:
        tell(str(fault))
    else:
        buffer.insert_text(f"{pasted.picture(picture)} ")


def _is_behind_pasted() -> bool:
    return ends_folded(get_app().current_buffer.document.text_before_cursor)


class ChatHistory(FileHistory):
    """Keeps what was typed as it can be sent again."""

    def __init__(self, path: str, pasted: PastedThings) -> None:
        super().__init__(path)
        self._pasted = pasted

    def append_string(self, string: str) -> None:
        super().append_string(self._pasted.remembered(string))
