"""The pictures of the console in the documentation, from those that the tests in a browser have made:

    .venv/bin/pytest tests/e2e -k console && .venv/bin/python -m tests.docs.pictures

Look at them before you commit them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.browser import SCREENSHOTS

PLACE = Path(__file__).parents[2] / "docs" / "images" / "console"

#: What each picture of the documentation is called by the tests: by day, by night, and on a phone.
PICTURES = {
    "home": ("home", "home-dark", "home-phone"),
    "conversation": ("conversation-beside", "conversation-dark-end", "conversation-phone-end"),
    "sessions": ("sessions", "sessions-dark", "sessions-phone"),
    "timeline": ("timeline-graph", "timeline-dark", "timeline-phone"),
    "approvals": ("approvals", "approvals-dark", "approvals-phone"),
    "agents": ("agents", "agents-dark", "agents-phone"),
    "agent": ("agent", "agent-dark", "agent-phone"),
    "models": ("models", "models-dark", "models-phone"),
    "usage": ("usage", "usage-dark", "usage-phone"),
    "graph": ("graph", "graph-dark", "graph-phone"),
    "settings": ("settings", "settings-dark", "settings-phone"),
}


def main() -> None:
    """Entry point."""
    PLACE.mkdir(parents=True, exist_ok=True)
    for name, made in PICTURES.items():
        for form, file in zip(("", "-dark", "-phone"), made, strict=True):
            shutil.copyfile(SCREENSHOTS / f"console-{file}.png", PLACE / f"{name}{form}.png")


if __name__ == "__main__":
    main()
