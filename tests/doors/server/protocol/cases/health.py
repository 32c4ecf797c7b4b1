# SPDX-License-Identifier: Apache-2.0
"""Health, metadata, configuration, statistics: what a server tells of itself and its models."""
import grpc
from tritonclient.grpc import service_pb2 as pb

from .steps import Grpc, Http, Local, case

# The version is the server's own; CUDA's shared memory is what only one of them has.
SERVER = ("version", "extensions")
MODELS = ["add_sub", "mlp", "pipeline", "versions", "identity_bytes", "identity_bf16", "scalar", "ragged", "sequence", "strings"]
# Every model whose config is completed, or has something of its own in it.
CONFIGS = [*MODELS, "identity_2d", "sequence_oldest", "accumulate", "slow", "cached", "warm", "auto", "auto_batch"]
NEWER = ("max_inflight_requests",)  # fields that Triton 2.51 does not have yet
UNKNOWN = "unknown model"


def model_cases():
    for model in MODELS:
        yield case(f"http_ready_{model}", Http(f"/v2/models/{model}/ready"))
        yield case(f"http_metadata_{model}", Http(f"/v2/models/{model}", has={"name": model}))
        yield case(f"grpc_metadata_{model}", Grpc("ModelMetadata", pb.ModelMetadataRequest(name=model), has={"name": model}))
    for model in CONFIGS:
        yield case(f"http_config_{model}", Http(f"/v2/models/{model}/config", has={"name": model}, own=NEWER))
        yield case(f"grpc_config_{model}", Grpc("ModelConfig", pb.ModelConfigRequest(name=model)))


def version_cases():
    for version in ("1", "2", "10"):
        yield case(f"http_metadata_version_{version}", Http(f"/v2/models/versions/versions/{version}", has={"versions": [version]}))
        yield case(f"http_ready_version_{version}", Http(f"/v2/models/versions/versions/{version}/ready"))
        yield case(f"grpc_ready_version_{version}", Grpc("ModelReady", pb.ModelReadyRequest(name="versions", version=version), has={"ready": True}))
    yield case("http_ready_missing_version", Http("/v2/models/versions/versions/3/ready", status=400))
    yield case("http_metadata_missing_version", Http("/v2/models/versions/versions/3", status=404))
    yield case("http_config_missing_version", Http("/v2/models/versions/versions/3/config", status=404))
    yield case("http_stats_missing_version", Http("/v2/models/versions/versions/3/stats", status=400))
    yield case("http_metadata_odd_version", Http("/v2/models/versions/versions/x", status=404))
    yield case("grpc_ready_missing_version", Grpc("ModelReady", pb.ModelReadyRequest(name="versions", version="3"), has={}))
    yield case("grpc_metadata_missing_version", Grpc("ModelMetadata", pb.ModelMetadataRequest(name="versions", version="3"), code="NOT_FOUND"))
    yield case("grpc_metadata_odd_version", Grpc("ModelMetadata", pb.ModelMetadataRequest(name="versions", version="x"), code="INVALID_ARGUMENT"))


def unknown_cases():
    yield case("http_ready_unknown", Http("/v2/models/nobody/ready", status=400))
    yield case("http_metadata_unknown", Http("/v2/models/nobody", status=404, error=UNKNOWN))
    yield case("http_config_unknown", Http("/v2/models/nobody/config", status=404, error=UNKNOWN))
    yield case("http_stats_unknown", Http("/v2/models/nobody/stats", status=400, error="not available"))
    yield case("grpc_ready_unknown", Grpc("ModelReady", pb.ModelReadyRequest(name="nobody"), has={}))
    yield case("grpc_metadata_unknown", Grpc("ModelMetadata", pb.ModelMetadataRequest(name="nobody"), code="NOT_FOUND", error=UNKNOWN))
    yield case("grpc_config_unknown", Grpc("ModelConfig", pb.ModelConfigRequest(name="nobody"), code="NOT_FOUND", error=UNKNOWN))
    yield case("grpc_stats_unknown", Grpc("ModelStatistics", pb.ModelStatisticsRequest(name="nobody"), code="INVALID_ARGUMENT", error="not available"))


def grpc_health(service):
    """grpc.health.v1, by hand: field 1 of the request is the service's name, field 1 of the answer the status."""
    def check(server):
        name = service.encode()
        request = b"\x0a" + bytes([len(name)]) + name if name else b""
        with grpc.insecure_channel(server.grpc) as channel:
            try:
                return channel.unary_unary("/grpc.health.v1.Health/Check")(request, timeout=20).hex()
            except grpc.RpcError as error:
                return error.code().name
    return Local(check)


CASES = [
    case("grpc_health", grpc_health("")),
    case("grpc_health_of_the_service", grpc_health("inference.GRPCInferenceService")),
    case("grpc_health_of_another", grpc_health("nobody")),
    case("grpc_health_whole", grpc_health(""), on="whole"),
    case("http_live", Http("/v2/health/live")),
    case("http_ready", Http("/v2/health/ready"), on="whole"),
    case("http_not_ready_while_models_fail", Http("/v2/health/ready", status=400)),
    case("http_metadata", Http("/v2", has={"name": "triton"}, own=SERVER)),
    case("http_metadata_with_slash", Http("/v2/", status=404)),
    case("grpc_live", Grpc("ServerLive", pb.ServerLiveRequest(), has={"live": True})),
    case("grpc_ready", Grpc("ServerReady", pb.ServerReadyRequest(), has={"ready": True}), on="whole"),
    case("grpc_metadata", Grpc("ServerMetadata", pb.ServerMetadataRequest(), has={"name": "triton"}, own=SERVER)),
    *model_cases(), *version_cases(), *unknown_cases(),
    case("http_stats", Http("/v2/models/mlp/stats", numbers=False, own=("batch_stats", "response_stats"))),
    case("http_stats_version", Http("/v2/models/versions/versions/2/stats", numbers=False, own=("batch_stats", "response_stats"))),
    case("http_stats_all", Http("/v2/models/stats", numbers=False, same=False)),
    case("grpc_stats_version", Grpc("ModelStatistics", pb.ModelStatisticsRequest(name="versions", version="2"), numbers=False, same=False)),
    case("http_wrong_method", Http("/v2/health/live", method="POST", body=b"", status=405)),
    case("http_no_such_path", Http("/v3", status=404)),
    case("http_no_such_endpoint", Http("/v2/models/mlp/nothing", status=404)),
    case("http_no_such_health", Http("/v2/health/happy", status=404)),
]
