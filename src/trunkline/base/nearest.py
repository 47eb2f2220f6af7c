"""What somebody probably meant who wrote a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

#: What two names must have in common for one to be taken for the other, mistyped: `categry` is, `model` is not.
ALIKE = 0.6
#: For those who would rather say nothing than something wrong.
VERY_ALIKE = 0.8
#: Longer names are not compared: that takes the square of their length, and anybody may have written them.
LONGEST_NAME = 64


def nearest(name: str, known: Iterable[str], alike: float = ALIKE) -> str | None:
    """The known name that is most like this one; None if none is like it."""
    found = near(name, known, most=1, alike=alike)
    return found[0] if found else None


def near(
    name: str, known: Iterable[str], *, most: int = 3, alike: float = ALIKE, beginnings: bool = False
) -> Sequence[str]:
    """The known names that are like this one, the most alike first.

    `beginnings`: if some begin with it, it is those, since whoever stops typing means one of them.
    """
    names = list(known)
    if beginnings and (found := [each for each in names if each.startswith(name)]):
        return found
    if len(name) > LONGEST_NAME:
        return ()
    from difflib import get_close_matches

    # In order, so that of two that are alike to the same degree it is always the same one.
    comparable = sorted(each for each in names if len(each) <= LONGEST_NAME)
    return get_close_matches(name, comparable, n=most, cutoff=alike)


#: What is wrong with a key that no schema has, in the same words wherever keys are read.
UNKNOWN_KEY = "unknown key"


def about_key(key: str, problem: str) -> str:
    """What is wrong with a key, without a full stop."""
    return f"{problem} `{key}`" if problem == UNKNOWN_KEY else f"`{key}` {problem}"


def suggestion(name: str, known: Iterable[str]) -> str:
    """` Did you mean ...?` for the end of a sentence, or nothing."""
    found = nearest(name, known)
    return f" Did you mean `{found}`?" if found is not None else ""


def hint_for(name: str, known: Iterable[str], synonyms: Mapping[str, str] | None = None) -> str | None:
    """`Did you mean ...?` when a name is like one of the known, or is another word for one; else None."""
    others = synonyms or {}
    names = {*known, *others}
    meant = others.get(name.lower()) or nearest(name, names) or nearest(name.lower(), names)
    return f"Did you mean `{others.get(meant, meant)}`?" if meant else None
