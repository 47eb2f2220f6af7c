"""Where the other command begins in `nice -n 5 make` or `env -u A -i make`: behind options, and the values of some.

Only what is listed is known. Of every other option nobody here can say whether the next word is its value, or the
command.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from trunkline.base.values import Value
from trunkline.core.shell_guesses import is_several
from trunkline.core.shell_words import ASSIGNMENT, ShellWord

_DIGITS = "0 1 2 3 4 5 6 7 8 9"
_ENV = "i 0 v u: C: a: --ignore-environment --null --debug --unset= --chdir= --argv0="
_XARGS = (
    "0 r t x p o n: L: l? P: s: I: i? d: E: e? a: --null --no-run-if-empty --verbose --exit --interactive --open-tty "
    "--max-args= --max-lines? --max-procs= --max-chars= --replace? --delimiter= --eof? --arg-file= "
    "--process-slot-var= --show-limits"
)
_TIMEOUT = "k: s: v --kill-after= --signal= --verbose --foreground --preserve-status"
#: What each program takes before the command that it runs: `x` an option, `x:` one with a value, which may stand in
#: the next word, `x?` one whose value can only stand in the same, and likewise `--x`, `--x=` and `--x?`. These programs
#: run the command itself, without a shell.
_TAKEN = {
    "env": _ENV, "genv": _ENV, "xargs": _XARGS, "gxargs": _XARGS, "timeout": _TIMEOUT, "gtimeout": _TIMEOUT,
    "command": "p", "builtin": "", "exec": "a: c l", "nohup": "", "noglob": "", "-": "", "time": "p v",
    "nice": f"n: {_DIGITS} --adjustment=", "ionice": "c: n: t --class= --classdata= --ignore",
    "sudo": "A b E H k n P S B N u: g: p: C: T: R: D: r: t: --user= --group= --preserve-env? --non-interactive "
            "--set-home --stdin --chdir= --prompt= --askpass --background",
    "doas": "n u: C:", "stdbuf": "i: o: e: --input= --output= --error=",
    "setsid": "c f w --ctty --fork --wait", "chroot": "--userspec= --groups= --skip-chdir",
    "flock": "s x e u n o F v w: E: --shared --exclusive --unlock --nonblock --close --no-fork --verbose --wait= "
             "--timeout= --conflict-exit-code=",
    "taskset": "a c --all-tasks --cpu-list",
    "strace": "f q v t r T y x i k c C d D n N w Z z A e: o: p: s: a: S: P: u: O: b: I: X: E: U:",
    "linux32": "R L X", "linux64": "R L X",
    "i386": "R L X", "i686": "R L X", "x86_64": "R L X", "catchsegv": "", "unbuffer": "p", "ccache": "", "distcc": "",
    "fakeroot": "", "eatmydata": "", "nocache": "", "torsocks": "i", "torify": "", "tsocks": "", "chronic": "v e",
    "proxychains": "q f:", "proxychains4": "q f:", "ifne": "n", "caffeinate": "d i m s u t: w:",
    "xvfb-run": "a l e: f: n: s: p: w: --auto-servernum --server-args= --server-num= --error-file= --wait=",
    "npx": "y q p: --yes --no --no-install --quiet --package=", "bunx": "--bun --silent",
    "uvx": "q v n p: --quiet --verbose --no-cache --isolated --from= --with= --python=", "gosu": "", "setuidgid": "",
    "envdir": "", "tini": "s v g w p: e:", "dumb-init": "v c r:", "choom": "n: --adjust=",
    "uclampset": "m: M: a R", "systemd-inhibit": "--what= --who= --why= --mode= --list", "memusage": "",
    "ssh-agent": "c s D d a: t: E: O: P:", "pkexec": "--user= --disable-internal-agent --keep-cwd",
}  # fmt: skip
#: Words that are not options, before the other command.
_OPERANDS = {
    "timeout": 1, "gtimeout": 1, "flock": 1, "chroot": 1, "taskset": 1, "gosu": 1, "setuidgid": 1,
    "envdir": 1,
}  # fmt: skip
PLAIN_WRAPPERS = _TAKEN.keys()


class Beginning(Value):
    """What stands before the command that a program runs."""

    at: int
    """The number of the word with which the command begins; that of words, if there is none."""
    options: tuple[tuple[str, str], ...] = ()
    """With their values."""

    def value_of(self, *names: str) -> str | None:
        """That of the last option of these names; None if there is none."""
        return next((value for name, value in reversed(self.options) if name in names), None)


def beginning(program: str, words: Sequence[ShellWord]) -> Beginning | None:
    """Where the other command begins; None if that is not certain."""
    if program not in _TAKEN:
        return None
    options: list[tuple[str, str]] = []
    operands = left = _OPERANDS.get(program, 0)
    rest = iter(enumerate(words[1:], 1))
    for at, word in rest:
        if not word.static:
            return None
        if left < operands and word.text.startswith("-"):
            # An option behind an operand: `flock file -c command`.
            return None
        if word.text == "--":
            # Behind it there are no more options; operands come first, all the same.
            at += 1 + left
            return Beginning(at, tuple(options)) if all(each.static for each in words[: at + 1]) else None
        if ASSIGNMENT.match(word.text) and left == operands:
            continue
        if not word.text.startswith("-") or (word.text == "-" and program not in ("env", "genv")):
            if not left:
                return Beginning(at, tuple(options))
            left -= 1
            continue
        found = list(_read(program, word.text))
        if not found or any(kind == "unknown" for _, _, kind in found):
            return None
        name, _, kind = found[-1]
        if kind == "next":
            _, following = next(rest, (0, None))
            if following is None or is_several(following):
                return None
            found[-1] = name, following.text, kind
        options += [(name, value) for name, value, _ in found]
    return Beginning(len(words), tuple(options))


def _read(program: str, text: str) -> Iterator[tuple[str, str, str]]:
    """The options in a word: the name of each, its value, and whether that is in the next word."""
    taken = _taken(program)
    if text.startswith("--"):
        name, is_given, value = text.partition("=")
        kind = taken.get(name, "unknown")
        yield name, value, "unknown" if is_given and kind == "alone" else "alone" if is_given else kind
        return
    if text == "-":
        yield text, "", "alone"
    for at, letter in enumerate(text[1:], 1):
        kind = taken.get(f"-{letter}", "unknown")
        value = text[at + 1 :] if kind in ("next", "same") else ""
        yield f"-{letter}", value, "alone" if value else kind
        if kind in ("next", "same"):
            return


@lru_cache(maxsize=128)
def _taken(program: str) -> Mapping[str, str]:
    kinds = {":": "next", "=": "next", "?": "same"}
    found = (each if each.startswith("-") else f"-{each}" for each in _TAKEN[program].split())
    return {each.rstrip(":=?"): kinds.get(each[-1], "alone") for each in found}
