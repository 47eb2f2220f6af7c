"""Checks of what a prompt may be made of: text and links always, the rest as `promptCapabilities` say."""

from __future__ import annotations

from typing import Any

from trunkline.conform.acp.scenes import begin, finish, needs, offers, opened, refused
from trunkline.conform.acp.stage import Stage
from trunkline.conform.acp.suite import SUITE
from trunkline.conform.acp.vocabulary import INVALID_PARAMS
from trunkline.conform.kit import Broken, NotApplicable

#: One black pixel.
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
#: Sixteen samples of silence.
AUDIO = "UklGRkQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YSAAAAA" + "A" * 40 + "="

_IMAGE_BLOCK = {"type": "image", "mimeType": "image/png", "data": IMAGE}


async def _taken(stage: Stage, block: dict[str, Any], *offer: str) -> None:
    """A prompt with such a block, if it is offered, is answered."""
    agent, session = await opened(stage)
    if offer:
        needs(agent, *offer)
    blocks = [{"type": "text", "text": stage.prompt("hello")}, block]
    reply = await finish(stage, agent, begin(agent, session, blocks))
    if not reply.text(session):
        raise Broken(f"no text came between {reply.asked} and its response {reply.shown}")


@SUITE.check("acp.content.link", "MUST", "Content")
async def links_are_taken(stage: Stage) -> None:
    """Every agent takes links to resources in a prompt."""
    file = stage.folder / "conform-link.txt"
    file.write_text("hello\n", encoding="utf-8")
    await _taken(stage, {"type": "resource_link", "uri": file.as_uri(), "name": file.name, "mimeType": "text/plain"})


@SUITE.check("acp.content.image", "MUST", "Content")
async def images_are_taken(stage: Stage) -> None:
    """An agent that offers `image` takes images in a prompt."""
    await _taken(stage, _IMAGE_BLOCK, "promptCapabilities", "image")


@SUITE.check("acp.content.audio", "MUST", "Content")
async def audio_is_taken(stage: Stage) -> None:
    """An agent that offers `audio` takes sound in a prompt."""
    block = {"type": "audio", "mimeType": "audio/wav", "data": AUDIO}
    await _taken(stage, block, "promptCapabilities", "audio")


@SUITE.check("acp.content.embedded", "MUST", "Content")
async def resources_are_taken(stage: Stage) -> None:
    """An agent that offers `embeddedContext` takes embedded resources in a prompt."""
    resource = {"uri": "file:///conform/embedded.txt", "mimeType": "text/plain", "text": "hello"}
    await _taken(stage, {"type": "resource", "resource": resource}, "promptCapabilities", "embeddedContext")


@SUITE.check("acp.content.unoffered", "SHOULD", "Content")
async def what_is_not_offered_is_answered(stage: Stage) -> None:
    """An image for an agent that does not offer `image` is refused, or answered without it; never silence."""
    agent, session = await opened(stage)
    if offers(agent, "promptCapabilities", "image"):
        raise NotApplicable("the agent offers `agentCapabilities.promptCapabilities.image`")
    blocks = [{"type": "text", "text": stage.prompt("hello")}, _IMAGE_BLOCK]
    await agent.answer(begin(agent, session, blocks), stage.target.timeout)


@SUITE.check("acp.content.unknown", "SHOULD", "Content")
async def unknown_blocks_are_refused(stage: Stage) -> None:
    """A content block of an unknown type is refused with the error -32602."""
    agent, session = await opened(stage)
    turn = begin(agent, session, [{"type": "conform_no_such_type", "text": "x"}])
    refused(await agent.answer(turn, stage.target.timeout), "(of an unknown type)", INVALID_PARAMS)
