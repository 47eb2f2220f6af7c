"""`trunkline bridge check`: what `run` would do, without doing it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trunkline.chat.opening import Opener
from trunkline.chat.senders import Senders
from trunkline.chat.settings import EVERYBODY, BridgeSettings
from trunkline.cli.bridge_run import platform, senders_of
from trunkline.core.faults import ConfigError

Say = Callable[[str], None]


async def check(settings: BridgeSettings, names: Sequence[str], say: Say) -> bool:
    """Look at everything that `run` needs, and tell of it. Whether nothing is missing."""
    for warning in settings.warnings:
        say(f"warning: {warning}")
    opener = Opener(settings)
    clean = opener.redactor.text
    say(f"workspace: {settings.workspace}")
    say(f"mode: {settings.mode}; what needs approval is denied after {settings.approval_seconds / 60:g} minutes")
    good = _senders(settings, names, say)
    for name, spec in settings.agents.items():
        first = " (answers first)" if name == settings.agent else ""
        try:
            await opener.check(name)
            say(f"agent {name}: {clean(spec)}: ok{first}")
        except ConfigError as error:
            good = False
            say(f"agent {name}: {clean(spec)}: {clean(str(error))}{first}")
    if not names:
        say("platforms: none is configured; name one on the command line")
        return False
    senders = senders_of(settings, names)
    for name in names:
        good = await _platform(name, settings, senders, lambda text: say(clean(text))) and good
    return good


def _senders(settings: BridgeSettings, names: Sequence[str], say: Say) -> bool:
    if EVERYBODY in settings.allow:
        say("allowed: everybody, strangers included: each of them can use the agents on this machine")
        return True
    people = [*settings.allow, *(["you, at this terminal"] if "terminal" in names else [])]
    say(f"allowed: {', '.join(people) or 'nobody'}")
    shut_out = [name for name in names if name != "terminal" and not _any_of(name, settings.allow)]
    for name in shut_out:
        say(f"  nobody on {name}: write to it, and it tells you the id to put into `allow`")
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
        say(f"platform {name}: {error}")
        return False
    say(f"platform {name}: ok")
    return True
