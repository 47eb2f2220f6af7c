"""The models that there are to choose from in a conversation, and the choice that goes with it to the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.core.agent import Agent, Capabilities, SetOptions
from trunkline.core.session import Session

if TYPE_CHECKING:
    from trunkline.agents.coder.settings import CoderSettings


class OfferedModels:
    """Those of one agent. `settings`: what the coding agent is configured to use."""

    def __init__(self, settings: CoderSettings | None) -> None:
        self._settings = settings
        self._listed: list[str] = []

    async def ask(self, agent: Agent) -> list[str]:
        """Those that the agent could use, as far as that is known to the provider or the agent."""
        if self._settings is None:
            offered_models = getattr(agent, "offered_models", None)
            self._listed = [] if offered_models is None else await offered_models()
        else:
            from trunkline.models.offered import offered

            self._listed = await offered(self._settings.model)
        return self._listed

    @property
    def known(self) -> list[str]:
        """The same, as far as it is known without asking anybody."""
        if self._listed or self._settings is None:
            return self._listed
        from trunkline.models.offered import known_here

        return known_here(self._settings.model.provider)


async def choose_alike(session: Session, before: Capabilities) -> str:
    """Let a new session have the model and the effort that were chosen in the one before it; gives the model, if it was
    changed."""
    now = session.capabilities
    changed = {"model": before.model} if before.model != now.model else {}
    chosen = changed | ({"effort": before.effort} if before.effort != now.effort else {})
    if chosen:
        await session.configure(SetOptions(chosen))
    return changed.get("model", "")
