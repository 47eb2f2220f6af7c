"""Shell completion for the commands that bypass `click`, from their `argparse` parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from click.shell_completion import CompletionItem

from trunkline.agents import registry, script
from trunkline.agents.graph import bundled
from trunkline.cli.arguments import Parser
from trunkline.cli.value_completion import exchange_agents
from trunkline.wires.acp import hub as acp_hub
from trunkline.wires.agentproc import hub


def profiles(incomplete: str) -> list[CompletionItem]:
    """Bundled profiles, and files."""
    return _or_a_file(hub.names(), incomplete)


def agents(incomplete: str) -> list[CompletionItem]:
    """Everybody who can be named without knowing what is on this machine."""
    programs = [*(f"agentproc:{name}" for name in hub.names()), *(f"acp:{name}" for name in acp_hub.PROGRAMS)]
    known = [*registry.names(), *programs]
    ours = [*(f"scripted:{name}" for name in script.bundled()), *(f"graph:{name}" for name in bundled.names())]
    return _beginning([*known, *ours], incomplete)


def options(parser: Parser, incomplete: str) -> list[CompletionItem]:
    """The options that begin like that, with what they mean."""
    return [
        CompletionItem(option, help=action.help)
        for action in parser.actions
        for option in action.option_strings
        if option.startswith(incomplete)
    ]


def words(parser: Parser, before: Sequence[str], incomplete: str) -> list[CompletionItem]:
    """What can stand behind the words before: the value of an option, or an argument."""
    by_option = {option: action for action in parser.actions for option in action.option_strings}
    last = by_option.get(before[-1]) if before else None
    if last is not None and last.nargs is None:
        return _values(parser, last, incomplete)
    given = [
        word
        for place, word in enumerate(before)
        if not word.startswith("-") and not _is_value(by_option, before, place)
    ]
    takes_agent = any(not action.option_strings and action.dest == "agent" for action in parser.actions)
    if not takes_agent or given:
        return []
    return _beginning(exchange_agents(), incomplete) if "--attach" in before else agents(incomplete)


def _is_value(by_option: dict[str, argparse.Action], before: Sequence[str], place: int) -> bool:
    option = by_option.get(before[place - 1]) if place else None
    return option is not None and option.nargs is None


def _values(parser: Parser, action: argparse.Action, incomplete: str) -> list[CompletionItem]:
    if action.choices is not None:
        return _beginning(action.choices, incomplete)
    if action.dest == "script":
        return _or_a_file(script.bundled(), incomplete)
    if action.dest == "workspace":
        return [CompletionItem(incomplete, type="dir")]
    # `serve` has an option of that name, too, for the profiles of the configuration file.
    return profiles(incomplete) if action.dest == "profile" and action.required else []


def _or_a_file(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Some names, and files where none of them fits. In this order: in bash, a file forgets what was offered before."""
    return [CompletionItem(incomplete, type="file"), *_beginning(names, incomplete)]


def _beginning(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
