"""What would come of a profile here and now, without running it: for `agentproc check`.

    examine(profile, environ) -> Report
    problem(profile, environ) -> why no turn can work here, if that can be told
    instead(profile)          -> what to write for a program that is not found
    beside(profile, name)     -> what to write for one that lies beside the profile

A *problem* makes every turn fail. A *warning* is something that the profile's author probably did not mean.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from trunkline.base.environ_secrets import environment_secrets, names_a_secret
from trunkline.base.programs import program_folders
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.wires.agentproc.launch import Launch, launch
from trunkline.wires.agentproc.messages import TurnRequest
from trunkline.wires.agentproc.profile import Profile
from trunkline.wires.agentproc.profile.contradictions import NO_SHELL, shell_syntax
from trunkline.wires.agentproc.profile.placeholders import from_the_chat, used, variables
from trunkline.wires.agentproc.profile.safety import danger, script_of

HIDDEN = "[hidden]"

#: The longest first line of a script that systems read.
_FIRST_LINE = 256
#: How programs begin that are no scripts: ELF, and the kinds of Mach-O.
_BINARIES = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


class Variable(Value):
    """One variable of the profile's `env`. `shown` is what may be seen of its value."""

    name: str
    shown: str
    missing: tuple[str, ...] = ()
    """The `${NAMES}` in it that are not set here."""


class ProfileReport(Value):
    """What was found. Placeholders for what a turn brings stand in the texts as in the profile."""

    argv: tuple[str, ...] = ()
    resume_argv: tuple[str, ...] = ()
    """The arguments of a turn that goes on with a session."""
    program: str | None = None
    """The file that is run."""
    cwd: str | None = None
    variables: tuple[Variable, ...] = ()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def examine(profile: Profile, environ: Mapping[str, str]) -> ProfileReport:
    """Find out what would be run, and what is wrong with it."""
    # What is filled in is not looked at again: so these stay visible as what they are.
    new = TurnRequest("{{MESSAGE}}", session_name="{{SESSION_NAME}}")
    try:
        prepared = launch(profile, new, environ)
        resumed = launch(profile, new.replace(session_id="{{SESSION_ID}}"), environ)
    except ConfigError as error:
        return ProfileReport(problems=(str(error),), warnings=profile.warnings)
    problems = list(_cwd_problems(profile, prepared))
    program = None
    if not problems:
        program = _locate(prepared)
        problems += _program_problems(profile, prepared, program)
    found = tuple(_variable(name, template, environ) for name, template in profile.env.items())
    return ProfileReport(
        argv=_masked(prepared.argv),
        resume_argv=_masked(resumed.argv),
        program=program,
        cwd=prepared.cwd,
        variables=found,
        problems=tuple(problems),
        warnings=(*profile.warnings, *prepared.warnings, *_warnings(profile, prepared, found)),
    )


def problem(profile: Profile, environ: Mapping[str, str], directory: str | None = None) -> str | None:
    """Why every turn would fail here; `None` if nothing is wrong, or if it cannot be told without trying.

    `directory` is where the agent runs if the profile does not say. If that is not known either, nothing is said about
    what is relative to it.
    """
    if directory is not None:
        profile = profile.placed(directory)
    found = examine(profile, environ)
    if not found.problems or (profile.cwd is None and _is_relative(profile)):
        return None
    return found.problems[0]


def _is_relative(profile: Profile) -> bool:
    """Whether what is run is named from the directory in which the agent runs."""
    argv = (*profile.command, *profile.args)
    script = _script_file(argv)
    by_path = [argv[0]] if os.path.dirname(argv[0]) else []
    by_path += [argv[script]] if script is not None else []
    return any(not path.startswith(("/", "~/", "{{PROFILE_DIR}}")) for path in by_path)


def _cwd_problems(profile: Profile, prepared: Launch) -> Iterator[str]:
    cwd = prepared.cwd
    if cwd is None or from_the_chat(profile.cwd or ""):
        return
    if not os.path.exists(cwd):
        yield f"The working directory `{cwd}` does not exist. Create it, or correct `cwd`."
    elif not os.path.isdir(cwd):
        yield f"The working directory `{cwd}` is not a directory. Correct `cwd`."
    elif not os.access(cwd, os.X_OK):
        yield f"The working directory `{cwd}` may not be entered by this user."


def _locate(prepared: Launch) -> str | None:
    """The file that would be run, looked for as the system does: in the child's `PATH`, from its directory."""
    program, start = prepared.argv[0], prepared.cwd or os.getcwd()
    folders = [""] if os.path.dirname(program) else program_folders(prepared.env)
    paths = [os.path.normpath(os.path.join(start, folder, program)) for folder in folders]
    runnable = [path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)]
    existing = [path for path in paths if os.path.lexists(path)]
    return next(iter(runnable + existing), None)


def _program_problems(profile: Profile, prepared: Launch, path: str | None) -> Iterator[str]:
    name = prepared.argv[0]
    if path is None:
        where = "" if os.path.dirname(name) else " on `PATH`"
        yield f"There is no program `{name}`{where}. {instead(profile) or _where_to_look(prepared)}"
    elif not os.path.isfile(path):
        yield f"`{path}` is not a program."
    elif not os.access(path, os.X_OK):
        yield f"`{path}` is not executable for this user. Run `chmod +x {path}`, or name its interpreter before it."
    elif problem := _wrong_with_file(path) or _wrong_with_script(profile, prepared):
        yield problem


def _where_to_look(prepared: Launch) -> str:
    if os.path.dirname(prepared.argv[0]):
        return f"A relative path begins in the directory where the agent runs, `{prepared.cwd or os.getcwd()}`."
    from trunkline.wires.agentproc import hub

    return hub.how_to_install(prepared.argv[0]) or "Install it, or give its full path."


def instead(profile: Profile) -> str | None:
    """What to write for a program that is not found; `None` if nobody can tell."""
    if shell_syntax(profile) is not None:
        return f"No shell reads `command`. {NO_SHELL}"
    if len(profile.command) == 1 and any(map(str.isspace, profile.command[0])):
        return (
            "In protocol 0.4 `command` is one program and never split. Name that alone, and put the rest into `args`."
        )
    return beside(profile, profile.command[0])


def beside(profile: Profile, name: str, *, is_program: bool = True) -> str | None:
    """What to write for a file that lies beside the profile, and not where it was looked for; `None` if it does not."""
    if os.path.isabs(name) or profile.directory is None:
        return None
    plain = os.path.normpath(name)
    if not os.path.isfile(os.path.join(profile.directory, plain)):
        return None
    # A bare name is looked for on the `PATH`, wherever the agent runs.
    other = "" if is_program and not os.path.dirname(name) else ", or `cwd: .`"
    return f'It is next to the profile: write "{{{{PROFILE_DIR}}}}/{plain}"{other}.'


def _wrong_with_file(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            first = file.read(_FIRST_LINE)
    except OSError:
        # A program that may be run and not be read.
        return None
    if first.startswith(_BINARIES):
        return None
    if not first.startswith(b"#!"):
        return f"`{path}` is not a program that this system can run. A script needs a first line such as `#!/bin/sh`."
    interpreter = os.fsdecode(first[2:].split(b"\n")[0].strip(b" \t").split(b" ")[0])
    if interpreter.endswith("\r"):
        return f"`{path}` has Windows line ends, which break its first line. Save it with plain line feeds."
    if os.path.isabs(interpreter) and not os.path.exists(interpreter):
        return f"`{path}` needs `{interpreter}`, which does not exist. Correct its first line, or install that."
    return None


def _wrong_with_script(profile: Profile, prepared: Launch) -> str | None:
    """The file that an interpreter is given must be there as well."""
    index = _script_file(prepared.argv)
    if index is None:
        return None
    name = prepared.argv[index]
    if os.path.exists(os.path.join(prepared.cwd or os.getcwd(), name)):
        return None
    hint = beside(profile, name, is_program=False) or _in(prepared, name)
    return f"There is no file `{name}` for `{prepared.argv[0]}` to run. {hint}"


def _script_file(argv: Sequence[str]) -> int | None:
    index = script_of(argv)
    return None if index is None or argv[index - 1] == "-m" else index


def _in(prepared: Launch, name: str) -> str:
    if os.path.isabs(name):
        return "Check the path."
    if name.startswith("~"):
        return "`~` is the home directory only where `command` or `cwd` begins with it. Write the path in full."
    return f"A relative path begins in the directory where the agent runs, `{prepared.cwd or os.getcwd()}`."


def _variable(name: str, template: str, environ: Mapping[str, str]) -> Variable:
    missing = tuple(each for each in variables(template) if each not in environ)
    is_secret = not variables(template) and _is_secret(name, template)
    return Variable(name, HIDDEN if is_secret else template, missing)


def _is_secret(name: str, value: str) -> bool:
    return not used(value) and bool(environment_secrets({name: value}))


def _masked(argv: Sequence[str]) -> tuple[str, ...]:
    """The arguments, without those that are secret by the option in front of them."""
    return tuple(HIDDEN if index in _secret_arguments(argv) else text for index, text in enumerate(argv))


def _secret_arguments(argv: Sequence[str]) -> list[int]:
    return [
        index
        for index in range(1, len(argv))
        if argv[index - 1].startswith("--") and names_a_secret(argv[index - 1]) and not used(argv[index])
    ]


def _warnings(profile: Profile, prepared: Launch, found: Sequence[Variable]) -> Iterator[str]:
    for variable in found:
        for name in variable.missing:
            yield f"`${{{name}}}`, for `env.{variable.name}`, is not set here: the agent gets nothing for it."
        if variable.shown is HIDDEN:
            yield f"`env.{variable.name}` holds a secret. Keep it out of the file: write `${{{variable.name}}}`."
    for index in _secret_arguments(prepared.argv):
        yield f"Everybody on this machine can see the value of `{prepared.argv[index - 1]}`. Use `env` for secrets."
    if profile.allow_unsafe and (unsafe := danger(profile)) is not None:
        yield f"In `{unsafe.where}`, {unsafe.why}; `allow_unsafe` lets who writes in the chat run programs that way."
    is_told = prepared.stdin is not None or _hands_over_message(profile)
    if profile.stream is not None and not is_told:
        yield "The program does not get the message. Add `{{MESSAGE}}` to `args`, or `stdin: message`."
    if profile.stream is None and profile.protocol == "auto" and prepared.interactive:
        yield (
            "`permission` keeps the agent's input open for answers: one that reads its input to the end would wait for "
            'ever. If it speaks 0.4, say `protocol: "0.4"`; else leave `permission` out.'
        )
    if "-P" in prepared.argv and not {"-P"} & {*profile.command, *profile.args}:
        module = prepared.argv[(*prepared.argv, "-m").index("-m") + 1 :][:1]
        for name in module:
            if any(os.path.exists(os.path.join(prepared.cwd or os.getcwd(), name + end)) for end in ("", ".py")):
                yield (
                    f"The module `{name}` is looked for among the installed ones, and not in the directory where the "
                    "agent runs, which anybody could write to. If it is next to this file, add `cwd: .`."
                )
    if (what := _may_be_an_option(profile)) is not None:
        yield f"A message that begins with `-` may be taken for an option. Put `--` in front of `{what}`."


def _hands_over_message(profile: Profile) -> bool:
    texts = (*profile.command, *profile.args, *profile.resume_args, *profile.env.values())
    return any("MESSAGE" in used(text) for text in texts)


def _may_be_an_option(profile: Profile) -> str | None:
    """An argument that is a message and stands where options can stand."""
    argv = (*profile.command, *profile.args)
    script = script_of(argv)
    for index, text in enumerate(argv):
        if text == "--":
            return None
        is_operand = index > 0 and not argv[index - 1].startswith("-") and index - 1 != script
        if text.startswith("{{MESSAGE}}") and is_operand and "-c" not in argv[:index]:
            return "{{MESSAGE}}"
    return None
