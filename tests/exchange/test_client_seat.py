"""Who is attached to a session, and how."""

from __future__ import annotations

from trunkline.exchange.client_seat import ClientSeat


def test_two_seats_of_one_person_are_two() -> None:
    first, second = ClientSeat("ana", "console", 1), ClientSeat("ana", "console", 1)
    seats = {first: "first", second: "second"}
    assert (seats.pop(first), seats) == ("first", {second: "second"})
    assert (second.by, second.wire, second.since) == ("ana", "console", 1)
