"""Whether a profile lets whoever writes in the chat run what they like. One rule:

    What comes from the chat is one whole argument, or standard input, and no shell or interpreter reads it as code.

    agent -p {{MESSAGE}}                    fine; so is `--prompt={{MESSAGE}}`, the whole value of an option
    agent -p "Answer this: {{MESSAGE}}"     unsafe: a part of a text, which programs may read as code
    python3 bridge.py {{MESSAGE}}           fine: it is the script's argument; so is `stdin: message`, its input
    sh -c 'agent "$1"' sh {{MESSAGE}}       unsafe: only a file keeps apart what is code and what is not
    ssh host agent {{MESSAGE}}              unsafe: a shell reads it at the far end
    sh -c 'agent "$AGENT_MESSAGE"'          fine: a variable is not code

What is unsafe needs `allow_unsafe: true`. Shells and interpreters are known by their names, wherever among the
arguments these stand: behind `env`, `sudo` or `timeout`, and behind wrappers that nobody here has heard of.

Not promised: that a program with another name does not run its arguments or its input (`sudo {{MESSAGE}}`, an editor, a
debugger), or that a script does not evaluate what it is given. No list of programs could promise that.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence

from trunkline.base.values import Value
from trunkline.wires.agentproc.profile import Profile
from trunkline.wires.agentproc.profile.placeholders import from_the_chat, used

_SHELLS = frozenset(
    ("sh", "ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "posh", "rbash", "tcsh", "xonsh", "yash", "zsh")
)
_INTERPRETERS = _SHELLS | {
    *("bpython", "bun", "deno", "elixir", "expect", "ghci", "groovy", "guile", "iex", "IPython", "ipython", "irb"),
    *("jshell", "julia", "lua", "luajit", "node", "nodejs", "octave", "osascript", "pdb", "perl", "php", "powershell"),
    *("ptpython", "pwsh", "pypy", "python", "racket", "Rscript", "ruby", "runghc", "sbcl", "scala", "tclsh", "ts-node"),
    *("tsx", "wish"),
}
#: Those for which `-m` names what to run.
_MODULES = ("pypy", "python")
#: These hand their arguments to a shell, or take code from any of them. Their input is data, or another program's.
_ALL_CODE = frozenset(("awk", "cmd", "gawk", "mawk", "mosh", "nawk", "sed", "ssh", "su", "tmux", "xargs"))
#: Variables that decide which programs are found and what they load, and how the names of more of them begin.
_LOADING = ("PATH", "ENV", "SHELL", "EDITOR", "PAGER")
_LOADING_PREFIXES = (
    *("BASH_", "DYLD_", "GIT_CONFIG", "GIT_EXTERNAL", "GIT_SSH", "LD_", "LUA_", "NODE_", "NPM_CONFIG_", "PERL"),
    *("PYTHON", "RUBY"),
)

#: The message as a whole argument, or as the whole value of an option. A space in front keeps `-x` from being one.
_WHOLE = r"(--?[\w-]+=)?\s*\{\{MESSAGE\}\}"
#: What may stand between an interpreter and its script, and brings no code: `python3 -u -X utf8`, `deno run -A`.
_PLAIN = r"-[ABPSmuw]|--|run|--(allow|enable|experimental|no)-[a-z-]+"
_PLAIN_FOR_PYTHON = r"-[IX]"
_PLAIN_FOR_A_SHELL = r"-[aefluvxo]+|--login"
#: What is followed by a value: `python3 -X utf8`, `bash -euo pipefail`.
_WITH_A_VALUE = r"-X|-[aefluvx]*o"
#: What names a file; and what is the input all the same, however it is spelled.
_FILE = r"(?!-)[^\s'\"();]*[./][^\s'\"();]*"
_INPUT = r"(-f)?-|(-f)?/+(dev|proc)/.*|.*/dev/stdin|.*/fd/\d+"

_FROM_A_FILE = "Name a script right after it (`sh ./agent.sh`), and let that read its arguments or `$AGENT_MESSAGE`."
_SCRIPT_BETWEEN = "Put your own script in between, which reads its arguments or `$AGENT_MESSAGE`."
_ON_THE_INPUT = "Use `stdin: message`, and let the agent read its input."


class Danger(Value):
    """What is unsafe: which item of which key, why, and what to do instead."""

    key: str
    item: int | str
    """An argument's place, or a variable's name."""
    why: str
    hint: str

    @property
    def where(self) -> str:
        """The item, as people call it."""
        if self.key == "command":
            return self.key
        return f"{self.key}.{self.item}" if isinstance(self.item, str) else f"{self.key}[{self.item}]"


def danger(profile: Profile) -> Danger | None:
    """What is unsafe about a profile, whether it is allowed there or not; `None` if nothing is."""
    listed = [("command", profile.command), ("resume_args", profile.resume_args), ("args", profile.args)]
    for parts in (listed, [listed[0], listed[2]]):
        found = next(_in_arguments([text for _, texts in parts for text in texts], profile), None)
        if found is not None:
            places = [(key, index) for key, texts in parts for index in range(len(texts))]
            place, why, hint = found
            return Danger(*places[place], why, hint)
    for name, value in profile.env.items():
        loads = name in _LOADING or name.startswith(_LOADING_PREFIXES)
        if loads and (what := from_the_chat(value)):
            return Danger("env", name, f"`{what}` would decide what programs load", "Use a variable of your own.")
    return None


def _in_arguments(argv: Sequence[str], profile: Profile) -> Iterator[tuple[int, str, str]]:
    """What is unsafe about the arguments: each time the place, why, and what to do."""
    if what := from_the_chat(argv[0]):
        yield 0, f"`{what}` would decide which program is run", "Name the program."
    what = from_the_chat(profile.cwd or "")
    if what and os.sep in argv[0] and not argv[0].startswith((os.sep, "~", "{{")):
        hint = "Begin it with `{{PROFILE_DIR}}/`, or give the whole path."
        yield 0, f"it is a path from `cwd`, where `{what}` would decide which program is run", hint
    for place, text in enumerate(argv):
        if "MESSAGE" in used(text) and re.fullmatch(_WHOLE, text) is None:
            hint = "Make it a separate argument, or let the agent read the variable `AGENT_MESSAGE`."
            yield place, "`{{MESSAGE}}` is only a part of this argument, which a program may read as code", hint
    on_input = profile.stdin == "message" or (profile.protocol != "0.1" and profile.stream is None)
    scripts = [script_of(argv, place) for place in range(len(argv))]
    for place, text in enumerate(argv):
        name, script = _name(text), scripts[place]
        if (
            script is not None
            and what
            and argv[script - 1] != "-m"
            and not argv[script].startswith((os.sep, "~", "{{"))
        ):
            hint = "Begin it with `{{PROFILE_DIR}}/`, or give the whole path."
            yield script, f"it is a path from `cwd`, where `{what}` would decide which script is run", hint
        if on_input and (hint := _reads_its_input(argv, place, script)):
            yield place, f"the message is the input of `{name}`, which may read it as code", hint
        if hint := _reads_its_arguments(argv, place):
            own = argv[place + 1 : script]
            for later, word in enumerate(own, place + 1):
                if said := from_the_chat(word):
                    yield later, f"`{said}` is an argument of `{name}`, which may read it as code", hint


def _reads_its_arguments(argv: Sequence[str], place: int) -> str:
    """What to do about it, if the program at that place may read its arguments as code."""
    name = _name(argv[place])
    if name in _INTERPRETERS:
        return _FROM_A_FILE
    if name == "env" and _splits(argv[place + 1 :]):
        return _SCRIPT_BETWEEN
    return _ON_THE_INPUT if name in _ALL_CODE else ""


def _splits(words: Sequence[str]) -> bool:
    """Whether `env` makes words out of a text, or could be told to by the chat: `env -S "sh -c"`, `env {{MESSAGE}}`."""
    for word in words:
        if re.fullmatch(r"-[a-z]*S.*|--split-string.*", word):
            return True
        if not word.startswith("-") and "=" not in word:
            return from_the_chat(word) is not None
    return False


def _reads_its_input(argv: Sequence[str], place: int, script: int | None) -> str:
    """What to do about it, if the program at that place may read its input as code."""
    name, behind = _name(argv[place]), argv[place + 1 :]
    if name in _INTERPRETERS:
        return _FROM_A_FILE if script is None else ""
    reads_code = name in _ALL_CODE and any(re.fullmatch(_INPUT, word) for word in behind)
    return _SCRIPT_BETWEEN if reads_code else ""


def script_of(argv: Sequence[str], place: int = 0) -> int | None:
    """Which argument says what the interpreter at that place runs, a file or a module; `None` if none does."""
    name = _name(argv[place])
    if name not in _INTERPRETERS:
        return None
    own = _PLAIN_FOR_A_SHELL if name in _SHELLS else _PLAIN_FOR_PYTHON
    plain = f"{_PLAIN}|{own}" if name in _SHELLS or name in _MODULES else _PLAIN
    for index in range(place + 1, len(argv)):
        word = argv[index]
        if from_the_chat(word):
            return None
        if argv[index - 1] == "-m" and name in _MODULES:
            # Those that come with Python are no agents, and many run what they are given: `timeit`, `code`, `pdb`.
            return None if word.partition(".")[0] in sys.stdlib_module_names else index
        if index - 1 > place and re.fullmatch(_WITH_A_VALUE, argv[index - 1]):
            continue
        if re.fullmatch(_FILE, word):
            return None if re.fullmatch(_INPUT, os.path.normpath(word)) else index
        if re.fullmatch(plain, word) is None:
            return None
    return None


def is_shell(word: str) -> bool:
    """Whether a word is the name of a shell, in whatever folder."""
    return _name(word) in _SHELLS


def _name(word: str) -> str:
    """What a program is called, without folder and version: `/usr/bin/python3.11` is `python`."""
    return os.path.basename(word).removesuffix(".exe").rstrip("0123456789.-")
