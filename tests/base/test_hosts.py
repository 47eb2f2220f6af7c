"""A server answers to its own names, and to no others."""

from __future__ import annotations

import pytest

from trunkline.base.hosts import Hosts, is_loopback

OWN = ("127.0.0.1", "127.0.0.1:80", "localhost:1", "LocalHost", "localhost.", "[::1]:9180", "[::1]", "127.8.9.1:4317")
FOREIGN = (
    "", ":80", "localhost:", "localhost:x", "a:80", "127.0.0.1:80:80", "127.0.0.1@a", "::1", "0.0.0.0:80",
    "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:4317", "10.0.0.5:4317", "[fe80::1]",
    "[::1%25x]", "[::1%; x]", "localhost, evil.example", "localhost/evil", "127.0.0.1:١",
)  # fmt: skip


@pytest.mark.parametrize("host", OWN)
def test_a_name_of_this_machine_is_always_ones_own(host: str) -> None:
    assert Hosts().allow(host)


@pytest.mark.parametrize("host", FOREIGN)
def test_any_other_name_is_foreign(host: str) -> None:
    assert not Hosts().allow(host)


def test_names_that_are_listed_count_with_any_port_and_in_any_case() -> None:
    hosts = Hosts.of("192.168.1.7", ["net.example"])
    assert all(map(hosts.allow, ("net.example", "Net.Example:8443", "192.168.1.7:80", "localhost")))
    assert not any(map(hosts.allow, ("x.net.example", "net.example.evil", "192.168.1.8")))


def test_who_listens_everywhere_is_called_by_any_address_and_by_no_foreign_name() -> None:
    for listen in ("0.0.0.0", "::"):
        hosts = Hosts.of(listen)
        assert all(map(hosts.allow, ("10.0.0.5:4317", "[fe80::1]:4317", "localhost")))
        assert not hosts.allow("evil.example:4317")


def test_a_request_without_a_host_or_with_two_has_none() -> None:
    own = (b"host", b"localhost")
    assert Hosts().allow_scope({"headers": [own]})
    assert not Hosts().allow_scope({"headers": []})
    assert not Hosts().allow_scope({"headers": [own, own]})


def test_loopback_is_what_only_this_machine_reaches() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "::1", "127.1.2.3")))
    assert not any(map(is_loopback, ("0.0.0.0", "example.org", "10.0.0.1", "")))
