// SPDX-License-Identifier: Apache-2.0
// The backend `metal_mps`: what Triton calls. A model is loaded once per version and shared by its
// instances; all that it does with requests is in serving/.
#include <cstdio>
#include <memory>

#include "serving/log.h"
#include "triton/request.h"

namespace anymps::triton {
namespace {

using nlohmann::json;
using serving::Code;
using serving::Error;

#define TRITON_EXPORT extern "C" __attribute__((visibility("default"))) Failure

struct BackendState {
  serving::OperatorOptions options;  // of the command line
};

struct ModelState {
  std::string name;
  std::shared_ptr<serving::Model> model;
};

struct InstanceState {
  ModelState* model = nullptr;
  // Requests of the batch at hand; their memory is used again.
  std::vector<std::unique_ptr<Request>> requests;
  std::vector<serving::Request*> good;
};

// Nothing but errors of Triton leaves the backend.
template <typename Fn>
Failure guard(Fn&& fn) {
  try {
    fn();
    return nullptr;
  } catch (const Error& error) {
    return to_failure(error);
  } catch (const std::exception& error) {
    return api.TRITONSERVER_ErrorNew(static_cast<int>(Code::kInternal), error.what());
  }
}

json to_json(TRITONSERVER_Message* message) {
  const char* text = nullptr;
  size_t bytes = 0;
  check(api.TRITONSERVER_MessageSerializeToJson(message, &text, &bytes));
  json parsed = json::parse(text, text + bytes, nullptr, false);
  if (parsed.is_discarded()) throw Error(Code::kInternal, "the server sent JSON that is none");
  return parsed;
}

template <typename State, typename Object>
State* state_of(Object* object, Failure (*get)(Object*, void**)) {
  void* state = nullptr;
  check(get(object, &state));
  if (!state) throw Error(Code::kInternal, "metal_mps: the object has no state");
  return static_cast<State*>(state);
}

void read_options(BackendState& state, const json& config) {
  if (!config.contains("cmdline") || !config["cmdline"].is_object()) return;
  // Triton adds keys of its own.
  for (const auto& [key, value] : config["cmdline"].items())
    if (value.is_string()) state.options.set(key, value.get<std::string>());
}

json model_config(TRITONBACKEND_Model* model) {
  TRITONSERVER_Message* message = nullptr;
  check(api.TRITONBACKEND_ModelConfig(model, 1, &message));
  json config;
  try {
    config = to_json(message);
  } catch (...) {
    log_failure(api.TRITONSERVER_MessageDelete(message), "delete a message");
    throw;
  }
  check(api.TRITONSERVER_MessageDelete(message));
  return config;
}

void set_model_config(TRITONBACKEND_Model* model, const json& config) {
  const std::string text = config.dump();
  TRITONSERVER_Message* message = nullptr;
  check(api.TRITONSERVER_MessageNewFromSerializedJson(&message, text.data(), text.size()));
  Failure failure = api.TRITONBACKEND_ModelSetConfig(model, 1, message);
  log_failure(api.TRITONSERVER_MessageDelete(message), "delete a message");
  check(failure);
}

void initialize_model(TRITONBACKEND_Model* model) {
  const char* name = nullptr;
  const char* location = nullptr;
  uint64_t version = 0;
  ArtifactType artifact = kFilesystem;
  bool complete = false;
  TRITONBACKEND_Backend* backend = nullptr;
  check(api.TRITONBACKEND_ModelName(model, &name));
  check(api.TRITONBACKEND_ModelVersion(model, &version));
  check(api.TRITONBACKEND_ModelRepository(model, &artifact, &location));
  check(api.TRITONBACKEND_ModelAutoCompleteConfig(model, &complete));
  check(api.TRITONBACKEND_ModelBackend(model, &backend));
  if (artifact != kFilesystem)
    throw Error(Code::kUnsupported,
                std::string("model '") + name + "' does not lie in a folder of the file system");
  serving::OperatorOptions options =
      state_of<BackendState>(backend, api.TRITONBACKEND_BackendState)->options;
  options.folders.push_back(std::filesystem::path(location).parent_path());
  const json config = model_config(model);

  auto state = std::make_unique<ModelState>();
  state->name = name;
  // Triton's core reshapes inputs and outputs itself.
  state->model = serving::Model::load(std::filesystem::path(location) / std::to_string(version),
                                      config, complete, std::move(options), true);
  if (complete) {
    json completed = config;
    for (const char* field : {"input", "output", "max_batch_size", "dynamic_batching", "backend"})
      if (state->model->config().contains(field)) completed[field] = state->model->config()[field];
    if (completed != config) set_model_config(model, completed);
  }
  check(api.TRITONBACKEND_ModelSetState(model, state.get()));
  log(kLogInfo, "metal_mps: model '" + state->name + "', version " + std::to_string(version) +
                    " on " + state->model->device().name());
  (void)state.release();
}

void execute(TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request** requests,
             uint32_t count) {
  auto* state = state_of<InstanceState>(instance, api.TRITONBACKEND_ModelInstanceState);
  serving::Model& model = *state->model->model;
  while (state->requests.size() < count) state->requests.push_back(std::make_unique<Request>());
  state->good.clear();
  for (uint32_t i = 0; i < count; ++i)
    if (state->requests[i]->begin(instance, requests[i], model.settings()))
      state->good.push_back(state->requests[i].get());
  const serving::Times times = model.execute(state->good);
  for (uint32_t i = 0; i < count; ++i) state->requests[i]->done(times);  // those that failed
  if (times.batch_size > 0)
    log_failure(api.TRITONBACKEND_ModelInstanceReportBatchStatistics(
                    instance, times.batch_size, times.start, times.compute_start, times.compute_end,
                    times.end),
                "report statistics of a batch");
}

}  // namespace

TRITON_EXPORT TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend) {
  const std::string wrong = load_api();
  if (!api.TRITONSERVER_ErrorNew) {  // there is no way to say it to the server
    std::fprintf(stderr, "metal_mps: %s\n", wrong.c_str());
    return nullptr;
  }
  if (!wrong.empty())
    return api.TRITONSERVER_ErrorNew(static_cast<int>(Code::kUnsupported), wrong.c_str());
  return guard([&] {
    auto state = std::make_unique<BackendState>();
    TRITONSERVER_Message* config = nullptr;
    check(api.TRITONBACKEND_BackendConfig(backend, &config));
    read_options(*state, to_json(config));
    serving::set_log_sink(
        [](std::string_view line) { log(kLogInfo, "metal_mps: " + std::string(line)); });
    log(kLogInfo, std::string("metal_mps: AnyMPS ") + amps_version() + ", device " +
                      amps::Device::get().description());
    check(api.TRITONBACKEND_BackendSetState(backend, state.get()));
    (void)state.release();
  });
}

TRITON_EXPORT TRITONBACKEND_Finalize(TRITONBACKEND_Backend* backend) {
  return guard([&] {
    serving::set_log_sink(nullptr);
    delete state_of<BackendState>(backend, api.TRITONBACKEND_BackendState);
  });
}

TRITON_EXPORT TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend*,
                                                TRITONBACKEND_BackendAttribute* attributes) {
  return guard([&] {
    if (api.TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup)
      check(api.TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(attributes, kKindCpu, 1,
                                                                        nullptr, 0));
    if (api.TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading)
      check(api.TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(attributes, true));
  });
}

TRITON_EXPORT TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  return guard([&] { initialize_model(model); });
}

TRITON_EXPORT TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* model) {
  return guard([&] {
    const std::unique_ptr<ModelState> state(
        state_of<ModelState>(model, api.TRITONBACKEND_ModelState));
    const std::string profile = state->model->profile();
    if (!profile.empty())
      log(kLogInfo, "metal_mps: profile of model '" + state->name + "'\n" + profile);
  });
}

TRITON_EXPORT TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* instance) {
  return guard([&] {
    const char* name = nullptr;
    InstanceKind kind = kKindAuto;
    TRITONBACKEND_Model* model = nullptr;
    check(api.TRITONBACKEND_ModelInstanceName(instance, &name));
    check(api.TRITONBACKEND_ModelInstanceKind(instance, &kind));
    check(api.TRITONBACKEND_ModelInstanceModel(instance, &model));
    auto state = std::make_unique<InstanceState>();
    state->model = state_of<ModelState>(model, api.TRITONBACKEND_ModelState);
    if (kind == kKindGpu)
      log(kLogInfo, std::string("metal_mps: instance '") + name + "' of KIND_GPU runs on device '" +
                        state->model->model->device().name() + "'");
    check(api.TRITONBACKEND_ModelInstanceSetState(instance, state.get()));
    (void)state.release();
  });
}

TRITON_EXPORT TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance* instance) {
  return guard(
      [&] { delete state_of<InstanceState>(instance, api.TRITONBACKEND_ModelInstanceState); });
}

TRITON_EXPORT TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance*) { return nullptr; }

TRITON_EXPORT TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                 TRITONBACKEND_Request** requests,
                                                 const uint32_t count) {
  return guard([&] { execute(instance, requests, count); });
}

}  // namespace anymps::triton
