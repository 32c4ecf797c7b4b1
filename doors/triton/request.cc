// SPDX-License-Identifier: Apache-2.0
#include "triton/request.h"

#include <algorithm>

#include "serving/datatype.h"

namespace anymps::triton {
namespace {

using serving::Code;
using serving::Error;

struct Pair {
  DataType theirs;
  amps_dtype ours;
};
constexpr Pair kTypes[] = {{kBool, AMPS_BOOL},    {kUint8, AMPS_U8},   {kUint16, AMPS_U16},
                           {kUint32, AMPS_U32},   {kUint64, AMPS_U64}, {kInt8, AMPS_I8},
                           {kInt16, AMPS_I16},    {kInt32, AMPS_I32},  {kInt64, AMPS_I64},
                           {kFp16, AMPS_F16},     {kFp32, AMPS_F32},   {kFp64, AMPS_F64},
                           {kBytes, AMPS_STRING}, {kBf16, AMPS_BF16}};

amps_dtype dtype_of(DataType datatype, const char* input) {
  for (const Pair& pair : kTypes)
    if (pair.theirs == datatype) return pair.ours;
  throw Error(Code::kUnsupported, std::string("input '") + input + "' has an unknown data type");
}

DataType datatype_of(amps_dtype dtype) {
  for (const Pair& pair : kTypes)
    if (pair.ours == dtype) return pair.theirs;
  return kInvalid;
}

}  // namespace

void check(Failure failure) {
  if (!failure) return;
  const auto code = static_cast<Code>(api.TRITONSERVER_ErrorCode(failure));
  const std::string message = api.TRITONSERVER_ErrorMessage(failure);
  api.TRITONSERVER_ErrorDelete(failure);
  throw Error(code, message);
}

void log(LogLevel level, const std::string& message) {
  if (!api.TRITONSERVER_LogIsEnabled(level)) return;
  if (Failure failure = api.TRITONSERVER_LogMessage(level, "metal_mps", 0, message.c_str()))
    api.TRITONSERVER_ErrorDelete(failure);
}

void log_failure(Failure failure, const char* what) {
  if (!failure) return;
  log(kLogError, std::string("metal_mps: ") + what + ": " + api.TRITONSERVER_ErrorMessage(failure));
  api.TRITONSERVER_ErrorDelete(failure);
}

Failure to_failure(const Error& error) {
  return api.TRITONSERVER_ErrorNew(static_cast<int>(error.code()), error.what());
}

bool Request::begin(TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request* request,
                    const serving::Settings& settings) {
  settings_ = &settings;
  instance_ = instance;
  request_ = request;
  response_ = nullptr;
  inputs_.clear();
  pieces_.clear();
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
  first_piece_.clear();
  for (uint32_t i = 0; i < count; ++i) {
    TRITONBACKEND_Input* input = nullptr;
    const char* name = nullptr;
    DataType datatype = kInvalid;
    const int64_t* shape = nullptr;
    uint32_t rank = 0, buffers = 0;
    uint64_t bytes = 0;
    check(api.TRITONBACKEND_RequestInputByIndex(request_, i, &input));
    check(api.TRITONBACKEND_InputProperties(input, &name, &datatype, &shape, &rank, &bytes,
                                            &buffers));
    inputs_.push_back({name, dtype_of(datatype, name), {shape, rank}, {}});
    first_piece_.push_back(static_cast<uint32_t>(pieces_.size()));
    for (uint32_t b = 0; b < buffers; ++b) {
      const void* data = nullptr;
      MemoryType memory = kCpu;
      int64_t id = 0;
      check(api.TRITONBACKEND_InputBuffer(input, b, &data, &bytes, &memory, &id));
      if (memory == kGpu)
        throw Error(Code::kUnsupported,
                    std::string("input '") + name + "' lies in CUDA memory, which cannot be read");
      pieces_.push_back({data, bytes});
    }
  }
  first_piece_.push_back(static_cast<uint32_t>(pieces_.size()));
  for (uint32_t i = 0; i < count; ++i)
    inputs_[i].pieces =
        std::span(pieces_).subspan(first_piece_[i], first_piece_[i + 1] - first_piece_[i]);
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
  const DataType datatype = datatype_of(dtype);
  if (is_state(name)) return state(text, datatype, shape, bytes);
  TRITONBACKEND_Output* output = nullptr;
  check(api.TRITONBACKEND_ResponseOutput(response_, &output, text.c_str(), datatype, shape.data(),
                                         static_cast<uint32_t>(shape.size())));
  void* buffer = nullptr;
  MemoryType memory = kCpu;
  int64_t id = 0;
  check(api.TRITONBACKEND_OutputBuffer(output, &buffer, bytes, &memory, &id));
  if (memory == kGpu)
    throw Error(Code::kUnsupported,
                "output '" + text + "' should lie in CUDA memory, which cannot be written");
  return buffer;
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
  if (memory == kGpu)
    throw Error(Code::kUnsupported,
                "state '" + name + "' should lie in CUDA memory, which cannot be written");
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
  send();  // who has the answer finds it counted
  log_failure(api.TRITONBACKEND_RequestRelease(request_, kReleaseAll), "release a request");
  request_ = nullptr;
}

}  // namespace anymps::triton
