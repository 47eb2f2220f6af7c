"""Checks of the environment: the variables of a turn, those of the profile, and none of another turn."""

from __future__ import annotations

from trunkline.base import jsontext
from trunkline.conform.agentproc.bridge.part import said
from trunkline.conform.agentproc.bridge.stage import Ask, Stage
from trunkline.conform.agentproc.bridge.suite import SUITE, needs
from trunkline.conform.expect import same
from trunkline.conform.kit import Broken

#: Close to the longest variable that Linux passes on (128 KiB), in bytes.
LARGE_BYTES = 120_000

#: Everything that a careless hand could change.
AWKWARD = "  two  words\n'single' \"double\" $HOME `id` {{X}} %s \\n ü 🙂\n"


def _given(stage: Stage, name: str, wanted: str) -> None:
    env = stage.got().env
    if name not in env:
        raise Broken(f"`{name}` is not set")
    same(f"`{name}`", env[name], wanted)


@SUITE.check("br.env.message", "MUST", "Core")
async def messages_are_given(stage: Stage) -> None:
    """`AGENT_MESSAGE` is the message, unchanged."""
    await stage.play(ask=Ask(AWKWARD))
    _given(stage, "AGENT_MESSAGE", AWKWARD)


@SUITE.check("br.env.large", "SHOULD", "Core")
async def large_messages_are_given(stage: Stage) -> None:
    """A message as large as an environment variable can hold is passed on whole."""
    message = "x" * LARGE_BYTES
    await stage.play(ask=Ask(message))
    _given(stage, "AGENT_MESSAGE", message)


@SUITE.check("br.env.session", "MUST", "Core")
async def sessions_are_given(stage: Stage) -> None:
    """`AGENT_SESSION_ID` is the id from the previous turn."""
    needs(stage, "{session}")
    await stage.play(ask=Ask(session="conform-1"))
    _given(stage, "AGENT_SESSION_ID", "conform-1")


@SUITE.check("br.env.new-session", "MUST", "Core")
async def new_sessions_are_empty(stage: Stage) -> None:
    """For a new session `AGENT_SESSION_ID` is set and empty."""
    await stage.play(env={"AGENT_SESSION_ID": "stale"})
    _given(stage, "AGENT_SESSION_ID", "")


@SUITE.check("br.env.session-name", "MUST", "Core")
async def names_have_a_default(stage: Stage) -> None:
    """`AGENT_SESSION_NAME` is `default` unless the session has another name."""
    await stage.play(env={"AGENT_SESSION_NAME": "stale"})
    _given(stage, "AGENT_SESSION_NAME", "default")
    if stage.takes("{session_name}"):
        await stage.play(ask=Ask(session_name="work"))
        _given(stage, "AGENT_SESSION_NAME", "work")


@SUITE.check("br.env.from", "MUST", "Core")
async def senders_are_given(stage: Stage) -> None:
    """`AGENT_FROM_USER` is set: the sender, or empty."""
    sender = "@conform:example.org" if stage.takes("{from}") else ""
    await stage.play(ask=Ask(from_user=sender))
    _given(stage, "AGENT_FROM_USER", sender)


@SUITE.check("br.env.streaming", "MUST", "Core")
async def streaming_is_given(stage: Stage) -> None:
    """`AGENT_STREAMING` is `1`, or `0` if the profile has `streaming: false`."""
    await stage.play()
    _given(stage, "AGENT_STREAMING", "1")
    await stage.play(profile={"streaming": False})
    _given(stage, "AGENT_STREAMING", "0")


@SUITE.check("br.env.version", "MUST", "Core")
async def versions_are_given(stage: Stage) -> None:
    """`AGENT_PROTOCOL_VERSION` is `0.1`."""
    await stage.play()
    _given(stage, "AGENT_PROTOCOL_VERSION", "0.1")


@SUITE.check("br.env.stale", "MUST", "Attachments")
async def stale_variables_are_removed(stage: Stage) -> None:
    """Attachment variables in the bridge's own environment are not passed on."""
    stale = dict.fromkeys(("AGENT_IMAGE_URL", "AGENT_FILE_URL", "AGENT_ATTACHMENTS"), "stale")
    await stage.play(env=stale)
    for name in stale:
        if name in stage.got().env:
            raise Broken(f"`{name}` is {stage.got().env[name]!a} for a message without attachments")


@SUITE.check("br.env.image", "SHOULD", "Attachments")
async def images_are_given(stage: Stage) -> None:
    """`AGENT_IMAGE_URL` is set for a message with one image."""
    needs(stage, "{image}")
    await stage.play(ask=Ask(image="https://example.org/a.png"))
    _given(stage, "AGENT_IMAGE_URL", "https://example.org/a.png")


@SUITE.check("br.env.file", "SHOULD", "Attachments")
async def files_are_given(stage: Stage) -> None:
    """`AGENT_FILE_URL` is set for a message with one file."""
    needs(stage, "{file}")
    await stage.play(ask=Ask(file="https://example.org/a.txt"))
    _given(stage, "AGENT_FILE_URL", "https://example.org/a.txt")


@SUITE.check("br.env.attachments", "MAY", "Attachments")
async def attachments_are_listed(stage: Stage) -> None:
    """`AGENT_ATTACHMENTS` is a JSON array of all attachments, each with `type`, `url` and `name`."""
    needs(stage, "{image}")
    await stage.play(ask=Ask(image="https://example.org/a.png"))
    text = stage.got().env.get("AGENT_ATTACHMENTS")
    if text is None:
        raise Broken("`AGENT_ATTACHMENTS` is not set")
    try:
        items = jsontext.loads(text.encode("utf-8", "surrogateescape"))
    except ValueError:
        items = None
    first = items[0] if isinstance(items, list) and len(items) == 1 else None
    if not isinstance(first, dict) or (first.get("type"), first.get("url")) != ("image", "https://example.org/a.png"):
        raise Broken(f"`AGENT_ATTACHMENTS` is {text[:200]!a}")


@SUITE.check("br.env.profile", "MUST", "Profile")
async def profiles_have_variables(stage: Stage) -> None:
    """The profile's `env` is passed to the agent, with `${NAME}` replaced from the bridge's environment."""
    env = {"CONFORM_PLAIN": "two words", "CONFORM_TAKEN": "a ${CONFORM_SOURCE} b"}
    await stage.play(profile={"env": env}, env={"CONFORM_SOURCE": "s 1"})
    _given(stage, "CONFORM_PLAIN", "two words")
    _given(stage, "CONFORM_TAKEN", "a s 1 b")


@SUITE.check("br.env.unset", "SHOULD", "Profile")
async def unknown_variables_are_empty(stage: Stage) -> None:
    """`${NAME}` of an unset variable is empty; text that only looks like one is left unchanged."""
    await stage.play(profile={"env": {"CONFORM_UNSET": "a${CONFORM_NO_SUCH}b", "CONFORM_ODD": "$HOME ${A:-b} ${ }"}})
    _given(stage, "CONFORM_UNSET", "ab")
    _given(stage, "CONFORM_ODD", "$HOME ${A:-b} ${ }")


@SUITE.check("br.env.protected", "SHOULD", "Core")
async def the_turn_wins(stage: Stage) -> None:
    """The variables of the turn take precedence over those of the profile."""
    await stage.play(profile={"env": {"AGENT_MESSAGE": "forged", "AGENT_SESSION_ID": "forged"}})
    _given(stage, "AGENT_MESSAGE", "conform")
    _given(stage, "AGENT_SESSION_ID", "")


@SUITE.check("br.env.path", "SHOULD", "Profile")
async def the_environment_is_passed_on(stage: Stage) -> None:
    """`PATH` and `HOME` of the bridge reach the agent."""
    seen = await stage.play(said("x"), env={"HOME": "/conform-home"})
    same("the exit code", seen.code, 0)
    _given(stage, "HOME", "/conform-home")
    if "PATH" not in stage.got().env:
        raise Broken("`PATH` is not set")
