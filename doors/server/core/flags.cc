// SPDX-License-Identifier: Apache-2.0
#include "server/core/flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>

#include "anymps/anymps.h"
#include "serving/error.h"

namespace anymps::server {
namespace {

// What the flags say before it is checked as a whole.
struct Raw {
  std::string control = "none", rate_limit = "off";
  std::vector<std::string> cache_config, rate_limit_resources, trace_config, ignored;
  std::vector<std::string> backend_config, op_libraries, http_restricted, grpc_restricted;
  bool metrics_tls_given = false;
  std::vector<std::string> trace_level;
  std::string trace_file, trace_rate, trace_count, trace_frequency;
  uint64_t cache_bytes = 0;
  bool strict_model_config = false;
  std::string metrics_address;
};

class Flags {
 public:
  Flags(CLI::App& app, Options& o, Raw& raw) : app_(app) {
    server(o);
    logging(o);
    repository(o, raw);
    http(o, raw);
    grpc(o, raw);
    metrics(o, raw);
    backend(raw);
    tracing(raw);
    scheduling(raw);
    accepted(raw);
  }

 private:
  template <typename T>
  CLI::Option* add(const char* group, const std::string& name, T& value, const std::string& help) {
    return app_.add_option(name, value, help)->group(group)->capture_default_str();
  }
  template <typename T>
  CLI::Option* add_list(const char* group, const std::string& name, T& values,
                        const std::string& help) {
    return app_.add_option(name, values, help)->group(group)->expected(1)->take_all();
  }
  // true, false, 1, 0; true if the flag stands alone.
  CLI::Option* toggle(const char* group, const std::string& name, bool& value,
                      const std::string& help) {
    return app_
        .add_option_function<std::string>(
            name,
            [name, &value](const std::string& text) {
              const std::string word = CLI::detail::to_lower(text);
              if (word == "true" || word == "1" || word == "on" || word == "{}" || word.empty())
                value = true;
              else if (word == "false" || word == "0" || word == "off")
                value = false;
              else
                throw CLI::ValidationError(name, "expects true or false, got '" + text + "'");
            },
            help)
        ->group(group)
        ->expected(0, 1)
        ->type_name(value ? "BOOLEAN=true" : "BOOLEAN=false");
  }

  void server(Options& o) {
    add("Server", "--id", o.server_id, "the server's name");
    add("Server", "--exit-timeout-secs", o.exit_timeout_seconds,
        "how long to wait for requests under way when told to end");
    add("Server", "--api-key", o.api_key,
        "asked of every request but health checks: 'Authorization: Bearer KEY' or 'X-Api-Key: KEY'")
        ->envname("ANYMPS_API_KEY")
        ->default_str("");
    toggle("Server", "--allow-client-shm", o.allow_client_shm,
           "clients may register shared memory of this machine");
  }
  void logging(Options& o) {
    add("Logging", "--log-verbose", o.log_verbose, "0: off; 1 and more: verbose");
    toggle("Logging", "--log-info", o.log_info, "log what goes on");
    toggle("Logging", "--log-warning", o.log_warning, "log warnings");
    toggle("Logging", "--log-error", o.log_error, "log errors");
    add("Logging", "--log-format", o.log_format, "default or ISO8601")
        ->check(CLI::IsMember({"default", "ISO8601"}));
    add("Logging", "--log-file", o.log_file, "write the log there instead of stderr");
  }
  void repository(Options& o, Raw& raw) {
    const char* group = "Model repository";
    add(group, "--model-repository,--model-store", o.model_repositories,
        "folder with a folder for each model; may be given several times")
        ->required()
        ->expected(1)
        ->take_all()
        ->type_name("DIR");
    add(group, "--model-control-mode", raw.control,
        "none: load all models once; poll: follow changes of the folders; explicit: load and "
        "unload on request")
        ->check(CLI::IsMember({"none", "poll", "explicit"}));
    add(group, "--repository-poll-secs", o.poll_seconds, "seconds between looks at the folders");
    add(group, "--load-model", o.load_models,
        "with --model-control-mode=explicit: a model to load at the start; '*': all")
        ->expected(1)
        ->take_all();
    add(group, "--model-config-name", o.model_config_name,
        "configs/NAME.pbtxt of a model goes before its config.pbtxt");
    add(group, "--model-load-thread-count", o.model_load_threads, "models loaded at a time")
        ->check(CLI::Range(1, 64));
    add(group, "--max-loaded-models", o.max_loaded_models,
        "with --model-control-mode=explicit: versions of models that load requests may bring it to")
        ->check(CLI::Range(1, 1 << 20));
    toggle(group, "--exit-on-error", o.exit_on_error, "end if a model cannot be loaded at start");
    toggle(group, "--strict-readiness", o.strict_readiness, "ready only if every model is");
    toggle(group, "--disable-auto-complete-config", o.disable_auto_complete_config,
           "configurations must be complete");
    toggle(group, "--strict-model-config", raw.strict_model_config,
           "older name of --disable-auto-complete-config");
  }
  void tls(const char* group, const std::string& prefix, TlsOptions& tls) {
    toggle(group, prefix + "-use-ssl", tls.enabled, "TLS");
    toggle(group, prefix + "-use-ssl-mutual", tls.mutual, "TLS, and clients show a certificate");
    add(group, prefix + "-server-cert", tls.certificate, "the server's certificate, PEM");
    add(group, prefix + "-server-key", tls.key, "the server's key, PEM");
    add(group, prefix + "-root-cert", tls.root, "who signs the clients' certificates, PEM");
  }
  void http(Options& o, Raw& raw) {
    const char* group = "HTTP";
    toggle(group, "--allow-http", o.http, "serve HTTP");
    add(group, "--http-address", o.http_address, "address; 0.0.0.0: all interfaces");
    add(group, "--http-port", o.http_port, "port; 0: any free one");
    add(group, "--http-thread-count", o.http_threads, "threads")->check(CLI::Range(1, 1024));
    toggle(group, "--reuse-http-port", o.reuse_http_port, "several servers may share the port");
    add(group, "--http-max-input-size", o.max_request_bytes,
        "largest request in bytes, over HTTP and gRPC")
        ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
    add(group, "--max-held-bytes", o.max_held_bytes,
        "bytes of requests held at a time, over HTTP and gRPC; at least two of the largest fit")
        ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 50));
    add(group, "--http-max-connections", o.http_max_connections, "others are answered with 503")
        ->check(CLI::Range(1, 1 << 20));
    add(group, "--http-idle-timeout-secs", o.http_idle_seconds,
        "connections on which no request comes are closed, over gRPC too")
        ->check(CLI::Range(1, 1 << 20));
    add(group, "--http-request-timeout-secs", o.http_request_seconds,
        "for the head of a request, and for a body that comes slower than 4 KB/s")
        ->check(CLI::Range(1, 1 << 20));
    toggle(group, "--status-page", o.status_page, "the page at /");
    add_list(group, "--http-restricted-api", raw.http_restricted,
             "API[,API...]:HEADER=VALUE: these need the header with this value; " + api_names())
        ->type_name("TEXT");
    add_list(group, "--http-allow-origin", o.http_allow_origins,
             "SCHEME://HOST[:PORT]: web pages from there may send requests; '*': all");
    add_list(group, "--http-allow-host", o.http_allow_hosts,
             "a name that the server answers to, beside addresses and local names; '*': all");
    tls(group, "--http", o.http_tls);
  }
  void grpc(Options& o, Raw& raw) {
    const char* group = "gRPC";
    toggle(group, "--allow-grpc", o.grpc, "serve gRPC");
    add(group, "--grpc-address", o.grpc_address, "address; 0.0.0.0: all interfaces");
    add(group, "--grpc-port", o.grpc_port, "port; 0: any free one");
    toggle(group, "--reuse-grpc-port", o.reuse_grpc_port, "several servers may share the port");
    tls(group, "--grpc", o.grpc_tls);
    add(group, "--grpc-infer-response-compression-level", o.grpc_compression,
        "none, low, medium or high, for clients that take it")
        ->check(CLI::IsMember({"none", "low", "medium", "high"}));
    add_list(group, "--grpc-restricted-protocol", raw.grpc_restricted,
             "PROTOCOL[,PROTOCOL...]:KEY=VALUE: these need the metadata triton-grpc-protocol-KEY "
             "with this value; " +
                 api_names())
        ->type_name("TEXT");
    GrpcConnectionOptions& c = o.grpc_connections;
    add(group, "--grpc-keepalive-time", c.keepalive_time, "milliseconds between pings");
    add(group, "--grpc-keepalive-timeout", c.keepalive_timeout, "milliseconds to wait for one");
    toggle(group, "--grpc-keepalive-permit-without-calls", c.keepalive_without_calls,
           "ping idle connections too");
    add(group, "--grpc-http2-max-pings-without-data", c.pings_without_data, "0: any number");
    add(group, "--grpc-http2-min-recv-ping-interval-without-data", c.ping_interval,
        "milliseconds that clients must leave between pings");
    add(group, "--grpc-http2-max-ping-strikes", c.ping_strikes, "pings too early; 0: any number");
    add(group, "--grpc-max-connection-age", c.max_age, "milliseconds; 0: no limit");
    add(group, "--grpc-max-connection-age-grace", c.max_age_grace, "milliseconds; 0: no limit");
    add(group, "--grpc-max-streams", o.grpc_max_streams, "calls under way on one connection")
        ->check(CLI::Range(1, 1 << 20));
  }
  void metrics(Options& o, Raw& raw) {
    toggle("Metrics", "--allow-metrics", o.metrics, "serve metrics for Prometheus");
    add("Metrics", "--metrics-address", raw.metrics_address,
        "address; --http-address if not given");
    add("Metrics", "--metrics-port", o.metrics_port, "port; 0: any free one");
    tls("Metrics", "--metrics", o.metrics_tls);
    for (const char* flag : {"--metrics-use-ssl", "--metrics-use-ssl-mutual"})
      app_.get_option(flag)
          ->description("TLS for metrics; as for HTTP if not given")
          ->type_name("BOOLEAN");
  }
  void backend(Raw& raw) {
    add_list("Backend", "--backend-config", raw.backend_config,
             "[metal_mps,]KEY=VALUE for models that do not say it themselves; KEY: " +
                 serving::OperatorOptions::names());
    add_list("Backend", "--op-library-directory", raw.op_libraries,
             "a folder that op libraries of models may come from; they run as part of the server")
        ->type_name("DIR");
  }
  void tracing(Raw& raw) {
    app_.add_option("--trace-config", raw.trace_config,
                    "level=OFF|TIMESTAMPS|TENSORS, rate=N, count=N, triton,file=PATH, "
                    "triton,log-frequency=N; may be given several times")
        ->group("Tracing")
        ->expected(1)
        ->take_all();
    app_.add_option("--trace-level", raw.trace_level)->group("")->expected(1)->take_all();
    app_.add_option("--trace-file", raw.trace_file)->group("");
    app_.add_option("--trace-rate", raw.trace_rate)->group("");
    app_.add_option("--trace-count", raw.trace_count)->group("");
    app_.add_option("--trace-log-frequency", raw.trace_frequency)->group("");
  }
  void scheduling(Raw& raw) {
    app_.add_option("--cache-config", raw.cache_config, "local,size=BYTES: the response cache")
        ->group("Response cache")
        ->expected(1)
        ->take_all();
    app_.add_option("--response-cache-byte-size", raw.cache_bytes, "older name of the same")
        ->group("Response cache");
    add("Rate limiter", "--rate-limit", raw.rate_limit, "off or execution_count")
        ->check(CLI::IsMember({"off", "execution_count"}));
    app_.add_option("--rate-limit-resource", raw.rate_limit_resources, "NAME:COUNT[:DEVICE]")
        ->group("Rate limiter")
        ->expected(1)
        ->take_all();
  }
  // Flags of tritonserver that say nothing to this server.
  void accepted(Raw& raw) {
    for (const char* name : {"--backend-directory", "--cache-directory", "--repoagent-directory",
                             "--pinned-memory-pool-byte-size", "--cuda-memory-pool-byte-size",
                             "--min-supported-compute-capability", "--buffer-manager-thread-count",
                             "--host-policy", "--model-load-gpu-limit", "--model-load-retry-count",
                             "--model-namespacing", "--enable-peer-access", "--allow-gpu-metrics",
                             "--allow-cpu-metrics", "--metrics-interval-ms", "--metrics-config",
                             "--grpc-infer-allocation-pool-size", "--cuda-virtual-address-size"})
      app_.add_option(name, raw.ignored, "accepted, without effect")
          ->group("Accepted as tritonserver's")
          ->expected(1)
          ->take_all();
  }

  CLI::App& app_;
};

[[noreturn]] void refuse_flag(const std::string& flag, const std::string& value,
                              const std::string& expected) {
  throw CLI::ValidationError(flag, fmt::format("expects {}, got '{}'", expected, value));
}

uint64_t number(const std::string& flag, const std::string& text) {
  uint64_t value = 0;
  if (text.empty() || !CLI::detail::lexical_cast(text, value)) refuse_flag(flag, text, "a number");
  return value;
}

void read_trace(const Raw& raw, Options& options) {
  std::string level;
  const auto set = [&](const std::string& key, const std::string& value) {
    if (key == "level")
      level += (level.empty() ? "" : ",") + value;
    else
      options.trace_config[key] = value;
  };
  for (const std::string& text : raw.trace_config) {
    const size_t comma = text.find(','), equals = text.find('=');
    const bool has_mode = comma < equals && equals != std::string::npos;
    const std::string mode = has_mode ? text.substr(0, comma) : "triton";
    if (equals == std::string::npos) refuse_flag("--trace-config", text, "[MODE,]SETTING=VALUE");
    const size_t begin = has_mode ? comma + 1 : 0;
    const std::string key = text.substr(begin, equals - begin), value = text.substr(equals + 1);
    if (mode == "opentelemetry" || (key == "mode" && value == "opentelemetry"))
      refuse_flag("--trace-config", text, "mode triton; opentelemetry is not supported");
    if (mode != "triton" || (key != "level" && key != "rate" && key != "count" && key != "file" &&
                             key != "log-frequency" && key != "mode"))
      refuse_flag("--trace-config", text,
                  "level, rate, count, mode, triton,file or triton,log-frequency");
    if (key != "mode") set(key, value);
  }
  for (const std::string& value : raw.trace_level) set("level", value);
  for (const auto& [key, value] :
       {std::pair<std::string, const std::string&>{"file", raw.trace_file},
        {"rate", raw.trace_rate},
        {"count", raw.trace_count},
        {"log-frequency", raw.trace_frequency}})
    if (!value.empty()) set(key, value);
  if (!level.empty()) options.trace_config["level"] = level;
}

void read_cache(const Raw& raw, Options& options) {
  for (const std::string& text : raw.cache_config) {
    const size_t comma = text.find(',');
    const std::string name = text.substr(0, comma);
    const std::string setting = comma == std::string::npos ? "" : text.substr(comma + 1);
    if (name != "local" || !setting.starts_with("size="))
      refuse_flag("--cache-config", text, "local,size=BYTES");
    number("--cache-config", setting.substr(5));
    options.cache_config["local"] = setting;
  }
  if (raw.cache_bytes > 0)
    options.cache_config.emplace("local", "size=" + std::to_string(raw.cache_bytes));
}

void read_resources(const Raw& raw, Options& options) {
  for (const std::string& text : raw.rate_limit_resources) {
    const std::vector<std::string> parts = CLI::detail::split(text, ':');
    if (parts.size() < 2 || parts.size() > 3 || parts[0].empty())
      refuse_flag("--rate-limit-resource", text, "NAME:COUNT[:DEVICE]");
    const uint64_t count = number("--rate-limit-resource", parts[1]);
    if (count > UINT32_MAX) refuse_flag("--rate-limit-resource", text, "a count below 2^32");
    options.rate_limit_resources[parts[0]] = static_cast<uint32_t>(count);
  }
}

// "a,b:HEADER=VALUE"; what is sent before the name of the header is `prefix`.
void read_restrictions(const std::string& flag, const std::vector<std::string>& texts,
                       const std::string& prefix, std::vector<Restriction>& to) {
  Apis taken = 0;
  for (const std::string& text : texts) {
    const size_t colon = text.find(':'), equals = text.find('=', std::min(colon, text.size()));
    if (colon == std::string::npos || equals == std::string::npos || equals == colon + 1 ||
        equals + 1 == text.size())
      refuse_flag(flag, text, "NAME[,NAME...]:HEADER=VALUE");
    Restriction restriction;
    restriction.header = CLI::detail::to_lower(prefix + text.substr(colon + 1, equals - colon - 1));
    restriction.value = text.substr(equals + 1);
    for (const std::string& name : CLI::detail::split(text.substr(0, colon), ',')) {
      const std::optional<Api> api = parse_api(name);
      if (!api) refuse_flag(flag, name, "one of " + api_names());
      if (taken & *api) refuse_flag(flag, name, "each name in one group only");
      taken |= *api;
      restriction.apis |= *api;
    }
    to.push_back(std::move(restriction));
  }
}

void read_backend(const Raw& raw, Options& options) {
  const auto set = [&](const std::string& flag, const std::string& text, const std::string& key,
                       const std::string& value) {
    try {
      if (options.models.set(key, value)) return;
    } catch (const serving::Error& error) {
      throw CLI::ValidationError(flag, error.what());
    }
    refuse_flag(flag, text, "one of the keys " + serving::OperatorOptions::names());
  };
  for (const std::string& text : raw.backend_config) {
    const size_t comma = text.find(','), equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      refuse_flag("--backend-config", text, "[BACKEND,]KEY=VALUE");
    const bool named = comma < equals;
    // Models of ONNX Runtime's backend run here too.
    if (const std::string backend = text.substr(0, comma);
        named && backend != "metal_mps" && backend != "onnxruntime")
      refuse_flag("--backend-config", text,
                  "the backend metal_mps (or onnxruntime): no other is here");
    const size_t begin = named ? comma + 1 : 0;
    set("--backend-config", text, text.substr(begin, equals - begin), text.substr(equals + 1));
  }
  for (const std::string& folder : raw.op_libraries)
    set("--op-library-directory", folder, "op_library_directory", folder);
  for (const std::filesystem::path& folder : options.models.op_libraries)
    if (std::error_code error; !std::filesystem::is_directory(folder, error))
      refuse_flag("--op-library-directory", folder.string(), "a folder");
}

void check_origins(const Options& options) {
  for (const std::string& origin : options.http_allow_origins) {
    const size_t at = origin.find("://");
    if (origin != "*" && (at == std::string::npos || at == 0 || at + 3 == origin.size() ||
                          origin.find('/', at + 3) != std::string::npos))
      refuse_flag("--http-allow-origin", origin, "SCHEME://HOST[:PORT] without a path, or '*'");
  }
}

void check_tls(const std::string& prefix, TlsOptions& tls) {
  if (tls.mutual) tls.enabled = true;
  if (!tls.enabled) return;
  if (tls.certificate.empty() || tls.key.empty())
    throw CLI::ValidationError(prefix + "-use-ssl",
                               "needs " + prefix + "-server-cert and " + prefix + "-server-key");
  if (tls.mutual && tls.root.empty())
    throw CLI::ValidationError(prefix + "-use-ssl-mutual", "needs " + prefix + "-root-cert");
}

// What the flags for metrics do not say is as it is for the requests.
void follow_tls(const TlsOptions& requests, bool given, TlsOptions& metrics) {
  if (!given) metrics.enabled = requests.enabled, metrics.mutual = requests.mutual;
  if (metrics.certificate.empty() && metrics.key.empty())
    metrics.certificate = requests.certificate, metrics.key = requests.key;
  if (metrics.root.empty()) metrics.root = requests.root;
}

void finish(const Raw& raw, Options& options) {
  options.model_control = raw.control == "poll"       ? ModelControl::kPoll
                          : raw.control == "explicit" ? ModelControl::kExplicit
                                                      : ModelControl::kNone;
  if (!options.load_models.empty() && options.model_control != ModelControl::kExplicit)
    throw CLI::ValidationError("--load-model", "needs --model-control-mode=explicit");
  for (const std::string& name : options.load_models)
    if (name == "*" && options.load_models.size() > 1)
      throw CLI::ValidationError("--load-model", "'*' loads all models: give it alone");
  if (options.model_control == ModelControl::kPoll && options.poll_seconds == 0)
    throw CLI::ValidationError("--repository-poll-secs", "must be at least 1");
  if (raw.strict_model_config) options.disable_auto_complete_config = true;
  options.rate_limit = raw.rate_limit == "execution_count";
  options.metrics_address =
      raw.metrics_address.empty() ? options.http_address : raw.metrics_address;
  read_trace(raw, options);
  read_cache(raw, options);
  read_resources(raw, options);
  check_tls("--http", options.http_tls);
  check_tls("--grpc", options.grpc_tls);
  follow_tls(options.http ? options.http_tls : options.grpc_tls, raw.metrics_tls_given,
             options.metrics_tls);
  check_tls("--metrics", options.metrics_tls);
  read_restrictions("--http-restricted-api", raw.http_restricted, "", options.http_restricted);
  read_restrictions("--grpc-restricted-protocol", raw.grpc_restricted, "triton-grpc-protocol-",
                    options.grpc_restricted);
  read_backend(raw, options);
  check_origins(options);
  if (!options.http && !options.grpc)
    throw CLI::ValidationError("--allow-http, --allow-grpc", "one of them must be true");
}

}  // namespace

std::optional<int> parse_flags(int argc, const char* const* argv, Options& options) {
  CLI::App app(
      "Serves models over HTTP and gRPC: the KServe v2 protocol with Triton's extensions.\n"
      "Listens on this machine alone unless --http-address and --grpc-address say otherwise.",
      "anymps serve");
  app.set_version_flag("--version", std::string("anymps ") + amps_version());
  app.failure_message(CLI::FailureMessage::simple);
  app.get_formatter()->column_width(42);
  Raw raw;
  const Flags flags(app, options, raw);
  try {
    app.parse(argc, argv);
    for (const char* flag : {"--metrics-use-ssl", "--metrics-use-ssl-mutual"})
      raw.metrics_tls_given = raw.metrics_tls_given || app.count(flag) > 0;
    finish(raw, options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return std::nullopt;
}

std::vector<std::string> warnings(const Options& options) {
  std::vector<std::string> list;
  const auto look = [&](bool on, const std::string& address, bool mutual, const std::string& flag) {
    if (on && !is_loopback(address) && !mutual && options.api_key.empty())
      list.push_back(
          "--" + flag + "-address " + address +
          " lets in everyone who reaches this machine: ANYMPS_API_KEY asks for a key, --" + flag +
          "-use-ssl-mutual for a certificate");
  };
  look(options.http, options.http_address, options.http_tls.mutual, "http");
  look(options.grpc, options.grpc_address, options.grpc_tls.mutual, "grpc");
  return list;
}

}  // namespace anymps::server
