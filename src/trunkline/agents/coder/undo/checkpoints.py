"""Where the checkpoints of a workspace are: `checkpoints/NAME` in the state directory, one for each workspace.

git/        contents of files            manifest  what was at each path when last looked
sessions/   the record of each session   lock      held while the store is changed
workspace   the directory, for people    tidied    when it was last put in order

Of a session there are its record (`.jsonl`), its calls that are under way (`.open`), and what was at each path before
them (`.before`).
"""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress

from trunkline.agents.coder.undo import scanning
from trunkline.agents.coder.undo.faults import NoCheckpoint
from trunkline.agents.coder.undo.shadow import ShadowStore
from trunkline.agents.coder.undo.turns import ChangeRecord
from trunkline.base import paths
from trunkline.base.replacing import draft, is_draft
from trunkline.store import names

#: How long a session's checkpoints are kept after its last turn.
KEPT_SECONDS = 30 * 24 * 3600.0
#: How large a workspace's store may get before the oldest checkpoints go.
MOST_STORED = 2 * 1024 * 1024 * 1024
#: How often a store is put in order.
TIDY_SECONDS = 24 * 3600.0
#: How long is waited for another session in the same workspace: one look at all files.
PATIENCE_SECONDS = scanning.SCAN_SECONDS

#: Letters of the name of a workspace's directory: enough that no two workspaces have the same.
_NAME_CHARS = 24


class Checkpoints:
    """The checkpoints of one workspace. Nothing is made before `make`."""

    def __init__(self, workspace: str, environ: Mapping[str, str] = os.environ) -> None:
        from hashlib import sha256

        self._environ = environ
        self.root = os.path.realpath(workspace)
        state = paths.state_dir(environ)
        name = sha256(os.fsencode(self.root)).hexdigest()[:_NAME_CHARS]
        self._place = os.path.join(state, "checkpoints", name)
        self.store = ShadowStore(self._place)
        self.manifest = os.path.join(self._place, "manifest")
        own = (os.path.realpath(place) for place in (state, paths.cache_dir(environ)))
        self.excluded = frozenset(place for place in own if place != self.root)
        """What of the workspace is ours."""

    def make(self) -> None:
        """See that the store is there.

        Raises:
            NoCheckpoint: it cannot be made, or there is no git.
        """
        self.store.make()
        named = os.path.join(self._place, "workspace")
        if not os.path.exists(named):
            with suppress(OSError), open(named, "wb") as file, open(self._tidied, "wb"):
                file.write(os.fsencode(self.root) + b"\n")

    def record(self, session: str) -> ChangeRecord:
        """The record of a session in this workspace."""
        return ChangeRecord(os.path.join(self._place, "sessions", names.file_name(session)))

    def save(self, seen: scanning.Manifest, own: str) -> None:
        """Keep what was seen: in a session's own file, and for the next process.

        Raises:
            NoCheckpoint: it cannot be written.
        """
        scanning.save(seen, own)
        linked = draft(own)
        try:
            # The same file twice. Neither is ever written to again: each is only replaced.
            os.link(own, linked)
            os.replace(linked, self.manifest)
        except OSError:
            # Without it, the next process reads all files again.
            with suppress(NoCheckpoint):
                scanning.save(seen, self.manifest)

    def last_of(self, session: str) -> Checkpoints:
        """Those in which a session was recorded last: one that has moved began in another directory."""
        newest = self
        for place in glob.iglob(os.path.join(glob.escape(os.path.dirname(self._place)), "*")):
            try:
                with open(os.path.join(place, "workspace"), "rb") as file:
                    other = Checkpoints(os.fsdecode(file.read().rstrip(b"\n")), self._environ)
            except OSError:
                continue
            if other.record(session).used > newest.record(session).used:
                newest = other
        return newest

    def key(self, place: str) -> str:
        """A path as records name it."""
        inside = self.root.rstrip(os.sep) + os.sep
        return place[len(inside) :] if place.startswith(inside) else place

    def full(self, key: str) -> str:
        """The path of a record, absolute."""
        return os.path.join(self.root, key)

    @property
    def is_untidy(self) -> bool:
        """Whether it is time to put the store in order."""
        try:
            return os.stat(self._tidied).st_mtime < time.time() - TIDY_SECONDS
        except OSError:
            return False

    def tidy(self) -> None:
        """Forget what is old, or too much, and free its room.

        Raises:
            NoCheckpoint: git does not work.
        """
        with suppress(OSError), open(self._tidied, "wb"):
            pass
        self._forget_old()
        self._forget_drafts()
        self.store.hold_only(set(self._held()))

    def _forget_old(self) -> None:
        oldest = sorted(self._records(), key=lambda found: found[0])
        for used, record in oldest:
            if used < time.time() - KEPT_SECONDS:
                record.remove()
        kept = [record for used, record in oldest if used >= time.time() - KEPT_SECONDS]
        if self.store.size() <= MOST_STORED or not kept:
            return
        for record in kept[: len(kept) // 2]:
            record.remove()
        if len(kept) == 1:
            with self.store.locked(PATIENCE_SECONDS):
                kept[0].keep_newest(0.5)

    def _forget_drafts(self) -> None:
        """What processes have left that were killed while they wrote it."""
        for folder in (self._place, os.path.join(self._place, "sessions")):
            with suppress(FileNotFoundError):
                for entry in os.scandir(folder):
                    if is_draft(entry.name) and entry.stat().st_mtime < time.time() - TIDY_SECONDS:
                        os.unlink(entry.path)

    def _held(self) -> Iterator[str]:
        records = [record for _, record in self._records()]
        for manifest in (self.manifest, *(record.calls.manifest for record in records)):
            for seen in scanning.load(manifest).paths.values():
                if seen.state.is_kept and seen.state.blob:
                    yield seen.state.blob
        for record in records:
            for turn in record.read():
                for change in turn.changes:
                    both = (change.before, change.after)
                    yield from (state.blob for state in both if state and state.is_kept and state.blob)

    def others(self, session: str, since: float) -> Iterator[ChangeRecord]:
        """The records of other sessions that something was added to since then."""
        own = self.record(session).file
        return (record for used, record in self._records() if used >= since and record.file != own)

    def _records(self) -> Iterator[tuple[float, ChangeRecord]]:
        sessions = os.path.join(self._place, "sessions")
        with suppress(FileNotFoundError):
            for place in {os.path.splitext(each.path)[0] for each in os.scandir(sessions) if not is_draft(each.name)}:
                record = ChangeRecord(place)
                yield record.used, record

    @property
    def _tidied(self) -> str:
        return os.path.join(self._place, "tidied")
