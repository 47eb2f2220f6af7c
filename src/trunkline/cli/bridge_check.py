"""`trunkline bridge check`: what `run` would do, without doing it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trunkline.base.chat_platforms import PLATFORMS, remote
from trunkline.base.config import user_file
from trunkline.base.printable import printable_line
from trunkline.chat.opening import Opener
from trunkline.chat.platforms import made, owners, senders_of
from trunkline.chat.senders import Senders
from trunkline.chat.settings import EVERYBODY, BridgeSettings, with_file
from trunkline.core.faults import ConfigError, Fault

Say = Callable[[str], None]


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
    first, *others = PLATFORMS
    named = "".join(f", or `{name}`" for name in others)
    tables = " or ".join(f"`[bridge.{name}]`" for name in remote())
    return f"Name one: `trunkline bridge run {first}`{named}. To have it always, write {tables} into `{user_file()}`."


async def unable(settings: BridgeSettings) -> dict[str, str]:
    """The agents that cannot answer here, as far as that can be told without asking them, and why."""
    opener = Opener(settings)
    found: dict[str, str] = {}
    for name in settings.agents:
        try:
            await opener.check(name)
        except Fault as error:
            found[name] = opener.redactor.text(str(error))
    return found


def _senders(settings: BridgeSettings, names: Sequence[str], say: Say) -> bool:
    if EVERYBODY in settings.allow:
        say("allowed: everybody, strangers included: each of them can use the agents on this machine")
        return True
    here = owners(names)
    people = [*settings.allow, *(f"{PLATFORMS[name].owner}, at {PLATFORMS[name].title}" for name in here)]
    say(f"allowed: {', '.join(people) or 'nobody'}")
    shut_out = [name for name in names if name not in here and not _any_of(name, settings.allow)]
    for name in shut_out:
        entry = PLATFORMS[name]
        example = f"{name}:{entry.example}"
        say(
            f'  nobody on {name}: {entry.way_in} write `allow = ["{example}"]` below `[bridge]` in `{user_file()}`, '
            f"or give `--allow {example}`."
        )
    if settings.approvers:
        say(f"approvers: {', '.join(settings.approvers)}")
    return not shut_out


def _any_of(platform_name: str, allow: Sequence[str]) -> bool:
    return any(sender.startswith(f"{platform_name}:") for sender in allow)


async def _platform(name: str, settings: BridgeSettings, senders: Senders, say: Say) -> bool:
    try:
        platform = made(name, settings, senders)
        if PLATFORMS[name].owner is None:
            try:
                await platform.open()
            finally:
                await platform.close()
    except ConfigError as error:
        say(f"platform {name}: {with_file(str(error))}")
        return False
    say(f"platform {name}: ok")
    return True
