"""What the mouth shows: fifteen visemes, those that most talking heads have shapes for, and the phonemes of each.

sil   silence            PP  p b m        FF  f v          TH  th in thin and this     DD  t d
kk    k g ng h           CH  ch j sh zh   SS  s z          nn  n l                     RR  r, and er in her
aa    a in father, cup   E   e in bed, the first in about  ih  i in bit, y in yes      oh  o in hot, more
ou    u in boot, w
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator

from trunkline.models.voice.marks import VISEME, SpokenMark

SILENCE = "sil"

_PHONEMES = {
    "PP": "pbmɓʙ",
    "FF": "fvɱʋⱱβɸ",
    "TH": "θð",
    "DD": "tdʈɖɗɾ",
    "kk": "kgɡqcɟɠʛŋxɣχhɦħʔʕç",
    "CH": "ʃʒɕʑʂʐʧʤ",
    "SS": "szʦʣ",
    "nn": "nlɲɳɴʎɭʟɫɬɮ",
    "RR": "rɹɻɽʀʁɚɝɺ",
    "aa": "aɑæɐʌäɶ",
    "E": "eɛəɘɜɞ",
    "ih": "iɪɨᵻyʏj",
    "oh": "oɔɒɤɵøœ",
    "ou": "uʊʉɯwʍɥ",
}
_VISEMES = {phoneme: viseme for viseme, phonemes in _PHONEMES.items() for phoneme in phonemes}

#: All of them.
VISEMES = (SILENCE, *_PHONEMES)

#: What belongs to the phoneme after it, and what to the one before it.
_STRESS = frozenset("ˈˌ'")
_MARKS = frozenset("ːˑ˞ʰʲʷˤⁿ̩͡")


def viseme_of(phoneme: str) -> str:
    """What the mouth shows for a phoneme of the International Phonetic Alphabet; "" for a sign that is none by itself.

    Of several letters the first that is known decides. What is not known is silence.
    """
    letters = [letter for letter in phoneme if not is_sign(letter)]
    if phoneme and not letters:
        return ""
    return next((_VISEMES[letter] for letter in letters if letter in _VISEMES), SILENCE)


def is_sign(letter: str) -> bool:
    """Whether it only says how another one is spoken."""
    return letter in _STRESS or letter in _MARKS or unicodedata.combining(letter) != 0


def is_stress(phoneme: str) -> bool:
    """Whether it belongs to what follows."""
    return bool(phoneme) and all(letter in _STRESS for letter in phoneme)


def visemes(phonemes: Iterable[tuple[str, int, int]], least_pause: int) -> Iterator[SpokenMark]:
    """The visemes of phonemes with their beginnings and ends, which follow one another.

    The same several times in a row is one. A pause shorter than `least_pause` shows nobody: what was before it stays.
    """
    current: SpokenMark | None = None
    begin: int | None = None
    for phoneme, start, end in phonemes:
        if end <= start:
            continue
        if is_stress(phoneme):
            begin = start if begin is None else begin
            continue
        start, begin = (start if begin is None else begin), None
        viseme = viseme_of(phoneme)
        short = viseme == SILENCE and end - start < least_pause
        if current is not None and (not viseme or short or viseme == current.text):
            current = current.replace(end=end)
            continue
        if current is not None:
            yield current
        current = SpokenMark(VISEME, viseme or SILENCE, start if current is None else current.end, end)
    if current is not None:
        yield current
