"""Checks of the start: the command and its arguments, no shell, the working directory, and what cannot be started."""

from __future__ import annotations

from trunkline.conform.agentproc.bridge.part import PROBE, PYTHON, said
from trunkline.conform.agentproc.bridge.seen import SeenTurn
from trunkline.conform.agentproc.bridge.stage import Ask, Stage
from trunkline.conform.agentproc.bridge.suite import SUITE
from trunkline.conform.expect import holds, lacks, same
from trunkline.conform.kit import Broken

#: Arguments that a shell, or a second split, would make something else of.
AWKWARD = ["two words", "'quoted'", "$HOME", "*", "a;b", "${HOME}", "-n"]


@SUITE.check("br.run.reply", "MUST", "Output")
async def replies_are_shown(stage: Stage) -> None:
    """The agent's output is the reply, and the turn's exit code is 0."""
    seen = await stage.play(said("hello from the agent"))
    if seen.code != 0:
        raise Broken(f"the exit code is {seen.code} ({seen.stderr[-300:].strip()!a})")
    same("the reply", seen.reply, "hello from the agent")


@SUITE.check("br.run.args", "MUST", "Profile")
async def arguments_are_passed(stage: Stage) -> None:
    """Each item of `args` is one argument, exactly as written."""
    await stage.play(profile={"args": [*PROBE, str(stage.turn), *AWKWARD]})
    same("the argument list", list(stage.got().argv), AWKWARD)


@SUITE.check("br.run.split", "MUST", "Profile")
async def commands_are_split(stage: Stage) -> None:
    """`command` is split at white space; quotes and variables have no meaning."""
    command = " ".join((PYTHON, *PROBE, str(stage.turn), "one", " 'b", "c'", "$HOME"))
    await stage.play(profile={"command": command, "args": None})
    same("the argument list", list(stage.got().argv), ["one", "'b", "c'", "$HOME"])


@SUITE.check("br.run.split-args", "MUST", "Profile")
async def commands_are_split_before_args(stage: Stage) -> None:
    """`command` is split at white space even if there are `args`, which follow it."""
    await stage.play(profile={"command": " ".join((PYTHON, *PROBE, str(stage.turn), "one")), "args": ["two words"]})
    same("the argument list", list(stage.got().argv), ["one", "two words"])


@SUITE.check("br.run.no-shell", "MUST", "Profile")
async def there_is_no_shell(stage: Stage) -> None:
    """No shell sees the command, the arguments or the message."""
    mark = stage.folder / "injected"
    attack = f"$(touch {mark}); touch {mark} `touch {mark}` | touch {mark}"
    await stage.play(profile={"args": [*PROBE, str(stage.turn), attack, "{{MESSAGE}}"]}, ask=Ask(f"x'\"; {attack}"))
    if mark.exists():
        raise Broken("a shell ran a part of the arguments")
    same("the first argument", stage.got().argv[0], attack)


@SUITE.check("br.run.cwd", "MUST", "Profile")
async def the_directory_is_used(stage: Stage) -> None:
    """The agent runs in `cwd`."""
    place = stage.folder / "place"
    place.mkdir()
    await stage.play(profile={"cwd": str(place)})
    same("the working directory", stage.got().cwd, str(place))


@SUITE.check("br.run.unknown-key", "SHOULD", "Profile")
async def unknown_keys_do_no_harm(stage: Stage) -> None:
    """A profile with an unknown key is accepted."""
    seen = await stage.play(said("still here"), profile={"conform_no_such_key": "x"})
    holds("the reply", seen.reply, "still here")


@SUITE.check("br.run.nested", "MAY", "Profile")
async def profiles_may_be_nested(stage: Stage) -> None:
    """The fields of a profile may be nested under `agentproc`."""
    stage.turn.mkdir()
    (stage.turn / "plan.json").write_text("[]", encoding="utf-8")
    words = "".join(f"    - {word}\n" for word in (*PROBE, stage.turn))
    text = f"name: conform\nagentproc:\n  command: {PYTHON}\n  args:\n{words}"
    (stage.turn / "nested.yaml").write_text(text, encoding="utf-8")
    running = await stage.start(str(stage.turn / "nested.yaml"), Ask(), {}, text)
    await stage.seen(running, stage.target.timeout)
    stage.got()


def _failed_clearly(seen: SeenTurn) -> None:
    if seen.code == 0 or (seen.status == 0 and seen.data is None):
        raise Broken("the exit code is 0")
    if not seen.complaint:
        raise Broken("there is no error message")


def _without_traceback(seen: SeenTurn) -> None:
    _failed_clearly(seen)
    lacks("standard error", seen.stderr, "Traceback (most recent call last)")


@SUITE.check("br.run.missing", "MUST", "Exit codes")
async def missing_programs_are_told(stage: Stage) -> None:
    """If the command does not exist, the turn fails and the user is told."""
    _failed_clearly(await stage.play(profile={"command": str(stage.turn / "no-such-program"), "args": None}))


@SUITE.check("br.run.not-executable", "SHOULD", "Exit codes")
async def files_that_cannot_run_are_told(stage: Stage) -> None:
    """A file that may not be executed leads to an error message, not to a crash of the bridge."""
    file = stage.folder / "agent.txt"
    file.write_text("#!/bin/sh\n", encoding="utf-8")
    _without_traceback(await stage.play(profile={"command": str(file), "args": None}))


@SUITE.check("br.run.no-interpreter", "SHOULD", "Exit codes")
async def scripts_need_a_first_line(stage: Stage) -> None:
    """A script without a `#!` line leads to an error message, not to a crash of the bridge."""
    file = stage.folder / "agent"
    file.write_text("echo hello\n", encoding="utf-8")
    file.chmod(0o700)
    seen = await stage.play(profile={"command": str(file), "args": None})
    lacks("standard error", seen.stderr, "Traceback (most recent call last)")
    if seen.code == 0:
        raise Broken("the exit code is 0")


@SUITE.check("br.run.no-directory", "SHOULD", "Exit codes")
async def missing_directories_are_told(stage: Stage) -> None:
    """A `cwd` that does not exist leads to an error message, not to a crash of the bridge."""
    _without_traceback(await stage.play(profile={"cwd": str(stage.turn / "no-such-directory")}))


@SUITE.check("br.run.no-profile", "SHOULD", "Profile")
async def missing_profiles_are_told(stage: Stage) -> None:
    """A profile that does not exist leads to a message on standard error and a nonzero status."""
    running = await stage.start(str(stage.turn / "no-such-profile.yaml"), Ask(), {})
    seen = await stage.seen(running, stage.target.timeout)
    if seen.status == 0:
        raise Broken("the exit status is 0")
    if not seen.stderr.strip():
        raise Broken("standard error says nothing")
    lacks("standard error", seen.stderr, "Traceback (most recent call last)")


@SUITE.check("br.run.no-command", "SHOULD", "Profile")
async def commands_are_needed(stage: Stage) -> None:
    """A profile without a `command` is refused with a message, not with a crash."""
    seen = await stage.play(profile={"command": None, "args": None})
    if seen.status == 0:
        raise Broken("the exit status is 0")
    lacks("standard error", seen.stderr, "Traceback (most recent call last)")
    if stage.ran():
        raise Broken("something was started")


@SUITE.check("br.run.script", "SHOULD", "Profile")
async def messages_are_no_scripts(stage: Stage) -> None:
    """A profile that puts the message into the script of a shell (`sh -c`) is refused."""
    mark = stage.turn / "started"
    profile = {"command": "sh", "args": ["-c", f"touch {mark}; echo {{{{MESSAGE}}}}"]}
    seen = await stage.play(profile=profile)
    if mark.exists() or seen.status == 0:
        raise Broken("the shell was started")
