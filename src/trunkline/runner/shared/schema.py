"""The tables of launchers that share their agents, as the list of steps that lead to them. It only ever grows.

All names begin with `runner_`, so that the database may be the network's or the exchange's, too. Moments are
milliseconds since 1970 by the database's clock. What agents and models wrote is in `BYTEA`: texts of PostgreSQL hold
neither NULs nor halves of characters.
"""

from __future__ import annotations

from trunkline.store.database.form import Form, Step

#: The time, also within a transaction and after a wait for another one.
NOW = "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT"

# `state` of an agent is `wanted` (whoever has its secrets is to run it), `named` (whoever's file names it) or
# `stopped`; `version` counts its configurations. A lease is of `holder`, a launcher's id, until `expires_at`; `fence`
# counts how often it was taken. `ran_at`, `day` and `cycles` say when the agent's last cycle began, and how many there
# were that day.
_LEASES: Step = (
    """
    CREATE TABLE runner_agent (
        agent_id TEXT PRIMARY KEY,
        number BIGINT GENERATED ALWAYS AS IDENTITY,
        config BYTEA NOT NULL,
        secrets BYTEA NOT NULL,
        state TEXT NOT NULL,
        version BIGINT NOT NULL DEFAULT 1
    )
    """,
    """
    CREATE TABLE runner_lease (
        agent_id TEXT PRIMARY KEY,
        fence BIGINT NOT NULL,
        holder TEXT,
        expires_at BIGINT NOT NULL,
        ran_at BIGINT NOT NULL DEFAULT 0,
        day BIGINT NOT NULL DEFAULT 0,
        cycles INTEGER NOT NULL DEFAULT 0
    )
    """,
    """
    CREATE TABLE runner_launcher (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        seen_at BIGINT NOT NULL
    )
    """,
    # Which launchers could run which agents.
    """
    CREATE TABLE runner_candidate (
        launcher TEXT NOT NULL REFERENCES runner_launcher (id) ON DELETE CASCADE,
        agent_id TEXT NOT NULL,
        PRIMARY KEY (launcher, agent_id)
    )
    """,
)

# What one agent's runner remembers: as `runner.state` has it in a file.
_MEMORY: Step = (
    """
    CREATE TABLE runner_feedback (
        key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        agent_id TEXT NOT NULL,
        payload BYTEA NOT NULL
    )
    """,
    "CREATE INDEX runner_feedback_agent ON runner_feedback (agent_id, key)",
    # `sent` is by the clock of the machine that sent it, which the network has compared with its own.
    """
    CREATE TABLE runner_write (
        key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        agent_id TEXT NOT NULL,
        action BYTEA NOT NULL,
        sent DOUBLE PRECISION NOT NULL,
        noted_at BIGINT NOT NULL
    )
    """,
    "CREATE INDEX runner_write_agent ON runner_write (agent_id, key)",
    """
    CREATE TABLE runner_written (
        key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        agent_id TEXT NOT NULL,
        post BYTEA NOT NULL,
        UNIQUE (agent_id, post)
    )
    """,
    "CREATE INDEX runner_written_agent ON runner_written (agent_id, key)",
    """
    CREATE TABLE runner_issue (
        agent_id TEXT NOT NULL,
        subject BYTEA NOT NULL,
        state TEXT NOT NULL,
        data BYTEA NOT NULL,
        PRIMARY KEY (agent_id, subject)
    )
    """,
    """
    CREATE TABLE runner_mark (
        agent_id TEXT NOT NULL,
        name TEXT NOT NULL,
        value BIGINT NOT NULL,
        PRIMARY KEY (agent_id, name)
    )
    """,
)

# The ledgers of all wallets: as `runner.chain.book` has one in a file. `pid` is the fence of the lease under which
# something was signed. Each transaction of the database names the wallet that it is about; the view then shows that
# wallet's rows, and takes no others.
_LEDGERS: Step = (
    """
    CREATE TABLE runner_transaction (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        wallet TEXT NOT NULL DEFAULT current_setting('trunkline.wallet'),
        agent TEXT NOT NULL,
        state TEXT NOT NULL,
        told TEXT,
        plan BYTEA NOT NULL,
        value TEXT NOT NULL,
        fee TEXT NOT NULL,
        gas BIGINT,
        nonce BIGINT,
        hash TEXT,
        raw BYTEA,
        until BIGINT NOT NULL DEFAULT 0,
        pid BIGINT NOT NULL DEFAULT 0,
        reserved BIGINT NOT NULL DEFAULT 0,
        receipt BYTEA,
        problem TEXT NOT NULL DEFAULT '',
        created BIGINT NOT NULL,
        changed BIGINT NOT NULL
    )
    """,
    "CREATE INDEX runner_transaction_nonce ON runner_transaction (wallet, nonce)",
    "CREATE INDEX runner_transaction_reserved ON runner_transaction (wallet, reserved)",
    "CREATE INDEX runner_transaction_changed ON runner_transaction (wallet, changed)",
    """
    CREATE INDEX runner_transaction_untold ON runner_transaction (wallet, agent, state)
    WHERE told IS DISTINCT FROM state
    """,
    """
    CREATE VIEW runner_wallet AS SELECT * FROM runner_transaction
    WHERE wallet = current_setting('trunkline.wallet') WITH CHECK OPTION
    """,
)

STEPS: tuple[Step, ...] = (_LEASES, _MEMORY, _LEDGERS)

FORM = Form("runner", b"TLRN", STEPS)
