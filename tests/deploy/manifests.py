# SPDX-License-Identifier: Apache-2.0
"""Reads the manifests in deploy/."""
import yaml

from tests.doors.server.servers import BUILD, triton_folder

from .container import DEPLOY, ROOT

SERVER = BUILD / "bin" / "anymps-server"
TRITON = triton_folder() / "bin" / "tritonserver"


class Document(dict):
    """An object of Kubernetes; document["file"] is not part of it."""

    def __missing__(self, key):
        if key != "file":
            raise KeyError(key)
        return self.path


def documents(folder):
    found = []
    for path in sorted((DEPLOY / folder).glob("*.yaml")):
        for value in yaml.safe_load_all(path.read_text()):
            found.append(Document(value))
            found[-1].path = str(path.relative_to(ROOT))
    return found


def label(document):
    return f"{document['kind']}-{document['metadata']['name']}"


def of_kind(kind):
    return [d for d in documents("kubernetes") if d["kind"] == kind]


def pods():
    """[(the document, its pod)]."""
    made = [(d, d["spec"]["template"]["spec"]) for d in of_kind("Deployment")] + [(d, d["spec"]) for d in of_kind("Pod")]
    return made + [(d, d["spec"]) for d in documents("kserve") if d["kind"] == "ServingRuntime"]


def containers():
    """Those that serve."""
    return [c for _, pod in pods() for c in pod["containers"] if "args" in c]


def image(container):
    return container["image"].rpartition("/")[2].partition(":")[0]


def flag(container, name):
    return next((a.split("=", 1)[1] for a in container.get("args", []) if a.startswith(f"{name}=")), None)
