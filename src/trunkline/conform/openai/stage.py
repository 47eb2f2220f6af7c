"""Where one check plays: a client that sends what it is told to, right or wrong, and the record of it."""

from __future__ import annotations

import os
from typing import Any

from trunkline.conform import stage
from trunkline.conform.kit import NotExercised
from trunkline.conform.openai.answer import OpenAIAnswer, is_text
from trunkline.conform.openai.asking import Asking, ServerMemory, Target
from trunkline.conform.record import Roles
from trunkline.conform.wording import fill

ROLES: Roles = ("client", "server")

CHAT, RESPONSES = "/chat/completions", "/responses"


class Stage(stage.Stage):
    """The place of one check."""

    def __init__(self, target: Target, memory: ServerMemory, name: str) -> None:
        super().__init__(name, ROLES)
        self.target = target
        self.memory = memory
        record = self.record((target.base_url,))
        self.asking = self.opened(record, Asking(target, record, memory))

    @property
    def was_reached(self) -> bool:
        """Whether the server has answered anybody."""
        return self.memory.reached

    def prompt(self, name: str, text: str = "") -> str:
        """What to say to the model."""
        return fill(self.target.prompts, name, text=text)

    async def model(self) -> str:
        """The model under test.

        Raises:
            NotExercised: none was named, and the server lists none.
        """
        if self.target.model:
            return self.target.model
        if not self.memory.model:
            answer = await self.asking.ask("GET", "/models")
            found = answer.member("data", 0, "id")
            if not is_text(found):
                raise NotExercised(f"{answer.asked} was answered with {answer.told}: name a model with `--model`")
            self.memory.model = str(found)
        return self.memory.model

    async def chat_body(self, prompt: str = "hello", text: str = "", **more: Any) -> dict[str, Any]:
        """The body of a request for a chat completion, with some members more or others."""
        message = {"role": "user", "content": self.prompt(prompt, text)}
        return {"model": await self.model(), "messages": [message], **more}

    async def chat(self, prompt: str = "hello", text: str = "", **more: Any) -> OpenAIAnswer:
        """A chat completion."""
        return await self.asking.ask("POST", CHAT, await self.chat_body(prompt, text, **more))

    async def response_body(self, prompt: str = "hello", text: str = "", **more: Any) -> dict[str, Any]:
        """The body of a request for a response, with some members more or others."""
        return {"model": await self.model(), "input": self.prompt(prompt, text), **more}

    async def respond(self, prompt: str = "hello", text: str = "", **more: Any) -> OpenAIAnswer:
        """A response."""
        return await self.asking.ask("POST", RESPONSES, await self.response_body(prompt, text, **more))


def word() -> str:
    """A text that nobody has said before."""
    return f"conform-{os.urandom(6).hex()}"
