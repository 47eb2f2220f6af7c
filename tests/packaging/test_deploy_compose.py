"""`deploy/compose.yaml` by the schema of the Compose specification, and by what it is there for."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import validators

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
EXCHANGES = ("exchange-a", "exchange-b", "exchange-c")
SERVERS = ("nats-1", "nats-2", "nats-3")

_VARIABLE = re.compile(r"\$\{(\w+)(:\?[^}]*)?\}")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    return found


def variables(text: str) -> set[str]:
    return {name for name, _ in _VARIABLE.findall(text)}


def secrets() -> set[str]:
    """What the example of the secrets' file has."""
    lines = (DEPLOY / "cluster.env.example").read_text(encoding="utf-8").splitlines()
    return {line.partition("=")[0] for line in lines if line and not line.startswith("#")}


def test_it_is_a_compose_file(compose: dict[str, Any]) -> None:
    schema = json.loads((files("check_jsonschema.builtin_schemas") / "vendor" / "compose-spec.json").read_text())
    checker = validators.validator_for(schema)(schema)
    assert [error.message for error in checker.iter_errors(compose)] == []


def test_the_schema_finds_what_is_wrong(compose: dict[str, Any]) -> None:
    schema = json.loads((files("check_jsonschema.builtin_schemas") / "vendor" / "compose-spec.json").read_text())
    broken = {**compose, "services": {"x": {"imagge": "a"}}}
    assert not validators.validator_for(schema)(schema).is_valid(broken)


def test_there_are_three_exchanges_three_nats_servers_and_a_postgresql(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == {*EXCHANGES, *SERVERS, "postgres"}
    nodes = [compose["services"][name]["environment"]["NODE"] for name in EXCHANGES]
    assert nodes == ["a", "b", "c"]


def test_every_service_says_whether_it_is_healthy_and_the_exchanges_wait_for_that(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert all(service["healthcheck"]["test"][0] == "CMD" for service in services.values())
    for name in EXCHANGES:
        waits = services[name]["depends_on"]
        assert set(waits) == {*SERVERS, "postgres"}
        assert {each["condition"] for each in waits.values()} == {"service_healthy"}


def test_each_has_a_volume_of_its_own_for_what_it_keeps(compose: dict[str, Any]) -> None:
    kept = {}
    for name, service in compose["services"].items():
        mounts = [each.split(":") for each in service["volumes"]]
        (kept[name],) = [source for source, *_ in mounts if not source.startswith(".")]
        for source, *rest in mounts:
            if source.startswith("."):
                assert (DEPLOY / source).is_file(), source
                assert rest[-1] == "ro"
    assert set(kept.values()) == set(compose["volumes"])
    assert len(set(kept.values())) == len(kept)


def test_only_the_exchanges_are_reached_from_outside_and_only_from_this_machine(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert {name for name, service in services.items() if "ports" in service} == set(EXCHANGES)
    assert all(port.startswith("127.0.0.1:") for name in EXCHANGES for port in services[name]["ports"])
    assert compose["networks"]["inside"] == {"internal": True}
    assert all(services[name]["networks"] == ["inside"] for name in (*SERVERS, "postgres"))


def test_secrets_are_in_the_environments_file_alone_and_all_of_them_are_in_its_example(compose: dict[str, Any]) -> None:
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    assert variables(text) <= secrets()
    # Each is refused where it is missing, and not taken for empty.
    assert {name for name, asked in _VARIABLE.findall(text) if asked} == variables(text)
    assert all(compose["services"][name]["env_file"] == ["cluster.env"] for name in EXCHANGES)
    assert "/deploy/cluster.env" in (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    named = set(re.findall(r'(?:token|nats|postgres)_env = "(\w+)"', (DEPLOY / "trunkline.toml").read_text()))
    given = set(compose["services"]["exchange-a"]["environment"]) | secrets()
    assert named <= given


def test_every_address_is_a_services_name(compose: dict[str, Any]) -> None:
    environment = compose["services"]["exchange-a"]["environment"]
    hosts = re.findall(r"@([\w-]+)[:/]", environment["CLUSTER_NATS"] + environment["CLUSTER_DATABASE"])
    assert hosts == [*SERVERS, "postgres"]
    routes = compose["services"]["nats-1"]["environment"]["NATS_ROUTES"]
    assert re.findall(r"@([\w-]+):6222", routes) == list(SERVERS)


def test_what_an_exchange_runs_is_in_the_image(compose: dict[str, Any]) -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    service = compose["services"]["exchange-a"]
    *_, program, file = service["entrypoint"]
    assert f"/usr/local/bin/{program}" in dockerfile
    assert any(volume.split(":")[1] == file for volume in service["volumes"])
    assert service["healthcheck"]["test"][-1] in dockerfile
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
