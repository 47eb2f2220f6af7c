"""The text of PDF files, by `pypdf`, in a process of its own: broken ones can take for ever, or all memory."""

from __future__ import annotations

import sys

from trunkline.base.extras import adding
from trunkline.base.own_python import module_command
from trunkline.tools.files import FileProblem
from trunkline.tools.helper import collect, limit_memory

_MAGIC = b"%PDF-"
#: What some programs put in front of it.
_BEFORE_MAGIC = b"\xef\xbb\xbf \t\r\n"

#: How long extracting may take: books of a thousand pages take less.
PDF_SECONDS = 30.0
#: What is kept of the text, in bytes: far more than a model can be shown, and enough to page through.
PDF_BYTES = 4 * 1024 * 1024

_EXIT_BROKEN = 2
_EXIT_MISSING = 3


def is_pdf(start: bytes) -> bool:
    """Whether a file that begins like this is a PDF."""
    return start.lstrip(_BEFORE_MAGIC).startswith(_MAGIC)


async def pdf_text(path: str) -> str:
    """The text of a PDF, page by page, each under a line with its number.

    Raises:
        FileProblem: it is broken, protected or takes too long, or `pypdf` is not installed.
        SpawnError: no process can be started.
    """
    text = bytearray()

    def take(data: bytes) -> bool:
        text.extend(data[: PDF_BYTES - len(text)])
        return len(text) < PDF_BYTES

    ended = await collect(module_command(__name__, (path,)), "/", take, PDF_SECONDS)
    if ended.timed_out:
        raise FileProblem(f"extracting the text of this PDF takes more than {PDF_SECONDS:.0f} s")
    if ended.code == _EXIT_MISSING:
        raise FileProblem(f"reading PDF files needs `pypdf`. {adding('coder')}")
    if ended.code == _EXIT_BROKEN:
        raise FileProblem(f"this PDF cannot be read ({ended.complaint})")
    if ended.code:
        raise FileProblem("this PDF cannot be read: extracting its text needs too much memory, or crashed")
    if len(text) >= PDF_BYTES:
        # A line that was cut may end in half of a secret, which nobody would recognise.
        del text[text.rfind(b"\n") + 1 :]
    return text.decode("utf-8", "replace")


def main(path: str) -> int:
    """Print the text of a PDF."""
    limit_memory()
    try:
        import logging

        from pypdf import PdfReader
    except ImportError:
        return _EXIT_MISSING
    # It warns of each small flaw; only the last word counts here.
    logging.disable(logging.CRITICAL)
    try:
        for number, page in enumerate(PdfReader(path).pages, 1):
            text = page.extract_text().encode("utf-8", "replace")
            sys.stdout.buffer.write(b"--- Page %d ---\n%s\n" % (number, text))
    except Exception as error:  # whatever a parser of broken files raises
        sys.stdout.buffer.flush()
        sys.stderr.write(f"{type(error).__name__}: {error}")
        return _EXIT_BROKEN
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
