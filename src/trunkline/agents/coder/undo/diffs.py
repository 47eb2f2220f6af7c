"""What turns have changed, as a unified diff that people read and `git apply` takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trunkline.agents.coder.undo.checkpoints import Checkpoints
from trunkline.agents.coder.undo.shadow import ShadowStore
from trunkline.agents.coder.undo.states import PathState
from trunkline.agents.coder.undo.turns import TurnChanges
from trunkline.agents.coder.undo.undoing import PathChange, together
from trunkline.tools.diffs import label, split_lines
from trunkline.tools.files import is_binary
from trunkline.tools.workspace import printable

#: Files whose changes are shown line by line; of the others only the names are. Each takes a process.
MOST_SHOWN = 200

_TYPES = {"file": 0o100000, "link": 0o120000}


def diff(checkpoints: Checkpoints, turns: Sequence[TurnChanges]) -> str:
    """What these turns together have changed; empty if that is nothing. To be called in a thread.

    Raises:
        NoCheckpoint: what was changed cannot be read.
    """
    changes = {path: change for path, change in together(turns).items() if change.before != change.after}
    return "".join(
        "".join(_of_path(path, change, checkpoints.store, lines=number < MOST_SHOWN))
        for number, (path, change) in enumerate(sorted(changes.items()))
    )


def _of_path(path: str, change: PathChange, store: ShadowStore, *, lines: bool) -> Iterator[str]:
    before, after, name = change.before, change.after, printable(path)
    if all(state is None or state.kind == "directory" for state in (before, after)):
        yield f"{_of_folder(before, after)} {name}\n"
        return
    old, new = label("a/", name), label("b/", name)
    yield f"diff --git {old.rstrip()} {new.rstrip()}\n"
    if before is None and after is not None:
        yield f"new file mode {_mode(after)}\n"
    elif before is not None and after is None:
        yield f"deleted file mode {_mode(before)}\n"
    elif before is not None and after is not None and _mode(before) != _mode(after):
        yield f"old mode {_mode(before)}\nnew mode {_mode(after)}\n"
    if _blob(before) == _blob(after):
        return
    hunks = _hunks(before, after, store) if lines else ""
    if hunks is None:
        # An empty file came or went: the line above has said so.
        return
    if not hunks:
        yield f"{'Binary files' if lines else 'Files'} {old.rstrip()} and {new.rstrip()} differ\n"
        return
    yield f"--- {old if before else '/dev/null'}\n+++ {new if after else '/dev/null'}\n{hunks}"


def _hunks(before: PathState | None, after: PathState | None, store: ShadowStore) -> str | None:
    if any(state is not None and not (state.is_kept and state.blob) for state in (before, after)):
        return ""
    if before is not None and after is not None:
        return store.hunks(before.blob, after.blob)
    with store.reading() as read:
        data = b"".join(read(state.blob) for state in (before, after) if state is not None)
    if not data:
        return None
    if is_binary(data):
        return ""
    rows = split_lines(data.decode("utf-8", "replace"))
    count = f"1,{len(rows)}" if len(rows) > 1 else "1"
    head = f"@@ -{count} +0,0 @@\n" if before else f"@@ -0,0 +{count} @@\n"
    body = "".join(f"{'-' if before else '+'}{row}" for row in rows)
    return head + body + ("" if body.endswith("\n") else "\n\\ No newline at end of file\n")


def _of_folder(before: PathState | None, after: PathState | None) -> str:
    if before is None:
        return "new directory"
    return "deleted directory" if after is None else f"directory mode {before.mode:o} -> {after.mode:o}:"


def _mode(state: PathState) -> str:
    return f"{_TYPES.get(state.kind, 0) | state.mode:06o}"


def _blob(state: PathState | None) -> str:
    return "" if state is None else state.blob
