"""Programs that run others: which of their arguments decide what is run, and which go to a shell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trunkline.wires.agentproc.profile import programs as known
from trunkline.wires.agentproc.profile.placeholders import from_the_chat
from trunkline.wires.agentproc.profile.programs import is_interpreter, is_run, is_short, name_of, reads


def deciding(argv: Sequence[str], index: int, name: str) -> Iterator[int]:
    """The arguments of a wrapper that decide what it runs."""
    wrapper = known.WRAPPERS[name]
    if name == "env":
        yield from _of_env(argv, index + 1)
    elif wrapper.options is not None:
        options, _ = parted(argv[index + 1 :], wrapper.options)
        program = index + 1 + len(options) + wrapper.operands
        yield from range(index + 1, min(program + 1, len(argv)))
    else:
        operand = -1
        for place in range(index + 1, len(argv)):
            operand += not argv[place].startswith("-")
            if operand == wrapper.operands:
                # Behind an option it may be that option's value.
                if not argv[place - 1].startswith("-") or argv[place - 1] == "--" or "=" in argv[place - 1]:
                    yield place
                return


def _of_env(argv: Sequence[str], start: int) -> Iterator[int]:
    """The arguments of `env` up to the program that it runs, without the variables that run nothing."""
    index = start
    while index < len(argv):
        word = argv[index]
        variable, equals, _ = word.partition("=")
        if word.startswith("-"):
            yield index
            if reads(word, known.ENV)[1] and index + 1 < len(argv):
                index += 1
                yield index
        elif not equals:
            yield index
            return
        elif from_the_chat(variable) or is_run(variable):
            yield index
        index += 1


def split_by_env(argv: Sequence[str]) -> tuple[list[str], list[int]]:
    """The arguments, with a text for `env -S` split as `env` does it, and where each of them came from."""
    words: list[str] = []
    places: list[int] = []
    seen = waiting = False
    for index, word in enumerate(argv):
        brings_code, waits = reads(word, known.ENV) if seen and word.startswith("-") else (False, 0)
        text = word if waiting else word.partition("=" if word.startswith("--") else "S")[2] if brings_code else ""
        is_split = bool(text) and not from_the_chat(text)
        pieces = text.split() if is_split else [word]
        if waiting and is_split:
            # The option itself has done its work.
            del words[-1], places[-1]
        waiting = brings_code and bool(waits)
        words += pieces
        places += [index] * len(pieces)
        seen = seen or name_of(word) == "env"
    return words, places


def commands(argv: Sequence[str], index: int, name: str) -> Iterator[int]:
    """The arguments that a program hands to a shell."""
    later = range(index + 1, len(argv))
    if name in known.COMMANDERS:
        # `npm` has no options behind this; with `su`, they are those of the shell.
        end = argv.index("--", index) if name == "npm" and "--" in argv[index:] else len(argv)
        yield from (place for place in later if place < end and _is_command(argv[place - 1], argv[place], name))
    elif name in known.COMMAND_OPTIONS:
        options = known.COMMAND_OPTIONS[name]
        yield from (place for place in later if known.takes_command(argv[place - 1], argv[place], options))
    elif name == "git":
        # `-c alias.x=!COMMAND`, in front of what git is to do.
        for place in later:
            if not argv[place - 1].startswith("-") and place - 1 != index and argv[place - 2] != "-c":
                return
            if argv[place - 1] == "-c":
                yield place
    elif name == "pnpm" and (modes := [place for place in later if argv[place] in ("-c", "--shell-mode")]):
        yield from range(modes[0] + 1, len(argv))
    elif name in known.WRAPPERS and (own_options := known.WRAPPERS[name].options) is not None and own_options.code:
        own, _ = parted(argv[index + 1 :], own_options)
        for place, word in enumerate(own, index + 1):
            brings_code, values = reads(word, own_options)
            yield from range(place, min(place + values + 1, len(argv)) if brings_code else place)
    elif name in ("docker", "podman") and _has_shell_as_entrypoint(argv[index:]):
        yield from (place for place in later if _is_command(argv[place - 1], argv[place], name))


def _is_command(option: str, word: str, name: str) -> bool:
    long = known.COMMANDERS.get(name, ())
    attached = word.startswith(tuple(f"{each}=" for each in long)) or (is_short(word) and "c" in word)
    return attached or option in long or (is_short(option) and option.endswith("c"))


def has_command(rest: Sequence[str], name: str) -> bool:
    """Whether a program that would run a shell is told to run something else."""
    is_told = any(_is_command("", word, name) or word.partition("=")[0] in known.COMMANDERS[name] for word in rest)
    operands = [word for word in rest if not word.startswith("-")]
    return is_told or (name == "script" and len(operands) > 1) or (name == "runuser" and "-u" in rest)


def starts_shell(rest: Sequence[str], name: str) -> bool:
    """Whether a wrapper is given no program, and runs a shell then."""
    if name not in known.SHELL_STARTERS:
        return False
    wrapper, needed = known.WRAPPERS[name], known.SHELL_STARTERS[name]
    options, operands = parted(rest, wrapper.options or known.Options())
    asked = any(word in needed or (is_short(word) and any(f"-{each}" in needed for each in word)) for word in options)
    return len(operands) <= wrapper.operands and (asked or not needed)


def _has_shell_as_entrypoint(words: Sequence[str]) -> bool:
    pairs = zip(words, [*words[1:], ""], strict=True)
    named = [word.partition("=")[2] or following for word, following in pairs if word.startswith("--entrypoint")]
    return any(is_interpreter(name_of(word)) for word in named)


def replaced(options: Sequence[str]) -> str | None:
    """What `xargs` is told to replace."""
    for place, word in enumerate(options):
        if word.startswith("-I"):
            return word[2:] or "".join(options[place + 1 : place + 2])
        if word.startswith(("-i", "--replace")):
            return word.removeprefix("-i").removeprefix("--replace").removeprefix("=") or "{}"
    return None


def parted(words: Sequence[str], options: known.Options) -> tuple[Sequence[str], Sequence[str]]:
    """The options of a program with their values, and what is behind them."""
    end = 0
    while end < len(words) and words[end].startswith("-"):
        if words[end] == "--":
            end += 1
            break
        end += 1 + reads(words[end], options)[1]
    return words[:end], words[end:]
