// SPDX-License-Identifier: Apache-2.0
// `MPSBackend` for a stock ExecuTorch runtime: what upstream removed in 1.5. A payload becomes a
// graph and is compiled once; a call reads ExecuTorch's tensors in place and writes its results
// straight into them.
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/event_tracer.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include "delegate.h"
#include "runtime_symbols.h"

namespace et = executorch::runtime;

namespace anymps::delegate {

namespace {

constexpr const char* kName = "MPSBackend";

et::Error to_error(amps_status status) {
  switch (status) {
    case AMPS_INVALID_ARGUMENT:
      return et::Error::InvalidArgument;
    case AMPS_NOT_FOUND:
      return et::Error::NotFound;
    case AMPS_UNSUPPORTED:
      return et::Error::NotSupported;
    case AMPS_OUT_OF_MEMORY:
      return et::Error::MemoryAllocationFailed;
    case AMPS_CORRUPT:
      return et::Error::InvalidProgram;
    case AMPS_IO:
      return et::Error::AccessFailed;
    default:
      return et::Error::Internal;
  }
}

// Runs fn; whatever it throws is logged and becomes a code.
template <typename Fn>
et::Error guard(Fn&& fn) noexcept {
  try {
    fn();
    return et::Error::Ok;
  } catch (const amps::Error& error) {
    log_error(error.what());
    return to_error(error.status());
  } catch (const std::bad_alloc&) {
    log_error("the host is out of memory");
    return et::Error::MemoryAllocationFailed;
  } catch (const std::exception& error) {
    log_error(error.what());
    return et::Error::Internal;
  } catch (...) {
    log_error("unknown exception");
    return et::Error::Internal;
  }
}

bool is_threads(const char* key) {
  return std::strcmp(key, "num_threads") == 0 || std::strcmp(key, "threads") == 0;
}

class MpsBackend final : public et::BackendInterface {
 public:
  bool is_available() const override { return true; }

  et::Result<et::DelegateHandle*> init(et::BackendInitContext& context,
                                       et::FreeableBuffer* processed,
                                       et::ArrayRef<et::CompileSpec> /*specs*/) const override {
    int threads = threads_;
    for (const et::BackendOption& option : context.runtime_specs())
      if (const int* value = std::get_if<int>(&option.value); value && is_threads(option.key))
        threads = *value;
    Delegate* delegate = nullptr;
    const et::Error error = guard([&] {
      const std::span payload(static_cast<const std::byte*>(processed->data()), processed->size());
      const char* method = context.get_method_name();
      delegate = new Delegate(payload, threads, method ? method : "delegate");
    });
    if (error != et::Error::Ok) return error;
    // `processed` is not freed: the weights lie there, and the runtime frees it after destroy().
    return delegate;
  }

  et::Error execute(et::BackendExecutionContext& context, et::DelegateHandle* handle,
                    et::Span<et::EValue*> args) const override {
    if (!handle) return et::Error::DelegateInvalidHandle;
    return guard([&] { static_cast<Delegate*>(handle)->run(args, context.event_tracer()); });
  }

  void destroy(et::DelegateHandle* handle) const override { delete static_cast<Delegate*>(handle); }

  // "num_threads": threads of the delegates that are loaded from now on; 0: all cores.
  et::Error set_option(et::BackendOptionContext& /*context*/,
                       const et::Span<et::BackendOption>& options) override {
    for (const et::BackendOption& option : options) {
      const int* value = std::get_if<int>(&option.value);
      if (!is_threads(option.key)) {
        log_error((std::string("there is no option '") + option.key + "'; there is: num_threads")
                      .c_str());
        return et::Error::NotFound;
      }
      if (!value || *value < 0) {
        log_error("num_threads must be an integer, 0 (all cores) or more");
        return et::Error::InvalidArgument;
      }
      threads_ = *value;
    }
    return et::Error::Ok;
  }

  et::Error get_option(et::BackendOptionContext& /*context*/,
                       et::Span<et::BackendOption>& options) override {
    for (et::BackendOption& option : options) {
      if (!is_threads(option.key)) return et::Error::NotFound;
      option.value = threads_.load();
    }
    return et::Error::Ok;
  }

 private:
  std::atomic<int> threads_{0};
};

std::string registered() {
  static MpsBackend* backend = new MpsBackend;  // the runtime holds it until the process ends
  return register_everywhere({kName, backend});
}

struct AtLoad {
  AtLoad() {
    const std::string problem = registered();
    if (!problem.empty())
      std::fprintf(stderr, "libanymps_executorch_backend: %s\n", problem.c_str());
  }
} at_load;

}  // namespace

}  // namespace anymps::delegate

// For programs that load the runtime after this library: registers where it is missing. 0: done;
// otherwise the reason goes to stderr.
extern "C" __attribute__((visibility("default"))) int anymps_executorch_register() {
  const std::string problem = anymps::delegate::registered();
  if (problem.empty()) return 0;
  std::fprintf(stderr, "libanymps_executorch_backend: %s\n", problem.c_str());
  return 1;
}
