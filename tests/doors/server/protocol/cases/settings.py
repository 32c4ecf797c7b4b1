# SPDX-License-Identifier: Apache-2.0
"""Logging, tracing and the page with the metrics."""
from tritonclient.grpc import service_pb2 as pb

from .steps import Grpc, Http, case

# The trace of one may have levels that depend on how it was built, and its file is named on the command line.
LOG, TRACE = "/v2/logging", "/v2/trace/setting"


def log_request(**values):
    request = pb.LogSettingsRequest()
    for name, value in values.items():
        kind = {bool: "bool_param", int: "uint32_param", str: "string_param"}[type(value)]
        setattr(request.settings[name], kind, value)
    return request


def trace_request(model="", **values):
    request = pb.TraceSettingRequest(model_name=model)
    for name, value in values.items():
        request.settings[name].value.extend([value] if isinstance(value, str) else value)
    return request


CASES = [
    case("http_log", Http(LOG)),
    case("http_log_set", Http(LOG, {"log_verbose_level": 1, "log_info": True}, has={"log_verbose_level": 1}), Http(LOG, {"log_verbose_level": 0}), Http(LOG)),
    case("http_log_warning_off", Http(LOG, {"log_warning": False}, has={"log_warning": False}), Http(LOG, {"log_warning": True})),
    case("http_log_format", Http(LOG, {"log_format": "ISO8601"}, has={"log_format": "ISO8601"}), Http(LOG, {"log_format": "default"})),
    case("http_log_wrong_type", Http(LOG, {"log_info": 3}, status=500), Http(LOG, {"log_verbose_level": "x"}, status=500), Http(LOG)),
    case("http_log_unknown", Http(LOG, {"log_everything": True})),
    case("http_log_unknown_format", Http(LOG, {"log_format": "morse"}, status=503)),
    case("http_log_not_json", Http(LOG, b"{", status=500)),
    case("grpc_log", Grpc("LogSettings", pb.LogSettingsRequest())),
    case("grpc_log_set", Grpc("LogSettings", log_request(log_verbose_level=2)), Grpc("LogSettings", log_request(log_verbose_level=0))),
    case("grpc_log_wrong_type", Grpc("LogSettings", log_request(log_info="x"), code="INVALID_ARGUMENT")),
    case("grpc_log_unknown", Grpc("LogSettings", log_request(log_everything=True))),
    case("http_trace", Http(TRACE)),
    case("http_trace_model", Http("/v2/models/mlp/trace/setting")),
    case("http_trace_model_unknown", Http("/v2/models/nobody/trace/setting", status=400)),
    case("http_trace_set", Http(TRACE, {"trace_rate": "7", "trace_level": ["TIMESTAMPS"]}, has={"trace_rate": "7"}), Http(TRACE),
         Http(TRACE, {"trace_rate": None, "trace_level": None}), Http(TRACE)),
    case("http_trace_set_model", Http("/v2/models/mlp/trace/setting", {"trace_count": "3"}, has={"trace_count": "3"}), Http(TRACE),
         Http("/v2/models/mlp/trace/setting", {"trace_count": None}), Http("/v2/models/mlp/trace/setting")),
    case("http_trace_off", Http(TRACE, {"trace_level": ["OFF"]}), Http(TRACE, {"trace_level": None})),
    case("http_trace_rate_text", Http(TRACE, {"trace_rate": "often"}, status=400)),
    case("http_trace_count_below", Http(TRACE, {"trace_count": "-2"}, status=400), Http(TRACE)),
    case("http_trace_no_file", Http(TRACE, {"trace_level": ["TIMESTAMPS"]}, status=400, error="file name is not given"),
         Http(TRACE, {"trace_level": ["TENSORS"], "trace_rate": "3"}, status=400), Http(TRACE), on="whole"),
    case("http_trace_no_file_model", Http("/v2/models/mlp/trace/setting", {"trace_level": ["TIMESTAMPS"]}, status=400),
         Http("/v2/models/mlp/trace/setting"), on="whole"),
    case("grpc_trace_no_file", Grpc("TraceSetting", trace_request(trace_level=["TIMESTAMPS"]), code="INVALID_ARGUMENT"), on="whole"),
    case("http_trace_level_unknown", Http(TRACE, {"trace_level": ["EVERYTHING"]})),
    case("http_trace_unknown", Http(TRACE, {"trace_wish": "1"})),
    case("grpc_trace", Grpc("TraceSetting", trace_request())),
    case("grpc_trace_set", Grpc("TraceSetting", trace_request(trace_rate="9", log_frequency="5")), Grpc("TraceSetting", trace_request(trace_rate=[], log_frequency=[]))),
    case("grpc_trace_model_unknown", Grpc("TraceSetting", trace_request("nobody"), code="INVALID_ARGUMENT")),
    case("grpc_trace_rate_text", Grpc("TraceSetting", trace_request(trace_rate="often"), code="INVALID_ARGUMENT")),
    case("http_metrics", Http("/metrics", port="metrics", same=False)),
]
