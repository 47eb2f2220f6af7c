"""What the kit says to make an agent do something: in words that a language model follows and a script can match.

`{text}` stands for what a check fills in. Any of them may be said in other words, for an agent that needs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

PROMPTS: dict[str, str] = {
    "hello": "Reply with the single word: hello. Do not use any tool.",
    "repeat": "Repeat the text between the double angle brackets exactly, and say nothing else: <<{text}>>",
    "long": "Count from 1 to 2000 in digits, one number per line. Do not use any tool, and do not stop early.",
    "padded": "Reply with the single word: hello. Ignore the filler behind this sentence. {text}",
    "count": "How many messages have I sent you in this conversation, this one included? Reply with digits only.",
    "attachment": "Reply with the name of the attached file and nothing else. Do not use any tool.",
    "tool": "Use the Write tool to create the file conform-write.txt with the content `hello`. Do nothing else.",
    "fail": "Reply with the single word: hello. (This is a test of what happens when the model fails.)",
}

#: The prompts in which the kit puts a text of its own.
_FILLED = frozenset(("repeat", "padded"))


class PromptError(ValueError):
    """Prompts cannot be used; the text says why and what to do."""


def load(path: Path) -> dict[str, str]:
    """All prompts, those named in the TOML file replaced.

    Raises:
        PromptError: the file cannot be read, or holds something else than prompts by their names.
    """
    import tomllib

    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PromptError(f"`{path}` cannot be read: {error}") from None
    return PROMPTS | {name: _checked(f"`{path}`", name, text) for name, text in found.items()}


def with_words(prompts: Mapping[str, str], words: Sequence[str]) -> dict[str, str]:
    """The prompts with those replaced that are given as `NAME=TEXT`.

    Raises:
        PromptError: one of them is not.
    """
    found = dict(prompts)
    for each in words:
        name, sign, text = each.partition("=")
        if not sign:
            raise PromptError(f"a prompt is given as NAME=TEXT, not as `{each}`")
        found[name] = _checked("the command line", name, text)
    return found


def fill(prompts: Mapping[str, str], name: str, text: str = "") -> str:
    """A prompt with its text filled in."""
    return prompts[name].replace("{text}", text)


def _checked(source: str, name: str, text: object) -> str:
    if name not in PROMPTS:
        import difflib

        close = difflib.get_close_matches(name, PROMPTS, n=1)
        advice = f"did you mean `{close[0]}`?" if close else f"there are {', '.join(f'`{known}`' for known in PROMPTS)}"
        raise PromptError(f"{source} names a prompt `{name}` that does not exist; {advice}")
    if not isinstance(text, str) or not text.strip():
        raise PromptError(f"the prompt `{name}` in {source} must be a text")
    if name in _FILLED and "{text}" not in text:
        raise PromptError(f"the prompt `{name}` in {source} must hold `{{text}}`, where the kit puts its own text")
    return text
