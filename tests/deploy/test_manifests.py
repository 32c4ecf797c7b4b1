# SPDX-License-Identifier: Apache-2.0
"""The manifests in deploy/ are what Kubernetes and KServe take, fit together, and use flags that the server has."""
import copy
import re
import subprocess

import kubernetes_validate
import pytest
import yaml

from . import kserve_schema
from .container import DEPLOY, ROOT, instructions

VERSIONS = ["1.29", "1.33", "1.37"]
SERVER = ROOT / "build" / "bin" / "anymps-server"


def documents(folder):
    return [d for path in sorted((DEPLOY / folder).glob("*.yaml")) for d in yaml.safe_load_all(path.read_text())]


def label(document):
    return f"{document['kind']}-{document['metadata']['name']}"


def of_kind(kind):
    return [d for d in documents("kubernetes") if d["kind"] == kind]


def containers():
    pods = [d["spec"]["template"]["spec"] for d in of_kind("Deployment")]
    return [c for pod in pods for c in pod["containers"]] + [c for d in documents("kserve") if d["kind"] == "ServingRuntime" for c in d["spec"]["containers"]]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("document", documents("kubernetes"), ids=label)
def test_kubernetes_takes_it(document, version):
    kubernetes_validate.validate(document, version, strict=True)


def test_the_schemas_are_strict():
    document = copy.deepcopy(of_kind("Deployment")[0])
    document["spec"]["template"]["spec"]["containers"][0]["porst"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("document", documents("kserve"), ids=label)
def test_kserve_takes_it(document):
    assert kserve_schema.problems(document) == []


@pytest.mark.parametrize("change, expected", [
    (lambda d: d["spec"].update(protokol="v2"), "ServingRuntime.spec.protokol: V1alpha1ServingRuntimeSpec has no such field"),
    (lambda d: d["spec"].update(multiModel="no"), "ServingRuntime.spec.multiModel is no bool: 'no'"),
    (lambda d: d["spec"]["containers"][0].update(porst=[]), "porst"),
    (lambda d: d.update(kind="Runtime"), "KServe has no serving.kserve.io/v1alpha1 Runtime")])
def test_mistakes_are_seen(change, expected):
    document = next(d for d in documents("kserve") if d["kind"] == "ServingRuntime")
    change(document)
    assert any(expected in p for p in kserve_schema.problems(document)), kserve_schema.problems(document)


@pytest.mark.parametrize("deployment", of_kind("Deployment"), ids=label)
def test_services_and_scaling_find_the_pods(deployment):
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    name = deployment["metadata"]["name"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels
    ports = {p["name"] for p in deployment["spec"]["template"]["spec"]["containers"][0]["ports"]}
    service, = [s for s in of_kind("Service") if s["metadata"]["name"] == name]
    assert service["spec"]["selector"] == labels
    assert {p["targetPort"] for p in service["spec"]["ports"]} <= ports
    for scaler in of_kind("HorizontalPodAutoscaler"):
        assert scaler["spec"]["scaleTargetRef"]["name"] in {d["metadata"]["name"] for d in of_kind("Deployment")}
    claims = {c["metadata"]["name"] for c in of_kind("PersistentVolumeClaim")}
    assert {v["persistentVolumeClaim"]["claimName"] for v in deployment["spec"]["template"]["spec"]["volumes"]} <= claims


@pytest.mark.parametrize("deployment", of_kind("Deployment"), ids=label)
def test_there_is_time_to_answer(deployment):
    """Kubernetes kills after the grace period: the pause before SIGTERM and the server's own limit must fit in it."""
    pod = deployment["spec"]["template"]["spec"]
    container, = pod["containers"]
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    limit = int(next(a.split("=")[1] for a in container["args"] if a.startswith("--exit-timeout-secs=")))
    assert pause + limit < pod["terminationGracePeriodSeconds"]


@pytest.mark.skipif(not SERVER.exists(), reason="build/bin/anymps-server is not built")
def test_the_server_has_the_flags():
    text = subprocess.run([SERVER, "--help"], capture_output=True, text=True, check=True).stdout
    used = {a.split("=")[0] for c in containers() if c["image"] == "anymps-server" for a in c["args"]}
    used |= {a.split("=")[0] for _, name, value in instructions() if name == "CMD" for a in re.findall(r'"([^"]*)"', value)}
    assert used and not {flag for flag in used if not re.search(rf"{flag}\b", text)}


def test_probes_are_paths_of_the_protocol():
    for container in containers():
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if probe in container:
                assert container[probe]["httpGet"]["path"] in ("/v2/health/live", "/v2/health/ready")
