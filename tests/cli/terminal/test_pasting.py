"""What is pasted: pictures and long texts stand in the line as a few words, and are sent as what they are."""

from __future__ import annotations

import asyncio
import filecmp
import os
import struct
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from tests.support.patience import PATIENCE_SECONDS
from trunkline.cli.terminal import clipboard
from trunkline.cli.terminal.keys import EditedLine, Key
from trunkline.cli.terminal.pasting import MOST_CHARS, MOST_LINES, PastedThings, pictures_in
from trunkline.cli.terminal.prompt import InputPrompt
from trunkline.core.events import UserMessage
from trunkline.core.faults import ConfigError
from trunkline.tools.pictures import LARGEST_PICTURE

BEGIN, END = "\x1b[200~", "\x1b[201~"


def png(width: int, height: int) -> bytes:
    """The beginning of a picture, which says how large it is."""
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x02\x00\x00\x00rest"


@pytest.fixture
def picture(tmp_path: Path) -> str:
    path = tmp_path / "my shot.png"
    path.write_bytes(png(640, 480))
    return str(path)


@pytest.mark.parametrize(
    "pasted", ["{path}", "'{path}' ", '"{path}"', "{escaped}", "file://{address}", "file://{address}\n", " {path}\n"]
)
def test_a_picture_that_is_dropped_on_the_terminal_is_attached(picture: str, tmp_path: Path, pasted: str) -> None:
    things = PastedThings(str(tmp_path))
    written = pasted.format(path=picture, escaped=picture.replace(" ", "\\ "), address=picture.replace(" ", "%20"))
    line = things.take(written)
    assert line == "[image #1 640x480] "
    assert things.message(f"{line}what is this?") == UserMessage("[image #1 640x480] what is this?", (picture,))


def test_several_pictures_come_in_the_order_of_the_line_and_before_what_is_mentioned(
    picture: str, tmp_path: Path
) -> None:
    other = tmp_path / "other.png"
    other.write_bytes(png(8, 9))
    (tmp_path / "note.txt").write_text("x")
    things = PastedThings(str(tmp_path))
    assert things.take(f"'{picture}' {other}") == "[image #1 640x480] [image #2 8x9] "
    message = things.message("@note.txt [image #2 8x9] and [image #1 640x480] and [image #9 8x9]")
    assert message.files == (str(other), picture, "note.txt")


def test_what_is_no_picture_stays_what_it_is(picture: str, tmp_path: Path) -> None:
    text = tmp_path / "text.png"
    text.write_text("not at all")
    os.mkfifo(tmp_path / "pipe.png")
    for pasted in (
        str(text),
        str(tmp_path / "pipe.png"),
        str(tmp_path / "gone.png"),
        os.path.basename(picture),
        f"look at {picture}",
        f"'{picture}' and more",
        "it's an apostrophe",
        "file://elsewhere",
        "\0",
        "/" * 20_000,
        " ".join([f"'{picture}'"] * 21),
    ):
        assert pictures_in(pasted) == []
        assert PastedThings(str(tmp_path)).take(pasted).startswith(("[pasted", pasted[:20]))


def test_a_long_text_is_folded_and_sent_whole_as_one_message(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("x")
    things = PastedThings(str(tmp_path))
    long = "@note.txt\r\n" * (MOST_LINES + 1)
    assert things.take(long) == f"[pasted #1 {MOST_LINES + 1} lines]"
    assert things.take("x" * (MOST_CHARS + 1)) == f"[pasted #2 {MOST_CHARS + 1} characters]"
    assert things.take("a\rb") == "a\nb"
    # Only what people type themselves names a file.
    sent = things.message(f"see [pasted #1 {MOST_LINES + 1} lines]!")
    assert sent == UserMessage("see " + "@note.txt\n" * (MOST_LINES + 1) + "!")
    # Nothing was pasted under that name.
    assert things.message("[pasted #7 3 lines] [image #1]").text == "[pasted #7 3 lines] [image #1]"


def test_the_history_keeps_what_can_be_sent_again(picture: str, tmp_path: Path) -> None:
    things = PastedThings(str(tmp_path))
    line = things.take(picture) + things.take("word\n" * 30)
    assert things.remembered(line) == f'@"{picture}" ' + "word\n" * 30
    huge = things.take("x" * 30_000)
    assert things.remembered(huge) == huge


def test_backspace_takes_all_of_what_was_pasted() -> None:
    line = EditedLine("see [image #1 640x480] ")
    line.press(Key("backspace"))
    assert line.text == "see "
    line.press(Key("backspace"))
    assert line.text == "see"


async def test_at_the_prompt_pictures_are_pasted_and_rubbed_out(picture: str, tmp_path: Path) -> None:
    things = PastedThings(str(tmp_path))
    with create_pipe_input() as keyboard, create_app_session(keyboard, DummyOutput()):
        reads = InputPrompt(
            list, lambda command: [], str(tmp_path), mode=lambda: "default", on_mode=lambda: None, pasted=things
        )
        keyboard.send_text(f"a {BEGIN}{picture}{END}\x7fb {BEGIN}'{picture}'{END}{BEGIN}one\rtwo{END}\r")
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await reads.read() == "a b [image #2 640x480] one\ntwo"


def program(tmp_path: Path, name: str, script: str) -> dict[str, str]:
    """An environment with a program that plays the clipboard's."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


async def test_the_picture_on_the_clipboard_is_saved_for_its_owner_alone(picture: str, tmp_path: Path) -> None:
    environ = program(tmp_path, "wl-paste", f"test \"$3\" = image/png && cat '{picture}'")
    saved = await clipboard.picture({**environ, "WAYLAND_DISPLAY": "w"})
    assert filecmp.cmp(saved, picture, shallow=False)
    assert os.stat(saved).st_mode & 0o077 == 0
    # Where one program has none, the next is asked.
    environ = program(tmp_path, "wl-paste", "exit 1")
    environ = program(tmp_path, "xclip", f"test \"$4\" = image/jpeg && cat '{picture}'; exit 1")
    assert await clipboard.picture({**environ, "WAYLAND_DISPLAY": "w", "DISPLAY": ":9"}) != saved


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("exit 1", "There is no picture on the clipboard."),
        ("echo words", "There is no picture on the clipboard."),
        ("sleep 600", "There is no picture on the clipboard."),
        ("cat {picture}; head -c {much} /dev/zero", "cannot be attached: the picture has"),
        ("printf '\\211PNG\\r\\n\\032\\n'", "cannot be attached: it is broken"),
    ],
)
async def test_a_clipboard_without_a_picture_that_can_be_sent_is_told(
    picture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, complaint: str
) -> None:
    monkeypatch.setattr(clipboard, "SECONDS", 0.3 if script.startswith("sleep") else PATIENCE_SECONDS)
    environ = program(tmp_path, "xclip", script.format(picture=f"'{picture}'", much=LARGEST_PICTURE))
    with pytest.raises(ConfigError, match=complaint):
        await clipboard.picture({**environ, "DISPLAY": ":9"})


async def test_where_no_program_reads_the_clipboard_that_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Install `wl-clipboard`"):
        await clipboard.picture({"PATH": str(tmp_path), "DISPLAY": ":9"})


async def test_of_the_pictures_from_the_clipboard_the_newest_are_kept(
    picture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clipboard, "MOST_KEPT", 3)
    environ = {**program(tmp_path, "xclip", f"cat '{picture}'"), "DISPLAY": ":9"}
    saved = [await clipboard.picture(environ) for _ in range(5)]
    assert sorted(os.listdir(os.path.dirname(saved[0])))[-3:] == [os.path.basename(path) for path in saved[2:]]
