"""The coding agent, as the registry makes it."""

from __future__ import annotations

import os
from collections.abc import Callable

from trunkline.agents.coder.settings import CoderSettings
from trunkline.base.environ_secrets import environment_secrets
from trunkline.base.redact import Redactor
from trunkline.core.agent import Capabilities, Conversation, OpenRequest
from trunkline.models import providers
from trunkline.models.model import Model


class Coder:
    """A language model with tools."""

    name = "coder"
    capabilities = Capabilities(approval=True, thinking=True, mcp=True, images=True, resume=True)

    def __init__(
        self, settings: CoderSettings, make_model: Callable[[providers.ModelSettings], Model] = providers.make
    ):
        self.settings = settings
        self._make_model = make_model

    async def open(self, request: OpenRequest) -> Conversation:
        from trunkline.agents.coder.conversation import CoderConversation

        redactor = Redactor([*environment_secrets(os.environ), *self.settings.secrets])
        conversation = CoderConversation(self.settings, request, self._make_model, redactor)
        conversation.start()
        return conversation
