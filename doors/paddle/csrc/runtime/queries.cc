// SPDX-License-Identifier: Apache-2.0
// What the Python layer asks for, and Paddle has no slot for (python/paddle_anymps/native.py).
#include "engine.h"
#include "runtime/small_blocks.h"

#define ANYMPS_PADDLE_EXPORT extern "C" __attribute__((visibility("default")))

namespace anymps::paddle {

ANYMPS_PADDLE_EXPORT const char* anymps_paddle_describe(int index) {
  return engine().device_description(device(index));
}

// Three numbers: total and free bytes, threads.
ANYMPS_PADDLE_EXPORT void anymps_paddle_memory(int index, uint64_t* numbers) {
  check(engine().device_memory_info(device(index), &numbers[1], &numbers[0]));
  numbers[2] = engine().device_max_threads(device(index));
}

ANYMPS_PADDLE_EXPORT void anymps_paddle_empty_cache() {
  release_small_blocks();
  for (int i = 0; i < device_count(); ++i) check(engine().device_empty_cache(device(i)));
}

}  // namespace anymps::paddle
