"""Checks of `ready`, and of the flags that stand before it."""

from __future__ import annotations

from trunkline.conform.jsonstream.scenes import any_of, ends, of, send
from trunkline.conform.jsonstream.shapes import is_semver
from trunkline.conform.jsonstream.stage import Stage, is_ready, ready_of
from trunkline.conform.jsonstream.subject import SeenEvent
from trunkline.conform.jsonstream.suite import SUITE
from trunkline.conform.kit import Broken

#: A port that nothing listens on: enough for a flag that is only to be accepted.
NOWHERE = "http://127.0.0.1:9"


@SUITE.check("js.ready.arrives", "MUST", "1.1")
async def ready_arrives(stage: Stage) -> None:
    """The agent sends `ready` when it has initialized."""
    agent = await stage.start()
    found = await agent.collect(any_of(is_ready, of("error")), stage.target.timeout)
    if found and found[-1].type == "error":
        raise Broken(f"the agent refused to start: {found[-1].member('error', 'message')}")
    if not found or not is_ready(found[-1]):
        raise Broken(await agent.missing("`ready`", stage.target.timeout))


async def _ready(stage: Stage) -> SeenEvent:
    return await ready_of(stage, await stage.start())


@SUITE.check("js.ready.version", "MUST", "1.1")
async def version_is_semver(stage: Stage) -> None:
    """`ready.version` is a semantic version."""
    version = (await _ready(stage)).data.get("version")
    if not is_semver(version):
        raise Broken(f"`version` is {version!a}")


@SUITE.check("js.ready.compatible", "SHOULD", "6")
async def version_is_compatible(stage: Stage) -> None:
    """`ready.version` has the major version of this protocol, 0."""
    version = (await _ready(stage)).data.get("version")
    if str(version).split(".")[0] != "0":
        raise Broken(f"`version` is {version!a}")


@SUITE.check("js.ready.session-id", "MUST", "1.1")
async def session_id_is_text(stage: Stage) -> None:
    """`ready.session_id` is a string; it is omitted when sessions are disabled."""
    ready = await _ready(stage)
    session_id = ready.data.get("session_id")
    if "session_id" in ready.data and not (isinstance(session_id, str) and session_id):
        raise Broken(f"`session_id` is {session_id!a}")


@SUITE.check("js.ready.capabilities", "MUST", "1.1")
async def capabilities_are_booleans(stage: Stage) -> None:
    """`capabilities` has `tool_approval`, `thinking` and `mcp`, each true or false."""
    ready = await _ready(stage)
    for name in ("tool_approval", "thinking", "mcp"):
        value = ready.member("capabilities", name)
        if not isinstance(value, bool):
            raise Broken(f"`capabilities.{name}` is {value!a}")


@SUITE.check("js.ready.early-message", "MAY", "1.1")
async def early_message_is_answered(stage: Stage) -> None:
    """A message sent before `ready` is answered after it."""
    agent = await stage.start()
    msg_id = await send(agent, stage.prompt("hello"))
    await agent.expect("the answer to a message sent before `ready`", ends(msg_id), stage.target.timeout)


@SUITE.check("js.flags.accepted", "MUST", "5")
async def flags_are_accepted(stage: Stage) -> None:
    """The flags of section 5 are accepted in `--json-stream` mode."""
    agent = await stage.start(
        "--model", "conform-model", "--max-tokens", "1000", "--max-turns", "10", "--base-url", NOWHERE,
        "--system-prompt", "Be brief.", "--auto-approve", "--workspace", str(stage.workspace),
    )  # fmt: skip
    await agent.expect("`ready`, with all the flags of section 5", is_ready, stage.target.timeout)
