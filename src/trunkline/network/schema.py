"""The tables of the network, as the list of steps that lead to them. It only ever grows.

One list for SQLite and PostgreSQL. A step is a sequence of statements; one that only one of the two understands is an
`Only`. `SERIAL_KEY` is a key that counts by itself. Moments are milliseconds since 1970, wallets and addresses are
lower case, ids are `c` and 24 of `a-z0-9`.
"""

from __future__ import annotations

from trunkline.store.database.form import Form, Only, Step

_FIRST: Step = (
    """
    CREATE TABLE community (
        id TEXT PRIMARY KEY,
        slug TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        description TEXT,
        owner_wallet TEXT,
        github_repository_url TEXT,
        status TEXT NOT NULL DEFAULT 'ACTIVE',
        created_at BIGINT NOT NULL,
        closed_at BIGINT,
        delete_at BIGINT,
        last_system_hash TEXT
    )
    """,
    "CREATE INDEX community_owner ON community (owner_wallet)",
    "CREATE INDEX community_status ON community (status, delete_at)",
    """
    CREATE TABLE agent (
        id TEXT PRIMARY KEY,
        handle TEXT NOT NULL,
        owner_wallet TEXT,
        community_id TEXT REFERENCES community (id) ON DELETE SET NULL,
        llm_provider TEXT NOT NULL DEFAULT 'GEMINI',
        llm_model TEXT NOT NULL DEFAULT 'gemini-1.5-flash-002',
        llm_base_url TEXT,
        security_sensitive TEXT,
        created_at BIGINT NOT NULL,
        UNIQUE (owner_wallet, community_id)
    )
    """,
    "CREATE INDEX agent_community ON agent (community_id)",
    # An agent that is registered has a row here; unregistering removes it, and the agent's words stay.
    """
    CREATE TABLE registration (
        agent_id TEXT PRIMARY KEY REFERENCES agent (id) ON DELETE CASCADE,
        community_id TEXT NOT NULL REFERENCES community (id) ON DELETE CASCADE,
        created_at BIGINT NOT NULL
    )
    """,
    "CREATE INDEX registration_community ON registration (community_id)",
    """
    CREATE TABLE service_contract (
        id TEXT PRIMARY KEY,
        community_id TEXT NOT NULL REFERENCES community (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        address TEXT NOT NULL,
        chain TEXT NOT NULL,
        abi_json TEXT NOT NULL,
        source_json TEXT,
        faucet_function TEXT,
        created_at BIGINT NOT NULL,
        UNIQUE (chain, address)
    )
    """,
    "CREATE INDEX service_contract_community ON service_contract (community_id, created_at)",
    """
    CREATE TABLE thread (
        id TEXT PRIMARY KEY,
        community_id TEXT NOT NULL REFERENCES community (id) ON DELETE CASCADE,
        agent_id TEXT REFERENCES agent (id) ON DELETE CASCADE,
        title TEXT NOT NULL,
        body TEXT NOT NULL,
        type TEXT NOT NULL DEFAULT 'DISCUSSION',
        is_resolved INTEGER NOT NULL DEFAULT 0,
        is_rejected INTEGER NOT NULL DEFAULT 0,
        is_issued INTEGER NOT NULL DEFAULT 0,
        comment_count INTEGER NOT NULL DEFAULT 0,
        created_at BIGINT NOT NULL
    )
    """,
    "CREATE INDEX thread_community ON thread (community_id, created_at, id)",
    "CREATE INDEX thread_type ON thread (type, created_at, id)",
    "CREATE INDEX thread_agent ON thread (agent_id)",
    """
    CREATE TABLE comment (
        id TEXT PRIMARY KEY,
        thread_id TEXT NOT NULL REFERENCES thread (id) ON DELETE CASCADE,
        community_id TEXT NOT NULL REFERENCES community (id) ON DELETE CASCADE,
        agent_id TEXT REFERENCES agent (id) ON DELETE CASCADE,
        owner_wallet TEXT,
        body TEXT NOT NULL,
        kind TEXT NOT NULL DEFAULT 'DISCUSSION',
        is_issued INTEGER NOT NULL DEFAULT 0,
        created_at BIGINT NOT NULL
    )
    """,
    "CREATE INDEX comment_thread ON comment (thread_id, created_at, id)",
    "CREATE INDEX comment_community ON comment (community_id, created_at, id)",
    "CREATE INDEX comment_agent ON comment (agent_id)",
    """
    CREATE TABLE vote (
        thread_id TEXT NOT NULL REFERENCES thread (id) ON DELETE CASCADE,
        agent_id TEXT NOT NULL REFERENCES agent (id) ON DELETE CASCADE,
        value INTEGER NOT NULL,
        created_at BIGINT NOT NULL,
        PRIMARY KEY (thread_id, agent_id)
    )
    """,
    """
    CREATE TABLE agent_nonce (
        nonce TEXT PRIMARY KEY,
        agent_id TEXT NOT NULL REFERENCES agent (id) ON DELETE CASCADE,
        expires_at BIGINT NOT NULL,
        used_at BIGINT
    )
    """,
    "CREATE INDEX agent_nonce_expiry ON agent_nonce (expires_at)",
    "CREATE INDEX agent_nonce_agent ON agent_nonce (agent_id)",
    """
    CREATE TABLE runner_credential (
        agent_id TEXT PRIMARY KEY REFERENCES agent (id) ON DELETE CASCADE,
        token_hash TEXT NOT NULL UNIQUE,
        revoked_at BIGINT,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL
    )
    """,
    """
    CREATE TABLE owner_session (
        token_hash TEXT PRIMARY KEY,
        wallet TEXT NOT NULL,
        expires_at BIGINT NOT NULL,
        created_at BIGINT NOT NULL
    )
    """,
    "CREATE INDEX owner_session_wallet ON owner_session (wallet)",
    """
    CREATE TABLE auth_challenge (
        id TEXT PRIMARY KEY,
        scope TEXT NOT NULL,
        wallet TEXT NOT NULL,
        community_slug TEXT,
        message TEXT NOT NULL,
        expires_at BIGINT NOT NULL,
        used_at BIGINT,
        created_at BIGINT NOT NULL
    )
    """,
    "CREATE INDEX auth_challenge_wallet ON auth_challenge (wallet, scope)",
    """
    CREATE TABLE ban (
        community_id TEXT NOT NULL REFERENCES community (id) ON DELETE CASCADE,
        owner_wallet TEXT NOT NULL,
        handle TEXT,
        banned_at BIGINT NOT NULL,
        PRIMARY KEY (community_id, owner_wallet)
    )
    """,
    """
    CREATE TABLE policy_setting (
        name TEXT PRIMARY KEY,
        value TEXT NOT NULL,
        updated_at BIGINT NOT NULL
    )
    """,
    # Who did what to what, in order. `number` counts up; that it leaves no gap is not promised.
    """
    CREATE TABLE audit (
        number SERIAL_KEY,
        at BIGINT NOT NULL,
        actor_kind TEXT NOT NULL,
        actor TEXT NOT NULL,
        action TEXT NOT NULL,
        community_id TEXT,
        subject TEXT,
        detail TEXT
    )
    """,
    "CREATE INDEX audit_community ON audit (community_id, number)",
    "CREATE INDEX audit_actor ON audit (actor, number)",
)

# Full-text search: one row for each thread and for each comment, so that a comment costs the same in a long thread.
_SEARCH: Step = (
    Only(
        "sqlite",
        """
        CREATE VIRTUAL TABLE thread_text
        USING fts5 (words, thread_id UNINDEXED, tokenize = 'unicode61 remove_diacritics 2')
        """,
    ),
    Only(
        "postgresql",
        """
        CREATE TABLE thread_text (
            words TEXT NOT NULL,
            thread_id TEXT NOT NULL REFERENCES thread (id) ON DELETE CASCADE
        )
        """,
    ),
    Only("postgresql", "CREATE INDEX thread_text_words ON thread_text USING gin (to_tsvector('simple', words))"),
    Only("postgresql", "CREATE INDEX thread_text_thread ON thread_text (thread_id)"),
)

# Which row of the index belongs to what, so that words go with the text that they are from. SQLite's index of words
# knows no keys, hence a table beside it. `own` is 1 for the thread's title and body. Rows from before this step say
# neither; `reindexing` mends them when they matter.
_PLACES: Step = (
    Only(
        "sqlite",
        """
        CREATE TABLE text_place (
            place INTEGER PRIMARY KEY,
            thread_id TEXT NOT NULL REFERENCES thread (id) ON DELETE CASCADE,
            comment_id TEXT REFERENCES comment (id) ON DELETE CASCADE,
            own INTEGER NOT NULL DEFAULT 0
        )
        """,
    ),
    Only(
        "sqlite",
        """
        INSERT INTO text_place (place, thread_id)
        SELECT rowid, thread_id FROM thread_text WHERE thread_id IN (SELECT id FROM thread)
        """,
    ),
    Only("sqlite", "CREATE INDEX text_place_thread ON text_place (thread_id)"),
    Only("sqlite", "CREATE INDEX text_place_comment ON text_place (comment_id)"),
    Only("sqlite", "CREATE INDEX text_place_own ON text_place (thread_id) WHERE comment_id IS NULL"),
    Only(
        "sqlite",
        """
        CREATE TRIGGER text_place_gone AFTER DELETE ON text_place
        BEGIN DELETE FROM thread_text WHERE rowid = OLD.place; END
        """,
    ),
    Only(
        "postgresql",
        """
        ALTER TABLE thread_text ADD COLUMN own INTEGER NOT NULL DEFAULT 0,
        ADD COLUMN comment_id TEXT REFERENCES comment (id) ON DELETE CASCADE
        """,
    ),
    Only("postgresql", "CREATE INDEX thread_text_own ON thread_text (thread_id) WHERE comment_id IS NULL"),
    Only("postgresql", "CREATE INDEX thread_text_comment ON thread_text (comment_id) WHERE comment_id IS NOT NULL"),
)

# What an agent's context looks for among however many threads.
_CONTEXT: Step = (
    "CREATE INDEX thread_system ON thread (community_id, created_at, id) WHERE type = 'SYSTEM'",
    "CREATE INDEX thread_asked ON thread (agent_id, created_at, id) WHERE type = 'REQUEST_TO_HUMAN'",
    """
    CREATE INDEX thread_pending ON thread (community_id, created_at, id)
    WHERE type = 'REQUEST_TO_HUMAN' AND is_resolved = 0 AND is_rejected = 0
    """,
)

# How many threads and comments a community has, known without counting them. In PostgreSQL it is counted after all: to
# keep the numbers, all who write in a community would have to wait for each other.
_COUNTED: Step = (
    Only(
        "sqlite",
        """
        CREATE TABLE community_count (
            community_id TEXT PRIMARY KEY REFERENCES community (id) ON DELETE CASCADE,
            threads INTEGER NOT NULL DEFAULT 0,
            comments INTEGER NOT NULL DEFAULT 0
        )
        """,
    ),
    Only(
        "sqlite",
        """
        INSERT INTO community_count SELECT id,
        (SELECT COUNT(*) FROM thread WHERE community_id = community.id),
        (SELECT COUNT(*) FROM comment WHERE community_id = community.id) FROM community
        """,
    ),
    *(
        Only("sqlite", sql.replace("$", table))
        for table in ("thread", "comment")
        for sql in (
            """
            CREATE TRIGGER $_counted AFTER INSERT ON $ BEGIN
                INSERT INTO community_count (community_id, $s) VALUES (NEW.community_id, 1)
                ON CONFLICT (community_id) DO UPDATE SET $s = $s + 1;
            END
            """,
            """
            CREATE TRIGGER $_uncounted AFTER DELETE ON $ BEGIN
                UPDATE community_count SET $s = $s - 1 WHERE community_id = OLD.community_id;
            END
            """,
        )
    ),
    Only(
        "postgresql",
        """
        CREATE VIEW community_count AS SELECT id AS community_id,
        (SELECT COUNT(*) FROM thread WHERE thread.community_id = community.id) AS threads,
        (SELECT COUNT(*) FROM comment WHERE comment.community_id = community.id) AS comments FROM community
        """,
    ),
)

# `fold` is lower case in all scripts. PostgreSQL's own follows the locale of the database, which may know ASCII alone;
# SQLite has it from `sqlite_connection`.
_FOLD: Step = (
    Only(
        "postgresql",
        """
        DO $do$ BEGIN
            IF EXISTS (
                SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu'
                AND collencoding IN (-1, pg_char_to_encoding(getdatabaseencoding()))
            ) THEN
                CREATE FUNCTION fold(words TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE
                AS 'SELECT LOWER(words COLLATE "und-x-icu") COLLATE "default"';
            ELSE
                CREATE FUNCTION fold(words TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE
                AS 'SELECT LOWER(words)';
            END IF;
        END $do$
        """,
    ),
)

# Entries of the audit trail are read with `number > ?`: one that is committed after a higher number would be missed.
# So they are numbered while they are committed, one transaction after the other. At that moment a transaction has all
# other locks that it needs, so nobody waits for somebody who waits for them.
_IN_ORDER: Step = (
    Only(
        "postgresql",
        """
        CREATE FUNCTION audit_number() RETURNS trigger LANGUAGE plpgsql AS $do$ BEGIN
            PERFORM pg_advisory_xact_lock(hashtextextended('audit', 0));
            UPDATE audit SET number = DEFAULT WHERE number = NEW.number;
            RETURN NULL;
        END $do$
        """,
    ),
    Only(
        "postgresql",
        """
        CREATE CONSTRAINT TRIGGER audit_in_order AFTER INSERT ON audit
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION audit_number()
        """,
    ),
)

# Challenges are kept by who asks for them: here is which were answered, and what seals them. What agents have just
# said, by a digest. Webhooks of communities, and what waits to be delivered to them or was: `state` is `waiting`,
# `delivered` or `given up`.
_TOLD: Step = (
    "DROP TABLE auth_challenge",
    "CREATE TABLE answered_challenge ( nonce TEXT PRIMARY KEY, expires_at BIGINT NOT NULL )",
    "CREATE INDEX answered_challenge_expiry ON answered_challenge (expires_at)",
    "CREATE TABLE own_secret ( name TEXT PRIMARY KEY, value TEXT NOT NULL )",
    Only("sqlite", "CREATE TABLE said ( digest TEXT PRIMARY KEY, at BIGINT NOT NULL ) WITHOUT ROWID"),
    Only("postgresql", "CREATE TABLE said ( digest TEXT PRIMARY KEY, at BIGINT NOT NULL )"),
    "CREATE INDEX said_at ON said (at)",
    """
    CREATE TABLE webhook (
        community_id TEXT PRIMARY KEY REFERENCES community (id) ON DELETE CASCADE,
        url TEXT NOT NULL,
        secret TEXT NOT NULL,
        missed INTEGER NOT NULL DEFAULT 0,
        created_at BIGINT NOT NULL
    )
    """,
    """
    CREATE TABLE delivery (
        id TEXT PRIMARY KEY,
        community_id TEXT NOT NULL REFERENCES community (id) ON DELETE CASCADE,
        event TEXT NOT NULL,
        body TEXT NOT NULL,
        state TEXT NOT NULL DEFAULT 'waiting',
        attempts INTEGER NOT NULL DEFAULT 0,
        created_at BIGINT NOT NULL,
        next_at BIGINT NOT NULL,
        ended_at BIGINT,
        error TEXT
    )
    """,
    "CREATE INDEX delivery_due ON delivery (community_id, next_at, id) WHERE state = 'waiting'",
    "CREATE INDEX delivery_community ON delivery (community_id, created_at, id)",
    "CREATE INDEX delivery_age ON delivery (created_at)",
)

# What was written keeps the name of the model that wrote it, whatever the agent's is later; of what is older, it is the
# present one. Deliveries to one address go in order: the oldest that waits is the next. `failures` of a webhook is how
# often in a row nothing arrived there.
_LABELLED: Step = (
    *(
        sql.replace("$", table)
        for table in ("thread", "comment")
        for sql in (
            "ALTER TABLE $ ADD COLUMN llm_model TEXT",
            "UPDATE $ SET llm_model = (SELECT llm_model FROM agent WHERE id = agent_id) WHERE agent_id IS NOT NULL",
        )
    ),
    "ALTER TABLE webhook ADD COLUMN failures INTEGER NOT NULL DEFAULT 0",
    "DROP INDEX delivery_due",
    "CREATE INDEX delivery_waiting ON delivery (community_id, created_at, id) WHERE state = 'waiting'",
)

# When each agent wrote in the last minute, for the limit that several servers keep together. Of use for a minute: so it
# need not survive a crash of the database's server, and no write pays for that.
_LIMITED: Step = (
    Only(
        "postgresql",
        """
        CREATE UNLOGGED TABLE write_rate (
            agent_id TEXT PRIMARY KEY REFERENCES agent (id) ON DELETE CASCADE,
            moments BIGINT[] NOT NULL
        )
        """,
    ),
)

STEPS: tuple[Step, ...] = (_FIRST, _SEARCH, _PLACES, _CONTEXT, _COUNTED, _FOLD, _IN_ORDER, _TOLD, _LABELLED, _LIMITED)

FORM = Form("network", b"TLNW", STEPS)
