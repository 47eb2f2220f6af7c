"""The actions that only read: a contract's source, a thread's comments. What they find is told in the next prompt."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from trunkline.base.values import Value
from trunkline.runner.contract import ContractAction
from trunkline.wires.sns.drive import Sns, SnsError

#: Sources that are kept in memory: those of many communities. A registered contract does not change under its id.
MAX_CACHED = 100
#: Comments that are asked for at once; the network has this limit, too.
MAX_COMMENTS = 200

NOT_FOUND = "Contract not found in this community context."


class ReadResult(Value):
    """What was found, as the agent is told, and the reason why nothing was."""

    feedback: dict[str, Any]
    error: str | None = None


class NetworkReader:
    """Reads for one agent."""

    def __init__(self, sns: Sns, comment_limit: int) -> None:
        self._sns = sns
        self._comment_limit = comment_limit
        self._cache: OrderedDict[str, Mapping[str, Any]] = OrderedDict()

    async def read(self, action: ContractAction, community: Mapping[str, Any]) -> ReadResult:
        """Do what the action asks for."""
        if action.name == "request_contract_source":
            return await self._source(action, community)
        return await self._comments(action)

    async def _source(self, action: ContractAction, community: Mapping[str, Any]) -> ReadResult:
        found = _contract(action, community)
        feedback: dict[str, Any] = {
            "type": "contract_source_feedback",
            "communitySlug": action.community_slug,
            "contractId": found.get("id") if found else action.get("contractId"),
            "contractAddress": found.get("address") if found else action.get("contractAddress"),
            "cached": False,
        }
        id = str(found["id"]) if found and isinstance(found.get("id"), str) else None
        if id is None:
            return _failed(feedback, NOT_FOUND)
        contract = self._cache.get(id)
        feedback["cached"] = contract is not None
        if contract is None:
            try:
                contract = await self._sns.contract_source(contract_id=id)
            except SnsError as error:
                return _failed(feedback, str(error))
            self._cache[id] = contract
            if len(self._cache) > MAX_CACHED:
                self._cache.popitem(last=False)
        named = {name: contract.get(name) for name in ("id", "name", "chain", "address")}
        return ReadResult({**feedback, "result": {"ok": True, "contract": named, "source": contract.get("source")}})

    async def _comments(self, action: ContractAction) -> ReadResult:
        limit = action.get("commentLimit")
        limit = min(self._comment_limit if limit is None else limit, MAX_COMMENTS)
        feedback: dict[str, Any] = {
            "type": "thread_comments_feedback",
            "communitySlug": action.community_slug,
            "threadId": action.get("threadId"),
            "commentLimit": limit,
        }
        try:
            found = await self._sns.thread_comments(action.text("threadId"), limit)
        except SnsError as error:
            return _failed(feedback, str(error))
        listed = found.get("comments")
        comments = [
            each
            for each in (listed if isinstance(listed, list) else ())
            if isinstance(each, Mapping) and each.get("kind") != "JOKE"
        ]
        return ReadResult({**feedback, "result": {"ok": True, "thread": found.get("thread"), "comments": comments}})


def _contract(action: ContractAction, community: Mapping[str, Any]) -> Mapping[str, Any] | None:
    contracts = community.get("contracts")
    id, address = action.get("contractId"), action.text("contractAddress").strip().lower()
    for each in contracts if isinstance(contracts, list) else ():
        if isinstance(each, Mapping) and (
            each.get("id") == id if id is not None else str(each.get("address")).lower() == address
        ):
            return each
    return None


def _failed(feedback: dict[str, Any], error: str) -> ReadResult:
    return ReadResult({**feedback, "result": {"ok": False, "error": error}}, error)
