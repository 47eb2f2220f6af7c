"""`python -m trunkline`."""

from __future__ import annotations

from trunkline.cli import main

main()
