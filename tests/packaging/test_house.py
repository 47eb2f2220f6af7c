"""The house rules that a linter does not know: sizes and names of files, and layers that cannot be forgotten."""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Readable at one sitting. The aim is 400; the rest is room for the last docstring.
LONGEST_SOURCE = 450
# Tests are lists; they may be longer.
LONGEST_TEST = 700


@pytest.mark.parametrize(
    ("folder", "longest"),
    [("src", LONGEST_SOURCE), ("scripts", LONGEST_SOURCE), ("bench", LONGEST_SOURCE), ("tests", LONGEST_TEST)],
)
def test_every_file_can_be_read_at_one_sitting(folder: str, longest: int) -> None:
    lengths = {path: path.read_bytes().count(b"\n") for path in (ROOT / folder).rglob("*.py")}
    assert not {str(path.relative_to(ROOT)): length for path, length in lengths.items() if length > longest}


#: Tests of more than one part, or of none.
CROSS_CUTTING = {
    "bench", "chaos", "clients", "conformance", "docs", "e2e", "examples", "fuzz", "interop", "packaging", "support",
}  # fmt: skip


def is_named_after_its_subject(test: Path) -> bool:
    """`tests/store/test_files_costs.py` is about `store/files.py`; what is about all of a package has its name."""
    folder = ROOT / "src" / "trunkline" / test.relative_to(ROOT / "tests").parent
    subjects = {folder.name, *(path.stem for path in folder.glob("[!_]*") if path.is_dir() or path.suffix == ".py")}
    name = test.stem.removeprefix("test_")
    return folder.is_dir() and any(name == subject or name.startswith(f"{subject}_") for subject in subjects)


def test_every_file_of_tests_is_where_its_subject_is_and_begins_with_its_name() -> None:
    tests = [
        path for path in (ROOT / "tests").rglob("test_*.py") if path.parts[len(ROOT.parts) + 1] not in CROSS_CUTTING
    ]
    assert len(tests) > 400
    assert [str(path.relative_to(ROOT)) for path in tests if not is_named_after_its_subject(path)] == []


def module_name(path: Path) -> str:
    """`trunkline.core.session` for a file of ours; a package for its `__init__.py`."""
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


Nodes = Sequence[ast.AST]


def nodes_in(source: bytes | str) -> Nodes:
    """All nodes of a source's syntax tree."""
    return list(ast.walk(ast.parse(source)))


@pytest.fixture(scope="module")
def files() -> Mapping[Path, Nodes]:
    """Every file of ours, read once for all tests that look at all of them."""
    return {path: nodes_in(path.read_bytes()) for path in (ROOT / "src").rglob("*.py")}


def mentioned(nodes: Nodes) -> Iterator[str]:
    """All that a file imports, and the strings that could name a module which it looks up."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.partition(":")[0].replace("-", "_")


def test_no_module_is_there_for_tests_alone(files: Mapping[Path, Nodes]) -> None:
    names = {path: module_name(path) for path in files}
    mentions = {name: set(mentioned(files[path])) for path, name in names.items()}
    # What users import into programs of their own is in the documents.
    documents = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))

    def is_used(name: str) -> bool:
        package, _, last = name.rpartition(".")
        # A suite imports all modules of its package, and those with checks register them there.
        registers = f"{package}.suite" in mentions[name]
        return (
            name in documents
            or registers
            or any(
                # A command or a dialect is looked up by the last part of its name, in its own package.
                name in found or (last in found and user.startswith(package))
                for user, found in mentions.items()
                if user != name
            )
        )

    modules = {name: path for path, name in names.items() if path.stem not in ("__init__", "__main__")}
    unused = {name: path for name, path in modules.items() if not is_used(name)}
    # Programs of others may import a module from where it was.
    former = {name for name, path in unused.items() if path.read_text("utf-8").startswith('"""The former place of')}
    assert unused.keys() - former == set()


#: Names of public classes that more than one module of ours has. What is left has a reason: the streams of command-line
#: agents are looked up by theirs, the kits' stages and targets do the same for each kit, and the rest are the words of
#: a wire, or of a client that programs import. A new class gets a name of its own, so that a search finds one.
MOST_RECURRING_NAMES = 13
#: Exceptions that derive from none of ours. What users see derives from `core.faults.Fault`, and what a layer or a wire
#: raises for its own callers from one root there, so that it can be caught as a whole.
MOST_ERROR_ROOTS = 48


@pytest.fixture(scope="module")
def classes(files: Mapping[Path, Nodes]) -> Sequence[tuple[str, ast.ClassDef]]:
    """Every class of ours, with its module."""
    return [
        (module_name(path), node) for path, nodes in files.items() for node in nodes if isinstance(node, ast.ClassDef)
    ]


def test_one_name_of_a_class_has_one_meaning(classes: Sequence[tuple[str, ast.ClassDef]]) -> None:
    modules: dict[str, list[str]] = {}
    for module, node in classes:
        if not node.name.startswith("_"):
            modules.setdefault(node.name, []).append(module)
    recurring = {name: found for name, found in modules.items() if len(found) > 1}
    assert len(recurring) <= MOST_RECURRING_NAMES, recurring


def test_exceptions_have_few_roots(classes: Sequence[tuple[str, ast.ClassDef]]) -> None:
    built_in = {
        name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
    }
    roots = [
        f"{module}.{node.name}"
        for module, node in classes
        if any(isinstance(base, ast.Name) and base.id in built_in for base in node.bases)
    ]
    assert len(roots) <= MOST_ERROR_ROOTS, roots


def test_the_errors_of_a_wire_are_made_by_that_wire_alone() -> None:
    """What is wrong elsewhere is a `Fault`: each wire has its form for it."""
    wire = ROOT / "src" / "trunkline" / "wires" / "tryll"
    making = [path for path in (ROOT / "src").rglob("*.py") if "TryllError(" in path.read_text(encoding="utf-8")]
    assert making
    assert [str(path.relative_to(ROOT)) for path in making if not path.is_relative_to(wire)] == []


#: What begins with an underscore, is not ours, and is used all the same, each with its reason.
PRIVATE = {
    "_thread": "in the documentation of Python; `threading` is long to import, and a bridge waits for its agents",
    "os._exit": "in the documentation of Python: the way out for a process that must not clean up",
    "anyio._backends._asyncio": "imported ahead of its first use; that it is not there is no error",
    "httpx._main": "hidden while httpx is imported, of which its command line takes half the time; never used",
    "_signal": "does without the names that `signal` adds; the launcher of the sandbox would take half as long again",
    "mcp.client._transport": "names a type, for the type checker alone; there is no public name for it",
}

_PRIVATE_MODULE = re.compile(r"(?:[a-z]\w*\.)*_[a-z]\w*(?:\.\w+)*")


def own_names(nodes: Nodes) -> Iterator[str]:
    """What a file of ours defines, and may thus be used by others of ours."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name


def private_names(nodes: Nodes, own: set[str]) -> Iterator[str]:
    """The modules and the attributes that begin with an underscore and are none of ours, which a file uses."""
    imports = (node for node in nodes if isinstance(node, ast.Import))
    modules = {alias.asname or alias.name for node in imports for alias in node.names} - {"trunkline"}
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if _PRIVATE_MODULE.fullmatch(alias.name))
            case ast.ImportFrom(module=str(module)):
                if _PRIVATE_MODULE.fullmatch(module) and not module.startswith("trunkline"):
                    yield module
            case ast.Constant(value=str(text)) if "." in text and _PRIVATE_MODULE.fullmatch(text):
                if not text.startswith("trunkline."):
                    yield text
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in modules:
                if name.startswith("_") and not name.startswith("__"):
                    yield f"{module}.{name}"
            case ast.Attribute(attr=name) if name.startswith("_") and not name.startswith("__") and name not in own:
                yield name


def test_nothing_that_others_keep_to_themselves_is_used_without_a_reason(files: Mapping[Path, Nodes]) -> None:
    looked_at = [*files.values(), *(nodes_in(path.read_bytes()) for path in (ROOT / "scripts").rglob("*.py"))]
    own = {name for nodes in looked_at for name in own_names(nodes)}
    assert {name for nodes in looked_at for name in private_names(nodes, own)} == PRIVATE.keys()


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from _posixsubprocess import fork_exec", {"_posixsubprocess"}),
        ("import os\ndef _exit(): os._exit(0)", {"os._exit"}),
        ("import asyncio\nasyncio.get_running_loop()._selector", {"_selector"}),
        ("import_module('httpx._client')", {"httpx._client"}),
        (
            "class C(Library):\n    def f(self): return self._theirs(self._ours())\n    def _ours(self): ...",
            {"_theirs"},
        ),
        ("from __future__ import annotations\nself.__dict__", set()),
    ],
)
def test_what_is_private_to_others_is_found(source: str, names: set[str]) -> None:
    nodes = nodes_in(source)
    assert set(private_names(nodes, set(own_names(nodes)))) == names


def lint_imports(directory: Path) -> subprocess.CompletedProcess[str]:
    """Our contracts over the package `trunkline` in `directory`."""
    program = "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command as run; run()"
    config = ROOT / "pyproject.toml"
    return subprocess.run(
        [sys.executable, "-c", program, "--config", str(config), "--no-cache"],
        cwd=directory, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_contract_without_io_knows_every_codec_and_vocabulary() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (listed,) = (each["source_modules"] for each in contracts if each["id"] == "sans-io")
    found = [
        path
        for name in ("codec*", "messages*", "canonical*")
        for path in (ROOT / "src/trunkline/wires").glob(f"*/{name}")
    ]
    modules = {f"trunkline.wires.{path.parent.name}.{path.stem}" for path in found}
    assert modules
    assert not {module for module in modules if not any(fnmatchcase(module, pattern) for pattern in listed)}


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A package with three layers of ours, graphs, and codecs, that keeps every contract."""
    for path in (
        "", "agents", "agents/graph", "core", "wires", "wires/jsonstream", "wires/tryll", "wires/tryll/codec",
    ):  # fmt: skip
        (tmp_path / "trunkline" / path).mkdir()
        (tmp_path / "trunkline" / path / "__init__.py").touch()
    for name in ("codec", "messages"):
        (tmp_path / "trunkline" / "wires" / "jsonstream" / f"{name}.py").write_text("import trunkline.core\n")
    return tmp_path / "trunkline"


def test_a_house_in_order_keeps_the_contracts(house: Path) -> None:
    done = lint_imports(house.parent)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("file", "line", "complaint"),
    [
        ("attic/__init__.py", "", "attic"),
        ("core/new.py", "import trunkline.wires", "trunkline.core is not allowed to import trunkline.wires"),
        ("core/new.py", "def f():\n    import yaml", "trunkline.core is not allowed to import yaml"),
        ("wires/jsonstream/codec.py", "import time", "trunkline.wires.jsonstream.codec is not allowed to import time"),
        (
            "wires/tryll/codec/reader.py",
            "import asyncio",
            "trunkline.wires.tryll.codec is not allowed to import asyncio",
        ),
        (
            "agents/graph/new.py",
            "import trunkline.wires",
            "trunkline.agents.graph is not allowed to import trunkline.wires",
        ),
    ],
    ids=[
        "unlisted package",
        "upward import",
        "heavy package",
        "clock in a codec",
        "event loop in a part of one",
        "wire in a graph",
    ],
)
def test_a_breach_of_the_contracts_is_found(house: Path, file: str, line: str, complaint: str) -> None:
    (house / file).parent.mkdir(exist_ok=True)
    (house / file).write_text(line + "\n")
    done = lint_imports(house.parent)
    assert done.returncode == 1, done.stdout
    assert complaint in " ".join(done.stdout.split())
