"""Files that come with a message, as what a model can take: pictures, documents, text, listings.

What cannot be given to the model is told to the user as a notice and, where it matters, to the model as a sentence in
brackets. Nothing here fails, waits for a pipe, or puts into the conversation what a provider would refuse: that would
make every later request fail, too.
"""

from __future__ import annotations

import errno
import os
from base64 import b64encode
from itertools import islice

from trunkline.base.regular import NotRegular, read_regular
from trunkline.base.values import Value
from trunkline.core.events import UserMessage
from trunkline.models.messages import Block, Document, Image, Text
from trunkline.tools import pictures
from trunkline.tools.foreign_text import framed
from trunkline.tools.pdf import is_pdf
from trunkline.tools.threads import in_thread
from trunkline.tools.workspace import Workspace

#: Files of one message. More is a directory that somebody dropped; the tools can look at the rest.
MAX_FILES = 100
#: What is read of one file: as much as the largest document that is sent on.
MAX_BYTES = 10 * 1024 * 1024
#: What is shown of one text; the Read tool shows no more either.
MAX_TEXT_CHARS = 100_000
#: What is shown of all texts: half of a large model's window.
MAX_TEXTS_CHARS = 400_000
#: Pictures and documents of one message, in base64. Providers take requests of 32 MB, and there is more in one.
MAX_DATA_CHARS = 20_000_000
#: Beyond this many pages a provider may refuse a document; then its text goes alone.
MAX_PDF_PAGES = 100
#: Entries of a directory that are listed, and that are looked at before.
MAX_ENTRIES = 200
MAX_ENTRIES_SEEN = 10_000
#: What lies there says how this process was started, keys included, and is no file that anybody attaches.
_SYSTEM = ("proc", "sys")
#: A NUL in the first bytes tells binary from text.
_PROBE = 8192

_PAGE = "--- Page "


async def attach(message: UserMessage, workspace: str, *, images: bool) -> tuple[tuple[Block, ...], tuple[str, ...]]:
    """The content of a message for the model, what is attached before what is said; and notices for people.

    Paths are absolute or start in the workspace. `images` says whether the model can see.
    """
    attached = _Attached(workspace, images)
    files = tuple(dict.fromkeys(message.files))
    for file in files[:MAX_FILES]:
        await attached.add(file)
    if len(files) > MAX_FILES:
        attached.notices.append(f"{len(files) - MAX_FILES} attached files were ignored: {MAX_FILES} is the limit.")
    words = (Text(message.text),) if message.text or not attached.blocks else ()
    return (*attached.blocks, *words), tuple(attached.notices)


class _Listing(Value):
    """A directory. `more` is how many entries are not listed, and whether they were all counted."""

    names: tuple[str, ...]
    more: int
    counted: bool


class _Contents(Value):
    """A file, as much as was read of it."""

    path: str
    data: bytes
    size: int


class _Attached:
    """What has been taken so far, and how much room is left."""

    def __init__(self, workspace: str, images: bool) -> None:
        self.blocks: list[Block] = []
        self.notices: list[str] = []
        self._workspace = Workspace(workspace)
        self._images = images
        self._text_room = MAX_TEXTS_CHARS
        self._data_room = MAX_DATA_CHARS

    async def add(self, file: str) -> None:
        """Take one file, or say why not."""
        name = _one_line(self._workspace.relative(file)) if file else ""
        try:
            found = await in_thread(lambda stop: _look(self._workspace.resolve(file), file))
        except (FileNotFoundError, NotADirectoryError):
            self.notices.append(f"Attached file not found: `{name}`. It is ignored.")
        except NotRegular:
            self._refuse(name, "it is a device, a pipe or a socket")
        except OSError as error:
            self._refuse(name, os.strerror(error.errno or 0))
        else:
            await self._take(name, found)

    async def _take(self, name: str, found: _Listing | _Contents) -> None:
        if isinstance(found, _Listing):
            self._take_directory(name, found)
        elif pictures.media_type(found.data):
            self._take_picture(name, found)
        elif is_pdf(found.data):
            await self._take_pdf(name, found)
        else:
            text = _decoded(found.data)
            if text is None:
                self._say(f"[The attached file `{name}` is binary: {found.size} bytes, not shown.]")
                self.notices.append(f"Attached file is binary: `{name}`. The model only gets its name and size.")
            else:
                self._take_text(name, text, found.size > len(found.data))

    def _refuse(self, name: str, problem: str) -> None:
        self.notices.append(f"Attached file cannot be used: `{name}`, {problem}. It is ignored.")

    def _say(self, text: str) -> None:
        self._text_room -= len(text)
        self.blocks.append(Text(text))

    def _take_directory(self, name: str, found: _Listing) -> None:
        lines = list(found.names) or ["(empty)"]
        if found.more:
            lines.append(f"[... {found.more}{'' if found.counted else ' or more'} others]")
        self._frame("attached_directory", name, "\n".join(lines))

    def _take_text(self, name: str, text: str, is_longer: bool) -> None:
        room = min(MAX_TEXT_CHARS, max(0, self._text_room))
        if len(text) > room or is_longer:
            text = f"{text[:room]}\n[... cut here: the file is longer. Use Read with `offset` to see the rest.]"
            self.notices.append(f"Attached file is too long: `{name}`. The model is shown the first {room} characters.")
        self._frame("attached_file", name, text or "(empty file)")

    def _frame(self, tag: str, name: str, text: str) -> None:
        self._say(framed(text, tag, f' path="{name}"'))

    def _take_picture(self, name: str, found: _Contents) -> None:
        picture = pictures.inspect(found.data)
        problem = pictures.problem(picture, found.size) if picture else "it is broken"
        if problem is None and not self._has_room(found):
            problem = "the message has too many pictures and documents already"
        if problem is None and not self._images:
            problem = "this model cannot see pictures"
        if problem is None and picture is not None:
            # Its name first: the model may be asked about it, or want to use it.
            data = self._encoded(found.data)
            self.blocks += [Text(f"[The attached picture `{name}`:]"), Image(picture.media_type, data)]
            return
        self._say(f"[The picture `{name}` is attached but cannot be shown: {problem}.]")
        self.notices.append(f"Attached picture is not shown to the model: `{name}`, {problem}.")

    async def _take_pdf(self, name: str, found: _Contents) -> None:
        from trunkline.base.process_errors import SpawnError
        from trunkline.tools.files import FileProblem
        from trunkline.tools.pdf import pdf_text

        try:
            text = await pdf_text(found.path)
        except (FileProblem, SpawnError) as error:
            # What cannot be read here, a provider would refuse.
            self._say(f"[The document `{name}` is attached but cannot be read.]")
            self._refuse(name, str(error))
            return
        is_whole = found.size == len(found.data) and text.count(_PAGE) <= MAX_PDF_PAGES
        if not is_whole or not self._has_room(found):
            self._take_text(name, text, False)
            return
        if len(text) > MAX_TEXT_CHARS:
            text = f"{text[:MAX_TEXT_CHARS]}\n[... cut here]"
        self.blocks.append(Document("application/pdf", self._encoded(found.data), name, text))

    def _has_room(self, found: _Contents) -> bool:
        return len(found.data) * 4 // 3 + 4 <= self._data_room

    def _encoded(self, data: bytes) -> str:
        text = b64encode(data).decode("ascii")
        self._data_room -= len(text)
        return text


def _look(path: str, named: str) -> _Listing | _Contents:
    """What is there.

    Raises:
        OSError: it cannot be read; see `read_regular`.
    """
    if not named or "\0" in named:
        raise FileNotFoundError
    if _is_of_the_system(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if os.path.isdir(path):
        return _list(path)
    contents = read_regular(path, MAX_BYTES)
    return _Contents(path, contents.data, contents.size)


def _is_of_the_system(path: str) -> bool:
    try:
        return os.path.realpath(path).split("/")[1] in _SYSTEM
    except ValueError:
        # No file can have that name, as whoever opens it will tell.
        return False


def _list(path: str) -> _Listing:
    with os.scandir(path) as entries:
        seen = [entry.name + ("/" if entry.is_dir() else "") for entry in islice(entries, MAX_ENTRIES_SEEN)]
    names = sorted(_one_line(name) for name in seen)[:MAX_ENTRIES]
    return _Listing(tuple(names), len(seen) - len(names), len(seen) < MAX_ENTRIES_SEEN)


def _decoded(data: bytes) -> str | None:
    """A text; None if these bytes are none."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    if b"\0" in data[:_PROBE]:
        return None
    return data.decode("utf-8-sig", "replace")


def _one_line(name: str) -> str:
    """A name that cannot be taken for anything else: no line breaks, no quotes, nothing that is half a character."""
    clean = name.encode("utf-8", "replace").decode("utf-8")
    return "".join(char if char.isprintable() and char not in '"`<>' else "?" for char in clean)
