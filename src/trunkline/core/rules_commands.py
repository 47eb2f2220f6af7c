"""Rules about commands: `Bash(git status:*)`, `Bash(npm run test)`, `Bash(git * main)`, `Bash(cat:./**)`.

An allow rule is read narrowly: the program is the one that it names, written like that, and everything else that the
line runs, sets or writes needs a rule of its own. A deny or ask rule is read widely: the program may lie anywhere, be
quoted, stand behind options, or be run by another (`sudo`, `xargs`, `bash -c`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

from trunkline.base.values import Value
from trunkline.core.command_texts import is_telling, texts_of, tokens
from trunkline.core.shell import ShellScript, parse
from trunkline.core.shell_guesses import is_several, may_be, may_fit
from trunkline.core.shell_words import CONNECTION, UNKNOWN, ShellRedirection, ShellWord, SimpleCommand
from trunkline.core.shell_wrapped import MOST_TAILS, everything, inner, is_inline, look_into, program_of

#: Output that goes there is written to no file.
_NOWHERE = re.compile(r"/dev/(?:null|stdout|stderr|fd/\d+)")
#: What stands behind the words of a rule about commands with any files of the workspace, and no more options.
INSIDE = ":./**"
#: In a pattern: a `*` that stands for itself. Written with a backslash before it.
_STAR = "\1"
#: Programs behind which a path leads elsewhere.
_MOVING = frozenset(("cd", "pushd", "popd", "chdir"))
#: Words of a command in which the beginning of another is enough: nobody has to wait until all are compared.
MOST_TOLD = 512
#: Whether a command may write a file.
MayWrite = Callable[[str], bool]


class CommandPattern(Value):
    """What stands between the parentheses of a rule about commands."""

    text: str
    kind: Literal["prefix", "exact", "wildcard", "inside"]
    words: tuple[str, ...]
    """The words at its beginning, up to the first `*`; none if it is no simple command."""

    @property
    def plain(self) -> str:
        """The very command that an exact one is about."""
        return self.text.replace(_STAR, "*")

    def covers(self, command: SimpleCommand, workspace: str) -> bool:
        """Whether it is about this command, as it is written."""
        if self.kind == "wildcard":
            return bool(_wildcard(self.text).fullmatch(_shown(command.words)))
        if self.kind == "inside":
            return bool(self.words) and _stays_inside(self.words, command, workspace)
        return bool(self.words) and self._fits(command.words)

    def covers_loosely(self, command: SimpleCommand) -> bool:
        """Whether it is about this command, wherever the program lies, and whatever options stand in between."""
        words = self._found_anywhere(command)
        if not words:
            return False
        if self.kind == "wildcard":
            shown = _shown(words)
            return bool(_wildcard(self.text).fullmatch(shown) or _wildcard(self.text).fullmatch(_shown(command.words)))
        if self.kind == "exact":
            return bool(self.words) and tuple(word.text for word in words) == self.words
        return bool(self.words) and self._fits_with_options(words)

    def may_cover(self, command: SimpleCommand) -> bool:
        """Whether it could be about this command, whatever its variables, substitutions and patterns come to."""
        words = self._found_anywhere(command)
        if all(word.static for word in words):
            return False
        if self.kind == "wildcard":
            return may_fit(self.text, words) or may_fit(self.text, command.words)
        if not self.words or words[0].text != self.words[0]:
            return False
        if self.kind == "exact" and len(words) != len(self.words) and not any(map(is_several, words)):
            return False
        return self._may_go_on(words)

    def _found_anywhere(self, command: SimpleCommand) -> tuple[ShellWord, ...]:
        """The words of a command, with the program as the rule names it, wherever it lies."""
        if not command.words or not self.words:
            return command.words
        first, *rest = command.words
        found = first if "/" in self.words[0] else first.replace(text=os.path.basename(first.text))
        # Some disks ignore case.
        same = found.text.casefold() == self.words[0].casefold()
        return (found.replace(text=self.words[0]) if same else found, *rest)

    def is_in(self, text: str) -> bool:
        """Whether its words stand somewhere in a text that could not be read."""
        if not self.words:
            return bool(_wildcard(f"*{self.text.removesuffix(':*')}*").fullmatch(" ".join(text.split())))
        found = tokens(text)
        wanted = [os.path.basename(word) or word for word in self.words]
        starts = (at for at, token in enumerate(found) if token == wanted[0])
        return any(found[at : at + len(wanted)] == wanted for at in starts)

    def is_told(self, command: SimpleCommand) -> bool:
        """Whether its words stand in a text that a command is given, or, if there are several, among its words."""
        if self.words and any(map(self.is_in, texts_of(command))):
            return True
        if len(self.words) < 2 or not is_telling(command):
            return False
        words = command.words
        starts = [at for at in range(1, min(len(words), MOST_TAILS)) if self._may_begin(words[at])]
        if len(words) > MOST_TOLD:
            return bool(starts)
        return any(self.covers_loosely(SimpleCommand(words[at:])) for at in starts)

    def _may_begin(self, word: ShellWord) -> bool:
        """Whether a word could be the program that it names, wherever that lies."""
        return os.path.basename(word.text).casefold() == os.path.basename(self.words[0]).casefold()

    def _fits(self, words: Sequence[ShellWord]) -> bool:
        if self.kind == "exact" and len(words) != len(self.words):
            return False
        beginning = words[: len(self.words)]
        return all(word.static for word in beginning) and tuple(word.text for word in beginning) == self.words

    def _fits_with_options(self, words: Sequence[ShellWord]) -> bool:
        """Whether its words come one after the other, with nothing in between but options and their values."""
        if words[0].text != self.words[0]:
            return False
        at = 1
        for wanted in self.words[1:]:
            while at < len(words) and words[at].text != wanted and words[at].text.startswith("-"):
                # The word behind an option may be its value.
                has_value = at + 1 < len(words) and words[at + 1].text != wanted and words[at + 1].text[:1] != "-"
                at += 2 if has_value else 1
            if at >= len(words) or words[at].text != wanted:
                return False
            at += 1
        return True

    def _may_go_on(self, words: Sequence[ShellWord]) -> bool:
        """Whether the words behind the first could be those of the rule, options and their values left out."""
        at = 1
        for wanted in self.words[1:]:
            while at < len(words) and words[at].text != wanted and not may_be(words[at], wanted):
                if not words[at].text.startswith("-"):
                    return False
                if is_several(words[at]):
                    return True
                # The word behind an option may be its value.
                following = words[at + 1] if at + 1 < len(words) else None
                if following is None or following.text == wanted or following.text.startswith("-"):
                    at += 1
                elif following.open and is_several(following):
                    return True
                else:
                    at += 2
            if at >= len(words):
                return False
            if not words[at].static:
                return True
            at += 1
        return False


@lru_cache(maxsize=1024)
def pattern_of(text: str) -> CommandPattern:
    """Read it."""
    text = text.replace("\\*", _STAR)
    body, kind = text, "exact"
    if text.endswith(INSIDE) and "*" not in text.removesuffix(INSIDE):
        body, kind = text.removesuffix(INSIDE), "inside"
    elif text.endswith((":*", " *")) and "*" not in text[:-2]:
        body, kind = text[:-2], "prefix"
    elif "*" in text:
        kind = "wildcard"
        body = text.partition("*")[0]
        # The last word before a `*` is only the beginning of one, unless a blank stands between them.
        body = body if body.endswith(" ") else body.rpartition(" ")[0]
    script = parse(body.replace(_STAR, "*"))
    words: tuple[str, ...] = ()
    if script.certain and len(script.commands) == 1:
        (command,) = script.commands
        is_simple = not command.assignments and not command.redirections and all(word.static for word in command.words)
        words = tuple(word.text for word in command.words) if is_simple else ()
    return CommandPattern(text, kind, words)  # type: ignore[arg-type]


def denied(pattern: CommandPattern, text: str) -> bool:
    """Whether a deny or ask rule is about any part of a command line."""
    if " ".join(pattern.plain.split()) == " ".join(text.split()):
        return True
    found, certain = everything(text)
    if any(pattern.covers_loosely(command) for command in found):
        return True
    if not pattern.words and pattern.kind == "wildcard":
        return bool(_wildcard(pattern.text).fullmatch(" ".join(text.split())))
    return (not certain or any(map(is_inline, found))) and pattern.is_in(text)


def may_be_denied(patterns: Sequence[CommandPattern], text: str) -> bool:
    """Whether any of these deny or ask rules could be about a command line, as far as can be told."""
    found = look_into(text)
    return (
        not found.certain
        or any(pattern.may_cover(command) for pattern in patterns for command in found.commands)
        or any(pattern.is_told(command) for command in found.run for pattern in patterns)
    )


def exactly(command: str) -> str:
    """What stands in the parentheses of a rule about this very command."""
    return command.strip().replace("*", "\\*")


def allowed(
    patterns: Sequence[CommandPattern], text: str, may_write: MayWrite, workspace: str = "."
) -> CommandPattern | None:
    """The first allow rule about a command line all of whose parts are allowed by one of them."""
    for pattern in patterns:
        if pattern.kind == "exact" and pattern.plain == text.strip():
            return pattern
    script: ShellScript = parse(text)
    line = look_into(text)
    if not script.certain or not line.whole:
        return None
    first: CommandPattern | None = None
    moves = any(program_of(command) in _MOVING for command in line.commands)
    for command in script.commands:
        counting = _anywhere(patterns) if moves and program_of(command) not in _MOVING else patterns
        found = _one_allowed(counting, command, _from_anywhere(may_write) if moves else may_write, workspace)
        if found is None:
            return None
        first = first or (found if command.words else None)
    return first


def _one_allowed(
    patterns: Sequence[CommandPattern], command: SimpleCommand, may_write: MayWrite, workspace: str
) -> CommandPattern | None:
    if command.assignments or not all(_may_redirect(each, may_write) for each in command.redirections):
        return None
    if not command.words:
        # Where the output of several commands goes; these are judged by themselves.
        return patterns[0] if patterns else None
    more = inner(command)
    if not more.certain:
        return None
    covering = [pattern for pattern in patterns if pattern.covers(command, workspace)]
    if not covering:
        return None
    elsewhere = _from_anywhere(may_write)
    inside = [each for each in (*more.commands, more.main) if each]
    # Once for all rules: each of them would ask again for what is inside of that.
    is_clear = more.clear and all(_one_allowed(_anywhere(patterns), each, elsewhere, workspace) for each in inside)
    return next((pattern for pattern in covering if is_clear or len(pattern.words) > more.at), None)


def _anywhere(patterns: Sequence[CommandPattern]) -> Sequence[CommandPattern]:
    """Those that count wherever a command runs: what is a file of the workspace here, is another one elsewhere."""
    return [pattern for pattern in patterns if pattern.kind != "inside"]


def _stays_inside(first: tuple[str, ...], command: SimpleCommand, workspace: str) -> bool:
    from trunkline.core.command_words import stays_inside

    # What it reads is as good as a file that it is given.
    read = [
        each.target for each in command.redirections if not each.writes and not _NOWHERE.fullmatch(each.target.text)
    ]
    words = (*command.words, *read)
    return all(word.static for word in words) and stays_inside(first, [word.text for word in words], workspace)


def _from_anywhere(may_write: MayWrite) -> MayWrite:
    """Whether a command may write a file that is in some other directory: it has to be named in full."""
    return lambda path: path.startswith(("/", "~")) and may_write(path)


def _may_redirect(redirection: ShellRedirection, may_write: MayWrite) -> bool:
    target = redirection.target
    if not target.static or CONNECTION.match(os.path.normpath(target.text)):
        return not redirection.writes and not CONNECTION.match(os.path.normpath(target.text))
    if not redirection.writes or _NOWHERE.fullmatch(target.text):
        return True
    return may_write(target.text if target.at_home or not target.text.startswith("~") else f"./{target.text}")


def _shown(words: Sequence[ShellWord]) -> str:
    """Words as one text: a blank in a word is none between two."""
    return " ".join(re.sub(r"\s", UNKNOWN, word.text) for word in words)


@lru_cache(maxsize=1024)
def _wildcard(text: str) -> re.Pattern[str]:
    r"""`*` stands for anything; ` *` at the end for any words, or none."""
    body, end = (text[:-2], r"(?: .*)?") if text.endswith((" *", ":*")) else (text, "")
    runs = [re.escape(run).replace(re.escape(_STAR), r"\*") for run in " ".join(body.split(" ")).split("*")]
    if len(runs) == 1:
        return re.compile(f"(?s:{runs[0]}{end})")
    first, *middle, last = runs
    # The leftmost place is always good enough: there is never a reason to try another.
    skipped = "".join(f"(?>.*?{run})" for run in middle if run)
    return re.compile(f"(?s:{first}{skipped}.*{last}{end})")
