"""Phonemes of the International Phonetic Alphabet as eSpeak NG writes those of English."""

from __future__ import annotations

import re

from trunkline.models.voice.marks import IPA_BEGIN, OWN_BEGIN, PHONEMES_END

_PHONEMES = {
    "tʃ": "tS", "t͡ʃ": "tS", "ʧ": "tS", "dʒ": "dZ", "d͡ʒ": "dZ", "ʤ": "dZ",
    "aɪ": "aI", "aʊ": "aU", "eɪ": "eI", "oʊ": "oU", "əʊ": "oU", "ɔɪ": "OI", "ɪə": "i@", "ɛə": "e@", "eə": "e@",
    "ʊə": "U@", "ɑː": "A:", "ɔː": "O:", "uː": "u:", "iː": "i:", "ɜː": "3:",
    "θ": "T", "ð": "D", "ʃ": "S", "ʒ": "Z", "ŋ": "N", "ɡ": "g", "ɹ": "r", "ɾ": "*", "ɫ": "l", "ʔ": "?", "x": "x",
    "æ": "a", "ɐ": "a#", "ɑ": "A:", "ɒ": "0", "ɔ": "O:", "ʌ": "V", "ə": "@", "ɛ": "E", "e": "E", "ɪ": "I", "ᵻ": "I2",
    "ʊ": "U", "ɜ": "3:", "ɚ": "3", "ɝ": "3:", "o": "oU", "u": "u:", "i": "i:", "a": "a",
    "ˈ": "'", "'": "'", "ˌ": ",", "ː": "",
}  # fmt: skip
_KNOWN = re.compile("|".join(sorted(map(re.escape, _PHONEMES), key=len, reverse=True)))
_BLOCK = re.compile(f"([{IPA_BEGIN}{OWN_BEGIN}])([^{PHONEMES_END}]*){PHONEMES_END}")


def mnemonics(ipa: str) -> str:
    """Phonemes as the engine writes them. What is not known stays, as a letter of both."""
    return _KNOWN.sub(lambda found: _PHONEMES[found[0]], ipa)


def spelled(text: str) -> str:
    """A text as the engine reads it: phonemes in double brackets, and no others. It has the same blanks."""
    return _BLOCK.sub(_written, text.replace("[[", "["))


def _written(found: re.Match[str]) -> str:
    phonemes = found[2].replace("]", "")
    return f"[[{mnemonics(phonemes) if found[1] == IPA_BEGIN else phonemes}]]"
