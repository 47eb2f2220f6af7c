"""`python -m trunkline`."""

from __future__ import annotations

import sys

# Python has put the current directory first: what is imported from here on is not to be found in somebody's repository.
if not sys.flags.safe_path:
    del sys.path[0]

from trunkline.cli import main

main()
