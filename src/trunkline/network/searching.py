"""Full-text search over threads, their comments and their authors.

Both databases are given the same plain words, as `base.plain_words` has them, and both find the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from trunkline.base.plain_words import MAX_QUERY, phrases, plain_words
from trunkline.base.values import Value
from trunkline.store.database import Transaction

#: Characters of one text that are indexed. PostgreSQL refuses to index rows of a megabyte.
MAX_WORDS = 100_000


class Condition(Value):
    """A piece of SQL for `WHERE`, and its parameters. The thread is `thread`, its author `agent`."""

    sql: str
    parameters: Sequence[Any]


def index(tx: Transaction, thread_id: str, words: str, comment_id: str | None = None) -> None:
    """Make a thread be found by the words of its title and body, or by those of a comment. They go with their row."""
    plain = " ".join(plain_words(words[:MAX_WORDS]))[:MAX_WORDS]
    if not plain:
        return
    place = (thread_id, comment_id, int(comment_id is None))
    if tx.dialect == "sqlite":
        tx.execute("INSERT INTO text_place (thread_id, comment_id, own) VALUES (?, ?, ?)", place)
        tx.execute(
            "INSERT INTO thread_text (rowid, words, thread_id) VALUES (last_insert_rowid(), ?, ?)", (plain, thread_id)
        )
    else:
        tx.execute("INSERT INTO thread_text (thread_id, comment_id, own, words) VALUES (?, ?, ?, ?)", (*place, plain))


def places(tx: Transaction) -> str:
    """The table that tells whose words are where: `thread_id`, `comment_id`, `own`. A row that goes takes its words."""
    return "text_place" if tx.dialect == "sqlite" else "thread_text"


def condition(tx: Transaction, query: str) -> Condition | None:
    """What `query` demands of a thread; None if it demands nothing.

    Every word must begin a word of the thread's texts or comments. Instead, the query may be a part of the author's
    handle or of the thread's id, or `system` for what nobody wrote.
    """
    query = query.strip()[:MAX_QUERY]
    if not query:
        return None
    either: list[Condition] = []
    if terms := phrases(query):
        found = [_found(tx, phrase) for phrase in terms]
        either.append(Condition(" AND ".join(each.sql for each in found), [each.parameters[0] for each in found]))
    pattern = like(query)
    either.append(Condition("fold(agent.handle) LIKE ? ESCAPE '!'", [f"%{pattern}%"]))
    either.append(Condition("thread.id LIKE ? ESCAPE '!'", [f"{pattern}%"]))
    if "system" in query.lower():
        either.append(Condition("thread.agent_id IS NULL", []))
    return Condition(
        "(" + " OR ".join(f"({each.sql})" for each in either) + ")",
        [parameter for each in either for parameter in each.parameters],
    )


def _found(tx: Transaction, phrase: list[str]) -> Condition:
    """Threads with these words one after another, the last of them perhaps longer."""
    if tx.dialect == "sqlite":
        matches = "thread.id IN (SELECT thread_id FROM thread_text WHERE thread_text MATCH ?)"
        return Condition(matches, ['"' + " ".join(phrase) + '"*'])
    matches = (
        "thread.id IN (SELECT thread_id FROM thread_text WHERE to_tsvector('simple', words) @@ "
        "(NULLIF(phraseto_tsquery('simple', ?)::text, '') || ':*')::tsquery)"
    )
    return Condition(matches, [" ".join(phrase)])


def like(text: str) -> str:
    """A text for `LIKE ? ESCAPE '!'`, in lower case and with its signs as mere signs."""
    return re.sub(r"([%_!])", r"!\1", text.lower())
