// SPDX-License-Identifier: Apache-2.0
#include "server/core/flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "anymps/anymps.h"

namespace server {
namespace {

// What the flags say before it is checked as a whole.
struct Raw {
  std::string control = "none", rate_limit = "off";
  std::vector<std::string> cache_config, rate_limit_resources, trace_config, ignored;
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
    http(o);
    grpc(o);
    metrics(o, raw);
    tracing(raw);
    scheduling(raw);
    accepted(raw);
  }

 private:
  template <typename T>
  CLI::Option* add(const char* group, const std::string& name, T& value, const std::string& help) {
    return app_.add_option(name, value, help)->group(group)->capture_default_str();
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
  void http(Options& o) {
    const char* group = "HTTP";
    toggle(group, "--allow-http", o.http, "serve HTTP");
    add(group, "--http-address", o.http_address, "address; 0.0.0.0: all interfaces");
    add(group, "--http-port", o.http_port, "port; 0: any free one");
    add(group, "--http-thread-count", o.http_threads, "threads")->check(CLI::Range(1, 1024));
    toggle(group, "--reuse-http-port", o.reuse_http_port, "several servers may share the port");
    add(group, "--http-max-input-size", o.max_request_bytes,
        "largest request in bytes, over HTTP and gRPC")
        ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
    toggle(group, "--status-page", o.status_page, "the page at /");
    tls(group, "--http", o.http_tls);
  }
  void grpc(Options& o) {
    const char* group = "gRPC";
    toggle(group, "--allow-grpc", o.grpc, "serve gRPC");
    add(group, "--grpc-address", o.grpc_address, "address; 0.0.0.0: all interfaces");
    add(group, "--grpc-port", o.grpc_port, "port; 0: any free one");
    toggle(group, "--reuse-grpc-port", o.reuse_grpc_port, "several servers may share the port");
    tls(group, "--grpc", o.grpc_tls);
    add(group, "--grpc-infer-response-compression-level", o.grpc_compression,
        "none, low, medium or high, for clients that take it")
        ->check(CLI::IsMember({"none", "low", "medium", "high"}));
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
  }
  void metrics(Options& o, Raw& raw) {
    toggle("Metrics", "--allow-metrics", o.metrics, "serve metrics for Prometheus");
    add("Metrics", "--metrics-address", raw.metrics_address,
        "address; --http-address if not given");
    add("Metrics", "--metrics-port", o.metrics_port, "port; 0: any free one");
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
    for (const char* name :
         {"--backend-config", "--backend-directory", "--cache-directory", "--repoagent-directory",
          "--pinned-memory-pool-byte-size", "--cuda-memory-pool-byte-size",
          "--min-supported-compute-capability", "--buffer-manager-thread-count", "--host-policy",
          "--model-load-gpu-limit", "--model-load-retry-count", "--model-namespacing",
          "--enable-peer-access", "--allow-gpu-metrics", "--allow-cpu-metrics",
          "--metrics-interval-ms", "--metrics-config", "--grpc-infer-allocation-pool-size",
          "--cuda-virtual-address-size"})
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

void check_tls(const std::string& prefix, TlsOptions& tls) {
  if (tls.mutual) tls.enabled = true;
  if (!tls.enabled) return;
  if (tls.certificate.empty() || tls.key.empty())
    throw CLI::ValidationError(prefix + "-use-ssl",
                               "needs " + prefix + "-server-cert and " + prefix + "-server-key");
  if (tls.mutual && tls.root.empty())
    throw CLI::ValidationError(prefix + "-use-ssl-mutual", "needs " + prefix + "-root-cert");
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
    finish(raw, options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return std::nullopt;
}

}  // namespace server
