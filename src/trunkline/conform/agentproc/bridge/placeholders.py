"""Checks of placeholders and standard input: where the message goes besides its variable."""

from __future__ import annotations

from trunkline.conform.agentproc.bridge.environment import AWKWARD
from trunkline.conform.agentproc.bridge.part import PROBE, said
from trunkline.conform.agentproc.bridge.stage import DECOY, Ask, Stage
from trunkline.conform.agentproc.bridge.suite import SUITE, needs
from trunkline.conform.expect import holds, same
from trunkline.conform.kit import Broken

#: Much more than a pipe holds (64 KiB), and less than a variable may.
UNREAD_BYTES = 120_000


async def _arguments(stage: Stage, args: list[str], ask: Ask) -> list[str]:
    """What the agent gets for these arguments."""
    await stage.play(profile={"args": [*PROBE, str(stage.turn), *args]}, ask=ask)
    return list(stage.got().argv)


@SUITE.check("br.place.message", "MUST", "Profile")
async def messages_are_put_in(stage: Stage) -> None:
    """`{{MESSAGE}}` in `args` is replaced by the message, which stays one argument."""
    found = await _arguments(stage, ["--say={{MESSAGE}}", "{{MESSAGE}}"], Ask(AWKWARD))
    same("the argument list", found, [f"--say={AWKWARD}", AWKWARD])


@SUITE.check("br.place.session", "MUST", "Profile")
async def sessions_are_put_in(stage: Stage) -> None:
    """`{{SESSION_ID}}` and `{{SESSION_NAME}}` in `args` are replaced by the session's id and name."""
    needs(stage, "{session}")
    found = await _arguments(stage, ["{{SESSION_ID}}", "{{SESSION_NAME}}"], Ask(session="conform-1"))
    same("the argument list", found, ["conform-1", "default"])


@SUITE.check("br.place.empty", "SHOULD", "Profile")
async def empty_arguments_stay(stage: Stage) -> None:
    """A placeholder without a value leaves an empty argument, not a missing one."""
    same("the argument list", await _arguments(stage, ["{{SESSION_ID}}", "end"], Ask()), ["", "end"])


@SUITE.check("br.place.unknown", "SHOULD", "Profile")
async def other_braces_stay(stage: Stage) -> None:
    """Text that only looks like a placeholder is left unchanged."""
    args = ["{{CONFORM}}", "{{ MESSAGE }}", "{{message}}", "{MESSAGE}", "{{MESSAGE}"]
    same("the argument list", await _arguments(stage, args, Ask()), args)


@SUITE.check("br.place.single-pass", "SHOULD", "Profile")
async def messages_are_not_templates(stage: Stage) -> None:
    """Placeholders in the message itself are left unchanged."""
    needs(stage, "{session}")
    message = "{{SESSION_ID}} {{SESSION_NAME}} {{MESSAGE}}"
    same("the argument", await _arguments(stage, ["{{MESSAGE}}"], Ask(message, session="conform-1")), [message])


@SUITE.check("br.place.literal", "SHOULD", "Profile")
async def messages_are_no_patterns(stage: Stage) -> None:
    r"""Special sequences of replacement strings (`$&`, `$1`, `\1`) have no meaning in the message."""
    message = "$& $1 $$ \\1 \\g<0> %(x)s"
    same("the argument", await _arguments(stage, ["{{MESSAGE}}"], Ask(message)), [message])


@SUITE.check("br.place.env", "SHOULD", "Profile")
async def variables_have_placeholders(stage: Stage) -> None:
    """Placeholders work in the values of `env`."""
    await stage.play(profile={"env": {"CONFORM_Q": "<{{MESSAGE}}>"}}, ask=Ask("two words"))
    same("`CONFORM_Q`", stage.got().env.get("CONFORM_Q"), "<two words>")


@SUITE.check("br.place.secrets", "SHOULD", "Profile")
async def messages_read_no_variables(stage: Stage) -> None:
    """`${NAME}` in a message is never replaced: a chat user cannot read the bridge's environment."""
    message = "${CONFORM_SECRET}"
    await stage.play(profile={"env": {"CONFORM_Q": "{{MESSAGE}}"}}, ask=Ask(message), env={"CONFORM_SECRET": "opened"})
    if "opened" in stage.got().env.get("CONFORM_Q", ""):
        raise Broken("the message was replaced by the value of a variable of the bridge")


@SUITE.check("br.place.cwd", "SHOULD", "Profile")
async def directories_have_placeholders(stage: Stage) -> None:
    """Placeholders work in `cwd`."""
    needs(stage, "{session}")
    place = stage.folder / "conform-1"
    place.mkdir()
    profile = {"cwd": f"{stage.folder}/{{{{SESSION_ID}}}}"}
    await stage.play(profile=profile, ask=Ask(session="conform-1"))
    same("the working directory", stage.got().cwd, str(place))


@SUITE.check("br.stdin.none", "MUST", "stdin")
async def input_is_empty(stage: Stage) -> None:
    """With `stdin: none` there is nothing to read: neither the message nor the bridge's own input."""
    await stage.play(["read"], profile={"stdin": "none"})
    data, _ = stage.input()
    if data:
        whose = "what was meant for the bridge" if data in DECOY else repr(data[:80])
        raise Broken(f"the agent read {whose}")


@SUITE.check("br.stdin.eof", "SHOULD", "stdin")
async def input_ends(stage: Stage) -> None:
    """With `stdin: none`, the default, standard input is at its end from the start."""
    await stage.play(["read"])
    if not stage.input()[1]:
        raise Broken("standard input stays open")


@SUITE.check("br.stdin.message", "MUST", "stdin")
async def input_is_the_message(stage: Stage) -> None:
    """With `stdin: message` standard input contains exactly the message."""
    await stage.play(["read"], profile={"stdin": "message"}, ask=Ask(AWKWARD))
    data, ended = stage.input()
    same("standard input", data, AWKWARD.encode())
    if not ended:
        raise Broken("standard input stays open")
    same("`AGENT_MESSAGE`", stage.got().env.get("AGENT_MESSAGE"), AWKWARD)


@SUITE.check("br.stdin.unread", "MUST", "stdin")
async def input_need_not_be_read(stage: Stage) -> None:
    """An agent may leave a long message on standard input unread without failing the turn."""
    seen = await stage.play(said("done"), profile={"stdin": "message"}, ask=Ask("x" * UNREAD_BYTES))
    same("the exit code", seen.code, 0)
    holds("the reply", seen.reply, "done")
