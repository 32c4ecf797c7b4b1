// SPDX-License-Identifier: Apache-2.0
// The engine's library, and its errors as Paddle's.
#include "engine.h"

#include <array>

#include <paddle/common/enforce.h>
#include "lowering/engine.h"

namespace anymps::paddle {
namespace {

[[noreturn]] void raise(amps_status status, const char* message) {
  switch (status) {
    case AMPS_INVALID_ARGUMENT:
      PADDLE_THROW(common::errors::InvalidArgument("%s", message));
    case AMPS_NOT_FOUND:
      PADDLE_THROW(common::errors::NotFound("%s", message));
    case AMPS_UNSUPPORTED:
      PADDLE_THROW(common::errors::Unimplemented("%s", message));
    case AMPS_OUT_OF_MEMORY:
      PADDLE_THROW(common::errors::ResourceExhausted("%s", message));
    default:
      PADDLE_THROW(common::errors::External("%s", message));
  }
}

template <class Function>
auto checked(Function function) {
  try {
    return function();
  } catch (const lowering::EngineError& error) {
    raise(error.status, error.what());
  }
}

}  // namespace

const amps_api& engine() {
  static const amps_api* const api =
      checked([] { return &lowering::load_engine(reinterpret_cast<const void*>(&device_count)); });
  return *api;
}

int device_count() {
  constexpr int kMost = 16;  // Paddle counts the memory of no more
  static const int count = checked([] { return lowering::device_count_from_environment(kMost); });
  return count;
}

amps_device* device(int index) {
  static const auto devices = checked([] {
    std::array<amps_device*, lowering::kMaxDevices> all{};
    for (int i = 0; i < device_count(); ++i) all[i] = lowering::find_device(engine(), i);
    return all;
  });
  if (index < 0 || index >= device_count()) {
    PADDLE_THROW(common::errors::OutOfRange("[anymps] there is no device mps:%d: there are %d",
                                            index, device_count()));
  }
  return devices[index];
}

void check(amps_status status) {
  if (status != AMPS_OK) raise(status, engine().last_error());
}

}  // namespace anymps::paddle
