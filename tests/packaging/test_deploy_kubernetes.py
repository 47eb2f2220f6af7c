"""`deploy/kubernetes` by Kubernetes' own schemas, and by what they are there for: what refers to something finds it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.support.commands import is_command

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
FILES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
#: The oldest release that is still maintained somewhere, and the newest that the validator has.
VERSIONS = ("1.31.0", "1.37.0")
SECRET = "trunkline"

Manifest = dict[str, Any]


@pytest.fixture(scope="module")
def manifests() -> list[Manifest]:
    return [each for file in FILES for each in yaml.safe_load_all(file.read_text(encoding="utf-8"))]


def of_kind(manifests: list[Manifest], kind: str) -> dict[str, Manifest]:
    return {each["metadata"]["name"]: each for each in manifests if each["kind"] == kind}


def pods(manifests: list[Manifest]) -> dict[str, Manifest]:
    return {name: each["spec"]["template"] for name, each in of_kind(manifests, "StatefulSet").items()}


def container(pod: Manifest) -> Manifest:
    (found,) = pod["spec"]["containers"]
    return dict(found)


def selected(manifests: list[Manifest], labels: Manifest) -> list[str]:
    """The sets whose pods have these labels."""
    return [name for name, pod in pods(manifests).items() if labels.items() <= pod["metadata"]["labels"].items()]


def ports(pod: Manifest) -> dict[str, int]:
    return {port["name"]: port["containerPort"] for port in container(pod)["ports"]}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_manifest_is_valid(manifests: list[Manifest], version: str) -> None:
    for manifest in manifests:
        kubernetes_validate.validate(manifest, version, strict=True)


def test_the_validator_finds_what_is_wrong(manifests: list[Manifest]) -> None:
    (first, *_) = of_kind(manifests, "StatefulSet").values()
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**first, "spec": {**first["spec"], "replica": 3}}, VERSIONS[-1], strict=True)


def test_there_are_three_exchanges_three_nats_servers_and_a_postgresql(manifests: list[Manifest]) -> None:
    replicas = {name: each["spec"]["replicas"] for name, each in of_kind(manifests, "StatefulSet").items()}
    assert replicas == {"trunkline": 3, "nats": 3, "postgres": 1}
    kinds = {each["kind"] for each in manifests}
    assert kinds == {"ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Service", "StatefulSet"}


def test_what_selects_pods_finds_exactly_those_of_its_part(manifests: list[Manifest]) -> None:
    for name, each in of_kind(manifests, "StatefulSet").items():
        assert selected(manifests, each["spec"]["selector"]["matchLabels"]) == [name]
    for kind in ("PodDisruptionBudget", "NetworkPolicy"):
        for name, each in of_kind(manifests, kind).items():
            selector = each["spec"].get("selector") or each["spec"]["podSelector"]
            assert selected(manifests, selector["matchLabels"]) == [name], (kind, name)
    for name, each in of_kind(manifests, "Service").items():
        (found,) = selected(manifests, each["spec"]["selector"])
        assert name.startswith(found)
        assert {port["targetPort"] for port in each["spec"]["ports"]} <= ports(pods(manifests)[found]).keys()


def test_every_set_has_its_service_its_probes_and_a_volume_that_stays(manifests: list[Manifest]) -> None:
    services = of_kind(manifests, "Service")
    for each in of_kind(manifests, "StatefulSet").values():
        assert services[each["spec"]["serviceName"]]["spec"]["clusterIP"] == "None"
        pod = container(each["spec"]["template"])
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            asked = pod[probe].get("httpGet")
            assert asked is None or asked["port"] in ports(each["spec"]["template"])
        claims = {claim["metadata"]["name"] for claim in each["spec"]["volumeClaimTemplates"]}
        volumes = {volume["name"] for volume in each["spec"]["template"]["spec"].get("volumes", [])}
        assert {mount["name"] for mount in pod["volumeMounts"]} == claims | volumes


def test_nothing_runs_as_root_or_can_become_it(manifests: list[Manifest]) -> None:
    for pod in pods(manifests).values():
        assert pod["spec"]["securityContext"]["runAsNonRoot"]
        assert pod["spec"]["securityContext"]["runAsUser"] > 0
        assert not pod["spec"]["automountServiceAccountToken"]
        own = container(pod)["securityContext"]
        assert not own["allowPrivilegeEscalation"]
        assert own["capabilities"] == {"drop": ["ALL"]}


def test_what_is_configured_is_what_stands_beside_it(manifests: list[Manifest]) -> None:
    maps = of_kind(manifests, "ConfigMap")
    assert maps["trunkline"]["data"] == {"trunkline.toml": (DEPLOY / "trunkline.toml").read_text(encoding="utf-8")}
    assert maps["nats"]["data"] == {"nats.conf": (DEPLOY / "nats.conf").read_text(encoding="utf-8")}
    mounted = {
        volume["configMap"]["name"] for pod in pods(manifests).values() for volume in pod["spec"].get("volumes", [])
    }
    assert mounted == maps.keys()


def test_secrets_come_from_the_one_that_the_guide_makes(manifests: list[Manifest]) -> None:
    lines = (DEPLOY / "cluster.env.example").read_text(encoding="utf-8").splitlines()
    known = {line.partition("=")[0] for line in lines if line and not line.startswith("#")}
    for pod in pods(manifests).values():
        env = container(pod).get("env", [])
        referred = [each["valueFrom"]["secretKeyRef"] for each in env if "secretKeyRef" in each.get("valueFrom", {})]
        assert {each["name"] for each in referred} == {SECRET}
        assert {each["key"] for each in referred} <= known
        # Only what stands before can be part of a value.
        for at, each in enumerate(env):
            used = set(re.findall(r"\$\((\w+)\)", each.get("value", "")))
            assert used <= {before["name"] for before in env[:at]}
    assert container(pods(manifests)["trunkline"])["envFrom"] == [{"secretRef": {"name": SECRET}}]


def test_every_address_is_one_of_a_pod_or_a_service(manifests: list[Manifest]) -> None:
    services = of_kind(manifests, "Service")
    for pod in pods(manifests).values():
        for each in container(pod).get("env", []):
            for host in re.findall(r"@([\w.-]+)[:/]", each.get("value", "")):
                name, _, service = host.rpartition(".")
                assert service in services
                assert not name or re.fullmatch(r"nats-[012]", name)


def test_the_exchange_is_drained_before_it_ends_by_commands_that_there_are(manifests: list[Manifest]) -> None:
    pod = pods(manifests)["trunkline"]
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    *_, program, file = container(pod)["command"]
    assert f"/usr/local/bin/{program}" in dockerfile
    config = next(mount for mount in container(pod)["volumeMounts"] if mount["name"] == "config")
    assert Path(file).parent == Path(config["mountPath"])
    for probe in ("startupProbe", "readinessProbe"):
        assert container(pod)[probe]["exec"]["command"][-1] in dockerfile
    *_, drain = container(pod)["lifecycle"]["preStop"]["exec"]["command"]
    assert is_command(drain.split()[1:])
    assert pod["spec"]["terminationGracePeriodSeconds"] >= 600


def test_policies_let_through_what_the_parts_need_and_name_ports_that_there_are(manifests: list[Manifest]) -> None:
    all_ports = {name: ports(pod) for name, pod in pods(manifests).items()}
    policies = of_kind(manifests, "NetworkPolicy")
    allowed = set()
    for name, policy in policies.items():
        assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
        for rule in policy["spec"]["ingress"]:
            senders = [each["podSelector"]["matchLabels"] for each in rule.get("from", [])]
            for port in rule["ports"]:
                assert port["port"] in all_ports[name]
                allowed |= {(who, name, port["port"]) for each in senders for who in selected(manifests, each)}
    assert allowed == {
        ("trunkline", "nats", "client"),
        ("nats", "nats", "route"),
        ("trunkline", "postgres", "postgres"),
    }
    sent = set()
    for name, policy in policies.items():
        for rule in policy["spec"]["egress"]:
            for each in rule.get("to", []):
                targets = [] if "namespaceSelector" in each else selected(manifests, each["podSelector"]["matchLabels"])
                sent |= {(name, target, port["port"]) for target in targets for port in rule["ports"]}
    assert sent == allowed
