"""Profiles that would let whoever writes in the chat run what they like. They are refused when they are loaded.

    sh -c "agent {{MESSAGE}}"               refused: a message can end the argument and go on with a command
    sh -c 'agent "$1"' sh {{MESSAGE}}       fine: an argument of its own, which no shell reads as a script
    sh    with the message on its input     refused: the shell would run it
    python3 -c "print('{{MESSAGE}}')"       refused: the same with other languages
    perl -e 'print @ARGV' {{MESSAGE}}       refused: perl still takes `-e...` for an option there; with `--` it is fine
    npx -c "agent {{MESSAGE}}"              refused: it goes to a shell, as with `su -c`, `nix-shell --run` and others
    timeout 5 {{MESSAGE}}                   refused: the message would be the program
    ssh host agent {{MESSAGE}}              refused: the far end hands it all to a shell

The rule for shells and interpreters: what they take for themselves, which is their options and up to the script, holds
nothing from the chat. Shells are looked for anywhere among the arguments, interpreters where a program can stand.

Known limits: a program that is none of these by its name (`profile_programs`), or a script that evaluates its
arguments, is not seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.base.values import Value
from trunkline.wires.agentproc.profile import programs as known
from trunkline.wires.agentproc.profile.placeholders import from_the_chat
from trunkline.wires.agentproc.profile.programs import is_interpreter, is_short, name_of, reads
from trunkline.wires.agentproc.profile.wrappers import (
    commands,
    deciding,
    has_command,
    parted,
    replaced,
    split_by_env,
    starts_shell,
)


class Risk(Value):
    """Which argument is the matter, what could happen, and what to do. `index` is -1 for what comes on the input."""

    index: int
    why: str
    hint: str


_ON_INPUT = -1
_PYTHONS = ("python", "pypy")
#: Options whose value is a file with code.
_FROM_FILE = ("-f", "--file", "--from-file")
#: What `xargs` puts into the arguments of the program that it runs.
_INPUT = "{{MESSAGE}}"

_AS_ARGUMENT = 'Give it as an argument of its own behind the script (`"$1"` there), or let the script read'
_OF_A_SHELL = f'{_AS_ARGUMENT} `"$AGENT_MESSAGE"`.'
_OF_A_LANGUAGE = (
    "Let the code read the variable `AGENT_MESSAGE`, or give it as an argument of its own behind the code and `--`."
)
_BEHIND = "Put it behind the program."
_AS_INPUT = "Use `stdin: message` and let the agent read its input."
_AS_SCRIPT = "Write a script that reads the variable `AGENT_MESSAGE`, and run that."


def risk(argv: Sequence[str], chat_on_stdin: bool) -> Risk | None:
    """What is dangerous about an argument list whose placeholders are not filled in yet; `None` if nothing is seen."""
    if what := from_the_chat(argv[0]):
        return Risk(0, f"`{what}` would decide which program is run.", "Name the program.")
    words, places = split_by_env(argv)
    found = _risk(words, chat_on_stdin)
    return found if found is None or found.index == _ON_INPUT else found.replace(index=places[found.index])


def script_file(argv: Sequence[str]) -> int | None:
    """Which argument names the file that an interpreter is to run; `None` where there is none, or one cannot tell."""
    name = name_of(argv[0])
    if not is_interpreter(name) or name in known.NO_FILES:
        return None
    return _own(argv, 1, name).file


def _risk(argv: Sequence[str], chat_on_stdin: bool) -> Risk | None:
    is_program = True
    wraps = name_of(argv[0]) in known.WRAPPERS or name_of(argv[0]) in known.FINDERS
    for index, word in enumerate(argv):
        name = name_of(word)
        found = _of_program(argv, index, name, chat_on_stdin) if is_program else _of_argument(argv, index, name)
        if found is not None:
            return found
        # A wrapper's options are not told from the program that it runs: any of them may be that.
        is_program = is_program and wraps and not is_interpreter(name)
    return None


def _of_program(argv: Sequence[str], index: int, name: str, chat_on_stdin: bool) -> Risk | None:
    """What is dangerous about a program of that name at that place."""
    if is_interpreter(name):
        return _of_interpreter(argv, index, name, chat_on_stdin)
    found = _of_arguments(argv, index, name)
    if found is not None or not chat_on_stdin:
        return found
    return _of_input(argv[index + 1 :], name)


def _of_interpreter(argv: Sequence[str], index: int, name: str, chat_on_stdin: bool) -> Risk | None:
    own = _own(argv, index + 1, name)
    hint = _OF_A_SHELL if name in known.SHELLS else _OF_A_LANGUAGE
    if found := _first(argv, own.places, f"is part of what `{name}` runs: a message could run anything.", hint):
        return found
    module = _module(argv, own) if name in _PYTHONS else ""
    if module in known.CODE_MODULES:
        later = range(index + 1, len(argv))
        if found := _first(argv, later, f"is part of what `{name} -m {module}` runs.", _OF_A_LANGUAGE):
            return found
    has_file = own.file is not None and argv[own.file] != "-"
    if chat_on_stdin and (
        not (has_file or own.has_code)
        or module in known.INPUT_MODULES
        or any(_reads_input(argv, place) for place in own.places)
    ):
        return _run_input(name, "Name a script.")
    if chat_on_stdin and name in known.INSPECTORS and any(_inspects(argv[place]) for place in own.places):
        return _run_input(name, "Leave out `-i`.")
    return None


def _module(argv: Sequence[str], own: _Own) -> str:
    """The module that Python runs, if it is a module."""
    *_, option, last = ("", "", *(argv[place] for place in own.places))
    if is_short(option) and option.endswith("m"):
        return last
    return last.partition("m")[2] if is_short(last) else ""


def _reads_input(argv: Sequence[str], place: int) -> bool:
    """Whether an argument makes an interpreter take its input for code."""
    return known.names_input(argv[place]) or (argv[place] == "-" and argv[place - 1] in _FROM_FILE)


def _inspects(word: str) -> bool:
    """Whether an option has the interpreter go on with its input behind the script."""
    return word == "--interactive" or (is_short(word) and "i" in word.partition("c")[0])


def _of_arguments(argv: Sequence[str], index: int, name: str) -> Risk | None:
    """What a program that is no interpreter would do with what comes from the chat among its arguments."""
    later = range(index + 1, len(argv))
    to_a_shell = f"is handed to a shell by `{name}`, which would run what is in it."
    if name in known.JOINERS:
        return _first(argv, later, to_a_shell, _AS_INPUT)
    if name in known.CODE_TAKERS:
        return _first(argv, later, f"is part of what `{name}` is told to do: a message could do anything.", _AS_SCRIPT)
    if name in known.FINDERS:
        run = [place for place in later if argv[place - 1] in known.FINDERS[name]]
        return _first(argv, run, f"would decide what `{name}` runs.", _BEHIND)
    if found := _first(argv, list(commands(argv, index, name)), to_a_shell, _OF_A_SHELL):
        return found
    if name in known.WRAPPERS:
        return _first(argv, list(deciding(argv, index, name)), f"would decide what `{name}` runs.", _BEHIND)
    return None


def _of_input(rest: Sequence[str], name: str) -> Risk | None:
    """What a program that is no interpreter would do with a message on its input. `rest` are its arguments."""
    if name in known.INPUT_RUNNERS or name in known.CODE_TAKERS:
        return _run_input(name, _AS_SCRIPT)
    if name == "ssh":
        _, operands = parted(rest, known.SSH)
        command = " ".join(operands[1:]).split()
        return _risk(command, True) if command else _run_input(name, "Name the program to run there.")
    if name == "xargs":
        return _of_xargs(rest)
    if name == "socat":
        return _of_socat(rest)
    if (name in known.INPUT_SHELLS and not has_command(rest, name)) or starts_shell(rest, name):
        return _run_input(name, "Say which program it is to run.")
    return None


def _of_socat(rest: Sequence[str]) -> Risk | None:
    """What it would do with a message that it passes on to the program in one of its addresses."""
    for kind, _, command in (word.partition(":") for word in rest):
        words = command.partition(",")[0].split()
        if kind.lower() in known.SOCAT_RUNS and words and (found := _risk(words, True)):
            return found
    return None


def _run_input(name: str, hint: str) -> Risk:
    return Risk(_ON_INPUT, f"The message comes on the input of `{name}`, which would run it.", hint)


def _of_argument(argv: Sequence[str], index: int, name: str) -> Risk | None:
    """What is dangerous about a word among the arguments: if it is a shell, with a script behind it."""
    if name not in known.SHELLS:
        return None
    own = _own(argv, index + 1, name)
    why = f"is part of what `{name}` runs: a message could run anything."
    return _first(argv, own.places, why, _OF_A_SHELL) if own.has_code else None


def _first(argv: Sequence[str], places: Sequence[int], why: str, hint: str) -> Risk | None:
    for index in places:
        if what := from_the_chat(argv[index]):
            return Risk(index, f"`{what}` {why}", hint)
    return None


# Shells and other interpreters


class _Own(Value):
    """The arguments that an interpreter takes for itself; which of them is the file to run; whether there is code."""

    places: tuple[int, ...]
    file: int | None
    has_code: bool


def _own(argv: Sequence[str], start: int, name: str) -> _Own:
    return _of_shell(argv, start) if name in known.SHELLS else _of_language(argv, start, known.LANGUAGES[name])


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
        has_code = has_code or (is_short(word) and "c" in word)
        reads_input = reads_input or (is_short(word) and "s" in word)
        # `-o pipefail`, also anywhere in `-euo` or `-oc`: each of them takes one more argument.
        end += word in known.SHELL_LONG_TAKING if word.startswith("--") else sum(letter in "oO" for letter in word)
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


def _of_language(argv: Sequence[str], start: int, options: known.Options) -> _Own:
    """The options of an interpreter with what belongs to them, and the file that it runs if they hold no code."""
    has_code, subcommands, end = False, options.subcommands, start
    texts: set[int] = set()
    while end < len(argv):
        word = argv[end]
        if word in subcommands and not has_code:
            subcommands = ()
        elif word in ("--", "-") or not word.startswith("-"):
            break
        code, values = reads(word, options)
        has_code = has_code or code
        end += 1 + values
        if word in options.texts:
            texts.add(end - 1)
        if code and options.ends_with_code:
            break
    places = [place for place in range(start, min(end, len(argv))) if place not in texts]
    rest = argv[end:]
    if has_code:
        # Here is an argument for the code; but one that comes from the chat may begin with a dash, and be an option.
        if not options.ends_with_code and rest and rest[0].startswith("{{"):
            places.append(end)
        return _Own(tuple(places), None, True)
    file = end + (bool(rest) and rest[0] == "--")
    if file >= len(argv) or argv[file] == "-":
        return _Own(tuple(places), None, False)
    return _Own((*places, *range(end, file + 1)), file, False)


# Programs that run others


def _of_xargs(rest: Sequence[str]) -> Risk | None:
    """The program that `xargs` runs gets the message as arguments, or wherever its `-I` says."""
    options, operands = parted(rest, known.XARGS)
    mark = replaced(options)
    command = [word.replace(mark, _INPUT) for word in operands] if mark else [*operands, _INPUT]
    found = risk(command, False) if operands else None
    return (
        None
        if found is None
        else found.replace(index=_ON_INPUT, why=f"`xargs` puts it into the arguments: {found.why}")
    )
