// SPDX-License-Identifier: Apache-2.0
// What the command line of `anymps serve` sets. Names and defaults are tritonserver's, except for
// the addresses: it listens on loopback unless told otherwise.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/core/access.h"
#include "serving/settings.h"

namespace anymps::server {

enum class ModelControl { kNone, kPoll, kExplicit };

struct TlsOptions {
  bool enabled = false;
  bool mutual = false;  // clients must show a certificate that `root` signed
  std::string certificate, key, root;
};

// Pings and lifetimes of gRPC connections; milliseconds.
struct GrpcConnectionOptions {
  int keepalive_time = 7200000, keepalive_timeout = 20000;
  bool keepalive_without_calls = false;
  int pings_without_data = 2, ping_interval = 300000, ping_strikes = 2;
  int max_age = 0, max_age_grace = 0;  // 0: none
};

struct Options {
  std::string server_id = "triton";
  std::vector<std::string> model_repositories;
  ModelControl model_control = ModelControl::kNone;
  unsigned poll_seconds = 15;
  std::vector<std::string> load_models;  // with kExplicit; "*": all
  std::string model_config_name;  // configs/NAME.pbtxt of a model goes before its config.pbtxt
  bool strict_readiness = true;
  bool exit_on_error = true;
  bool disable_auto_complete_config = false;
  unsigned exit_timeout_seconds = 30;
  unsigned model_load_threads = 2;
  unsigned max_loaded_models = 1024;                     // with kExplicit; each version is one
  serving::OperatorOptions models;                       // --backend-config, --op-library-directory
  std::map<std::string, std::string> cache_config;       // "local" -> size=BYTES
  bool rate_limit = false;                               // execution_count
  std::map<std::string, uint32_t> rate_limit_resources;  // "R1" -> count

  bool http = true, grpc = true, metrics = true;
  std::string http_address = "127.0.0.1", grpc_address = "127.0.0.1", metrics_address = "127.0.0.1";
  uint16_t http_port = 8000, grpc_port = 8001,
           metrics_port = 8002;  // 0: any free one, which is printed
  unsigned http_threads = 2;
  bool reuse_http_port = false, reuse_grpc_port = false;
  TlsOptions http_tls, grpc_tls, metrics_tls;
  GrpcConnectionOptions grpc_connections;
  std::string grpc_compression = "none";  // of infer responses: none, low, medium, high
  std::string api_key;                    // asked of every request but health checks; "": none
  std::vector<Restriction> http_restricted, grpc_restricted;
  // Of web pages that may send requests ("http://h:1", "*": all), and names beside addresses and
  // local names that the server answers to (none: all, unless it listens on loopback).
  std::vector<std::string> http_allow_origins, http_allow_hosts;
  bool allow_client_shm = false;  // clients may register shared memory
  uint64_t max_request_bytes = uint64_t{64} << 20;
  uint64_t max_held_bytes = uint64_t{512} << 20;  // of requests, over all connections
  unsigned http_max_connections = 4096;
  unsigned http_idle_seconds = 300, http_request_seconds = 30;
  int grpc_max_streams = 1024;  // calls under way on one connection
  bool status_page = true;

  unsigned log_verbose = 0;
  bool log_info = true, log_warning = true, log_error = true;
  std::string log_format = "default";  // or "ISO8601"
  std::string log_file;
  // "level" -> "TIMESTAMPS,TENSORS", "rate", "count", "log-frequency", "file"
  std::map<std::string, std::string> trace_config;
};

}  // namespace anymps::server
