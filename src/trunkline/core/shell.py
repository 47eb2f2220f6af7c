"""What a shell would run, read from the text of a command line: every simple command in it, wherever it stands.

    a && FOO=1 b "$(c)" | d > file        four commands, one with a variable, one with a redirection

This is for judging commands, and not for running them. Where our reading and that of `sh`, `bash` or `zsh` could
differ, or where only the shell itself knows what comes of it, the script is not `certain`; what was found until then is
there all the same. Nothing here looks at the disk or at variables.

Imported when somebody has written rules about commands, or when a command comes after something that was read.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from trunkline.base.values import Value
from trunkline.core.shell_values import counts_later, evaluates, is_counted, is_number, sets_texts
from trunkline.core.shell_words import (
    ASSIGNMENT,
    BLANK,
    META,
    MOST_DEPTH,
    UNKNOWN,
    ShellRedirection,
    ShellWord,
    SimpleCommand,
    WordReader,
)

#: A longer text is not read, nor more commands than that: no person approves of it by a rule.
MOST_CHARS = 100_000
MOST_COMMANDS = 2_000

_REDIRECTION = re.compile(r"(?:\d+|\{[A-Za-z_]\w*\})?(<<<|<<-|<<|<>|<&|<(?!\()|&>>|&>|>>|>\||>&|>(?!\())", re.ASCII)
_SEPARATOR = re.compile(r"&&|\|\||\|&|;;&|;;|;&|[;|&]")

#: What an operator may go on with in the next line.
_IN_OPERATORS = "&|;<>(-"
#: How the end of a here-document is named, if it is the same for all shells, and so is what becomes of the text.
_DOCUMENT_END = re.compile(r"\\?[\w.][\w.-]*|'[^'\\\n]+'|\"[^\"\\$`\n]+\"", re.ASCII)

#: Reserved words that a command may follow at once.
_BEFORE_COMMANDS = frozenset(("if", "then", "elif", "else", "while", "until", "do", "!", "{"))
_AFTER_COMMANDS = frozenset(("fi", "done", "}", "esac"))
#: What begins with a word, and ends with another.
_ENDS = {"if": "fi", "for": "done", "while": "done", "until": "done", "{": "}", "case": "esac", "select": "done"}
#: Some shells know these, or read them in ways of their own. What is in them is read, but is not certain.
_DOUBTFUL = frozenset(("case", "esac", "function", "select", "coproc", "[[", "repeat", "foreach", "end", "nocorrect"))
_RESERVED = _BEFORE_COMMANDS | _AFTER_COMMANDS | _DOUBTFUL | _ENDS.keys()


class ShellScript(Value):
    """Everything that a text would run, and whether that is certain."""

    text: str
    commands: tuple[SimpleCommand, ...]
    certain: bool
    values: tuple[tuple[str, ShellWord], ...] = ()
    """What it puts into which variable by an assignment, or by a loop."""


def parse(text: str, depth: int = 0) -> ShellScript:
    """Read a command line, or a script of several lines."""
    if len(text) > MOST_CHARS or depth > MOST_DEPTH:
        return ShellScript(text, (), certain=False)
    reader = _Reader(text, depth)
    reader.script()
    return reader.result()


class _Command:
    """One that is being read."""

    def __init__(self) -> None:
        self.words: list[ShellWord] = []
        self.assignments: list[str] = []
        self.redirections: list[ShellRedirection] = []
        self.is_over = False
        """Whether it ended with a word like `fi`, behind which no other word may stand."""
        self.is_head = False
        """Whether it was the beginning of a loop."""
        self.is_over_for_sh = False
        """Whether `sh` would take what follows for another command: to it, `&>` is a `&` and a `>`."""
        self.given: list[str] = []
        self.number: int | None = None
        """Which of the commands it is, when it has been read."""

    @property
    def begun(self) -> bool:
        return bool(self.words or self.assignments or self.redirections)


class _HereDocument(NamedTuple):
    command: _Command
    end: str
    is_quoted: bool
    tabs: bool


class _Reader(WordReader):
    def __init__(self, text: str, depth: int) -> None:
        super().__init__(text, depth)
        self._begun_at = depth
        self._documents: list[_HereDocument] = []
        self._others_wait = False
        """Whether the text around a substitution has here-documents that have not begun."""
        self._is_due = False
        """Whether a command has to follow: there was a `&&`, or a pipe."""
        self.values: list[tuple[str, ShellWord]] = []
        self._unended = dict.fromkeys(_ENDS.values(), 0)
        """How many of these words have to follow."""

    def result(self) -> ShellScript:
        """What was read."""
        commands = tuple(self.commands)
        # What another shell has put into variables, nobody here knows.
        is_open = self.sets_texts or self._begun_at > 0 or any(map(sets_texts, commands))
        if is_open:
            commands = tuple(_opened(command) for command in commands)
        counts = self.counts or any(map(counts_later, commands))
        certain = self.certain and not (counts and is_open) and not any(map(evaluates, commands))
        return ShellScript(self.text, commands, certain, tuple(self.values))

    def script(self) -> None:
        """Read all of it."""
        while self.at < len(self.text):
            self.read_list(closing=False)
        if self._documents or self._is_due or any(self._unended.values()):
            self.certain = False

    # Lists of commands

    def read_list(self, *, closing: bool) -> None:
        """Commands up to the end, or up to the `)` that closes them."""
        self.depth += 1
        command = _Command()
        if self.depth > MOST_DEPTH:
            self.doubt()
            self.at = len(self.text)
        while self._passed_over() and self.at < len(self.text):
            char = self.peek()
            if char == "\n":
                self.at += 1
                command = self._flush(command)
                if self._others_wait:
                    # Not all shells keep them apart.
                    self.doubt()
                self._here_documents()
            elif char == ")":
                self.at += 1
                command = self._flush(command)
                if self._is_due:
                    self.doubt()
                if closing and not self._documents:
                    self.depth -= 1
                    return
                self.doubt()
            elif char == "(":
                command = self._parenthesis(command)
            elif found := _REDIRECTION.match(self.text, self.at):
                self._redirect(command, found)
            elif found := _SEPARATOR.match(self.text, self.at):
                command = self._separate(command, found)
            else:
                command = self._take(command, self.read_word())
        self._flush(command)
        self.depth -= 1
        if closing:
            self.doubt()

    def read_substitution(self) -> None:
        """Its here-documents, and what has to follow in it, are its own."""
        around = self._documents, self._is_due, self._unended, self._others_wait
        self._others_wait = self._others_wait or bool(self._documents)
        self._documents, self._is_due, self._unended = [], False, dict.fromkeys(self._unended, 0)
        self.read_list(closing=True)
        if self._documents or any(self._unended.values()):
            self.doubt()
        self._documents, self._is_due, self._unended, self._others_wait = around

    def _separate(self, command: _Command, found: re.Match[str]) -> _Command:
        self.at = found.end()
        if self.goes_on(_IN_OPERATORS) and found[0] not in ("&&", "||"):
            self.doubt()
        nothing_before = not (command.begun or command.is_over or command.is_head)
        if nothing_before or (found[0].startswith(";") and len(found[0]) > 1):
            self.doubt()
        command = self._flush(command)
        self._is_due = found[0] in ("&&", "||", "|", "|&")
        return command

    def _passed_over(self) -> bool:
        """Go on to the next character that means something."""
        while True:
            if self.peek() == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif self.peek(2) == "\\\n":
                self.at += 2
            elif self.peek() and self.peek() in BLANK:
                self.at += 1
            else:
                return True

    def _flush(self, command: _Command) -> _Command:
        if command.begun or command.is_over:
            self._is_due = False
        if command.begun:
            command.number = len(self.commands)
            self.commands.append(
                SimpleCommand(
                    tuple(command.words),
                    tuple(command.assignments),
                    tuple(command.redirections),
                    tuple(command.given),
                )
            )
        if len(self.commands) > MOST_COMMANDS:
            self.doubt()
            self.at = len(self.text)
        return _Command()

    def _parenthesis(self, command: _Command) -> _Command:
        """Commands in a shell of their own; anywhere else than at the beginning, what one shell knows and others do
        not, or a function."""
        if command.begun or command.is_over or self.peek(2) == "((":
            self.doubt()
        self.at += 1
        if self.goes_on("("):
            self.doubt()
        command = self._flush(command)
        self.read_list(closing=True)
        command.is_over = True
        return command

    def _take(self, command: _Command, word: ShellWord) -> _Command:
        """Put a word where it belongs."""
        if command.is_over_for_sh:
            self.doubt()
        if command.is_over:
            self.doubt()
            command = self._flush(command)
        if command.words or not (word.plain or ASSIGNMENT.match(word.source)):
            if word.plain and word.text in ("{", "}"):
                # With zsh, `if true { rm x }` is two commands.
                self.doubt()
            if not command.words and word.text.startswith("="):
                self.doubt()
            command.words.append(word)
            return command
        if ASSIGNMENT.match(word.source):
            command.assignments.append(word.source)
            self._keep_value(word)
            self.sets_texts = self.sets_texts or not is_number(word.source.partition("=")[2])
            self.counts = self.counts or is_counted(word.source)
            if self.peek() == "(":
                self.doubt()
            return command
        if command.begun:
            if word.text in _RESERVED:
                # With zsh, it is one behind a redirection, too.
                self.doubt()
            command.words.append(word)
            return command
        return self._first(command, word)

    def _keep_value(self, word: ShellWord) -> None:
        name, _, source = word.source.partition("=")
        value = word.replace(text=word.text.partition("=")[2], source=source)
        # Of a part of a variable, or of more of it, nothing is known.
        is_whole = name.isidentifier() and self.peek() != "("
        self.values.append(
            (re.split(r"[\[+]", name)[0], value if is_whole else value.replace(text=UNKNOWN, static=False))
        )

    def _first(self, command: _Command, word: ShellWord) -> _Command:
        """A word without quotes at the beginning of a command."""
        if word.text in _DOUBTFUL:
            self.doubt()
        if word.text in _ENDS:
            self._unended[_ENDS[word.text]] += 1
        if word.text in self._unended:
            self._unended[word.text] -= 1
        if word.text in _AFTER_COMMANDS:
            command.is_over = True
        elif word.text == "for":
            command.is_head = True
            self._loop()
        elif word.text.startswith("="):
            # With zsh, the place of a program.
            self.doubt()
            command.words.append(word)
        elif word.text not in _BEFORE_COMMANDS and word.text not in _DOUBTFUL:
            command.words.append(word)
        return command

    def _loop(self) -> None:
        """`for NAME in WORDS`: the words are no command. What follows is at the beginning of one."""
        named, in_words = "", False
        while self._passed_over() and self.at < len(self.text):
            char = self.peek()
            if char == "\n" or char == ";":
                return
            elif char in META:
                self.doubt()
                return
            else:
                before = self.at
                word = self.read_word()
                if named and not in_words and word.plain and word.text == "do":
                    self.at = before
                    return
                if not named:
                    named = word.source
                    if not re.fullmatch(r"[A-Za-z_]\w*", word.source):
                        self.doubt()
                elif not in_words:
                    in_words = True
                    if word.source != "in":
                        self.doubt()
                elif word.plain and word.text in ("{", "}", "do"):
                    self.doubt()
                else:
                    self.values.append((named, word))
                    self.sets_texts = self.sets_texts or not is_number(word.source)

    # Redirections

    def _redirect(self, command: _Command, found: re.Match[str]) -> None:
        self.at = found.end()
        operator = found[1]
        if self.goes_on(_IN_OPERATORS):
            self.doubt()
        while self.peek() and self.peek() in BLANK:
            self.at += 1
        if not self.peek() or (self.peek() in META and self.peek(2) not in ("<(", ">(")):
            self.doubt()
            return
        start = self.at
        target = self.read_word()
        if operator in ("<<", "<<-"):
            is_quoted = target.source != target.text
            self._documents.append(_HereDocument(command, target.text, is_quoted, operator == "<<-"))
            if not _DOCUMENT_END.fullmatch(self.text, start, self.at):
                self.doubt()
        elif operator == "<<<":
            command.given.append(target.text)
        elif operator in (">&", "<&") and re.fullmatch(r"\d+-?|-", target.text):
            return
        elif operator in (">&", "<&") and not re.fullmatch(r"[\w./+-]+", target.text):
            # bash reads it twice: what is quoted is run.
            self.doubt()
            command.redirections.append(ShellRedirection(operator, target))
        else:
            command.is_over_for_sh = operator.startswith("&")
            command.redirections.append(ShellRedirection(operator, target))

    def _here_documents(self) -> None:
        """Pass over the texts that follow this line, and read what is run in them."""
        given: dict[int, list[str]] = {}
        for document in self._documents:
            text = self._body(document)
            if (number := document.command.number) is not None:
                given.setdefault(number, []).append(text)
            if not document.is_quoted:
                self._in_document(text)
        for number, texts in given.items():
            read = self.commands[number]
            self.commands[number] = read.replace(given=(*read.given, *texts))
        self._documents = []

    def _body(self, document: _HereDocument) -> str:
        body: list[str] = []
        goes_on = False
        while self.at < len(self.text):
            line = self._line()
            # Where the line before goes on, this is none that could be the end.
            if not goes_on and (line.lstrip("\t") if document.tabs else line) == document.end:
                return "\n".join(body)
            body.append(line)
            # The last backslash is none of a pair.
            goes_on = not document.is_quoted and (len(line) - len(line.rstrip("\\"))) % 2 == 1
            if goes_on and self.at < len(self.text):
                self.doubt()
        self.doubt()
        return "\n".join(body)

    def _line(self) -> str:
        start, end = self.at, self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        self.at = end + 1
        return self.text[start:end]

    def _in_document(self, text: str) -> None:
        """Read what is run in a text that is as good as in double quotes."""
        inner = _Reader(text, self.depth + 1)
        inner.read_quoted(closing="")
        self._take_over(inner)

    def read_inside(self, text: str) -> None:
        inner = _Reader(text, self.depth + 1)
        if len(text) > MOST_CHARS or self.depth >= MOST_DEPTH or len(self.commands) > MOST_COMMANDS:
            self.doubt()
        else:
            inner.script()
        self._take_over(inner)

    def _take_over(self, inner: _Reader) -> None:
        """What another reader has found in a part of the text."""
        self.commands += inner.commands
        self.values += inner.values
        self.certain = self.certain and inner.certain
        self.counts = self.counts or inner.counts
        self.sets_texts = self.sets_texts or inner.sets_texts


def _opened(command: SimpleCommand) -> SimpleCommand:
    """A command as it is where its variables may hold anything."""
    words = tuple(word.replace(open=True) if UNKNOWN in word.text else word for word in command.words)
    return command.replace(words=words) if words != command.words else command
