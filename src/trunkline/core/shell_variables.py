"""What the variables in a word of a command line come to, as far as the line and the environment say so."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice, product

from trunkline.base.patterns import LONGEST_PATH
from trunkline.core.shell_guesses import is_several
from trunkline.core.shell_values import names_set
from trunkline.core.shell_words import UNKNOWN, ShellWord
from trunkline.core.shell_wrapped import Everything, is_shell

#: Values that one word may come to. Nobody writes more.
MOST_VALUES = 64
#: Variables in the values of others.
_MOST_DEPTH = 4
#: Variables in one word.
MOST_IN_WORD = 32
_EXPANSION = re.compile(
    r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\}|([0-9@*#?$!-])|\{([0-9@*#?$!-])\}|\(pwd\))|`pwd`", re.ASCII
)
#: What stands for itself in a word.
_LITERAL = re.compile(r"\\.|'[^']*'", re.DOTALL)
#: Those that come to a number.
_NUMBERS = frozenset(("?", "#", "$", "!", "PPID", "BASHPID", "UID", "EUID", "RANDOM", "SECONDS", "LINENO"))
#: Those that shells change.
_BY_SHELL = frozenset(("OLDPWD", "IFS", "_", "DIRSTACK"))


class Variables:
    """Those of one line."""

    def __init__(self, line: Everything) -> None:
        self._values: dict[str, list[ShellWord]] = {}
        for name, word in line.values:
            self._values.setdefault(name, []).append(word)
        changed = [names_set(command) for command in line.commands]
        self._is_open = not line.certain or None in changed
        """Whether any variable may have been set."""
        self._changed = {name for names in changed for name in names or ()}
        self._found: dict[tuple[str, str, int], list[tuple[str, bool]]] = {}
        """What was found out about a variable: in a directory, in the value of how many others."""
        self._has_arguments = self._is_open or any(map(is_shell, line.commands))

    def resolved(self, word: ShellWord, here: str) -> Sequence[ShellWord] | None:
        """What a word comes to in a directory, with patterns for files left as they are; None if that is not known."""
        if UNKNOWN not in word.text:
            return (word,)
        found = tuple(islice(self._resolved(word, here, 0), MOST_VALUES + 1))
        return found if len(found) <= MOST_VALUES and all(UNKNOWN not in each.text for each in found) else None

    def _resolved(self, word: ShellWord, here: str, depth: int) -> Iterator[ShellWord]:
        if UNKNOWN not in word.text:
            yield word
            return
        written = _LITERAL.sub("", word.source)
        expansions = list(_EXPANSION.finditer(written))
        pieces = word.text.split(UNKNOWN)
        if (
            len(expansions) != len(pieces) - 1
            or len(expansions) > MOST_IN_WORD
            or re.search(r"[$`(]", _EXPANSION.sub("", written))
            or depth > _MOST_DEPTH
        ):
            yield word
            return
        values = [self._values_of(each, here, depth) for each in expansions]
        for chosen in product(*values):
            if sum(len(value) for value, _ in chosen) > LONGEST_PATH:
                yield word
                return
            text = "".join((pieces[0], *(value + piece for (value, _), piece in zip(chosen, pieces[1:], strict=True))))
            is_wild = word.is_pattern or any(wild for _, wild in chosen)
            # Where nothing is quoted, there are as many words as there are blanks between them.
            for each in text.split() if is_several(word) else [text]:
                yield word.replace(text=each, static=not is_wild)

    def _values_of(self, expansion: re.Match[str], here: str, depth: int) -> Sequence[tuple[str, bool]]:
        """What may stand there, and whether that is a pattern; of too many values, one more than are counted."""
        name = next(filter(None, expansion.groups()), "PWD")
        key = name, here, depth
        if key not in self._found:
            self._found[key] = list(islice(self._values_named(name, here, depth), MOST_VALUES + 1))
        return self._found[key]

    def _values_named(self, name: str, here: str, depth: int) -> Iterator[tuple[str, bool]]:
        if name in _NUMBERS:
            yield "*", True
        elif (
            name in self._changed
            or name in _BY_SHELL
            or (name[0] in "0123456789@*-" and (self._has_arguments or name in "0-"))
        ):
            yield UNKNOWN, False
        elif name in self._values:
            for value in self._values[name]:
                yield from ((each.text, each.is_pattern) for each in self._resolved(value, here, depth + 1))
        elif name == "PWD":
            yield here, False
        elif name == "HOME":
            yield os.path.expanduser("~"), False
        elif name in os.environ and not self._is_open:
            yield os.environ[name], False
        elif self._is_open or (name.isupper() and name not in os.environ):
            # Shells set some by themselves.
            yield UNKNOWN, False
        else:
            yield "", False
