"""Source code of contracts: the forms in which explorers give it, and the one form in which it is kept.

    {"contractName", "compilerVersion", "optimizationUsed", "runs", "evmVersion", "licenseType", "libraries",
     "files": [{"path", "content"}], "omitted": [path]}

An explorer's `SourceCode` is one file, a JSON object of files, or the compiler's whole input in two pairs of braces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trunkline.base import jsontext

#: Characters of all files together. Files that do not fit are named, and left out.
MAX_CHARS = 512 * 1024
#: Files of one contract; a large project with its libraries has a hundred.
MAX_FILES = 500
#: Characters of a file's path and of the compiler's settings.
_MAX_WORD = 300

_FACTS = {
    "contractName": "ContractName",
    "compilerVersion": "CompilerVersion",
    "optimizationUsed": "OptimizationUsed",
    "runs": "Runs",
    "evmVersion": "EVMVersion",
    "licenseType": "LicenseType",
    "libraries": "Library",
}

Source = dict[str, Any]


def from_explorer(entry: Mapping[str, Any]) -> Source | None:
    """The source in an explorer's answer; None if it has none."""
    facts = {ours: _word(entry.get(theirs)) for ours, theirs in _FACTS.items()}
    return _kept(facts, _files(entry.get("SourceCode"), facts["contractName"] or "Contract"))


def pasted(value: Any, name: str) -> Source | None:
    """The source that an owner pasted, in any of the forms; None if it is none."""
    facts: dict[str, str | None] = dict.fromkeys(_FACTS)
    return _kept(facts | {"contractName": name}, _files(value, name))


def clean(text: str) -> str:
    """A text from elsewhere, without what a database cannot keep or UTF-8 cannot carry."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _kept(facts: Mapping[str, str | None], files: Iterator[tuple[str, str]]) -> Source | None:
    fitting: list[dict[str, str]] = []
    omitted: list[str] = []
    left = MAX_CHARS
    for path, content in files:
        if len(fitting) + len(omitted) >= MAX_FILES:
            break
        if len(content) > left:
            omitted.append(path)
            continue
        left -= len(content)
        fitting.append({"path": path, "content": content})
    return {**facts, "files": fitting, "omitted": omitted} if fitting or omitted else None


def _files(code: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(code, str):
        bundle = _bundle(code)
        if bundle is None:
            if code.strip():
                yield f"{name}.sol", clean(code)
            return
        code = bundle
    if not isinstance(code, dict):
        return
    sources = code.get("sources")
    for path, file in (sources if isinstance(sources, dict) else code).items():
        content = file.get("content") if isinstance(file, dict) else None
        if isinstance(content, str):
            yield clean(path)[:_MAX_WORD], clean(content)


def _bundle(code: str) -> Any:
    """The JSON object that a source is, if it is one."""
    text = code.strip()
    if text.startswith("{{") and text.endswith("}}"):
        text = text[1:-1]
    if not text.startswith("{"):
        return None
    try:
        return jsontext.loads(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None


def _word(value: Any) -> str | None:
    return clean(value)[:_MAX_WORD] if isinstance(value, str) and value else None
