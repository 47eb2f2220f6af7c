"""The configuration as it is in force, with the origin of each value; and how the file is checked and loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base import jsontext
from trunkline.exchange.api import settings as settings_routes
from trunkline.exchange.api.endpoint import ApiCall
from trunkline.exchange.console.page import ADMINS_PAGE, ConsolePage

#: How the file can be, and what to say of it.
STATES = {
    "none": "This exchange was started without a file.",
    "loaded": "In force as it is on disk.",
    "changed": "Changed on disk, not loaded.",
    "wrong": "It has mistakes and is not loaded. What was loaded before is still in force.",
    "gone": "The file is gone. What was loaded before is still in force.",
    "unreadable": "The file cannot be read. What was loaded before is still in force.",
}
#: What stands for nothing.
NOT_SET = "not set"


async def settings(call: ApiCall) -> Mapping[str, Any]:
    """`GET /settings`."""
    found = await settings_routes.settings(call)
    groups: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for row in found["settings"]:
        group = groups.setdefault(row["section"].partition(".")[0], {})
        group.setdefault(row["section"], []).append(row)
    disk = {name: found[name] for name in ("file", "problems", "differences")}
    return {
        "found": found, "groups": groups, "disk": disk, "states": STATES, "value": value_text, "short": short_key
    }  # fmt: skip


def value_text(value: Any) -> str:
    """A value as the file would say it."""
    if value is None or value in ("", []):
        return NOT_SET
    return value if isinstance(value, str) else jsontext.dumps(value).decode()


def short_key(section: str, key: str) -> str:
    """A key without the name of the section that it is listed under."""
    return key.removeprefix(f"{section}.")


PAGES = (ConsolePage(ADMINS_PAGE, settings, "settings.html", least="admin"),)
