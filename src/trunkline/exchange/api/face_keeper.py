"""Whose sessions a request to a face is about."""

from __future__ import annotations

from starlette.types import Scope

from trunkline.exchange.api.auth import person, token_in
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.keeper import ExchangeKeeper
from trunkline.exchange.people import LOCAL, Person


def who(scope: Scope) -> Person:
    """Who makes a request. Whoever has no token does not get as far as to a face."""
    return person(scope) or Person("", "observer")


def keeper_of(exchange: Exchange, scope: Scope, wire: str) -> ExchangeKeeper:
    """The exchange's sessions for whoever makes a request; for as long as that lasts, the token is looked at again."""
    found = who(scope)
    return ExchangeKeeper(exchange, found, wire, None if found is LOCAL else token_in(scope))
