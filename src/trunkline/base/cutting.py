"""The beginning of somebody else's words, where the secrets are taken out later, by those who know them."""

from __future__ import annotations


def cut_between_words(text: str, limit: int) -> str:
    """The text, or what of it fits into the limit, and `...`.

    No word is cut in half: a secret has no white space, so it is there as a whole, and is recognised, or not at all.
    """
    if len(text) <= limit:
        return text
    kept = text[:limit]
    if not (kept[-1:].isspace() or text[limit].isspace()):
        # The rest of its last word is missing.
        kept = kept.rsplit(None, 1)[0] if len(kept.split(None, 1)) > 1 else ""
    return f"{kept.rstrip()} ...".lstrip()
