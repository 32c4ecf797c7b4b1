# SPDX-License-Identifier: Apache-2.0
"""Checks a KServe object against the classes that the kserve package generates from its CRDs.

Each class tells its fields and their types in two dictionaries, which are read from the source: importing the package
would need all that a KServe server needs. Types of Kubernetes itself are checked with kubernetes-validate's schemas.
"""
import ast
import importlib.util
import json
import re
from functools import cache
from pathlib import Path

import jsonschema
import referencing

KINDS = {("serving.kserve.io/v1alpha1", "ServingRuntime"): "V1alpha1ServingRuntime",
         ("serving.kserve.io/v1beta1", "InferenceService"): "V1beta1InferenceService"}
PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": object}
KUBERNETES = "v1.33.0-local-strict"


def folder_of(package):
    return Path(importlib.util.find_spec(package).origin).parent


@cache
def classes():
    """{class: {name in JSON: type}} of all models."""
    found = {}
    for path in (folder_of("kserve") / "models").glob("v1*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                tables = {t.id: ast.literal_eval(a.value) for a in node.body if isinstance(a, ast.Assign) and isinstance(a.value, ast.Dict)
                          for t in a.targets if isinstance(t, ast.Name)}
                if "openapi_types" in tables:
                    found[node.name] = {tables["attribute_map"][k]: t for k, t in tables["openapi_types"].items()}
    return found


@cache
def definitions():
    path = folder_of("kubernetes_validate") / "kubernetes-json-schema" / KUBERNETES / "_definitions.json"
    return json.loads(path.read_text())


def kubernetes_problems(kind, value, where):
    """`kind`: V1Container and the like, which is io.k8s.api.core.v1.Container there."""
    ending = f".v1.{kind.removeprefix('V1')}"
    name = next((n for n in definitions()["$defs"] if n.endswith(ending) and n.startswith(("io.k8s.api.core", "io.k8s.apimachinery"))), None)
    if name is None:
        return [f"{where}: Kubernetes has no {kind}"]
    resource = referencing.Resource.from_contents(definitions())
    registry = referencing.Registry().with_resource(definitions()["$id"], resource)
    schema = {"$schema": definitions()["$schema"], "$ref": f"{definitions()['$id']}#/$defs/{name}"}
    validator = jsonschema.validators.validator_for(schema)(schema, registry=registry)
    return [f"{where}{''.join(f'.{p}' for p in e.absolute_path)}: {e.message}" for e in validator.iter_errors(value)]


def type_problems(kind, value, where):
    inner = re.fullmatch(r"list\[(.*)\]|dict\(str, (.*)\)", kind)
    if inner and inner[1]:
        if not isinstance(value, list):
            return [f"{where} is no list"]
        return [p for i, v in enumerate(value) for p in type_problems(inner[1], v, f"{where}[{i}]")]
    if inner:
        if not isinstance(value, dict):
            return [f"{where} is no object"]
        return [p for k, v in value.items() for p in type_problems(inner[2], v, f"{where}.{k}")]
    if kind in PLAIN:
        good = isinstance(value, PLAIN[kind]) and not (kind in ("int", "float") and isinstance(value, bool))
        return [] if good else [f"{where} is no {kind}: {value!r}"]
    if kind not in classes():
        return kubernetes_problems(kind, value, where)
    if not isinstance(value, dict):
        return [f"{where} is no object"]
    fields = classes()[kind]
    out = [f"{where}.{key}: {kind} has no such field" for key in value if key not in fields]
    return out + [p for key, v in value.items() if key in fields for p in type_problems(fields[key], v, f"{where}.{key}")]


def problems(document):
    """What is wrong with it, in words."""
    kind = KINDS.get((document.get("apiVersion"), document.get("kind")))
    return type_problems(kind, document, document["kind"]) if kind else [f"KServe has no {document.get('apiVersion')} {document.get('kind')}"]
