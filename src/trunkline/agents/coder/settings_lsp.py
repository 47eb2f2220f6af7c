"""The language servers of the configuration files, `[lsp.NAME]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trunkline.agents.coder.settings_values import Reference, expanded
from trunkline.base.values import Value

if TYPE_CHECKING:
    from trunkline.tools.lsp.server import LanguageServer


class LspSettings(Value):
    """Servers that say what is wrong with a file, and why something is not among them."""

    servers: tuple[LanguageServer, ...] = ()
    warnings: tuple[str, ...] = ()


#: What holds where nobody has said anything.
NO_LSP = LspSettings()


def lsp_settings(configured: Mapping[str, Mapping[str, Any]], environ: Mapping[str, str]) -> LspSettings:
    """Servers from their tables. One that cannot work is left out with a warning."""
    servers: list[LanguageServer] = []
    warnings: list[str] = []
    for name, table in configured.items():
        if not table.get("enabled", True):
            continue
        try:
            servers.append(_server(name, table, environ))
        except (Reference, ValueError) as problem:
            warnings.append(f"The language server `{name}` is left out: {problem}.")
    return LspSettings(tuple(servers), tuple(warnings))


def _server(name: str, table: Mapping[str, Any], environ: Mapping[str, str]) -> LanguageServer:
    """One server.

    Raises:
        Reference: it refers to a variable that is not set.
        ValueError: something is missing.
    """
    import shlex

    from trunkline.tools.lsp.server import LanguageServer

    command = table.get("command")
    if isinstance(command, str):
        words = shlex.split(command)
    elif isinstance(command, list) and all(isinstance(word, str) for word in command):
        words = command
    else:
        raise ValueError("its `command` must be a string or a list of strings")
    if not words or not words[0]:
        raise ValueError("its `command` is empty")
    extensions = [each if each.startswith(".") else f".{each}" for each in table.get("extensions", ()) if each]
    if not extensions:
        raise ValueError('it has no `extensions`, such as `[".py"]`')
    argv = tuple(expanded(word, environ) for word in words)
    return LanguageServer(name, argv, tuple(extensions), expanded(table.get("root", "."), environ))
