"""What a kit says to make an agent do something, and how a user has it said in other words."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from trunkline.base.nearest import nearest
from trunkline.base.values import Value


class PromptError(ValueError):
    """Prompts cannot be used; the text says why and what to do."""


def fill(prompts: Mapping[str, str], name: str, **parts: str) -> str:
    """A prompt with its parts filled in."""
    text = prompts[name]
    for part, value in parts.items():
        text = text.replace("{" + part + "}", value)
    return text


class Wording(Value):
    """A kit's own prompts, and the place of each in which the kit puts a text of its own."""

    prompts: Mapping[str, str]
    places: Mapping[str, str]

    def load(self, path: Path) -> dict[str, str]:
        """All prompts, those named in the TOML file replaced.

        Raises:
            PromptError: the file cannot be read, or holds something else than prompts by their names.
        """
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise PromptError(f"`{path}` cannot be read: {error}") from None
        return {**self.prompts, **{name: self._checked(f"`{path}`", name, text) for name, text in found.items()}}

    def with_words(self, prompts: Mapping[str, str], words: Sequence[str]) -> dict[str, str]:
        """The prompts with those replaced that are given as `NAME=TEXT`.

        Raises:
            PromptError: one of them is not.
        """
        found = dict(prompts)
        for each in words:
            name, sign, text = each.partition("=")
            if not sign:
                raise PromptError(f"`{each}` is not of the form NAME=TEXT")
            found[name] = self._checked("the command line", name, text)
        return found

    def _checked(self, source: str, name: str, text: object) -> str:
        if name not in self.prompts:
            close = nearest(name, self.prompts)
            known = ", ".join(f"`{each}`" for each in self.prompts)
            advice = f"did you mean `{close}`?" if close else f"there are {known}"
            raise PromptError(f"{source} names a prompt `{name}` that does not exist; {advice}")
        if not isinstance(text, str) or not text.strip():
            raise PromptError(f"the prompt `{name}` in {source} must be a string")
        place = self.places.get(name, "")
        if place not in text:
            raise PromptError(
                f"the prompt `{name}` in {source} must contain `{place}`, where the kit inserts its own text"
            )
        return text
