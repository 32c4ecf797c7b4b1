# SPDX-License-Identifier: Apache-2.0
"""doors/server/proto says the same as the descriptors in tritonclient: messages, fields, numbers, types, methods."""
import importlib
import subprocess

import pytest
from google.protobuf import descriptor_pb2

from ..servers import ROOT

PROTO = ROOT / "doors" / "server" / "proto"
MODULES = {"grpc_service": "tritonclient.grpc.service_pb2", "model_config": "tritonclient.grpc.model_config_pb2"}


def file_set(name, folder):
    out = folder / f"{name}.bin"
    subprocess.run(["protoc", f"-I{PROTO}", f"--descriptor_set_out={out}", str(PROTO / f"{name}.proto")], check=True)
    return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file[0]


def field(f, oneofs):
    proto3_optional = f.proto3_optional
    oneof = oneofs[f.oneof_index].name if f.HasField("oneof_index") else None
    return (f.number, f.type, f.label, f.type_name, oneof, proto3_optional)


def messages(found, prefix=""):
    """{full name: {field: its facts}} of messages and of those within them."""
    out = {}
    for message in found:
        name = prefix + message.name
        out[name] = {f.name: field(f, message.oneof_decl) for f in message.field}
        out.update(messages(message.nested_type, name + "."))
        out.update(enums(message.enum_type, name + "."))
    return out


def enums(found, prefix=""):
    return {prefix + e.name: {v.name: v.number for v in e.value} for e in found}


def facts(file):
    services = {s.name: {m.name: (m.input_type, m.output_type, m.client_streaming, m.server_streaming) for m in s.method} for s in file.service}
    return {"package": file.package, **messages(file.message_type), **enums(file.enum_type), **services}


@pytest.mark.parametrize("name", MODULES)
def test_same_descriptors(name, tmp_path):
    theirs = descriptor_pb2.FileDescriptorProto()
    importlib.import_module(MODULES[name]).DESCRIPTOR.CopyToProto(theirs)
    ours, theirs = facts(file_set(name, tmp_path)), facts(theirs)
    missing = {k for k in theirs if k not in ours}
    # CUDA's pointers and what newer releases added may be missing only if this list says so.
    assert not missing, f"{name}.proto lacks {sorted(missing)}"
    for key, value in ours.items():
        assert value == theirs.get(key), f"{name}.proto: {key} is not what tritonclient has"


def test_health_service(tmp_path):
    health = facts(file_set("health", tmp_path))
    assert health["package"] == "grpc.health.v1"
    assert health["Health"]["Check"] == (".grpc.health.v1.HealthCheckRequest", ".grpc.health.v1.HealthCheckResponse", False, False)
    assert health["HealthCheckResponse.ServingStatus"]["SERVING"] == 1
