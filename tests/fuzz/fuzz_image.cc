// SPDX-License-Identifier: Apache-2.0
// Any bytes as a picture: they become pixels or give an Error. Large ones are only measured, since
// a few bytes may honestly stand for a large picture.
#include "base/error.h"
#include "semantics/image/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kMost = 1 << 16;
  try {
    const anymps::Picture measured = anymps::decode_picture({data, size}, true);
    if (measured.width > kMost / measured.height) return 0;
    const anymps::Picture picture = anymps::decode_picture({data, size}, false);
    if (picture.width != measured.width || picture.height != measured.height ||
        picture.rgb.size() != static_cast<size_t>(picture.width * picture.height * 3))
      __builtin_trap();
  } catch (const anymps::Error& error) {
    if (error.code() == anymps::Code::kInternal) throw;  // our fault, not the picture's
  }
  return 0;
}
