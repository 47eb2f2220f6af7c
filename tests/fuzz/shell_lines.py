"""Command lines of every shape, judged by rules and then run by real shells with programs that only leave a trace.

    python -m tests.fuzz.shell_lines --runs 100000 --seed 1

An allowed line must not run `bad`, nor anything else that was not allowed, nor write a file. A line that runs `bad`
must be denied or asked about where a rule denies `bad`. Prints the lines for which that is not so.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from trunkline.core.approvals import Policy
from trunkline.core.events import ToolRequested
from trunkline.core.rules import Rules

#: Real programs that run others, which lines may use.
REAL = ("sh", "bash", "env", "xargs", "find", "timeout", "nice", "cat")
ALLOWED = (
    "good:*", "fine -x:*", "echo:*", "printf:*", "test:*", "[:*", "true", "cd:*", "read:*", "cat:*",
    *(f"{name}:*" for name in REAL), "eval:*", "export:*", "unset:*", "let:*", "local:*", "exec:*", "command:*",
)  # fmt: skip
SHELLS = ("bash", "dash", "zsh")
#: A line that takes longer waits for something, or never ends.
LINE_SECONDS = 2.0
#: The one place outside of its directory that a line may name. By chance others come up, and lines are really run.
_NOWHERE = re.compile(r"/dev/null(?=[\s;&|)]|\Z)")

_PROGRAMS = ("good", "good", "good a", "fine -x", "fine", "bad", "bad x", "echo", "true", "printf %s", "test", "cat")
_RUNNERS = (
    "sh -c", "bash -c", "eval", "env", "env A=1", "env -S", "env -i", "xargs", "xargs -n1", "find . -exec", "command",
    "exec", "timeout 5", "nice", "bash -o pipefail -c", "bash -ec", "sh -s", "bash --norc -c", "eval --", "builtin",
    "env -u good", "env -C .", "env --unset good", "env - ", "env --", "env -iu A", "env --s", "xargs -I{}",
    "xargs -I good",
    "xargs -i", "xargs -E good", "xargs -d x", "xargs -a f", "xargs --replace=good", "xargs -r", "xargs -0",
    "nice -n 5",
    "nice -5", "nice --adjustment=5", "timeout -k 1 5", "timeout -s KILL 5", "timeout --signal KILL 5", "timeout 5 --",
    "command -p", "exec -a good", "exec -c", "time", "time -p", "command eval", "builtin eval", "nice xargs env",
    "timeout 5 env -S", "nice sh -c", "find . -maxdepth 0 -exec",
)  # fmt: skip
_TOKENS = (
    *_PROGRAMS, *_RUNNERS,
    " ", " ", " ", " ", "\n", ";", "&", "&&", "||", "|", "|&", "(", ")", "{", "}", "{ ", "; }", "$(", ")", "`", "$((",
    "))", "((", "<(", ">(", "=(", "<<E\n", "\nE\n", "<<-E\n", "<<'E'\n", "<<<", "<", ">", ">>", "2>&1", ">&2", "&>",
    ">/dev/null", "f", "E", "'", '"', "'", '"', "\\", "\\\n", "$", "$x", "${x}", "${x:-", "${x:=", "${x#", "}", "$'",
    "\\'", '$"', "\\x62ad", "#", " #", "x=", "x=bad", "A=1 ", "a[", "]", "[", "[[", "]]", "!", "! ", "if ", "; then ",
    "; fi", "else ", "for x in ", "; do ", "; done", "while ", "until ", "case a in a) ", ";; esac", "function g { ",
    "g() { ", "time ", "coproc ", "*", "?", "~", "{a,b}", "{bad,x}", "\t", "\r", "\u00a0", "-c", "--", "-", "+", "=",
    "@", "%", "^", ",", ":", "1", "a", ";", "\n", "$x ", '"$x"', '"$@"', "$0", "$_", "$-", "$?", "$[", "{}", "\\;", "+",
    "<<E\\\n", "<\\\n<E\n", "<<\\\nE\n", "<<$'E'\n", '<<"E"\n', "\n$(bad)\nE\n", "\nE\nbad\n", "$(cat <<E\n", "{}",
    "good;",
    "-u ", "-I", "-n 1 ", "-a ", "$@", "$x$y", "x=b y=ad; ", "declare -i ", "a[x]=1 ", "b\\141d", "% ", "-I% ",
    "-v", "-eq", "'a[$(bad)]'", "-exec bad ;", "'-exec bad ;'", "'bad'",
)  # fmt: skip
#: Lines near which others may be that a reader gets wrong.
SEEDS = (
    "good && bad", "good\nbad", "good $(bad)", "good `bad`", "echo \"$(bad)\"", "good <<E\n$(bad)\nE\nbad",
    "cat <<'E'\n$(bad)\nE", "for x in 'a[$(bad)]'; do echo $((x)); done", "for x in bad; do $x; done",
    "test -v 'a[$(bad)]'", "printf -v 'a[$(bad)]' x", "for x in '-exec bad ;'; do find . $x; done",
    "echo bad | xargs env", "echo bad | xargs", "find . -exec bad ';'", "env -S 'bad x'", "bash -o pipefail -c bad",
    "case a in a) bad;; esac", "good() { bad; }; good", "x=bad; $x", "echo ${x:-$(bad)}", "echo \"${x:-`bad`}\"",
    "echo $'a\\'; bad; echo '", "echo 'a' 'b'; bad", "good \\\n&& bad", "good # x\nbad", "good #x\\\nbad",
    "{ good; } && bad", "if good; then bad; fi", "! bad", "time bad", "good | bad", "good & bad", "(bad)", "((bad))",
    "[[ $(bad) ]]", "cat <(bad)", "good > >(bad)", "cat <<E\nE\nbad", "cat <<-E\n\tE\nbad", "cat <<E <<F\nE\nF\nbad",
    "eval 'ba''d'", "b\\ad", "b''ad", "$'\\x62ad'", "{bad,x}", "b?d", "good; x=1 bad", "read x <<<bad; $x",
    "cd .. && echo x > f", "echo x > f", "good 2>&1 >/dev/null", "cat <<E\nx\\\nE\nbad\nE", "echo $(cat <<E\n)\nE\n)",
    "echo \"`echo \\\"$(bad)\\\"`\"", "echo `echo \\`bad\\``", "let 'x=a[$(bad)]'", "unset 'a[$(bad)]'",
    "cat <<E\\\nF\n$(bad)\nEF", "cat <<\\\nE\n$(bad)\nE", "cat <\\\n<cat\necho '$(bad)'\ncat",
    "cat <<'cat' $(cat <<'cat b'\ncat b\nbad\ncat\ncat b\n)\ncat",
    "cat <<'cat' <(cat <<'good b'\ngood b\nbad\ncat\ngood b\n)\ncat",
    "cat <<$'E'\n$E\nbad\nE", 'cat <<$"E"\n$E\nbad\nE', "eval $'good bad'", "env -u good bad", "env --unset good bad",
    "echo x | xargs -I good bad good", "echo x | xargs -E good bad", "echo bad | xargs -I good good",
    "x=b y=ad; command eval \"$x$y\"",
    "printf 'b\\141d' | xargs -I% sh -c %", "echo bad | nice xargs env", "timeout 5 env '-Sbad\\_x'",
    "env '--s=bad\\_x'",
    "A\\\n=1 bad", "x='q[$(bad)]'; a[x]=1", "declare -i x; y='q[$(bad)]'; x=$y", "i\\\nf good; then bad; fi",
    "good &\\\n& bad",
    "for good in 'a[$(bad)]'; do echo $(\\\n(good)); done", "command . <(echo bad)", "echo bad | timeout 5 sh",
    "find . -maxdepth 0 -exec env {} bad \\;", "echo $(cat <<E\n$(bad)\nE\n)", "cat <<E | sh\nbad\nE", "time -p bad",
    "cat <<E; cat <<F $(cat <<G\nG\n)\nE\nF\nbad", "export 'x=1' && bad", "echo ${x:0:y}", "echo $x[bad]",
    "command -p bad", "exec -a x bad", "sh <<< bad",
)  # fmt: skip


class ShellLines:
    """Makes lines. Two with the same seed make the same."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __iter__(self) -> Iterator[str]:
        makers = (self._soup, self._grammar, self._mutated)
        while True:
            yield self._random.choice(makers)()

    def _soup(self) -> str:
        pick = self._random
        return "".join(pick.choice(_TOKENS) + pick.choice(("", " ")) for _ in range(pick.randint(1, 14)))

    def _mutated(self) -> str:
        pick = self._random
        line = pick.choice(SEEDS)
        for _ in range(pick.randint(1, 4)):
            at = pick.randint(0, len(line))
            match pick.randint(0, 4):
                case 0:
                    line = line[:at] + pick.choice(_TOKENS) + line[at:]
                case 1:
                    line = line[:at] + line[at + pick.randint(1, 3) :]
                case 2:
                    line = line[:at] + pick.choice(SEEDS) + line[at:]
                case 3:
                    other = pick.choice(SEEDS)
                    line = line[:at] + other[pick.randint(0, len(other)) :]
                case _:
                    end = pick.randint(at, len(line))
                    line = line[:at] + line[at:end] * 2 + line[end:]
        return line

    # Lines that are well formed

    def _grammar(self) -> str:
        line = self._list(3)
        return self._continued(line) if self._random.random() < 0.3 else line

    def _list(self, depth: int) -> str:
        pick = self._random
        between = ("; ", " && ", " || ", " | ", "\n", " & ")
        parts = [self._command(depth)]
        for _ in range(pick.choice((0, 0, 1, 2))):
            parts += [pick.choice(between), self._command(depth)]
        return "".join(parts)

    def _command(self, depth: int) -> str:
        pick = self._random
        if depth <= 0:
            return self._simple(0)
        inside = depth - 1
        match pick.randint(0, 15):
            case 0:
                return f"({self._list(inside)})"
            case 1:
                return f"{{ {self._list(inside)}; }}"
            case 2:
                return f"if {self._list(inside)}; then {self._list(inside)}; fi"
            case 3:
                return f"for x in {self._word(inside)} {self._word(inside)}; do {self._list(inside)}; done"
            case 4:
                return f"while {self._simple(inside)}; do {self._list(inside)}; break; done"
            case 5:
                return f"! {self._simple(inside)}"
            case 6:
                return self._document(inside)
            case 7:
                return f"{pick.choice(_RUNNERS)} {self._quoted(self._list(inside))}"
            case 8:
                return f"{pick.choice(_RUNNERS)} {self._simple(inside)}"
            case 9:
                return f"case {self._word(inside)} in {self._word(inside)}) {self._list(inside)};; esac"
            case _:
                return self._simple(inside)

    def _document(self, depth: int) -> str:
        """One, or two of which one is within a substitution."""
        pick = self._random
        end = pick.choice(("E", "'E'", '"E"', "\\E", "E\\\n", "\\\nE", "$'E'"))
        inside = f"{self._word(depth)}\n{self._list(depth)}"
        if pick.random() < 0.6:
            return f"cat <<{end}\n{inside}\nE\n{self._simple(depth)}"
        other = pick.choice(("F", "'F'", "E", "'good b'"))
        name = other.strip("'")
        within = f"cat <<{other}\n{name}\n{inside}\n{name}\n"
        word = pick.choice(("$({})", "<({})", '"$({})"', "`{}`")).format(within)
        return f"cat <<{end} {word}\n{self._list(depth)}\nE\n{self._simple(0)}"

    def _continued(self, text: str) -> str:
        """The same with a line that goes on somewhere."""
        at = self._random.randint(0, len(text))
        return f"{text[:at]}\\\n{text[at:]}"

    def _simple(self, depth: int) -> str:
        pick = self._random
        words = [self._word(depth) for _ in range(pick.choice((0, 0, 1, 1, 2)))]
        before = pick.choice(("", "", "", "", "", "", "x=1 ", ">/dev/null ", "2>&1 ", "x=$(good) "))
        after = pick.choice(("", "", "", "", "", " >/dev/null", " 2>&1", " > f", " < /dev/null", " <<< good"))
        return before + " ".join([pick.choice(_PROGRAMS), *words]) + after

    def _word(self, depth: int) -> str:
        pick = self._random
        if depth <= 0:
            return pick.choice(
                ("a", "'a b'", '"$x"', "$x", "bad", "'$(bad)'", "\\$(bad)", "*", "{a,b}", "-c", "'a[$(bad)]'")
            )
        inside = self._list(depth - 1)
        forms = (
            "$({})",
            '"$({})"',
            "`{}`",
            '"a`{}`b"',
            "<({})",
            "${{x:-$({})}}",
            '"${{x:-{}}}"',
            "$(({}))",
            "'{}'",
            '"{}"',
        )
        return pick.choice(forms).format(inside)

    def _quoted(self, text: str) -> str:
        return "'" + text.replace("'", "'\\''") + "'" if self._random.random() < 0.7 else f'"{text}"'


class ShellYard:
    """A directory with programs that leave a trace, and shells that run lines there."""

    def __init__(self, folder: Path, shells: Sequence[str] = SHELLS) -> None:
        self.shells = [found for name in shells if (found := shutil.which(name))]
        self._work = folder / "work"
        self._work.mkdir(parents=True)
        programs = folder / "programs"
        programs.mkdir()
        self._trace = folder / "trace"
        for name in ("good", "fine", "bad"):
            stub = programs / name
            # Not by `bash bad`, which is the running of a script.
            trace = (
                f'[ "$BASH_VERSION" ] || case "$1" in -x) echo "{name} -x";; *) echo {name};; esac >> "{self._trace}"'
            )
            stub.write_text(f"#!{shutil.which('dash')}\n{trace}\n")
            stub.chmod(0o755)
        for name in REAL:
            (programs / name).symlink_to(str(shutil.which(name)))
        self._env = {"PATH": str(programs), "FUNCNEST": "20", "HOME": str(self._work), "ENV": "", "LC_ALL": "C.UTF-8"}

    def policy(self, **rules: tuple[str, ...]) -> Policy:
        made = {kind: tuple(f"Bash({about})" for about in abouts) for kind, abouts in rules.items()}
        rules_ = Rules(**made)  # type: ignore[arg-type]
        return Policy("yolo" if "deny" in rules else "default", rules=rules_, workspace=str(self._work))

    def run(self, shell: str, line: str) -> tuple[list[str], list[str]]:
        """What was run by a line, and which files there are then that were not there before.

        A line that names a file elsewhere is not run: nothing but its directory is ours.
        """
        self._trace.unlink(missing_ok=True)
        if "\0" in line or "/" in _NOWHERE.sub("", line):
            return [], []
        process = subprocess.Popen(
            [shell, *(["-f"] if shell.endswith("zsh") else []), "-c", line],
            cwd=self._work, env=self._env, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            process.wait(LINE_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        ran = self._trace.read_text().splitlines() if self._trace.exists() else []
        made = sorted(os.listdir(self._work))
        for name in made:
            path = self._work / name
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        return ran, made


def judged(policy: Policy, line: str) -> str:
    return policy.judge(ToolRequested("c1", "Bash", "exec", {"command": line})).verdict


def wrong_allows(yard: ShellYard, lines: Iterator[str], runs: int) -> Iterator[tuple[str, str, object]]:
    """Lines that were allowed and did something else."""
    policy = yard.policy(allow=ALLOWED)
    for _, line in zip(range(runs), lines, strict=False):
        if judged(policy, line) != "allow":
            continue
        for shell in yard.shells:
            ran, made = yard.run(shell, line)
            if made or any(not each.startswith(("good", "fine -x")) for each in ran):
                yield shell, line, (ran, made)


def wrong_denials(yard: ShellYard, lines: Iterator[str], runs: int) -> Iterator[tuple[str, str, object]]:
    """Lines that were allowed although they ran what was denied."""
    policy = yard.policy(deny=("bad:*",))
    for _, line in zip(range(runs), lines, strict=False):
        if judged(policy, line) != "allow":
            continue
        for shell in yard.shells:
            ran, _ = yard.run(shell, line)
            if any(each.startswith("bad") for each in ran):
                yield shell, line, ran


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, check in enumerate((wrong_allows, wrong_denials)):
            yard = ShellYard(Path(folder) / str(number))
            for shell, line, did in check(yard, iter(ShellLines(options.seed)), options.runs):
                print(f"{check.__name__} {os.path.basename(shell)} {line!r} {did}", flush=True)
                found += 1
    print(f"found={found} runs={options.runs} seed={options.seed}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
