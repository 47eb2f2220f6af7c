"""Well-known models on the hub that hear and speak; see `catalog_hub`."""

from __future__ import annotations

from trunkline.models.catalog_entry import HEARS, SPEAKS, CatalogEntry, ModelFile
from trunkline.models.catalog_voice import PIPER, WHISPER

_MB = 10**6
_PIPER_VOICES = "rhasspy/piper-voices"


def _whisper(size: str, about: int, good_for: str) -> CatalogEntry:
    """As Systran has brought it into CTranslate2's form."""
    return CatalogEntry(
        name=f"whisper-{size}",
        kind=HEARS,
        description=f"Writes down what is said. Whisper {size} by OpenAI.",
        licence="MIT",
        files=tuple(map(ModelFile, ("model.bin", "config.json", "tokenizer.json", "vocabulary.txt"))),
        engine=WHISPER,
        source=f"Systran/faster-whisper-{size}",
        good_for=good_for,
        # It knows a hundred; it is told here that it hears English.
        languages=("en",),
        about=about,
    )


def _piper(
    name: str, place: str, description: str, good_for: str, licence: str, language: str, about: int = 63 * _MB
) -> CatalogEntry:
    """`place`: `LANGUAGE/COUNTRY/SPEAKER/QUALITY`, by which the repository is ordered."""
    _, country, speaker, quality = place.split("/")
    file = f"{place}/{country}-{speaker}-{quality}.onnx"
    return CatalogEntry(
        name=f"piper-{name}",
        kind=SPEAKS,
        description=description,
        licence=licence,
        files=(ModelFile(file), ModelFile(f"{file}.json")),
        engine=PIPER,
        source=_PIPER_VOICES,
        good_for=good_for,
        languages=(language,),
        about=about,
    )


HUB_VOICE_ENTRIES: tuple[CatalogEntry, ...] = (
    _whisper("tiny", 78 * _MB, "Commands and short sentences, at once"),
    _whisper("small", 486 * _MB, "Names and accents that the base model mishears"),
    _whisper("medium", 1_530 * _MB, "Recordings, where nobody waits"),
    _piper(
        "alba", "en/en_GB/alba/medium", "A woman's voice, Scottish English, for Piper.", "Narrators and characters",
        "CC-BY-4.0", "en",
    ),
    _piper(
        "cori", "en/en_GB/cori/medium", "A woman's voice, British English, for Piper.", "Narrators and characters",
        "Public domain", "en",
    ),
    _piper(
        "libritts", "en/en_US/libritts_r/medium", "904 speakers by number, American English, for Piper.",
        "Many characters with one model", "CC-BY-4.0", "en", 79 * _MB,
    ),
    _piper(
        "thorsten", "de/de_DE/thorsten/medium", "A man's voice, German, for Piper.", "Characters who speak German",
        "CC0-1.0", "de",
    ),
    _piper(
        "siwis", "fr/fr_FR/siwis/medium", "A woman's voice, French, for Piper.", "Characters who speak French",
        "CC-BY-4.0", "fr",
    ),
)  # fmt: skip
