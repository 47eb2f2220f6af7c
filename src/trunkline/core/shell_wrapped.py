"""Commands that other commands run: `sudo rm x`, `xargs rm`, `find -exec rm {} +`, `bash -c 'rm x'`, `eval`, `trap`.

The lists are of programs that people and models use for that. What an interpreter is given (`python -c`, `awk`), what
is in a script, and what a `Makefile` says is not looked into: that is for rules about these programs themselves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice, pairwise
from typing import Literal

from trunkline.base.values import Value
from trunkline.core.shell import ShellScript, parse
from trunkline.core.shell_guesses import may_be
from trunkline.core.shell_options import PLAIN_WRAPPERS, Beginning, beginning
from trunkline.core.shell_values import decides
from trunkline.core.shell_words import ASSIGNMENT, MOST_DEPTH, UNKNOWN, ShellWord, SimpleCommand

#: The words of a wrapper among which the other command begins.
MOST_TAILS = 64
#: Words that are looked at to judge one line. Nobody writes more, and nobody should have to wait for that.
MOST_WORDS = 20_000
#: Characters in these words: each command that runs another, or could, has those of the other in it.
MOST_READ = 200_000
#: Commands that one command names.
MOST_INNER = 8

_SHELLS = frozenset(
    {
        "sh", "bash", "zsh", "dash", "ksh", "ksh93", "mksh", "lksh", "oksh", "ash", "fish", "rbash", "rzsh", "csh",
        "tcsh", "yash", "posh", "hush", "osh", "nu", "elvish", "xonsh",
    }
)  # fmt: skip
#: Programs that run what they are told to, or read.
_EVALUATING = _SHELLS | {"eval", ".", "source", "trap"}
#: Options of theirs with which they read commands from their input, or from another argument.
_SHELL_READS = re.compile(r"[-+]\w*[sC]|--[\w-]*command")
#: Options that have a value.
_SHELL_VALUES = frozenset(("-o", "+o", "-O", "+O", "--rcfile", "--init-file"))
#: Programs whose arguments are a command, behind options and values of their own: those about whose options nothing
#: is known here, or that give the command to a shell.
_WRAPPERS = PLAIN_WRAPPERS | frozenset(
    {
        "parallel", "watch", "setarch", "chrt",
        "ltrace", "ssh", "su", "runuser", "unshare", "nsenter", "script", "busybox", "toybox",
        "setpriv", "firejail", "bwrap", "systemd-run", "entr", "rlwrap", "faketime", "prlimit", "cgexec",
        "dbus-run-session", "valgrind", "perf", "hyperfine", "tmux", "screen", "xterm", "ip", "runcon",
        "sg", "gdb", "rr", "numactl", "start-stop-daemon", "chpst", "softlimit", "aa-exec", "pee", "uname26",
        "capsh", "schroot", "fakechroot", "proot", "cpulimit", "trickle",
        "sshpass", "aws-vault", "dotenv", "cross-env", "env-cmd", "concurrently", "nodemon",
        "watchexec", "reflex", "daemonize", "run0", "machinectl", "cross", "wine", "qemu-x86_64",
    }
)  # fmt: skip
#: Of these, the ones that run a shell if they are given no command. It reads its input.
_TO_SHELL = frozenset(
    {
        "chroot", "setarch", "linux32", "linux64", "i386", "i686", "x86_64", "uname26", "unshare", "nsenter", "su",
        "runuser", "script", "fakeroot", "fakechroot", "schroot", "proot", "capsh", "firejail", "sg", "parallel",
    }
)  # fmt: skip
#: Programs that run commands elsewhere.
_CONTAINERS = ("docker", "podman", "kubectl", "nerdctl")
#: The same, if one of these words is among the first.
_RUNNERS = {
    **dict.fromkeys(("uv", "poetry", "pipenv", "pixi", "hatch", "pdm", "rye", "conda", "mamba"), frozenset(("run",))),
    **dict.fromkeys(_CONTAINERS, frozenset(("run", "exec"))),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun", "mise", "direnv", "bundle", "nix"), frozenset(("exec", "x", "dlx"))),
}
_FIND = {"find": ("-exec", "-execdir", "-ok", "-okdir"), "fd": ("-x", "--exec", "-X", "--exec-batch")}
#: `fd -xrm`.
_ATTACHED = re.compile(r"-[xX].+|--exec(?:-batch)?=")
_FIND |= {"fdfind": _FIND["fd"], "gfind": _FIND["find"]}
#: Options whose value is a command, by the end of their names.
_COMMAND_NAME = (
    r"(?!--no-)[\w.-]*(?:exec|command|cmd|filter|program|rsh|pager|editor|action|-pack|entrypoint|external|helper|"
    r"textconv|driver|hook|shell|preview|run|pre|fsmonitor|eval|askpass)"
)
_COMMAND_OPTION = re.compile(rf"{_COMMAND_NAME}=(?:exec=)?(.+)|(?:EXEC|SYSTEM):(.+)", re.IGNORECASE | re.DOTALL)
_BEFORE_COMMAND = re.compile(rf"--?{_COMMAND_NAME}", re.IGNORECASE)
#: The same where the option is a letter, by program: its value stands in the same word, or in the next.
_COMMAND_LETTER = {
    program: re.compile(rf"-[A-Za-z]*?{letter}(.*)|--{name}()", re.DOTALL)
    for program, letter, name in (
        ("rsync", "e", "rsh"), ("man", "P", "pager"), ("tar", "[IF]", "use-compress-program"), ("scp", "S", "program"),
        ("sftp", "S", "program"), ("nc", "[ec]", "exec"), ("ncat", "[ec]", "exec"), ("zip", "TT", "unzip-command"),
    )
}  # fmt: skip
_COMMAND_LETTER["git"] = re.compile(r"-[xO](.+)", re.DOTALL)
#: The loader of programs is a program itself.
_LOADER = re.compile(r"ld(?:-linux|-musl)?[\w.-]*\.so[\w.-]*")
#: Programs that run what they read.
_LATER = frozenset(("at", "batch", "crontab"))
#: Programs that are given a program in another language.
_INTERPRETER = re.compile(
    r"python[\d.]*|pypy[\d.]*|node|nodejs|deno|bun|tsx|ts-node|perl[\d.]*|ruby[\d.]*|irb|php[\d.]*|lua[\d.]*|luajit|"
    r"Rscript|[gmn]?awk|tclsh|expect|pwsh|powershell|osascript|julia|elixir|erl|ghci?|jshell|groovy|scala"
)
#: Options of theirs that have a value.
_INTERPRETER_VALUES = frozenset(
    ("-W", "-X", "-I", "-L", "-r", "-F", "-v", "-d", "-C", "-S", "--require", "--import", "--loader", "--env-file")
)
#: How they are given it on the command line.
_INLINE = re.compile(r"-\w*[ceEr]|--?(?:eval|print|exec|command|run)\b|-p")
#: Wrappers that give the other command words which they read.
_READING = frozenset(("xargs", "gxargs"))
#: The option of `env` whose value is a line that it reads in its own way; long ones may be abbreviated.
_SPLITS = re.compile(r"-[a-zA-Z0-9]*S|--s")
#: Another name for a command of git, with what it stands for, or in front of that.
_ALIAS = re.compile(r"alias\.[^=\s]+(?:=(.*))?", re.IGNORECASE | re.DOTALL)
_GIT = frozenset(("run", "foreach", "-x", "--exec", "--exec-path"))
#: What makes a word look like a command of several.
_SEVERAL = re.compile(r"[\s;&|`$(]")


class Inner(Value):
    """What a command runs besides itself."""

    commands: tuple[SimpleCommand, ...] = ()
    """What is certainly run."""
    main: SimpleCommand | None = None
    """What is run, too, as far as it can be told which of the words are options."""
    tails: tuple[SimpleCommand, ...] = ()
    """What could be: each word may be where the other command begins."""
    at: int = 0
    """The number of the word behind which the other command stands."""
    certain: bool = True
    clear: bool = True
    """Whether it is known with which word the other command begins."""


_NOTHING = Inner()
#: Words that a command gets from elsewhere.
_ANYTHING = ShellWord(UNKNOWN, UNKNOWN, static=False, open=True)
_UNCERTAIN = Inner(certain=False)


def program_of(command: SimpleCommand) -> str:
    """The name of the program, wherever it lies; nothing if only the shell knows it."""
    return os.path.basename(command.words[0].text) if command.words and command.words[0].static else ""


def inner(command: SimpleCommand) -> Inner:
    """What a command runs besides itself."""
    words = command.words
    if not words:
        return _NOTHING
    program = program_of(command)
    if not words[0].static:
        return _UNCERTAIN
    if program in _SHELLS:
        return _by_shell(words)
    if program == "eval":
        return _scripts([word for word in words[1:] if word.text != "--"], joined=True)
    if program in ("trap", "alias"):
        return _scripts([_value(word) for word in words[1:]])
    if program in (".", "source"):
        return _script_file(words[1:])
    if program in _LATER:
        return _NOTHING if len(words) == 2 and words[1].text in ("-l", "-c") else _UNCERTAIN
    if program == "command" and len(words) > 1 and words[1].text in ("-v", "-V"):
        return _NOTHING
    if program in _FIND:
        return _by_find(words, _FIND[program])
    if program == "git":
        return _by_git(words)
    runs = _RUNNERS.get(program, frozenset())
    if program in _WRAPPERS or _LOADER.fullmatch(program) or any(word.text in runs for word in words[1:4]):
        return _by_wrapper(words, program)
    return _NOTHING


#: How a command of a line is run: by it; by one all of whose words were looked at; by one of whose options nothing is
#: known; or not at all, as far as can be told.
_Way = Literal["run", "inside", "perhaps", "text"]


class Everything(Value):
    """All commands that a line runs or could run, in one another, too."""

    commands: tuple[SimpleCommand, ...]
    run: tuple[SimpleCommand, ...]
    """Those of them that are run, as far as the line is read."""
    certain: bool
    """Whether these are all."""
    whole: bool
    """Whether it was read to its end: it is not longer, or deeper, than anybody writes."""
    values: tuple[tuple[str, ShellWord], ...]
    """What it puts into which variable."""


def everything(text: str) -> tuple[Sequence[SimpleCommand], bool]:
    """All commands that a line runs or could run; and whether these are all."""
    found = look_into(text)
    return found.commands, found.certain


@lru_cache(maxsize=16)
def look_into(text: str) -> Everything:
    """Find all commands of a line."""
    script = parse(text)
    found: list[SimpleCommand] = []
    run: list[SimpleCommand] = []
    certain = script.certain
    words, chars = MOST_WORDS, MOST_READ
    waiting: list[tuple[SimpleCommand, _Way, int]] = [(command, "run", 0) for command in reversed(script.commands)]
    while waiting:
        command, way, depth = waiting[-1]
        words -= len(command.words) + 1
        chars -= sum(len(word.text) for word in command.words) if depth else 0
        if words < 0 or chars < 0 or depth > MOST_DEPTH:
            break
        waiting.pop()
        found.append(command)
        is_run = way in ("run", "inside")
        if is_run:
            run.append(command)
        program = program_of(command)
        more = inner(command)
        if is_run or (way == "perhaps" and (program in _EVALUATING or program in PLAIN_WRAPPERS)):
            is_known = more.clear or program not in PLAIN_WRAPPERS
            certain = certain and more.certain and is_known and not decides(command, program)
        deeper = depth + 1
        waiting += [(each, way if not is_run else "run", deeper) for each in reversed(more.commands)]
        if more.main is not None and way != "text":
            waiting.append((more.main, "inside" if is_run else way, deeper))
        if way == "run" or program not in _WRAPPERS:
            # All that is in a wrapper's words was found with the wrapper around it.
            waiting += [(each, "text" if more.clear else "perhaps", deeper) for each in reversed(more.tails)]
        waiting += [(each, "text", deeper) for each in (*_in_values(command), *_in_options(command))]
    return Everything(tuple(found), tuple(run), certain and not waiting, not waiting, script.values)


@lru_cache(maxsize=8)
def _inside(text: str) -> ShellScript:
    """A script in another, or what could be one. Each wrapper around it asks for the same."""
    return parse(text, depth=1)


def is_shell(command: SimpleCommand) -> bool:
    """Whether it runs a script, with arguments of its own."""
    return program_of(command) in _SHELLS


def is_interpreter(command: SimpleCommand) -> bool:
    """Whether it runs programs in another language than the shell's."""
    return _INTERPRETER.fullmatch(program_of(command)) is not None


def is_inline(command: SimpleCommand) -> bool:
    """Whether an interpreter of another language is given a program on the command line, or by its input."""
    if not is_interpreter(command):
        return False
    words = [word.text for word in command.words[1:]]
    own = 0
    while own < len(words) and (words[own][:1] in ("-", UNKNOWN) and words[own] != "-"):
        own += 2 if words[own] in _INTERPRETER_VALUES else 1
    # The program of awk is its first argument.
    is_first = program_of(command).endswith("awk") and "-f" not in words
    return is_first or words[own : own + 1] in ([], ["-"]) or any(map(_INLINE.match, words[:own]))


def _in_values(command: SimpleCommand) -> Iterator[SimpleCommand]:
    """What is run if the value of a variable that is set before a command is one: `PAGER='rm x' git log`."""
    for assignment in command.assignments[:MOST_INNER]:
        for each in _inside(assignment.partition("=")[2]).commands[:1]:
            if each.words and each.words[0].static:
                yield from _inside(each.words[0].text).commands[:MOST_INNER]


def _in_options(command: SimpleCommand) -> Iterator[SimpleCommand]:
    """What is run if the value of an option is a command: `tar --to-command='rm x'`, `git -c core.pager='rm x'`."""
    texts = [word.text if word.static else "" for word in command.words]
    found = (_COMMAND_OPTION.match(text) for text in texts)
    values = (each[1] or each[2] for each in found if each)
    behind = (following for text, following in pairwise(texts) if _BEFORE_COMMAND.fullmatch(text))
    # Nearly everything that git can be told by `-c` is a program for something.
    told = (following for text, following in pairwise(texts) if text == "-c" and program_of(command) == "git")
    configured = (each.partition("=")[2] for each in told)
    found_in = chain(_behind_letters(command), _aliased(command, texts), configured, values, behind)
    for each in islice(filter(None, found_in), MOST_INNER):
        yield from _inside(each).commands[:MOST_INNER]


def _aliased(command: SimpleCommand, texts: Sequence[str]) -> Iterator[str]:
    """What another name in git stands for: `git -c alias.p=push p`, `git config alias.p push`."""
    if program_of(command) != "git":
        return
    for text, following in pairwise((*texts, "")):
        if found := _ALIAS.fullmatch(text):
            meaning = following if found[1] is None else found[1]
            yield meaning[1:] if meaning.startswith("!") else f"git {meaning}"


def _behind_letters(command: SimpleCommand) -> Iterator[str]:
    """`rsync -e 'rm x'`, `man -P'rm x'`."""
    if (option := _COMMAND_LETTER.get(program_of(command))) is None:
        return
    texts = [word.text if word.static else "" for word in command.words]
    for text, following in pairwise((*texts, "")):
        if found := option.fullmatch(text):
            yield found[1] or following


def _by_shell(words: Sequence[ShellWord]) -> Inner:
    is_text = False
    rest = iter(enumerate(words[1:], 1))
    for at, word in rest:
        if not word.text.startswith(("-", "+")):
            return _scripts([word], at=at) if is_text else _script_file(words[at:])
        if not word.static or _SHELL_READS.match(word.text):
            return _UNCERTAIN
        is_text = is_text or (not word.text.startswith("--") and "c" in word.text)
        if word.text in _SHELL_VALUES:
            next(rest, None)
    # It reads commands from its input.
    return _NOTHING if len(words) == 2 and words[1].text in ("--version", "--help") else _UNCERTAIN


def _script_file(words: Sequence[ShellWord]) -> Inner:
    """A file with commands: what is in it is not looked into, but which one it is. Some files are what is read."""
    if not words:
        return _NOTHING
    if not words[0].static or words[0].text.startswith(("/dev/", "/proc/")) or words[0].text == "-":
        return _UNCERTAIN
    return Inner(tails=(SimpleCommand(tuple(words)),))


def _scripts(words: Sequence[ShellWord], at: int = 1, *, joined: bool = False) -> Inner:
    """Words that are commands, each or all together."""
    if not all(word.static for word in words) or (len(words) > MOST_TAILS and not joined):
        return _UNCERTAIN
    texts = [" ".join(word.text for word in words)] if joined else [word.text for word in words]
    return _read([_inside(text) for text in texts], at)


def _read(scripts: Iterable[ShellScript], at: int) -> Inner:
    scripts = tuple(scripts)
    commands = tuple(command for script in scripts for command in script.commands)
    return Inner(commands, at=at, certain=all(script.certain for script in scripts))


def _value(word: ShellWord) -> ShellWord:
    return word.replace(text=word.text.partition("=")[2]) if ASSIGNMENT.match(word.text) else word


def _by_find(words: Sequence[ShellWord], options: Sequence[str]) -> Inner:
    found = []
    certain = True
    is_fd = "-x" in options
    for at, word in enumerate(words):
        if word.text in options:
            rest = list(words[at + 1 :])
            ends = [end for end, each in enumerate(rest) if each.text in (";", "+")]
            run = _filled(rest[: ends[0]] if ends else rest, "{}")
            found.append(SimpleCommand(run))
            certain = certain and bool(run) and run[0].static
            if not ends or len(found) == MOST_INNER:
                # More than anybody writes, or one that has no end.
                certain = False
                break
        certain = certain and not _may_be(word, options) and not (is_fd and _ATTACHED.match(word.text))
    return Inner(tuple(found), at=len(words), certain=certain)


def _may_be(word: ShellWord, options: Sequence[str]) -> bool:
    """Whether only the shell knows if a word is one of these options."""
    if word.static:
        return False
    if word.is_pattern:
        return any(may_be(word, option) for option in options)
    return word.open or word.text.startswith("-")


def _by_git(words: Sequence[ShellWord]) -> Inner:
    """`git -c alias.x='!rm' x`, `git bisect run make`, `git rebase --exec make`."""
    texts = [word.text.partition("!")[2] for word in words if "=!" in word.text or word.text.startswith("!")]
    if len(words) > MOST_TAILS * MOST_INNER:
        return _UNCERTAIN
    own = next((at for at, word in enumerate(words[1:], 1) if not word.text.startswith("-")), len(words))
    if any(word.open for word in words[1 : own + 1]):
        return _UNCERTAIN
    places = [at for at, word in enumerate(words[1:-1], 1) if word.text in _GIT]
    texts += [" ".join(each.text for each in words[at + 1 :]) for at in places[:MOST_INNER]]
    if not texts:
        return _NOTHING
    found = _read([_inside(text) for text in texts[: 2 * MOST_INNER]], len(words))
    return found if max(len(texts), len(places)) <= MOST_INNER else found.replace(certain=False)


def _by_wrapper(words: tuple[ShellWord, ...], program: str) -> Inner:
    tails = tuple(SimpleCommand(words[at:]) for at in range(1, min(len(words), MOST_TAILS)))
    scripts = [_inside(text) for word in words[1:MOST_TAILS] for text in _texts(word)]
    several = tuple(command for script in scripts for command in script.commands)
    is_short = len(words) <= MOST_TAILS
    splits = program in ("env", "genv") and any(_SPLITS.match(word.text) for word in words)
    if is_short and not splits and (begun := beginning(program, words)) is not None:
        return _plainly(words, program, begun).replace(tails=tails + several)
    starts = list(islice(_first_behind(words), 1 if program in _CONTAINERS else 2))
    certain = is_short and not splits and all(script.certain for script in scripts)
    certain = certain and (bool(starts) or program not in _TO_SHELL) and all(words[at].static for at in starts)
    return Inner(several, tails=tails, at=starts[0] if starts else len(words), certain=certain, clear=False)


def _plainly(words: tuple[ShellWord, ...], program: str, begun: Beginning) -> Inner:
    """What is run by a program of which it is known where the other command begins."""
    run = words[begun.at :]
    if not run:
        return Inner(certain=program not in _TO_SHELL)
    if program in _READING:
        replaced = begun.value_of("-I", "-i", "--replace")
        # What it reads goes behind that, or where it says.
        run = (*run, _ANYTHING) if replaced is None else _filled(run, replaced or "{}")
    assignments = tuple(word.text for word in words[1 : begun.at] if ASSIGNMENT.match(word.text))
    certain = run[0].static and not run[0].text.startswith("-")
    return Inner(main=SimpleCommand(run, assignments), at=begun.at, certain=certain)


def _filled(words: Sequence[ShellWord], placeholder: str) -> tuple[ShellWord, ...]:
    """Words as they are with something else in each place that is kept for it."""
    return tuple(
        word.replace(text=word.text.replace(placeholder, UNKNOWN), static=False, open=True)
        if placeholder in word.text
        else word
        for word in words
    )


def _texts(word: ShellWord) -> Iterator[str]:
    """What in a word looks like a command of several words; also behind an option, as in `-c'rm x'`."""
    if word.static and _SEVERAL.search(word.text):
        yield word.text
        if word.text.startswith("-"):
            yield word.text.partition("=")[2] if word.text.startswith("--") else word.text[2:]


def _first_behind(words: Sequence[ShellWord]) -> Iterator[int]:
    """Where the other command could begin: the first word that is neither an option nor a variable."""
    for at, word in enumerate(words[1:], 1):
        if not word.text.startswith("-") and not ASSIGNMENT.match(word.text):
            yield at
