"""The words of a shell's language: quotes, escapes, variables and substitutions, as `sh`, `bash` and `zsh` read them.

Where these three could differ, the reader doubts, and what it gives is not certain.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

from trunkline.base.values import Value

#: Stands in a word for what only the shell knows: the value of a variable, the output of a command.
UNKNOWN = "\0"
#: Substitutions in one another. Deeper ones are not read.
MOST_DEPTH = 20
#: Files that are connections, for some shells.
CONNECTION = re.compile(r"/dev/(?:tcp|udp)(?:/|$)")
BLANK = " \t"
META = frozenset(" \t\n;&|()<>")

#: What a shell takes for an assignment where it stands before a command.
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=", re.ASCII)

_RUN = re.compile(r"[\w./:=,+@%^-]+", re.ASCII)
_QUOTED_RUN = re.compile(r"[^\"\\$`]+")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]", re.ASCII)
_ARITHMETIC = re.compile(r"\$\(\(([\w \t+\-*/%<>=!|&?:,~^$]*)\)\)", re.ASCII)
_IN_NAMES = string.ascii_letters + string.digits + "_["
_NAMED = re.compile(r"[A-Za-z_$]")
#: `${name}`, and those forms that only cut or replace what is in it. Others run what a variable holds, or set it.
_PARAMETER = re.compile(
    r"\{(?:#?(?:[A-Za-z_]\w*|[0-9@*#?$!-])(?=\})|"
    r"(?:[A-Za-z_]\w*|[0-9@*])(?:(?=:?[-+?]|[#%/,^])|:\s*-?\d+(?::\s*-?\d+)?(?=\})))",
    re.ASCII,
)
#: What may stand behind a `$` that is one, for every shell.
_AFTER_DOLLAR = frozenset(" \t\n\"'/;&|)<>")
_ESCAPES = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ANSI = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|.)", re.DOTALL)
#: A line that goes on: shells take this away before they look for words and operators.
JOINT = "\\\n"
_JOINTS = re.compile(r"(?:\\\n)+(.)?")
#: Directories in which the shell is, was, or has been told to come back to.
_VISITED = re.compile(r"(?:(?<=[=:])|\A)~(?:[-+]?\d+|[-+])(?=[/:]|\Z)")
#: Characters that are in no command that a person writes, or that one shell passes over and another does not.
_STRANGE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class ShellWord(Value):
    """One word, without its quotes."""

    text: str
    """With `UNKNOWN` for each piece that only the shell knows."""
    source: str
    """As it is written."""
    static: bool = True
    """Whether the text is what the program gets: no variable, no substitution, no pattern, no braces."""
    open: bool = False
    """Whether it may come to anything, also to several words or to options: what others have put there."""

    @property
    def plain(self) -> bool:
        """Whether nothing in it is quoted: a reserved word is one only then."""
        return self.text == self.source

    @property
    def is_pattern(self) -> bool:
        """Whether a shell may put names of files in its place."""
        return not self.static and any(char in self.text for char in "*?[")

    @property
    def at_home(self) -> bool:
        """Whether a `~` at its beginning is a home directory."""
        return self.source.startswith("~")


class ShellRedirection(Value):
    """Where input comes from, or output goes to."""

    operator: str
    target: ShellWord

    @property
    def writes(self) -> bool:
        """Whether a file is written."""
        return ">" in self.operator


class SimpleCommand(Value):
    """A program with its arguments; without any, what is said of variables and redirections alone."""

    words: tuple[ShellWord, ...] = ()
    assignments: tuple[str, ...] = ()
    redirections: tuple[ShellRedirection, ...] = ()
    given: tuple[str, ...] = ()
    """Texts that it reads from the line itself: here-documents and here-strings."""


class WordReader:
    """Reads words from a text, and whatever commands are in them."""

    def __init__(self, text: str, depth: int) -> None:
        self.text = text
        self.at = 0
        self.depth = depth
        self.commands: list[SimpleCommand] = []
        self.counts = False
        """Whether it counts with variables."""
        self.sets_texts = False
        """Whether it puts something into variables that is no number."""
        self._substituted = 0
        self._dollar_quotes = 0
        """How many texts have been quoted with a `$` before them. To `sh` it is a `$` like any other."""
        self._joints: list[int] = []
        """Where lines went on outside of quotes."""
        self.certain = not _STRANGE.search(text)

    def read_list(self, *, closing: bool) -> None:
        """Read commands up to the end, or up to the `)` that closes them."""
        raise NotImplementedError

    def read_substitution(self) -> None:
        """The same behind `$(`, `<(` or `>(`: a script of its own."""
        raise NotImplementedError

    def read_inside(self, text: str) -> None:
        """Read the commands of another text."""
        raise NotImplementedError

    def doubt(self) -> None:
        """What was found is not certain."""
        self.certain = False

    def peek(self, length: int = 1) -> str:
        """The next characters."""
        return self.text[self.at : self.at + length]

    def goes_on(self, with_: str) -> bool:
        """Whether the line goes on here, with a character that belongs to what was just read."""
        found = _JOINTS.match(self.text, self.at)
        return found is not None and bool(found[1]) and found[1] in with_

    def read_word(self) -> ShellWord:
        start = self.at
        pieces: list[str] = []
        static = True
        substituted, quotes, joints = self._substituted, self._dollar_quotes, len(self._joints)
        while self.at < len(self.text):
            char = self.peek()
            if self.peek(2) in ("<(", ">(") and self.at == start:
                self.at += 2
                self.read_substitution()
                pieces.append(UNKNOWN)
                static = False
            elif char in META:
                break
            elif char == "\\":
                pieces.append(self._escaped())
            elif char == "'":
                pieces.append(self._single())
            elif char == '"':
                self.at += 1
                text = self.read_quoted()
                pieces.append(text)
                static = static and UNKNOWN not in text
            elif char in "$`":
                text = self._expansion()
                pieces.append(text)
                static = static and UNKNOWN not in text
            elif run := _RUN.match(self.text, self.at):
                self.at = run.end()
                pieces.append(run[0])
            elif self.peek(2) == "{}":
                # Two characters like any other.
                self.at += 2
                pieces.append("{}")
            else:
                self.at += 1
                pieces.append(char)
                static = static and char not in "*?[{"
        source = self._source(start, self._joints[joints:])
        if len(self._joints) > joints and self.peek() and self.peek() in "<>":
            # A number before it would belong to it.
            self.doubt()
        if self.at == start:
            # Cannot happen; but a reader that stands still would never end.
            self.doubt()
            self.at += 1
        static = (static or source in ("{", "[", "!")) and self._dollar_quotes == quotes
        word = ShellWord("".join(pieces), source, static, open=self._substituted > substituted)
        return _without_visited(word) if _VISITED.search(source) else word

    def _source(self, start: int, joints: Sequence[int]) -> str:
        """What is written from there on, as if the line had not gone on."""
        ends = [*joints, self.at]
        starts = [start, *(joint + len(JOINT) for joint in joints)]
        return "".join(self.text[begin:end] for begin, end in zip(starts, ends, strict=True))

    def _escaped(self) -> str:
        found = self.peek(2)[1:]
        if found == "\n":
            self._joints.append(self.at)
        self.at += 2
        if not found:
            self.doubt()
        return "" if found == "\n" else found

    def _single(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            self.doubt()
            end = len(self.text)
        found = self.text[self.at + 1 : end]
        self.at = end + 1
        return found

    def read_quoted(self, closing: str = '"') -> str:
        """What is between double quotes; `at` is behind the first, and then behind the second."""
        pieces: list[str] = []
        while self.at < len(self.text):
            char = self.peek()
            if char == closing:
                self.at += 1
                return "".join(pieces)
            if char == "\\":
                following = self.peek(2)[1:]
                self.at += 2
                pieces.append({"\n": ""}.get(following, following if following in '$`"\\' else char + following))
            elif char in "$`":
                pieces.append(self._expansion(quoted=True))
            elif run := _QUOTED_RUN.match(self.text, self.at):
                self.at = run.end()
                pieces.append(run[0])
            else:
                self.at += 1
                pieces.append(char)
        if closing:
            self.doubt()
        return "".join(pieces)

    def _expansion(self, *, quoted: bool = False) -> str:
        """What a `$` or a backtick begins."""
        if self.peek() == "`":
            return self._backticks()
        following = self.peek(2)[1:]
        if following == "(":
            if arithmetic := _ARITHMETIC.match(self.text, self.at):
                self.at = arithmetic.end()
                self.counts = self.counts or _NAMED.search(arithmetic[1]) is not None
                return UNKNOWN
            if self.peek(3) == "$((":
                self.doubt()
            self.at += 2
            if self.goes_on("("):
                self.doubt()
            self._substituted += 1
            self.read_substitution()
            return UNKNOWN
        if following == "{":
            self.at += 1
            self._parameter()
            return UNKNOWN
        if following == "'" and not quoted:
            self.at += 1
            self._dollar_quotes += 1
            return self._ansi()
        if following == '"' and not quoted:
            self.at += 2
            self._dollar_quotes += 1
            return self.read_quoted()
        if found := _NAME.match(self.text, self.at + 1):
            self.at = found.end()
            if self.peek() == "[" or self.goes_on(_IN_NAMES):
                # With zsh, a place in it; or its name goes on in the next line.
                self.doubt()
            return UNKNOWN
        if following and following not in _AFTER_DOLLAR:
            # With zsh, there are more forms of variables.
            self.doubt()
        self.at += 1
        return "$"

    def _backticks(self) -> str:
        end = self.at + 1
        while end < len(self.text) and self.text[end] != "`":
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            self.doubt()
        inner = self.text[self.at + 1 : end]
        if '\\"' in inner:
            # A quote, or the character itself: that depends on what is around it, and on the shell.
            self.doubt()
        self._substituted += 1
        self.read_inside(re.sub(r"\\([\\`$])", r"\1", inner))
        self.at = end + 1
        return UNKNOWN

    def _parameter(self) -> None:
        """`{name...}` behind a `$`."""
        found = _PARAMETER.match(self.text, self.at)
        self.at = found.end() if found else self.at + 1
        self.depth += 1
        if not found or self.depth > MOST_DEPTH:
            self.doubt()
        if self.depth > MOST_DEPTH:
            self.at = len(self.text)
        self._to_brace()
        self.depth -= 1

    def _to_brace(self) -> None:
        while self.at < len(self.text):
            char = self.peek()
            if char == "}":
                self.at += 1
                return
            if char == "\\":
                self.at += 2
            elif char == "'" or self.peek(2) in ("<(", ">(", "=("):
                # Within double quotes it is no quote, and runs nothing. Outside it is one, and does.
                self.doubt()
                self.at += 1
            elif char == '"':
                self.at += 1
                self.read_quoted()
            elif char in "$`":
                self._expansion(quoted=True)
            else:
                self.at += 1
        self.doubt()

    def _ansi(self) -> str:
        r"""`'...'` behind a `$`, in which `\x72` is an `r`. `sh` knows it not, and ends it at another quote."""
        end = self.at + 1
        while end < len(self.text) and self.text[end] != "'":
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text) or "\\'" in self.text[self.at : end]:
            self.doubt()
        found = self.text[self.at + 1 : end]
        if any(escape[1] not in _ESCAPES and escape[1].isalpha() for escape in _ANSI.finditer(found)):
            # One shell passes it over, another ends the word there.
            self.doubt()
        self.at = end + 1
        return _ANSI.sub(_decoded, found)


def _without_visited(word: ShellWord) -> ShellWord:
    """A word with such a directory in it."""
    return word.replace(text=_VISITED.sub(UNKNOWN, word.text), static=False)


def _decoded(escape: re.Match[str]) -> str:
    body = escape[1]
    if body[0] in "xuU" and len(body) > 1:
        number = int(body[1:], 16)
    elif body[0] in "01234567":
        number = int(body, 8)
    else:
        return _ESCAPES.get(body, body)
    return chr(number) if 0 < number < 0x110000 else UNKNOWN
