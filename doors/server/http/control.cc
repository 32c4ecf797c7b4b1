// SPDX-License-Identifier: Apache-2.0
#include "server/http/control.h"

#include <algorithm>

#include "server/core/message_json.h"
#include "server/core/server.h"
#include "server/http/base64.h"
#include "server/http/json_reader.h"
#include "server/http/status.h"
#include "server/memory/shared_memory.h"
#include "server/observation/logger.h"
#include "server/observation/trace.h"

namespace anymps::server::http {
namespace {

using Kind = JsonReader::Kind;
using nlohmann::ordered_json;

Reply json_reply(const ordered_json& json) {
  return text_reply(200, "application/json",
                    json.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

Reply empty_reply(bool good) { return text_reply(good ? 200 : 400, "text/plain", ""); }

JsonReader reader_of(const Buffer& body) {
  return JsonReader({reinterpret_cast<const char*>(body.data), body.bytes});
}

// Calls `each` for the members of a body that is an object; other bodies have none.
template <class Each>
void members(const Buffer& body, Each&& each) {
  JsonReader reader = reader_of(body);
  if (reader.peek() == Kind::kObject)
    reader.object([&](std::string_view key) { each(key, reader); });
  else
    reader.skip();
  reader.end();
}

Reply repository_index(Server& server, const Buffer& body) {
  bool ready_only = false;
  if (body.bytes > 0)
    members(body, [&](std::string_view key, JsonReader& reader) {
      if (key == "ready")
        ready_only = reader.boolean();
      else
        reader.skip();
    });
  ordered_json list = ordered_json::array();
  const inference::RepositoryIndexResponse index = server.repository_index(ready_only);
  for (const auto& model : index.models()) list.push_back(to_json(model, Defaults::kOmit));
  return json_reply(list);
}

// The members of "parameters".
template <class Each>
void parameters(const Buffer& body, Each&& each) {
  if (body.bytes == 0) return;
  members(body, [&](std::string_view key, JsonReader& reader) {
    if (key != "parameters") return reader.skip();
    if (reader.peek() != Kind::kObject)
      throw Error(Code::kInternal, "attempt to get members for non-object");
    reader.object([&](std::string_view name) { each(name, reader); });
  });
}

Reply load(Server& server, const Route& route, const Buffer& body) {
  Parameters given;
  parameters(body, [&](std::string_view key, JsonReader& reader) {
    std::string name(key), value = reader.string();
    if (name.starts_with("file:"))
      value = decode_base64(value);
    else if (name != "config")
      throw Error(Code::kInternal, "unexpected error on creating Triton parameter");
    given.insert_or_assign(std::move(name), std::move(value));
  });
  server.load_model(route.model, given);
  return text_reply(200, "application/json", "");
}

Reply unload(Server& server, const Route& route, const Buffer& body) {
  bool with_dependents = false;
  parameters(body, [&](std::string_view key, JsonReader& reader) {
    if (key != "unload_dependents") return reader.skip();
    if (reader.peek() != Kind::kBool)
      throw Error(Code::kInternal,
                  "Unable to parse 'unload_dependents': attempt to access JSON non-boolean as "
                  "boolean");
    with_dependents = reader.boolean();
  });
  server.unload_model(route.model, with_dependents);
  return text_reply(200, "application/json", "");
}

void register_region(Server& server, const std::string& region, const Buffer& body) {
  std::optional<std::string> memory_key;
  std::optional<uint64_t> bytes;
  uint64_t offset = 0;
  members(body, [&](std::string_view key, JsonReader& reader) {
    if (key == "key")
      memory_key = reader.string();
    else if (key == "offset")
      offset = reader.unsigned_integer();
    else if (key == "byte_size")
      bytes = reader.unsigned_integer();
    else
      reader.skip();
  });
  if (!memory_key)
    throw Error(Code::kInvalidArgument, "Shared memory register request has no 'key' field");
  if (!bytes)
    throw Error(Code::kInvalidArgument, "Shared memory register request has no 'byte_size' field");
  server.shared_memory().add(region, *memory_key, offset, *bytes);
}

Reply system_memory(Server& server, const Route& route, const Buffer& body) {
  SharedMemory& memory = server.shared_memory();
  if (route.action == "status") {
    const auto status = memory.status(route.region);
    std::map<std::string, ordered_json> sorted;
    for (const auto& [name, region] : status.regions())
      sorted.emplace(name, to_json(region, Defaults::kPrint));
    ordered_json list = ordered_json::array();
    for (auto& [name, region] : sorted) list.push_back(std::move(region));
    return json_reply(list);
  }
  if (route.action == "register") {
    if (route.region.empty())
      throw Error(Code::kInvalidArgument,
                  "'region name' is necessary to register system shared memory region");
    register_region(server, route.region, body);
  } else if (route.region.empty()) {
    memory.remove_all();
  } else {
    memory.remove(route.region);
  }
  return text_reply(200, "application/json", "");
}

Reply cuda_memory(const Route& route) {
  if (route.action == "status") {
    if (!route.region.empty())
      throw Error(Code::kNotFound,
                  "Unable to find cuda shared memory region: '" + route.region + "'");
    return json_reply(ordered_json::array());
  }
  if (route.action == "register")
    throw Error(Code::kInvalidArgument,
                route.region.empty()
                    ? "'region name' is necessary to register cuda shared memory region"
                    : "failed to register CUDA shared memory region: '" + route.region +
                          "', GPUs not supported");
  return text_reply(200, "application/json", "");
}

Reply trace_setting(Server& server, const Route& route, Method method, const Buffer& body) {
  if (!route.model.empty() && !server.model_ready(route.model, ""))
    throw Error(Code::kInvalidArgument, "Request for unknown model : " + route.model);
  inference::TraceSettingResponse settings;
  if (method == Method::kPost) {
    inference::TraceSettingRequest request;
    request.set_model_name(route.model);
    members(body, [&](std::string_view key, JsonReader& reader) {
      constexpr std::string_view kKnown[] = {"trace_file", "trace_level", "trace_rate",
                                             "trace_count", "log_frequency"};
      if (std::find(std::begin(kKnown), std::end(kKnown), key) == std::end(kKnown))
        return reader.skip();
      auto& setting = (*request.mutable_settings())[std::string(key)];
      if (reader.peek() == Kind::kNull)
        reader.skip();  // goes back to the global value
      else if (key == "trace_level")
        reader.array([&] { setting.add_value(reader.string()); });
      else
        setting.add_value(reader.string());
    });
    settings = server.tracer().set(request);
  } else {
    settings = server.tracer().settings(route.model);
  }
  ordered_json json = ordered_json::object();
  for (const char* name :
       {"trace_level", "trace_rate", "trace_count", "log_frequency", "trace_file", "trace_mode"}) {
    const auto found = settings.settings().find(name);
    if (found == settings.settings().end()) continue;
    const auto& values = found->second.value();
    if (std::string_view(name) == "trace_level")
      json[name] = std::vector<std::string>(values.begin(), values.end());
    else
      json[name] = values.empty() ? "" : values[0];
  }
  return json_reply(json);
}

void set_logging(Server& server, const Buffer& body) {
  inference::LogSettingsRequest request;
  members(body, [&](std::string_view key, JsonReader& reader) {
    const std::string name(key);
    if (reader.peek() == Kind::kNull) return reader.skip();
    auto& settings = *request.mutable_settings();
    if (name == "log_info" || name == "log_warning" || name == "log_error") {
      settings[name].set_bool_param(reader.boolean());
    } else if (name == "log_verbose_level") {
      const uint64_t level = reader.unsigned_integer();
      settings[name].set_uint32_param(
          static_cast<uint32_t>(std::min<uint64_t>(level, std::numeric_limits<int32_t>::max())));
    } else if (name == "log_file" || name == "log_format") {
      const std::string value = reader.string();
      if (name == "log_format" && value != "default" && value != "ISO8601")
        throw Error(Code::kUnavailable, "invalid argument for --log_format, got: " + value);
      settings[name].set_string_param(value);
    } else {
      reader.skip();
    }
  });
  server.logger().set(request);
}

Reply logging(Server& server, Method method, const Buffer& body) {
  if (method == Method::kPost) set_logging(server, body);
  const inference::LogSettingsResponse settings = server.logger().settings();
  using Value = inference::LogSettingsResponse::SettingValue;
  ordered_json json = ordered_json::object();
  for (const char* name :
       {"log_file", "log_info", "log_warning", "log_error", "log_verbose_level", "log_format"}) {
    const auto found = settings.settings().find(name);
    if (found == settings.settings().end()) continue;
    const Value& value = found->second;
    if (value.parameter_choice_case() == Value::kBoolParam)
      json[name] = value.bool_param();
    else if (value.parameter_choice_case() == Value::kUint32Param)
      json[name] = value.uint32_param();
    else
      json[name] = value.string_param();
  }
  return json_reply(json);
}

}  // namespace

bool allows(const Route& route, Method method) {
  switch (route.topic) {
    case Topic::kInfer:
    case Topic::kGenerate:
    case Topic::kGenerateStream:
    case Topic::kRepositoryIndex:
    case Topic::kLoad:
    case Topic::kUnload:
      return method == Method::kPost;
    case Topic::kTraceSetting:
    case Topic::kLogging:
      return method == Method::kGet || method == Method::kPost;
    case Topic::kSystemMemory:
    case Topic::kCudaMemory:
      return method == (route.action == "status" ? Method::kGet : Method::kPost);
    default:
      return method == Method::kGet;
  }
}

bool is_slow(Topic topic) {
  return topic == Topic::kLoad || topic == Topic::kUnload || topic == Topic::kRepositoryIndex ||
         topic == Topic::kStatusJson;
}

Reply control(Server& server, const Route& route, Method method, const Buffer& body) {
  if (!route.repository.empty() && route.topic != Topic::kRepositoryIndex)
    throw Error(Code::kUnsupported, "'repository_name' specification is not supported");
  switch (route.topic) {
    case Topic::kLive:
      return empty_reply(server.live());
    case Topic::kReady:
      return empty_reply(server.ready());
    case Topic::kServerMetadata:
      return json_reply(to_json(server.metadata(), Defaults::kPrint));
    case Topic::kModelMetadata:
      return json_reply(
          to_json(server.model_metadata(route.model, route.version), Defaults::kPrint));
    case Topic::kModelReady:
      if (!server.model_ready(route.model, route.version))
        return error_reply(400, "Model version not ready");
      return empty_reply(true);
    case Topic::kModelConfig:
      return json_reply(to_json(server.model_config(route.model, route.version), Defaults::kPrint));
    case Topic::kStatistics:
      return json_reply(to_json(server.statistics(route.model, route.version), Defaults::kPrint));
    case Topic::kRepositoryIndex:
      return repository_index(server, body);
    case Topic::kLoad:
      return load(server, route, body);
    case Topic::kUnload:
      return unload(server, route, body);
    case Topic::kSystemMemory:
      return system_memory(server, route, body);
    case Topic::kCudaMemory:
      return cuda_memory(route);
    case Topic::kTraceSetting:
      return trace_setting(server, route, method, body);
    case Topic::kLogging:
      return logging(server, method, body);
    case Topic::kStatusPage:
      return status_page();
    case Topic::kStatusJson:
      return text_reply(200, "application/json", status_json(server));
    default:
      return error_reply(404, "Not Found");
  }
}

}  // namespace anymps::server::http
