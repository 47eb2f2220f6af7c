"""Diagnostics from outside: the model reads behind the result of an edit what is wrong with it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support import language_server
from tests.support.coding import calls, coding, of, says
from trunkline.base.config import user_file

pytestmark = pytest.mark.process

COMMAND = [sys.executable, str(Path(language_server.__file__))]
TABLE = f'[lsp.fake]\ncommand = {json.dumps(COMMAND)}\nextensions = [".py"]\n'
EDITS = (
    calls(("Write", {"file_path": "a.py", "content": "ok = 1\n"})),
    calls(("Edit", {"file_path": "a.py", "old_string": "ok = 1", "new_string": "BAD = 1"})),
    says("Done."),
)


def test_the_model_reads_what_a_server_says_of_its_edit(tmp_path: Path) -> None:
    path = Path(user_file())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TABLE)
    heard = tmp_path / "heard"
    with coding(tmp_path, *EDITS, env={"HEARD": str(heard), "FAKE_API_KEY": "sk-secret-0123"}) as agent:
        lines = agent.ask("Change it.")
        written, changed = agent.asked.results[-2:]
        assert written == "Created a.py (1 lines)"
        assert changed == (
            "Edited a.py: replaced 1 occurrence(s)\n\nfake finds in a.py:\n"
            "- new: 1:1 error: BAD found in 'BAD = 1' (T1)"
        )
        edited = of(lines, "tool_result")[-1]
        assert edited["output_type"] == "diff"
        assert edited["metadata"]["diagnostics"] == ["1:1 error: BAD found in 'BAD = 1' (T1)"]
    assert "secret None" in heard.read_text()


def test_a_workspace_that_nobody_trusts_starts_no_server(tmp_path: Path) -> None:
    (tmp_path / "trunkline.toml").write_text(TABLE)
    heard = tmp_path / "heard"
    with coding(tmp_path, *EDITS, env={"HEARD": str(heard)}) as agent:
        agent.ask("Change it.")
        assert agent.asked.results[-1] == "Edited a.py: replaced 1 occurrence(s)"
    assert not heard.exists()
