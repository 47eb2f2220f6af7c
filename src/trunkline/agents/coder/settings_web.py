"""What `[web]` says: whether pages of this machine may be fetched, and, in `[web.search]`, which engine searches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trunkline.agents.coder.settings_values import Reference, expanded
from trunkline.base.values import Value

if TYPE_CHECKING:
    from trunkline.tools.web_search import SearchEngine

#: Where the keys of engines usually are, if the files do not say.
_VARIABLES = {"brave": "BRAVE_API_KEY", "tavily": "TAVILY_API_KEY"}


class WebSettings(Value):
    """How the web is used."""

    private: bool = False
    """Whether addresses of this machine and its networks may be fetched."""
    engine: SearchEngine | None = None
    warnings: tuple[str, ...] = ()


#: What holds where nobody has said anything.
NO_WEB = WebSettings()


def web_settings(table: Mapping[str, Any], environ: Mapping[str, str]) -> WebSettings:
    """Read it. An engine that cannot work is left out with a warning, and the model is not told of the tool."""
    private = table.get("allow_private", False)
    search = table.get("search")
    if not search:
        return WebSettings(private)
    try:
        return WebSettings(private, _engine(search, environ))
    except (Reference, ValueError) as problem:
        return WebSettings(private, warnings=(f"`[web.search]` is not used, and there is no WebSearch: {problem}.",))


def _engine(table: Mapping[str, Any], environ: Mapping[str, str]) -> SearchEngine:
    from trunkline.tools.web_search import ENGINES, SearchEngine

    # The schema has let only these pass.
    name = table.get("engine")
    if name is None:
        raise ValueError(f"it has no `engine`, which is one of {', '.join(f'`{each}`' for each in ENGINES)}")
    url = expanded(table.get("url") or ENGINES[name][1], environ)
    if not url:
        raise ValueError(f"`{name}` needs `url`, the address of an instance")
    key = expanded(table.get("api_key", ""), environ)
    variable = table.get("api_key_env") or ("" if key else _VARIABLES.get(name, ""))
    key = environ.get(variable, "") if variable else key
    if not key and (variable or name in _VARIABLES):
        raise ValueError(f"`{variable}` is not set, which should hold the key of `{name}`")
    return SearchEngine(name, url, key)
