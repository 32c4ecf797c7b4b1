// SPDX-License-Identifier: Apache-2.0
// What the handles of the C interface are, and the guard that turns exceptions into statuses.
#pragma once

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

#include "anymps/anymps.h"
#include "base/mapped_file.h"
#include "graph/graph.h"
#include "runtime/device.h"
#include "runtime/eager/deferral.h"
#include "runtime/eager/fixed.h"
#include "runtime/eager/key.h"
#include "runtime/executable.h"
#include "runtime/profiler.h"

struct amps_string {
  std::string text;
};
struct amps_device {
  anymps::DevicePtr device;
  std::string description;
};
struct amps_tensor {
  std::atomic<int> references{1};
  amps_device* device = nullptr;
  anymps::Tensor tensor;
};
struct amps_graph {
  std::unique_ptr<anymps::Graph> graph;
  std::vector<anymps::Value> defaults = {};  // inputs that have one and were made constants
  anymps::MappedFiles files = {};            // that its constants lie in
};
struct amps_executable {
  amps_device* device = nullptr;
  std::shared_ptr<anymps::Executable> executable;
  anymps::Bindings bindings = {};
};
struct amps_stream {
  amps_device* device = nullptr;
  std::unique_ptr<anymps::Queue> queue;
  std::shared_ptr<anymps::Deferral> deferral = nullptr;  // none: an ordinary stream
};
struct amps_event {
  anymps::EventRef event;
};
struct amps_profiler {
  std::shared_ptr<anymps::Profiler> profiler = std::make_shared<anymps::Profiler>();
};
struct amps_buffer {
  amps_device* device = nullptr;
  anymps::BufferRef buffer;
};
struct amps_call {
  amps_device* device = nullptr;
  std::shared_ptr<const anymps::BoundOp> op;
};

struct amps_fixed_call {
  std::unique_ptr<const anymps::FixedCall> call;
};

namespace anymps::api {

amps_status record_error(Code code, const char* message) noexcept;
void clear_error() noexcept;
const char* last_error_text() noexcept;

// Runs fn; every exception becomes a status and a message.
template <typename Fn>
amps_status guard(Fn&& fn) noexcept {
  try {
    clear_error();
    fn();
    return AMPS_OK;
  } catch (const Error& error) {
    return record_error(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return record_error(Code::kOutOfMemory, "[memory] the host is out of memory");
  } catch (const std::length_error&) {  // a container is asked for more than any memory holds
    return record_error(Code::kOutOfMemory, "[memory] more elements than the host's memory holds");
  } catch (const std::exception& error) {
    return record_error(Code::kInternal, error.what());
  } catch (...) {
    return record_error(Code::kInternal, "unknown exception");
  }
}

template <typename T>
T& need(T* pointer, const char* what) {
  require(pointer != nullptr, "[api] {} is NULL", what);
  return *pointer;
}

inline amps_string* new_string(std::string text) { return new amps_string{std::move(text)}; }
inline amps_value* handle(Value* value) { return reinterpret_cast<amps_value*>(value); }
inline const amps_value* handle(const Value* value) {
  return reinterpret_cast<const amps_value*>(value);
}
inline Value* value_of(amps_value* value) { return reinterpret_cast<Value*>(value); }
inline const Value* value_of(const amps_value* value) {
  return reinterpret_cast<const Value*>(value);
}
inline const Op* op_of(const amps_op* op) { return reinterpret_cast<const Op*>(op); }

// Before work that is not put off, on this stream or none: what waits there, and what the thread
// has waiting elsewhere, comes first.
inline void settle(const amps_stream* stream = nullptr) {
  Deferral::flush_thread();
  if (stream && stream->deferral) stream->deferral->flush();
}

void give_cache(amps_cache_stats* to, const CacheStats& stats);

DType checked_dtype(amps_dtype dtype);
std::vector<std::byte> copied(const void* data, size_t bytes);
Shape checked_shape(size_t rank, const int64_t* dims);

}  // namespace anymps::api
