"""Real work: small repositories, each with a test that fails, which the coding agent has to mend.

    python bench/tasks.py                                     with the recorded model of each task
    python bench/tasks.py --provider anthropic                with a real one
    python bench/tasks.py --provider local --model qwen2.5-coder-1.5b --task median-even
    python bench/tasks.py --record                            write down anew what the recorded models are asked

Exit codes: 0 when every task is solved, and, with the recorded model, by the requests that were recorded; 1 otherwise;
2 for wrong usage. See bench/README.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

# Run as a script, Python looks for modules beside it, and not where `bench` is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

# In a module of its own: to some programs `bench.tasks` is the folder of that name.
from bench._tasks_command import main

if __name__ == "__main__":
    sys.exit(main())
