# SPDX-License-Identifier: Apache-2.0
"""The manifests in deploy/ are what Kubernetes and KServe take, fit together, and use flags that the server has."""
import copy
import re
import subprocess

import kubernetes_validate
import pytest

from . import kserve_schema
from .container import ROOT, instructions
from .manifests import SERVER, TRITON, containers, documents, flag, image, label, of_kind, pods

VERSIONS = ["1.29", "1.33", "1.37"]
GUIDE = (ROOT / "docs" / "guides" / "scale_out.md").read_text()


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
    scaler, = [s for s in of_kind("HorizontalPodAutoscaler") if s["spec"]["scaleTargetRef"]["name"] == name]
    assert scaler["spec"]["minReplicas"] >= 2
    budget, = [b for b in of_kind("PodDisruptionBudget") if b["spec"]["selector"]["matchLabels"] == labels]
    assert budget["spec"]["minAvailable"] < scaler["spec"]["minReplicas"]
    for policy in of_kind("NetworkPolicy"):
        if policy["spec"]["podSelector"]["matchLabels"] == labels:
            assert {p["port"] for rule in policy["spec"]["ingress"] for p in rule["ports"]} <= ports


@pytest.mark.parametrize("owner, pod", pods(), ids=[label(owner) for owner, _ in pods()])
def test_what_is_mounted_is_there(owner, pod):
    """Every mount is a volume, every volume is mounted, every claim is made by a manifest that deleting this one leaves alone."""
    volumes = {v["name"]: v for v in pod.get("volumes", [])}
    mounts = [m for c in pod["containers"] for m in c.get("volumeMounts", [])]
    assert {m["name"] for m in mounts} == set(volumes)
    assert len({m["mountPath"] for m in mounts}) == len(mounts)
    for volume in volumes.values():
        if "persistentVolumeClaim" in volume:
            name = volume["persistentVolumeClaim"]["claimName"]
            claim, = [d for d in documents("kubernetes") if (d["kind"], d["metadata"]["name"]) == ("PersistentVolumeClaim", name)]
            assert claim["file"] not in (owner["file"], *(o["file"] for o, _ in pods()))
            assert "ReadWriteMany" in claim["spec"]["accessModes"], "several copies read it, and somebody must fill it"
    for container in pod["containers"]:
        root = next((m["mountPath"] for m in container.get("volumeMounts", []) if m["name"] == "models"), None)
        used = flag(container, "--model-repository")
        assert used is None or root is None or used == f"{root}/repository"
        for argument in container.get("args", []):
            path = argument.partition("=")[2]
            if path.startswith("/") and root:
                assert any(path == m["mountPath"] or path.startswith(m["mountPath"] + "/") for m in container["volumeMounts"]), argument


def test_kserve_reads_the_same_volume():
    service, = [d for d in documents("kserve") if d["kind"] == "InferenceService"]
    claim, _, folder = service["spec"]["predictor"]["model"]["storageUri"].removeprefix("pvc://").partition("/")
    assert claim in {c["metadata"]["name"] for c in of_kind("PersistentVolumeClaim")} and folder == "repository"
    runtime, = [d for d in documents("kserve") if d["kind"] == "ServingRuntime"]
    assert service["spec"]["predictor"]["model"]["runtime"] == runtime["metadata"]["name"]
    assert flag(runtime["spec"]["containers"][0], "--model-repository") == "/mnt/models"


def help_of(program):
    shown = subprocess.run([program, "--help"], capture_output=True, text=True)
    return shown.stdout + shown.stderr


def secrets(pod):
    """{name: keys} that a pod cannot start without."""
    found = {v["secret"]["secretName"]: {"tls.crt", "tls.key"} for v in pod.get("volumes", []) if "secret" in v}
    for container in pod["containers"]:
        for variable in container.get("env", []):
            reference = variable.get("valueFrom", {}).get("secretKeyRef")
            if reference:
                assert not reference.get("optional"), reference
                found.setdefault(reference["name"], set()).add(reference["key"])
    return found


@pytest.mark.parametrize("owner, pod", pods(), ids=[label(owner) for owner, _ in pods()])
def test_the_guide_makes_the_secrets(owner, pod):
    for name, keys in secrets(pod).items():
        made = re.search(rf"^\$ kubectl create secret (generic|tls) {name} (.*)$", GUIDE, re.M)
        assert made, f"docs/guides/scale_out.md does not say how the secret {name} of {label(owner)} is made"
        assert (made[1] == "tls" and keys == {"tls.crt", "tls.key"}) or all(f"--from-literal={key}=" in made[2] for key in keys)


@pytest.mark.parametrize("deployment", of_kind("Deployment"), ids=label)
def test_no_request_comes_in_the_clear_or_without_a_key(deployment):
    pod = deployment["spec"]["template"]["spec"]
    container, = pod["containers"]
    assert "anymps-api-key" in secrets(pod) and "anymps-tls" in secrets(pod)
    service, = [s for s in of_kind("Service") if s["metadata"]["name"] == deployment["metadata"]["name"]]
    for port in service["spec"]["ports"]:
        if port["name"] != "metrics":
            assert f"--{port['name']}-use-ssl" in {a.split("=")[0] for a in container["args"]}
            for what, file in (("cert", "tls.crt"), ("key", "tls.key")):
                assert flag(container, f"--{port['name']}-server-{what}") == f"/tls/{file}"
    if image(container) == "anymps-triton":
        for name in ("--http-restricted-api", "--grpc-restricted-protocol"):
            apis, _, key = flag(container, name).partition(":")
            all_of_them = re.search(r"Allowed APIs:(.*?)\n\n", help_of(TRITON), re.S)[1].replace(",", " ").split()
            assert set(apis.split(",")) == set(all_of_them) - {"health"} and key == "x-api-key=$(API_KEY)"


def test_nothing_that_is_secret_is_in_a_manifest():
    assert not [d for folder in ("kubernetes", "kserve") for d in documents(folder) if d["kind"] == "Secret"]
    for container in containers():
        assert not [v for v in container.get("env", []) if re.search("KEY|TOKEN|PASSWORD", v["name"]) and "value" in v]


@pytest.mark.parametrize("owner, pod", pods(), ids=[label(owner) for owner, _ in pods()])
def test_images_are_what_the_container_file_makes(owner, pod):
    made = set(re.findall(r"-t (anymps-\w+:[\d.]+) ", (ROOT / "deploy" / "Containerfile").read_text()))
    for container in pod["containers"]:
        registry, _, name = container["image"].rpartition("/")
        assert name in made and registry == "registry.example.com", container["image"]


@pytest.mark.parametrize("owner, pod", pods(), ids=[label(owner) for owner, _ in pods()])
def test_a_container_can_do_no_more_than_it_must(owner, pod):
    for container in pod["containers"]:
        context = {**pod.get("securityContext", {}), **container["securityContext"]}
        assert context["runAsNonRoot"] and context["runAsUser"] > 0 and context["readOnlyRootFilesystem"]
        assert context["allowPrivilegeEscalation"] is False and context["capabilities"] == {"drop": ["ALL"]}
        stage = image(container).removeprefix("anymps-")
        user, = [int(rest) for s, name, rest in instructions() if (s, name) == (stage, "USER")]
        assert context["runAsUser"] == user


def test_threads_are_the_cpu_limit():
    """A container sees all cores of its machine: the number comes from the limit, so that the two cannot differ."""
    for container in containers():
        variable, = [v for v in container["env"] if v["name"] == "ANYMPS_NUM_THREADS"]
        assert variable["valueFrom"]["resourceFieldRef"]["resource"] == "limits.cpu"
        assert container["resources"]["limits"]["cpu"] == container["resources"]["requests"]["cpu"]


@pytest.mark.parametrize("deployment", of_kind("Deployment"), ids=label)
def test_there_is_time_to_answer(deployment):
    """Kubernetes kills after the grace period: the pause before SIGTERM and the server's own limit must fit in it."""
    pod = deployment["spec"]["template"]["spec"]
    container, = pod["containers"]
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pause + int(flag(container, "--exit-timeout-secs")) < pod["terminationGracePeriodSeconds"]


def test_ports_are_those_that_the_servers_open():
    """The image's, unless a flag says another."""
    exposed = {int(p) for _, name, rest in instructions() if name == "EXPOSE" for p in rest.split()}
    assert exposed == {8000, 8001, 8002}
    for container in containers():
        opened = {name: int(flag(container, f"--{name}-port") or default) for name, default in (("http", 8000), ("grpc", 8001), ("metrics", 8002))}
        for port in container.get("ports", []):
            assert port["containerPort"] == opened[port["name"]]
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if probe in container:
                get = container[probe]["httpGet"]
                assert get["path"] in ("/v2/health/live", "/v2/health/ready")
                assert get["port"] in ("http", opened["http"])
                assert (get.get("scheme") == "HTTPS") == any(a.startswith("--http-use-ssl") for a in container["args"])


@pytest.mark.parametrize("kind, program", [("anymps-server", SERVER), ("anymps-triton", TRITON)])
def test_the_servers_have_the_flags(kind, program):
    if not program.exists():
        pytest.skip(f"there is no {program}")
    known = set(re.findall(r"--[\w-]+", help_of(program)))
    used = {a.split("=")[0] for c in containers() if image(c) == kind for a in c["args"]}
    if kind == "anymps-server":
        used |= {a.split("=")[0] for _, name, value in instructions() if name == "CMD" for a in re.findall(r'"([^"]*)"', value)}
    assert used and used <= known, used - known


def test_the_guide_applies_files_that_are_there():
    named = set(re.findall(r"\bdeploy/[\w/.]+\.yaml", GUIDE))
    assert named == {d["file"] for folder in ("kubernetes", "kserve") for d in documents(folder)}
