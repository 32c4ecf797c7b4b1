// SPDX-License-Identifier: Apache-2.0
#include "server/grpc/service.h"

#include <fmt/format.h>

#include "server/memory/shared_memory.h"
#include "server/observation/logger.h"
#include "server/observation/trace.h"

namespace anymps::server {
namespace {

using inference::ModelRepositoryParameter;

void refuse_repository(const std::string& name) {
  if (!name.empty())
    throw Error(Code::kUnsupported, "'repository_name' specification is not supported");
}

Parameter load_parameter(const std::string& name, const ModelRepositoryParameter& value) {
  const bool config = name == "config";
  if (!config && !name.starts_with("file:"))
    throw Error(Code::kInvalidArgument, fmt::format("unrecognized load parameter '{}'.", name));
  if (value.parameter_choice_case() !=
      (config ? ModelRepositoryParameter::kStringParam : ModelRepositoryParameter::kBytesParam))
    throw Error(Code::kInvalidArgument,
                fmt::format("invalid value type for load parameter '{}', expected {}.", name,
                            config ? "string_param" : "bytes_param"));
  return config ? value.string_param() : value.bytes_param();
}

}  // namespace

template <typename Fn>
grpc::Status Service::answer(Fn&& fn) {
  struct UnderWay {
    explicit UnderWay(std::atomic<int>& count) : count(count) { ++count; }
    ~UnderWay() { --count; }
    std::atomic<int>& count;
  } const under_way(under_way_);
  try {
    fn();
  } catch (const Error& error) {
    return to_status(error);
  } catch (const std::exception& error) {
    return {grpc::StatusCode::INTERNAL, error.what()};
  }
  return grpc::Status::OK;
}

#define ANYMPS_GRPC_METHOD(METHOD)                                                         \
  grpc::Status Service::METHOD([[maybe_unused]] grpc::ServerContext* context,              \
                               [[maybe_unused]] const inference::METHOD##Request* request, \
                               [[maybe_unused]] inference::METHOD##Response* response)

ANYMPS_GRPC_METHOD(ServerLive) {
  return answer([&] { response->set_live(server_.live()); });
}

ANYMPS_GRPC_METHOD(ServerReady) {
  return answer([&] { response->set_ready(server_.ready()); });
}

ANYMPS_GRPC_METHOD(ModelReady) {
  return answer(
      [&] { response->set_ready(server_.model_ready(request->name(), request->version())); });
}

ANYMPS_GRPC_METHOD(ServerMetadata) {
  return answer([&] { *response = server_.metadata(); });
}

ANYMPS_GRPC_METHOD(ModelMetadata) {
  return answer([&] { *response = server_.model_metadata(request->name(), request->version()); });
}

ANYMPS_GRPC_METHOD(ModelConfig) {
  return answer([&] {
    *response->mutable_config() = server_.model_config(request->name(), request->version());
  });
}

ANYMPS_GRPC_METHOD(ModelStatistics) {
  return answer([&] { *response = server_.statistics(request->name(), request->version()); });
}

ANYMPS_GRPC_METHOD(RepositoryIndex) {
  return answer([&] {
    refuse_repository(request->repository_name());
    *response = server_.repository_index(request->ready());
  });
}

ANYMPS_GRPC_METHOD(RepositoryModelLoad) {
  return answer([&] {
    refuse_repository(request->repository_name());
    Parameters parameters;
    for (const auto& [name, value] : request->parameters())
      parameters.emplace(name, load_parameter(name, value));
    server_.load_model(request->model_name(), parameters);
  });
}

ANYMPS_GRPC_METHOD(RepositoryModelUnload) {
  return answer([&] {
    refuse_repository(request->repository_name());
    bool with_dependents = false;
    const auto found = request->parameters().find("unload_dependents");
    if (found != request->parameters().end()) {
      if (found->second.parameter_choice_case() != ModelRepositoryParameter::kBoolParam)
        throw Error(Code::kInvalidArgument,
                    "invalid value type for 'unload_dependents' parameter, expected bool_param.");
      with_dependents = found->second.bool_param();
    }
    server_.unload_model(request->model_name(), with_dependents);
  });
}

ANYMPS_GRPC_METHOD(SystemSharedMemoryStatus) {
  return answer([&] { *response = server_.shared_memory().status(request->name()); });
}

ANYMPS_GRPC_METHOD(SystemSharedMemoryRegister) {
  return answer([&] {
    server_.shared_memory().add(request->name(), request->key(), request->offset(),
                                request->byte_size());
  });
}

ANYMPS_GRPC_METHOD(SystemSharedMemoryUnregister) {
  return answer([&] {
    if (request->name().empty())
      server_.shared_memory().remove_all();
    else
      server_.shared_memory().remove(request->name());
  });
}

// There is no CUDA memory here: nothing is registered, and nothing can be.
ANYMPS_GRPC_METHOD(CudaSharedMemoryStatus) {
  return answer([&] {
    if (!request->name().empty())
      throw Error(Code::kNotFound,
                  fmt::format("Unable to find cuda shared memory region: '{}'", request->name()));
  });
}

ANYMPS_GRPC_METHOD(CudaSharedMemoryRegister) {
  return answer([&] {
    throw Error(Code::kInvalidArgument, "failed to register shared memory region: invalid args");
  });
}

ANYMPS_GRPC_METHOD(CudaSharedMemoryUnregister) {
  return answer([] {});
}

ANYMPS_GRPC_METHOD(TraceSetting) {
  return answer([&] {
    const std::string& model = request->model_name();
    if (!model.empty() && !server_.model_ready(model, ""))
      throw Error(Code::kInvalidArgument, "Request for unknown model : " + model);
    *response = server_.tracer().set(*request);
  });
}

ANYMPS_GRPC_METHOD(LogSettings) {
  return answer([&] {
    server_.logger().set(*request);
    *response = server_.logger().settings();
  });
}

#undef ANYMPS_GRPC_METHOD

}  // namespace anymps::server
