"""The tables of the exchange, as a list of migrations. It only ever grows.

Conversations are in the sessions' logs; the tables hold what is queried across sessions. Times are in milliseconds
since 1970.
"""

from __future__ import annotations

from trunkline.store.database.form import Form, Only, Step

_FIRST: Step = (
    """
    CREATE TABLE session (
        id TEXT PRIMARY KEY,
        agent TEXT NOT NULL,
        workspace TEXT NOT NULL,
        by_person TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL
    )
    """,
    "CREATE INDEX session_agent ON session (agent, created_at, id)",
    "CREATE INDEX session_created ON session (created_at, id)",
    """
    CREATE TABLE message (
        number SERIAL_KEY,
        session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        msg_id TEXT NOT NULL,
        turn INTEGER,
        state TEXT NOT NULL,
        text TEXT NOT NULL,
        files TEXT NOT NULL,
        by_person TEXT NOT NULL,
        seq BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        UNIQUE (session, msg_id)
    )
    """,
    "CREATE INDEX message_waiting ON message (session, number) WHERE state = 'queued'",
    """
    CREATE TABLE approval (
        id TEXT PRIMARY KEY,
        session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        agent TEXT NOT NULL,
        turn INTEGER NOT NULL,
        call_id TEXT NOT NULL,
        tool TEXT NOT NULL,
        category TEXT NOT NULL,
        description TEXT NOT NULL,
        args TEXT NOT NULL,
        digest TEXT NOT NULL,
        asked_at BIGINT NOT NULL,
        state TEXT NOT NULL,
        decided_by TEXT,
        decided_at BIGINT,
        reason TEXT
    )
    """,
    "CREATE INDEX approval_pending ON approval (asked_at, id) WHERE state = 'pending'",
    "CREATE INDEX approval_call ON approval (session, turn, call_id)",
    """
    CREATE TABLE usage (
        day TEXT NOT NULL,
        agent TEXT NOT NULL,
        person TEXT NOT NULL,
        model TEXT NOT NULL,
        turns INTEGER NOT NULL,
        input_tokens BIGINT NOT NULL,
        output_tokens BIGINT NOT NULL,
        cache_read_tokens BIGINT NOT NULL,
        cache_write_tokens BIGINT NOT NULL,
        micro_usd BIGINT NOT NULL,
        PRIMARY KEY (day, agent, person, model)
    )
    """,
    """
    CREATE TABLE turn_began (
        agent TEXT NOT NULL,
        at BIGINT NOT NULL
    )
    """,
    "CREATE INDEX turn_began_at ON turn_began (agent, at)",
)

_ACTS: Step = (
    """
    CREATE TABLE act (
        number SERIAL_KEY,
        session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        at BIGINT NOT NULL,
        seq BIGINT NOT NULL,
        what TEXT NOT NULL,
        person TEXT NOT NULL,
        detail TEXT NOT NULL
    )
    """,
    "CREATE INDEX act_session ON act (session, number)",
)

#: What a message said, when its text is only in the log any more: an id may be used for another one.
_DIGEST: Step = ("ALTER TABLE message ADD COLUMN digest TEXT NOT NULL DEFAULT ''",)

_TALLY: Step = (
    """
    CREATE TABLE tally (
        session TEXT PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
        begun INTEGER NOT NULL,
        ended INTEGER NOT NULL,
        metered INTEGER NOT NULL,
        used TEXT NOT NULL
    )
    """,
    "CREATE INDEX tally_uncounted ON tally (session) WHERE begun > ended",
)

#: Messages by their age: those whose ids need not be remembered any more are found without a look at the others.
_OLD_MESSAGES: Step = ("CREATE INDEX message_begun ON message (created_at) WHERE state = 'begun'",)

#: Sessions for one request only.
_PASSING: Step = (
    "ALTER TABLE session ADD COLUMN passing INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX session_passing ON session (id) WHERE passing = 1",
)

_BROWSERS: Step = (
    """
    CREATE TABLE browser (
        digest TEXT PRIMARY KEY,
        token_sha256 TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        used_at BIGINT NOT NULL
    )
    """,
)

_TURN = """
    session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    turn INTEGER NOT NULL,
    seq BIGINT NOT NULL,
    agent TEXT NOT NULL,
    by_person TEXT NOT NULL,
    began_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL,
    outcome TEXT NOT NULL,
    cause TEXT NOT NULL,
    message TEXT NOT NULL,
    answer TEXT NOT NULL,
    words TEXT NOT NULL
"""

#: One row for each turn that has ended. `number` is the moment in which it began, in microseconds since 1970, or the
#: next that is free: lists go by it. For SQLite's index of words it is the key; two nodes of a cluster may have the
#: same. `words` is what is searched. `session.unindexed` is not 0 while a log may have turns without a row.
_TURNS: Step = (
    Only("sqlite", f"CREATE TABLE turn (number INTEGER PRIMARY KEY, {_TURN}, UNIQUE (session, turn))"),
    Only("postgresql", f"CREATE TABLE turn (number BIGINT NOT NULL, {_TURN}, PRIMARY KEY (session, turn))"),
    Only("postgresql", "CREATE INDEX turn_number ON turn (number)"),
    "CREATE INDEX turn_agent ON turn (agent, number)",
    "CREATE INDEX turn_person ON turn (by_person, number)",
    "CREATE INDEX turn_outcome ON turn (outcome, number)",
    "CREATE INDEX turn_failed ON turn (ended_at) WHERE outcome IN ('error', 'unknown')",
    Only(
        "sqlite",
        """
        CREATE VIRTUAL TABLE turn_text
        USING fts5 (words, content = 'turn', content_rowid = 'number', prefix = '1 2 3')
        """,
    ),
    Only(
        "sqlite",
        """
        CREATE TRIGGER turn_text_new AFTER INSERT ON turn
        BEGIN INSERT INTO turn_text (rowid, words) VALUES (NEW.number, NEW.words); END
        """,
    ),
    Only(
        "sqlite",
        """
        CREATE TRIGGER turn_text_gone AFTER DELETE ON turn
        BEGIN INSERT INTO turn_text (turn_text, rowid, words) VALUES ('delete', OLD.number, OLD.words); END
        """,
    ),
    Only(
        "sqlite",
        """
        CREATE TRIGGER turn_text_changed AFTER UPDATE OF words ON turn
        BEGIN
            INSERT INTO turn_text (turn_text, rowid, words) VALUES ('delete', OLD.number, OLD.words);
            INSERT INTO turn_text (rowid, words) VALUES (NEW.number, NEW.words);
        END
        """,
    ),
    Only("postgresql", "CREATE INDEX turn_words ON turn USING gin (to_tsvector('simple', words))"),
    "ALTER TABLE session ADD COLUMN unindexed INTEGER NOT NULL DEFAULT 1",
    "CREATE INDEX session_unindexed ON session (created_at) WHERE unindexed > 0",
)

#: By which wire an approval was decided; and the approvals by when they were asked, and decided.
_DECIDED_WIRE: Step = (
    "ALTER TABLE approval ADD COLUMN decided_wire TEXT",
    "CREATE INDEX approval_asked ON approval (asked_at, id)",
    "CREATE INDEX approval_decided ON approval (decided_at, id) WHERE state <> 'pending'",
)

FORM = Form(
    "exchange",
    b"TLEX",
    (_FIRST, _ACTS, _DIGEST, _TALLY, _OLD_MESSAGES, _PASSING, _BROWSERS, _TURNS, _DECIDED_WIRE),
)
