"""The names of the speakers that a voice has: the place of each is the number by which a node asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trunkline.base import jsontext
from trunkline.base.regular import read_regular
from trunkline.models.catalog_entry import CatalogEntry
from trunkline.models.catalog_voice import ESPEAK, PIPER

#: The longest settings of a Piper voice that are read: those of nine hundred speakers have some 50 KiB.
MAX_SETTINGS = 4 * 1024 * 1024
#: More speakers than any voice has.
MAX_SPEAKERS = 10_000

#: eSpeak NG's: American English and its variants, other kinds of English, and other languages. New ones come last.
ESPEAK_SPEAKERS: Final = (
    "en-us", "en-us+m1", "en-us+m2", "en-us+m3", "en-us+m4", "en-us+m5", "en-us+m6", "en-us+m7",
    "en-us+f1", "en-us+f2", "en-us+f3", "en-us+f4", "en-us+f5", "en-us+croak", "en-us+whisper",
    "en", "en-gb-x-rp", "en-gb-scotland", "en+f2", "en+f4",
    "de", "de+f2", "fr", "fr+f2", "es", "es+f2", "it", "it+f2", "pt-br", "pt-br+f2", "nl", "pl", "sv", "da",
    "nb", "fi", "cs", "hu", "ro", "el", "ru", "uk", "tr",
)  # fmt: skip


def piper_speakers(settings: Any) -> tuple[str, ...]:
    """Those of a Piper voice with these settings. One that has no name is called by its number."""
    count = settings.get("num_speakers", 1)
    count = count if isinstance(count, int) and 1 <= count <= MAX_SPEAKERS else 1
    ids = settings.get("speaker_id_map")
    named = {number: str(name) for name, number in ids.items()} if isinstance(ids, Mapping) else {}
    return tuple(named.get(number, str(number)) for number in range(count))


def speakers(entry: CatalogEntry, path: str) -> tuple[str, ...]:
    """Those of a model of the catalog whose first file this is; none of one that does not speak, or cannot be read.

    Reads a file: for a thread.
    """
    if entry.engine == ESPEAK:
        return ESPEAK_SPEAKERS
    if entry.engine != PIPER:
        return ()
    try:
        settings = jsontext.loads(read_regular(f"{path}.json", MAX_SETTINGS).data)
    except (OSError, ValueError):
        return ()
    return piper_speakers(settings) if isinstance(settings, dict) else ()
