"""The coding agent, as the registry makes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from trunkline.agents.coder.settings import CoderSettings
from trunkline.agents.coder.settings_sandbox import with_sandbox
from trunkline.base.environ_secrets import environment_secrets
from trunkline.base.redact import Redactor
from trunkline.core.agent import Capabilities, Conversation, OpenRequest
from trunkline.models import abilities, providers

if TYPE_CHECKING:
    from trunkline.models.model import Model


def capabilities(settings: CoderSettings, *, servers: bool = False) -> Capabilities:
    """What the coding agent can do with these settings; `servers`: there are MCP servers beside those of the files."""
    model = abilities.of(settings.model)
    return Capabilities(
        approval=True,
        thinking=model.thinks,
        mcp=servers or bool(settings.mcp_servers),
        images=model.images,
        resume=True,
        effort_levels=model.efforts,
        continues=True,
        steerable=True,
        sandbox=settings.sandbox == "on",
        model=settings.model.model or "",
        effort=settings.effort or "",
    )


class Coder:
    """A language model with tools."""

    name = "coder"

    def __init__(
        self, settings: CoderSettings, make_model: Callable[[providers.ModelSettings], Model] = providers.make
    ):
        self.settings = with_sandbox(settings)
        self.redactor = Redactor([*environment_secrets(os.environ), *settings.secrets])
        """Knows what must not be shown; servers that are added later bring secrets of their own."""
        self._make_model = make_model

    @property
    def commands(self) -> Mapping[str, str]:
        """What can be typed in place of a message, and what it does."""
        from trunkline.agents.coder.commands import HELP

        return HELP

    @property
    def capabilities(self) -> Capabilities:
        return capabilities(self.settings)

    @property
    def checked(self) -> bool:
        """Whether the settings are all that a conversation needs. What `compat` says is looked at by the model."""
        model = self.settings.model
        # Who needs no package needs what `providers.check` has looked at, and no file or account besides.
        walled = self.settings.sandbox == "on"
        return providers.PROVIDERS[model.provider].extra is None and not model.compat and not walled

    async def open(self, request: OpenRequest) -> Conversation:
        from trunkline.agents.coder.conversation import CoderConversation

        conversation = CoderConversation(self.settings, request, self._make_model, self.redactor)
        try:
            await conversation.prepare()
        except BaseException:
            await conversation.close()
            raise
        conversation.start()
        return conversation
