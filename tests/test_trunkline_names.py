"""The names that `trunkline` itself gives: all of them, nothing else, and at no cost before they are used."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import trunkline
from trunkline.core import events, faults
from trunkline.core.faults import Fault


def printed_by(program: str) -> str:
    """What a fresh Python prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def imports_for_type_checkers() -> dict[str, str]:
    """Each name that type checkers see, with its module."""
    tree = ast.parse(Path(trunkline.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: str(node.module) for node in imports for alias in node.names}


def subclasses(kind: type[Fault]) -> set[type[Fault]]:
    ours = {child for child in kind.__subclasses__() if child.__module__ == faults.__name__}
    return ours.union(*map(subclasses, ours))


def test_all_is_sorted_and_is_what_resolves_to_the_very_objects_that_type_checkers_see() -> None:
    declared = imports_for_type_checkers()
    assert trunkline.__all__ == sorted(declared)
    lazy = {name: home for home, names in trunkline._HOMES.items() for name in names.split()}
    assert lazy == declared
    for name, home in declared.items():
        assert getattr(trunkline, name) is getattr(importlib.import_module(home), name)
    assert set(trunkline.__all__) <= set(dir(trunkline))


def test_a_star_import_gives_all_of_them() -> None:
    names = json.loads(
        printed_by("a = set(dir()); from trunkline import *; import json; print(json.dumps(sorted(set(dir()) - a)))")
    )
    assert set(names) - {"a", "json"} == set(trunkline.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error_and_an_import_error() -> None:
    with pytest.raises(AttributeError, match="no attribute `Agnt`"):
        trunkline.Agnt  # type: ignore[attr-defined]  # noqa: B018  # type checkers know it, too
    with pytest.raises(ImportError, match="Agnt"):
        exec("from trunkline import Agnt")


def test_every_event_that_a_peer_may_see_and_every_fault_is_public() -> None:
    visible = {kind.__name__ for kind in events.EVENTS if not kind.private}
    hidden = {kind.__name__ for kind in events.EVENTS if kind.private}
    assert visible <= set(trunkline.__all__)
    assert hidden.isdisjoint(trunkline.__all__)
    assert {kind.__name__ for kind in subclasses(Fault)} | {"Fault"} <= set(trunkline.__all__)


def test_importing_it_imports_nothing_else() -> None:
    program = "import sys; a = set(sys.modules); import trunkline; print(sorted(set(sys.modules) - a))"
    assert set(ast.literal_eval(printed_by(program))) <= {"trunkline", "__future__"}


def test_a_value_costs_no_event_loop_and_no_json() -> None:
    # Compared with what was there before: a run that measures coverage brings modules of its own.
    program = (
        "import sys; before = set(sys.modules); from trunkline import TextDelta, Agent; "
        "print({'asyncio', 'json'} & (set(sys.modules) - before))"
    )
    assert printed_by(program) == "set()\n"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("trunkline.agents.graph.yaml_graph", "load"),
        ("trunkline.wires.agentproc.drive", "run"),
        ("trunkline.wires.agentproc.messages", "Turn"),
        ("trunkline.wires.agentproc.profile_file", "load"),
        ("trunkline.wires.agentproc.sdk", "agent"),
        ("trunkline.wires.jsonstream.drive", "Connection"),
        ("trunkline.wires.tryll.codec", "Framer"),
        ("trunkline.wires.tryll.drive", "Tryll"),
        ("trunkline.wires.tryll.drive_sync", "SyncTryll"),
        ("trunkline.wires.tryll.errors", "TryllError"),
        ("trunkline.wires.tryll.messages", "Ack"),
    ],
)
def test_what_programs_of_others_import_by_its_module_is_still_there(module: str, name: str) -> None:
    assert hasattr(importlib.import_module(module), name)


def test_the_version_is_looked_up_when_it_is_asked_for() -> None:
    program = "import sys, trunkline; a = 'trunkline._version' in sys.modules; print(a, trunkline.__version__)"
    assert printed_by(program) == f"False {trunkline.__version__}\n"


def test_a_tree_in_which_nothing_was_built_has_a_version_too(monkeypatch: pytest.MonkeyPatch) -> None:
    # What was looked up comes back afterwards.
    monkeypatch.setattr(trunkline, "__version__", trunkline.__version__)
    monkeypatch.delattr(trunkline, "__version__")
    monkeypatch.setitem(sys.modules, "trunkline._version", None)
    assert trunkline.__version__ == trunkline._NO_VERSION
