"""What is known of programs by their names: which of them run what they are told, and where in their arguments.

For `profile_risks`. A name stands for the program in any folder and in any version (`/usr/bin/python3.11`: `python`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from trunkline.base.values import Value


class Options(Value):
    """The options of a program: single letters that are followed by code or by something else, and long ones."""

    code: str = ""
    taking: str = ""
    attached: str = ""
    """Letters that take what follows them in the same argument, if anything."""
    long_code: tuple[str, ...] = ()
    long_taking: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    """Options that take a name and then a text which is never code."""
    ends_with_code: bool = False
    """Behind the code come arguments for it, and never an option."""
    subcommands: tuple[str, ...] = ()


class Wrapper(Value):
    """A program that runs the program that its arguments name, behind so many operands of its own."""

    operands: int = 0
    options: Options | None = None
    """`None`: which of them take a value is not known here."""


_NODE = Options(
    "ep",
    "rC",
    long_code=("--eval", "--print"),
    long_taking=("--require", "--import", "--loader", "--experimental-loader", "--env-file", "--conditions"),
    subcommands=("run", "eval"),
)
_PYTHON = Options("cm", "WX", ends_with_code=True)
_AWK = Options("fe", "vF", long_code=("--file", "--source"), long_taking=("--assign", "--field-separator"))
_JQ = Options("f", "L", long_code=("--from-file",), long_taking=("--indent",), texts=("--arg", "--argjson"))
_EVAL = Options("e", long_code=("--eval", "--execute"))

#: Interpreters.
LANGUAGES = {
    **dict.fromkeys(("python", "pypy"), _PYTHON),
    **dict.fromkeys(("ipython", "bpython", "ptpython"), Options("cm", long_code=("--c", "--m"))),
    **dict.fromkeys(("irb", "pry"), Options("e", "IrE", long_code=("--exec",))),
    **dict.fromkeys(("iex", "ghci", "jshell"), Options("e", long_code=("--eval", "--execution"))),
    "sbcl": Options(long_code=("--eval", "--load", "--script"), long_taking=("--core",)),
    **dict.fromkeys(("node", "nodejs", "deno", "bun", "tsx", "ts-node"), _NODE),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _AWK),
    **dict.fromkeys(("jq", "gojq", "jaq", "yq"), _JQ),
    **dict.fromkeys(("elixir", "scala", "groovy", "clojure", "raku", "ghc", "racket", "octave", "gnuplot"), _EVAL),
    "perl": Options("eE", "I", "iCDxFMm"),
    "ruby": Options("e", "IrEC", "iKWxTF"),
    "php": Options("rBRE", "dcztf", long_code=("--run",)),
    "lua": Options("e", "l"),
    "luajit": Options("e", "l"),
    "sed": Options("ef", "l", "i", long_code=("--expression", "--file")),
    "Rscript": Options("e"),
    "julia": Options("eE", long_code=("--eval", "--print")),
    "guile": Options("c"),
    "osascript": Options("e", "l"),
    "tclsh": Options(),
    "expect": Options("c"),
}
#: What they run is their first argument itself, and not the file of that name.
NO_FILES = frozenset(("awk", "gawk", "mawk", "nawk", "sed", "jq", "gojq", "jaq", "yq"))
SHELLS = frozenset(
    (
        *("sh", "bash", "rbash", "dash", "ash", "hush", "zsh", "rzsh", "ksh", "rksh", "mksh", "lksh", "pdksh", "oksh"),
        *("fish", "csh", "tcsh", "nu", "xonsh", "yash", "posh", "osh", "ysh", "elvish"),
    )
)
#: Modules of Python that run their arguments, and those that run their input.
CODE_MODULES = frozenset(("timeit", "IPython"))
INPUT_MODULES = frozenset(("code", "asyncio", "pdb", "IPython"))
#: Interpreters that read on from their input behind the script, if they are told to (`-i`).
INSPECTORS = frozenset(("python", "pypy", "node", "nodejs", "lua", "luajit", "julia"))
#: How the name of a file ends that is the input, once detours are left out.
_INPUT_FILE = r"(?:^|/)(?:dev/(?:stdin|fd/0+)|proc/[^/]+/(?:task/[^/]+/)?fd/0+)$"
SHELL_LONG_TAKING = ("--rcfile", "--init-file", "--init-command")

#: Programs that hand everything they are given to a shell.
JOINERS = frozenset(
    (
        *("ssh", "autossh", "mosh", "rsh", "watch", "eval", "parallel", "tmux", "screen", "make", "gmake", "entr"),
        *("hyperfine", "concurrently", "cmd", "powershell", "pwsh", "socat"),
    )
)
SSH = Options(taking="BbcDEeFIiJLlmOopQRSWw")
#: Programs with a language of their own that can run others (`.shell`, `\\!`), as arguments and on their input.
CODE_TAKERS = frozenset(
    (
        *("sqlite3", "sqlite", "psql", "mysql", "mariadb", "duckdb", "gdb", "lldb", "emacs", "ed", "dc"),
        *("vi", "view", "vim", "nvim", "gvim", "rvim", "rview", "gview", "vimdiff", "ex", "nvi", "vile", "elvis"),
    )
)
#: Programs that run what comes on their input.
INPUT_RUNNERS = frozenset(("at", "batch", "crontab", "parallel"))
#: Programs that hand what follows `-c`, or one of these, to a shell, wherever that stands.
COMMANDERS = {
    **dict.fromkeys(("su", "runuser", "sg", "script", "flock", "vagrant", "gcloud"), ("--command",)),
    "nix-shell": ("--run", "--command"),
    "npm": ("--call",),
}
#: Those of them that run a shell on their input if they are given no command.
INPUT_SHELLS = frozenset(("su", "runuser", "sg", "script", "nix-shell"))
#: Wrappers that run a shell on their input if they are given no program; some only with one of these options.
SHELL_STARTERS = {
    "sudo": ("-s", "-i", "--shell", "--login"),
    "doas": ("-s",),
    **dict.fromkeys(("chroot", "unshare", "nsenter", "firejail", "proot", "rlwrap"), ()),
}
#: Programs that run what follows one of these options.
COMMAND_OPTIONS = {
    **dict.fromkeys(
        ("tar", "gtar"),
        (
            *("--checkpoint-action", "--to-command", "--use-compress-program", "--rsh-command", "--info-script"),
            *("--new-volume-script", "-I", "-F"),
        ),
    ),
    "rsync": ("--rsh", "--rsync-path", "-e"),
    "rg": ("--pre",),
    "sort": ("--compress-program",),
    "man": ("--pager", "-P"),
}
#: Addresses of `socat` that run a program.
SOCAT_RUNS = ("exec", "system", "shell")
#: What is behind one of these is run for each file that was found.
FINDERS = {
    "find": ("-exec", "-execdir", "-ok", "-okdir"),
    **dict.fromkeys(("fd", "fdfind"), ("-x", "--exec", "-X", "--exec-batch")),
}

ENV = Options("S", "uC", long_code=("--split-string",), long_taking=("--unset", "--chdir"))
XARGS = Options(
    taking="aEILnPsd", attached="iel", long_taking=("--arg-file", "--delimiter", "--max-args", "--max-procs")
)
_NPX = Options(
    "c", "pw", long_code=("--call",), long_taking=("--package", "--workspace", "--registry", "--node-options")
)
_UVX = Options(taking="pwcn", long_taking=("--from", "--with", "--python", "--index", "--constraints", "--directory"))
_NO_VALUES = Wrapper(options=Options())

WRAPPERS = {
    **dict.fromkeys(("nohup", "setsid", "busybox", "toybox", "command", "exec", "unbuffer", "pkexec"), _NO_VALUES),
    **dict.fromkeys(("npx", "bunx", "pnpx"), Wrapper(options=_NPX)),
    "uvx": Wrapper(options=_UVX),
    "env": Wrapper(),
    "xargs": Wrapper(options=XARGS),
    "nice": Wrapper(options=Options(taking="n", long_taking=("--adjustment",))),
    "ionice": Wrapper(options=Options(taking="cnpPu")),
    "time": Wrapper(options=Options(taking="fo")),
    "timeout": Wrapper(1, Options(taking="ks", long_taking=("--kill-after", "--signal"))),
    "stdbuf": Wrapper(options=Options(taking="ioe", long_taking=("--input", "--output", "--error"))),
    "sudo": Wrapper(options=Options(taking="ugpCDRTUhrtc", long_taking=("--user", "--group", "--chdir", "--prompt"))),
    "doas": Wrapper(options=Options(taking="Cu")),
    "chroot": Wrapper(1, Options()),
    **dict.fromkeys(("taskset", "chrt", "gosu", "su-exec"), Wrapper(1, Options())),
    **dict.fromkeys(
        (
            *("unshare", "nsenter", "strace", "ltrace", "firejail", "bwrap", "proot", "systemd-run", "setpriv"),
            *("prlimit", "sshpass", "rlwrap", "xvfb-run", "dbus-run-session", "caffeinate", "torsocks", "faketime"),
        ),
        Wrapper(),
    ),
    **dict.fromkeys(
        (
            *("docker", "podman", "nerdctl", "kubectl", "oc", "flatpak", "lxc", "distrobox", "toolbox", "wsl", "nix"),
            *("uv", "pipx", "poetry", "pipenv", "conda", "mamba", "hatch", "pdm", "rye", "pixi", "bundle", "mise"),
            *("npm", "pnpm", "yarn", "direnv", "op", "doppler", "aws-vault", "chamber", "dotenv"),
            *("su", "runuser", "sg", "script", "flock", "vagrant", "gcloud", "nix-shell"),
        ),
        Wrapper(1),
    ),
}  # fmt: skip

#: Variables whose value is run, or decides what is run, and the beginnings of such names.
RUN_VARIABLES = frozenset(
    (
        *("PATH", "SHELL", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "IFS", "PS4", "PROMPT_COMMAND", "EDITOR"),
        *("VISUAL", "PAGER", "BROWSER", "LESSOPEN", "NODE_OPTIONS", "NODE_PATH", "PERL5OPT", "PERL5LIB", "PERLLIB"),
        *("PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "RUBYOPT", "RUBYLIB"),
        *("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "LUA_INIT", "ZDOTDIR", "GIT_SSH", "GIT_SSH_COMMAND"),
        *("GIT_EDITOR", "GIT_PAGER", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_EXTERNAL_DIFF"),
    )
)
RUN_VARIABLE_PREFIXES = ("LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG_", "NPM_CONFIG_")


def name_of(word: str) -> str:
    """What a program is called, without folder and version."""
    name = os.path.basename(word).removesuffix(".exe").removesuffix("-static")
    # `sqlite3` is no version of anything else.
    return name if name in CODE_TAKERS else name.rstrip("0123456789.") or name


def is_interpreter(name: str) -> bool:
    """Whether it runs a script."""
    return name in SHELLS or name in LANGUAGES


def is_run(variable: str) -> bool:
    """Whether programs run the value of that variable, or let it decide what they run."""
    return variable.upper() in RUN_VARIABLES or variable.upper().startswith(RUN_VARIABLE_PREFIXES)


def reads(word: str, options: Options) -> tuple[bool, int]:
    """Whether an option brings code, and how many of the arguments behind it belong to it."""
    if word.startswith("--"):
        name = word.partition("=")[0]
        own = 2 if word in options.texts else word in options.long_code or word in options.long_taking
        return name in options.long_code, int(own)
    for place, letter in enumerate(word[1:], 2):
        if letter in options.code:
            # Letters in a row: `-pe CODE`. Else it is the code that is attached.
            return True, int(all(other in options.code for other in word[place:]))
        if letter in options.taking:
            return False, int(word.endswith(letter))
        if letter in options.attached:
            break
    return False, 0


def names_input(word: str) -> bool:
    """Whether an argument, or the value in it, is a file that is the input: `/dev/stdin`, in whatever spelling."""
    path = word.partition("=")[2] if word.startswith("--") else word
    return re.search(_INPUT_FILE, os.path.normpath(path)) is not None


def takes_command(option: str, word: str, known: Sequence[str]) -> bool:
    """Whether a word is, or holds, the value of one of these options; `option` is the word in front of it."""
    attached = [each if len(each) == 2 else f"{each}=" for each in known]
    return option in known or (word not in known and word.startswith(tuple(attached)))


def is_short(word: str) -> bool:
    """Whether it is one or more options of a single letter."""
    return len(word) > 1 and word[0] == "-" and word[1] != "-"
