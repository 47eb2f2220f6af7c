"""Profiles that would let whoever writes in the chat run what they like. They are refused when they are loaded.

    sh -c "agent {{MESSAGE}}"               refused: a message can end the argument and go on with a command
    sh -c 'agent "$1"' sh {{MESSAGE}}       fine: an argument of its own, which no shell reads as a script
    sh    with the message on its input     refused: the shell would run it
    python3 -c "print('{{MESSAGE}}')"       refused: the same with other languages
    perl -e 'print @ARGV' {{MESSAGE}}       refused: perl still takes `-e...` for an option there; with `--` it is fine
    ssh host agent {{MESSAGE}}              refused: the far end hands it all to a shell

The rule for shells and interpreters: what they take for themselves, which is their options and up to the script, holds
nothing from the chat. Shells are looked for anywhere among the arguments, interpreters where a program can stand.

Known limits: a program that is none of these by its name, or a script that evaluates its arguments, is not seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from trunkline.base.values import Value
from trunkline.wires.agentproc.placeholders import from_the_chat


class Risk(Value):
    """Which argument is the matter, what could happen, and what to do. `index` is -1 for what comes on the input."""

    index: int
    why: str
    hint: str


class _Language(Value):
    """The options of an interpreter: single letters that are followed by code or by something else, and long ones."""

    code: str = ""
    taking: str = ""
    attached: str = ""
    """Letters that take what follows them in the same argument, if anything."""
    long_code: tuple[str, ...] = ()
    long_taking: tuple[str, ...] = ()
    ends_with_code: bool = False
    """Behind the code come arguments for it, and never an option."""
    subcommands: tuple[str, ...] = ()


_NODE = _Language(
    "ep",
    "rC",
    long_code=("--eval", "--print"),
    long_taking=("--require", "--import", "--loader", "--experimental-loader", "--env-file", "--conditions"),
    subcommands=("run", "eval"),
)
_PYTHON = _Language("cm", "WX", ends_with_code=True)
_AWK = _Language("fe", "vF", long_code=("--file", "--source"), long_taking=("--assign", "--field-separator"))

#: By the name of the program without version.
_LANGUAGES = {
    **dict.fromkeys(("python", "pypy"), _PYTHON),
    **dict.fromkeys(("node", "nodejs", "deno", "bun", "tsx", "ts-node"), _NODE),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _AWK),
    "perl": _Language("eE", "I", "iCDxFMm"),
    "ruby": _Language("e", "IrEC", "iKWxTF"),
    "php": _Language("rBRE", "dcztf", long_code=("--run",)),
    "lua": _Language("e", "l"),
    "luajit": _Language("e", "l"),
    "sed": _Language("ef", "l", "i", long_code=("--expression", "--file")),
    "Rscript": _Language("e"),
    "julia": _Language("eE", long_code=("--eval", "--print")),
    "osascript": _Language("e", "l"),
    "tclsh": _Language(),
    "expect": _Language("c"),
}
#: What they run is their first argument itself, and not the file of that name.
_NO_FILES = frozenset(("awk", "gawk", "mawk", "nawk", "sed"))
_ENV = _Language("S", "uC", long_code=("--split-string",), long_taking=("--unset", "--chdir"))
_SHELLS = frozenset(("sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "nu", "xonsh"))
#: Programs that hand everything they are given to a shell.
_JOINERS = frozenset(
    ("ssh", "watch", "eval", "parallel", "tmux", "screen", "make", "gmake", "cmd", "powershell", "pwsh")
)
#: Programs that hand what follows `-c` or `--command` to a shell, wherever that stands.
_COMMANDERS = frozenset(("su", "runuser", "script", "flock"))
#: Programs that run the program that their arguments name.
_WRAPPERS = frozenset(
    (
        *("env", "nohup", "nice", "ionice", "timeout", "setsid", "stdbuf", "time", "sudo", "doas", "busybox", "toybox"),
        *("xargs", "unshare", "chroot", "taskset", "strace", "firejail", "bwrap", "systemd-run", "docker", "podman"),
        *("kubectl", "uv", "uvx", "npx", "poetry", "pipenv", "conda", "nix-shell", "flatpak", *_COMMANDERS),
    )
)
_SHELL_LONG_TAKING = ("--rcfile", "--init-file", "--init-command")

#: Variables whose value is run, or decides what is run, and the beginnings of such names.
_RUN_VARIABLES = frozenset(
    (
        *("PATH", "SHELL", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "IFS", "PS4", "PROMPT_COMMAND", "EDITOR"),
        *("VISUAL", "PAGER", "BROWSER", "LESSOPEN", "NODE_OPTIONS", "NODE_PATH", "PERL5OPT", "PERL5LIB", "PERLLIB"),
        *("PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "RUBYOPT", "RUBYLIB"),
        *("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "LUA_INIT", "ZDOTDIR", "GIT_SSH", "GIT_SSH_COMMAND"),
        *("GIT_EDITOR", "GIT_PAGER", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_EXTERNAL_DIFF"),
    )
)
_RUN_VARIABLE_PREFIXES = ("LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG_")

_AS_ARGUMENT = 'Give it as an argument of its own behind the script (`"$1"` there), or let the script read'
_OF_A_SHELL = f'{_AS_ARGUMENT} `"$AGENT_MESSAGE"`.'
_OF_A_LANGUAGE = (
    "Let the code read the variable `AGENT_MESSAGE`, or give it as an argument of its own behind the code and `--`."
)


def risk(argv: Sequence[str], chat_on_stdin: bool) -> Risk | None:
    """What is dangerous about an argument list whose placeholders are not filled in yet; `None` if nothing is seen."""
    if what := from_the_chat(argv[0]):
        return Risk(0, f"`{what}` would decide which program is run.", "Name the program.")
    is_program = True
    for index, word in enumerate(argv):
        name = _name(word)
        found = _of_program(argv, index, name, chat_on_stdin) if is_program else _of_argument(argv, index, name)
        if found is not None:
            return found
        # A wrapper's options are not told from the program that it runs: any of them may be that.
        is_program = is_program and _name(argv[0]) in _WRAPPERS and not _is_interpreter(name)
    return None


def is_run(variable: str) -> bool:
    """Whether programs run the value of that variable, or let it decide what they run."""
    return variable.upper() in _RUN_VARIABLES or variable.upper().startswith(_RUN_VARIABLE_PREFIXES)


def script_file(argv: Sequence[str]) -> int | None:
    """Which argument names the file that an interpreter is to run; `None` where there is none, or one cannot tell."""
    name = _name(argv[0])
    if not _is_interpreter(name) or name in _NO_FILES:
        return None
    return _own(argv, 1, name).file


def _of_program(argv: Sequence[str], index: int, name: str, chat_on_stdin: bool) -> Risk | None:
    """What is dangerous about a program of that name at that place."""
    later = range(index + 1, len(argv))
    to_a_shell = f"is handed to a shell by `{name}`, which would run what is in it."
    if _is_interpreter(name):
        own = _own(argv, index + 1, name)
        hint = _OF_A_SHELL if name in _SHELLS else _OF_A_LANGUAGE
        if found := _first(argv, own.places, f"is part of what `{name}` runs: a message could run anything.", hint):
            return found
        if chat_on_stdin and own.file is None and not own.has_code:
            return Risk(-1, f"The message comes on the input of `{name}`, which would run it.", "Name a script.")
    elif name in _JOINERS:
        return _first(argv, later, to_a_shell, "Use `stdin: message` and let the agent read its input.")
    elif name in _COMMANDERS:
        commands = [place for place in later if _is_command(argv[place - 1], argv[place])]
        return _first(argv, commands, to_a_shell, _OF_A_SHELL)
    elif name == "env":
        places = list(_of_env(argv, index + 1))
        return _first(argv, places, "would decide what `env` runs.", "Put it behind the program.")
    return None


def _of_argument(argv: Sequence[str], index: int, name: str) -> Risk | None:
    """What is dangerous about a word among the arguments: if it is a shell, with a script behind it."""
    if name not in _SHELLS:
        return None
    own = _own(argv, index + 1, name)
    why = f"is part of what `{name}` runs: a message could run anything."
    return _first(argv, own.places, why, _OF_A_SHELL) if own.has_code else None


def _first(argv: Sequence[str], places: Sequence[int], why: str, hint: str) -> Risk | None:
    for index in places:
        if what := from_the_chat(argv[index]):
            return Risk(index, f"`{what}` {why}", hint)
    return None


class _Own(Value):
    """The arguments that an interpreter takes for itself; which of them is the file to run; whether there is code."""

    places: tuple[int, ...]
    file: int | None
    has_code: bool


def _is_interpreter(name: str) -> bool:
    return name in _SHELLS or name in _LANGUAGES


def _own(argv: Sequence[str], start: int, name: str) -> _Own:
    return _of_shell(argv, start) if name in _SHELLS else _of_language(argv, start, _LANGUAGES[name])


def _of_shell(argv: Sequence[str], start: int) -> _Own:
    """The options of a shell, and the script or the file that holds it: the first argument that is no option."""
    has_code = reads_input = False
    end = start
    while end < len(argv) and argv[end].startswith(("-", "+")):
        word = argv[end]
        end += 1
        if word.startswith("--command"):
            # Either `--command=SCRIPT`, or the script is the next argument.
            end += "=" not in word
            return _Own(tuple(range(start, min(end, len(argv)))), None, True)
        if word in ("-", "--"):
            break
        has_code = has_code or (_is_short(word) and "c" in word)
        reads_input = reads_input or (_is_short(word) and "s" in word)
        # `-o pipefail`, also at the end of `-euo`.
        end += word in _SHELL_LONG_TAKING or (not word.startswith("--") and word[-1] in "oO")
    places = tuple(range(start, min(_end_of_quotes(argv, end), len(argv))))
    is_file = end < len(argv) and not has_code and not reads_input
    return _Own(places, end if is_file else None, has_code and end < len(argv))


def _end_of_quotes(argv: Sequence[str], index: int) -> int:
    """Behind the argument at `index`; if it opens quotes that it does not close, behind the one that does.

    Nobody reads quotes here. But whoever writes `command: sh -c "agent {{MESSAGE}}"` means all that is in them.
    """
    quote = argv[index][:1] if index < len(argv) else ""
    if quote in ("'", '"') and argv[index].count(quote) % 2:
        return next((place + 1 for place in range(index + 1, len(argv)) if argv[place].endswith(quote)), len(argv))
    return index + 1


def _of_language(argv: Sequence[str], start: int, language: _Language) -> _Own:
    """The options of an interpreter with what belongs to them, and the file that it runs if they hold no code."""
    has_code, subcommands, end = False, language.subcommands, start
    while end < len(argv):
        word = argv[end]
        if word in subcommands and not has_code:
            subcommands = ()
        elif word in ("--", "-") or not word.startswith("-"):
            break
        code, takes_next = _option(word, language)
        has_code = has_code or code
        end += 1 + takes_next
        if code and language.ends_with_code:
            return _Own(tuple(range(start, min(end, len(argv)))), None, True)
    rest = argv[end:]
    if has_code:
        # Here is an argument for the code; but one that comes from the chat may begin with a dash, and be an option.
        end += bool(rest) and rest[0].startswith("{{")
        return _Own(tuple(range(start, min(end, len(argv)))), None, True)
    file = end + (bool(rest) and rest[0] == "--")
    if file >= len(argv) or argv[file] == "-":
        return _Own(tuple(range(start, min(end, len(argv)))), None, False)
    return _Own(tuple(range(start, file + 1)), file, False)


def _of_env(argv: Sequence[str], start: int) -> Iterator[int]:
    """The arguments of `env` up to the program that it runs, without the variables that run nothing."""
    index = start
    while index < len(argv):
        word = argv[index]
        variable, equals, _ = word.partition("=")
        if word.startswith("-"):
            yield index
            if _option(word, _ENV)[1] and index + 1 < len(argv):
                index += 1
                yield index
        elif not equals:
            yield index
            return
        elif from_the_chat(variable) or is_run(variable):
            yield index
        index += 1


def _option(word: str, language: _Language) -> tuple[bool, bool]:
    """Whether an option brings code, and whether the argument behind it belongs to it."""
    if word.startswith("--"):
        name = word.partition("=")[0]
        return name in language.long_code, word in language.long_code or word in language.long_taking
    for letter in word[1:]:
        if letter in language.code or letter in language.taking:
            return letter in language.code, word.endswith(letter)
        if letter in language.attached:
            break
    return False, False


def _is_short(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and word[1] != "-"


def _is_command(option: str, word: str) -> bool:
    attached = word.startswith("--command=") or (_is_short(word) and "c" in word)
    return attached or option == "--command" or (_is_short(option) and option.endswith("c"))


def _name(word: str) -> str:
    """What a program is called, without folder and version."""
    name = os.path.basename(word).removesuffix(".exe")
    return name.rstrip("0123456789.") or name
