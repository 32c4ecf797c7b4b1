// SPDX-License-Identifier: Apache-2.0
#include "triton/request.h"

#include <algorithm>

#include "serving/datatype.h"

namespace anymps::triton {
namespace {

using serving::Code;
using serving::Error;

amps_dtype dtype_of(DataType datatype, const char* input) {
  if (const auto dtype = serving::numbered_datatype(datatype)) return *dtype;
  throw Error(Code::kUnsupported, std::string("input '") + input + "' has an unknown data type");
}

// Where the server wants an output or a state to be written.
void* writable(void* buffer, MemoryType memory, const std::string& what) {
  if (memory == kGpu)
    throw Error(Code::kUnsupported, what + " should lie in CUDA memory, which cannot be written");
  return buffer;
}

}  // namespace

bool Request::begin(TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request* request,
                    const serving::Settings& settings) {
  settings_ = &settings;
  instance_ = instance;
  request_ = request;
  response_ = nullptr;
  inputs_.clear();
  wanted_.clear();
  states_.clear();
  error_.reset();
  try {
    check(api.TRITONBACKEND_ResponseNew(&response_, request_));
    read();
  } catch (const Error& error) {
    error_ = error;
  }
  return !error_;
}

void Request::read() {
  uint32_t count = 0, outputs = 0;
  check(api.TRITONBACKEND_RequestInputCount(request_, &count));
  for (uint32_t i = 0; i < count; ++i) {
    TRITONBACKEND_Input* input = nullptr;
    const char* name = nullptr;
    DataType datatype = 0;
    const int64_t* shape = nullptr;
    uint32_t rank = 0, buffers = 0;
    uint64_t bytes = 0;
    check(api.TRITONBACKEND_RequestInputByIndex(request_, i, &input));
    check(api.TRITONBACKEND_InputProperties(input, &name, &datatype, &shape, &rank, &bytes,
                                            &buffers));
    inputs_.add(name, dtype_of(datatype, name), {shape, rank});
    for (uint32_t b = 0; b < buffers; ++b) {
      const void* data = nullptr;
      MemoryType memory = kCpu;
      int64_t id = 0;
      check(api.TRITONBACKEND_InputBuffer(input, b, &data, &bytes, &memory, &id));
      if (memory == kGpu)
        throw Error(Code::kUnsupported,
                    std::string("input '") + name + "' lies in CUDA memory, which cannot be read");
      inputs_.add_piece(data, bytes);
    }
  }
  inputs_.finish();
  check(api.TRITONBACKEND_RequestOutputCount(request_, &outputs));
  for (uint32_t i = 0; i < outputs; ++i) {
    const char* name = nullptr;
    check(api.TRITONBACKEND_RequestOutputName(request_, i, &name));
    wanted_.emplace_back(name);
  }
}

bool Request::is_state(std::string_view output) const {
  for (const serving::TensorSettings& tensor : settings_->outputs)
    if (tensor.internal && tensor.name == output) return true;
  return false;
}

bool Request::wants(std::string_view output) const {
  return std::find(wanted_.begin(), wanted_.end(), output) != wanted_.end() || is_state(output);
}

bool Request::cancelled() const {
  bool cancelled = false;
  if (api.TRITONBACKEND_RequestIsCancelled)
    log_failure(api.TRITONBACKEND_RequestIsCancelled(request_, &cancelled), "is it cancelled");
  return cancelled;
}

void* Request::output(std::string_view name, amps_dtype dtype, std::span<const int64_t> shape,
                      size_t bytes) {
  const std::string text(name);
  const DataType datatype = serving::datatype_number(dtype);
  if (is_state(name)) return state(text, datatype, shape, bytes);
  TRITONBACKEND_Output* output = nullptr;
  check(api.TRITONBACKEND_ResponseOutput(response_, &output, text.c_str(), datatype, shape.data(),
                                         static_cast<uint32_t>(shape.size())));
  void* buffer = nullptr;
  MemoryType memory = kCpu;
  int64_t id = 0;
  check(api.TRITONBACKEND_OutputBuffer(output, &buffer, bytes, &memory, &id));
  return writable(buffer, memory, "output '" + text + "'");
}

void* Request::state(const std::string& name, DataType datatype, std::span<const int64_t> shape,
                     size_t bytes) {
  if (!api.TRITONBACKEND_StateNew || !api.TRITONBACKEND_StateBuffer ||
      !api.TRITONBACKEND_StateUpdate)
    throw Error(Code::kUnsupported, "this server cannot keep the state '" + name + "'");
  TRITONBACKEND_State* state = nullptr;
  check(api.TRITONBACKEND_StateNew(&state, request_, name.c_str(), datatype, shape.data(),
                                   static_cast<uint32_t>(shape.size())));
  void* buffer = nullptr;
  MemoryType memory = kCpu;
  int64_t id = 0;
  check(api.TRITONBACKEND_StateBuffer(state, &buffer, bytes, &memory, &id));
  writable(buffer, memory, "state '" + name + "'");
  states_.push_back(state);
  return buffer;
}

void Request::fail(const Error& error) { error_ = error; }

void Request::keep_states() {
  for (size_t i = 0; i < states_.size() && !error_; ++i) {
    try {
      check(api.TRITONBACKEND_StateUpdate(states_[i]));
    } catch (const Error& error) {
      error_ = error;
    }
  }
}

void Request::send() {
  Failure failure = error_ ? to_failure(*error_) : nullptr;
  if (response_)
    log_failure(api.TRITONBACKEND_ResponseSend(response_, kResponseFinal, failure),
                "a response could not be sent");
  else if (error_)
    log(kLogError, std::string("metal_mps: a request has no response: ") + error_->what());
  if (failure) api.TRITONSERVER_ErrorDelete(failure);
  response_ = nullptr;
}

void Request::done(const serving::Times& times) {
  if (!request_) return;
  keep_states();
  log_failure(api.TRITONBACKEND_ModelInstanceReportStatistics(instance_, request_, !error_,
                                                              times.start, times.compute_start,
                                                              times.compute_end, times.end),
              "report statistics");
  send();  // whoever has the answer finds it counted
  log_failure(api.TRITONBACKEND_RequestRelease(request_, kReleaseAll), "release a request");
  request_ = nullptr;
}

}  // namespace anymps::triton
