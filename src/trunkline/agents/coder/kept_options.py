"""What was set in a session, such as its model or its output style, and counts again when the session is resumed.

The history carries it. What the command line says of this very start counts more, and which model of another service
was set, and how, does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from trunkline.agents.coder import options
from trunkline.agents.coder.history import OPTIONS, STYLE, History
from trunkline.agents.coder.settings import CoderSettings
from trunkline.core.faults import ConfigError
from trunkline.models.model import Model
from trunkline.models.providers import ModelSettings

#: Options that belong together, and what on a command line says something else than they do. A profile may say all.
_GROUPS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("model", "image_input"), ("model", "profile")),
    (("thinking", "thinking_budget"), ("thinking_budget", "profile")),
    (("effort",), ("effort", "profile")),
    (("compaction",), ()),
)
#: What was said before one of them, and means nothing any more: a model's eyes are not another's.
_SUPERSEDED = {"model": "image_input", "thinking": "thinking_budget", "thinking_budget": "thinking"}
_SERVICE = "service"


class KeptOptions:
    """Of one session. `configured`: what holds where nothing was set."""

    def __init__(self, history: History, configured: CoderSettings, said: Collection[str]) -> None:
        self._history = history
        self._configured = configured
        self._said = said
        self._unwritten: dict[str, Any] = {}
        self.notes: list[str] = []
        """What people should be told."""

    def begin(self, make_model: Callable[[ModelSettings], Model]) -> tuple[CoderSettings, Model]:
        """The settings as the session was left with them, and their model.

        Raises:
            ConfigError: the model cannot be had, and nor can the one that is configured.
        """
        settings, configured = self._styled(self._settings()), self._configured
        try:
            return settings, make_model(settings.model)
        except ConfigError as error:
            if settings.model == configured.model:
                raise
            self._note(error)
            return settings.replace(model=configured.model), make_model(configured.model)

    def _settings(self) -> CoderSettings:
        kept, found = self._history.kept.get(OPTIONS), self._configured
        if not kept or kept.get(_SERVICE) != _service(found):
            return found
        for names, overruled in _GROUPS:
            group = {name: kept[name] for name in names if name in kept}
            if not group or not set(overruled).isdisjoint(self._said):
                continue
            try:
                found = options.applied(group, found, self._configured)
            except ConfigError as error:
                self._note(error)
        return found

    def _styled(self, settings: CoderSettings) -> CoderSettings:
        style = self._history.kept.get(STYLE)
        # A profile may name a style.
        return settings if style is None or "profile" in self._said else settings.replace(output_style=style)

    def _note(self, error: ConfigError) -> None:
        self.notes.append(f"What was set in this session before is left out: {error}")

    def keep(self, said: Mapping[str, Any]) -> None:
        """Something was set."""
        kept = dict(self._unwritten.get(OPTIONS) or self._history.kept.get(OPTIONS, {}))
        if kept.get(_SERVICE) != _service(self._configured):
            kept = {_SERVICE: _service(self._configured)}
        news = {name: said[name] for names, _ in _GROUPS for name in names if said.get(name) is not None}
        for name in news:
            kept.pop(_SUPERSEDED.get(name, ""), None)
        self._keep(OPTIONS, kept | news)

    def keep_style(self, name: str) -> None:
        """The agent answers in another output style from now on."""
        self._keep(STYLE, name)

    def _keep(self, name: str, value: Any) -> None:
        self._unwritten[name] = value
        if self._history.messages:
            self.write()

    def write(self) -> None:
        """Keep it for good. A session in which nothing was said yet waits with that: it may not be kept at all."""
        for name, value in self._unwritten.items():
            self._history.keep(name, value)
        self._unwritten = {}


def _service(settings: CoderSettings) -> str:
    """Whose models they are. Not the port: a server on one's own machine has another each time."""
    from urllib.parse import urlsplit

    return f"{settings.model.provider} {urlsplit(settings.model.base_url or '').hostname or ''}".strip()
