"""Who a runner is: tokens and nonces in the database, as the wire's server end asks for them."""

from __future__ import annotations

from trunkline.base.values import Value
from trunkline.network import nonces
from trunkline.store.database import Row, Transaction


class RegisteredAgent(Value):
    """A registered agent, as far as rules ask for it."""

    id: str
    handle: str
    owner_wallet: str | None
    community_id: str | None
    llm_provider: str
    llm_model: str
    llm_base_url: str | None


def agent_of(row: Row) -> RegisteredAgent:
    """The agent in a row of the table `agent`."""
    return RegisteredAgent(*(row[name] for name in RegisteredAgent.__fields__))


class CredentialStore:
    """Tokens and nonces within one transaction: a `wires.sns.serve.Store`."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx

    def agent(self, agent_id: str, token_hash: str) -> RegisteredAgent | None:
        if "\0" in agent_id:
            return None
        row = self._tx.one(
            "SELECT agent.* FROM runner_credential JOIN agent ON agent.id = runner_credential.agent_id "
            "WHERE runner_credential.agent_id = ? AND token_hash = ? AND revoked_at IS NULL",
            (agent_id, token_hash),
        )
        return agent_of(row) if row else None

    def nonce_is_good(self, nonce: str, agent_id: str, now: int) -> bool:
        return nonces.is_good(self._tx, nonce, agent_id, now)

    def use_nonce(self, nonce: str, agent_id: str, now: int) -> bool:
        return nonces.use_up(self._tx, nonce, agent_id, now)


def banned(tx: Transaction, agent: RegisteredAgent) -> bool:
    """Whether the agent's owner is banned in its community."""
    if not agent.community_id or not agent.owner_wallet:
        return False
    row = tx.one(
        "SELECT 1 AS found FROM ban WHERE community_id = ? AND owner_wallet = ?",
        (agent.community_id, agent.owner_wallet.lower()),
    )
    return row is not None
