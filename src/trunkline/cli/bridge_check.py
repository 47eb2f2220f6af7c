"""`trunkline bridge check`: what `run` would do, without doing it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trunkline.agents import registry
from trunkline.base.config import user_file
from trunkline.base.printable import printable_line
from trunkline.chat.opening import Opener
from trunkline.chat.senders import Senders
from trunkline.chat.settings import EVERYBODY, BridgeSettings, with_file
from trunkline.cli.bridge_run import platform, senders_of
from trunkline.core.agent import Agent
from trunkline.core.faults import ConfigError, Fault
from trunkline.wires.agentproc.profile import Profile

Say = Callable[[str], None]

#: An entry of the allow-list, for each platform that needs one.
_EXAMPLES = {"telegram": "telegram:12345", "matrix": "matrix:@me:example.org"}
#: How people get their id there, and what comes before it is written down.
_WAYS_IN = {
    "telegram": "write to it, and it tells you your id. Then",
    "matrix": "it declines all invitations. Your client shows your own id in its settings:",
}


async def check(settings: BridgeSettings, names: Sequence[str], say: Say) -> bool:
    """Look at everything that `run` needs, and tell of it. Whether nothing is missing."""
    for warning in settings.warnings:
        say(f"warning: {warning}")
    opener = Opener(settings)
    clean = opener.redactor.text
    say(f"workspace: {printable_line(settings.workspace)}")
    say(f"mode: {settings.mode}; what needs approval is denied after {settings.approval_seconds / 60:g} minutes")
    good = _senders(settings, names, say)
    silent = await unable(settings)
    for name, spec in settings.agents.items():
        first = " (answers first)" if name == settings.agent else ""
        kind = "" if spec == name else f" ({clean(spec)})"
        say(f"agent {clean(name)}{kind}: {silent.get(name, 'ok')}{first}")
    good = good and not silent
    if not names:
        say(f"platforms: none. {ways_to_a_platform()}")
        return False
    senders = senders_of(settings, names)
    for name in names:
        good = await _platform(name, settings, senders, lambda text: say(clean(text))) and good
    return good


def ways_to_a_platform() -> str:
    """What to write, and where, for those who have none."""
    return (
        "Name one: `trunkline bridge run terminal`, or `telegram`, or `matrix`. To have it always, write "
        f"`[bridge.telegram]` or `[bridge.matrix]` into `{user_file()}`."
    )


async def unable(settings: BridgeSettings) -> dict[str, str]:
    """The agents that cannot answer here, as far as that can be told without asking them, and why."""
    opener = Opener(settings, make=_able)
    found: dict[str, str] = {}
    for name in settings.agents:
        try:
            await opener.check(name)
        except Fault as error:
            found[name] = opener.redactor.text(str(error))
    return found


def _able(spec: str, options: Mapping[str, Any]) -> Agent:
    agent = registry.make(spec, options)
    problem = _problem_of_profile(agent, options)
    if problem is not None:
        raise ConfigError(problem)
    return agent


def _problem_of_profile(agent: Agent, options: Mapping[str, Any]) -> str | None:
    """What is wrong with an agent that a profile describes, in the workspace that it will have."""
    profile = getattr(agent, "profile", None)
    if not isinstance(profile, Profile):
        return None
    from trunkline.wires.agentproc.profile.check import problem

    return problem(profile, os.environ, str(options["workspace"]))


def _senders(settings: BridgeSettings, names: Sequence[str], say: Say) -> bool:
    if EVERYBODY in settings.allow:
        say("allowed: everybody, strangers included: each of them can use the agents on this machine")
        return True
    people = [*settings.allow, *(["you, at this terminal"] if "terminal" in names else [])]
    say(f"allowed: {', '.join(people) or 'nobody'}")
    shut_out = [name for name in names if name != "terminal" and not _any_of(name, settings.allow)]
    for name in shut_out:
        entry = _EXAMPLES[name]
        say(
            f'  nobody on {name}: {_WAYS_IN[name]} write `allow = ["{entry}"]` below `[bridge]` in `{user_file()}`, '
            f"or give `--allow {entry}`."
        )
    if settings.approvers:
        say(f"approvers: {', '.join(settings.approvers)}")
    return not shut_out


def _any_of(platform_name: str, allow: Sequence[str]) -> bool:
    return any(sender.startswith(f"{platform_name}:") for sender in allow)


async def _platform(name: str, settings: BridgeSettings, senders: Senders, say: Say) -> bool:
    try:
        made = platform(name, settings, senders)
        if name != "terminal":
            try:
                await made.open()
            finally:
                await made.close()
    except ConfigError as error:
        say(f"platform {name}: {with_file(str(error))}")
        return False
    say(f"platform {name}: ok")
    return True
