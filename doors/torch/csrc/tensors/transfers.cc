// SPDX-License-Identifier: Apache-2.0
#include "tensors/transfers.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <c10/util/Exception.h>

namespace anymps::aten {

namespace {

struct Counted {
  std::atomic<uint64_t> count{0}, bytes{0};
};
enum { kToDevice, kToHost, kWithin, kDirections };
std::array<Counted, kDirections> counted;

// The value of a variable of the environment that is a number from zero on.
double number(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  if (!text || !*text) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  TORCH_CHECK(*end == '\0' && value >= 0 && value < 1e12, name, " is not a number: '", text, "'");
  return value;
}

// What a transfer takes at least. The defaults are about those of a device behind PCIe 4.0 x16.
struct Model {
  bool copies = false;
  double nanoseconds = 0, nanoseconds_per_byte = 0;
};
const Model& model() {
  static const Model made = [] {
    const char* text = std::getenv("ANYMPS_TRANSFER");
    const std::string_view mode = text && *text ? text : "shared";
    TORCH_CHECK(mode == "shared" || mode == "copy", "ANYMPS_TRANSFER is 'shared' or 'copy', not '",
                mode, "'");
    if (mode == "shared") return Model{};
    const double gigabytes = number("ANYMPS_TRANSFER_GBPS", 25);
    return Model{true, number("ANYMPS_TRANSFER_LATENCY_US", 10) * 1e3,
                 gigabytes > 0 ? 1 / gigabytes : 0};
  }();
  return made;
}

}  // namespace

bool transfers_are_copies() { return model().copies; }

Transfer::Transfer(c10::Device from, c10::Device to, size_t bytes) {
  Counted& direction = counted[!from.is_mps() ? kToDevice : to.is_mps() ? kWithin : kToHost];
  direction.count.fetch_add(1, std::memory_order_relaxed);
  direction.bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (!model().copies || from.type() == to.type()) return;
  const double takes =
      model().nanoseconds + static_cast<double>(bytes) * model().nanoseconds_per_byte;
  end_ = now() + std::chrono::nanoseconds(static_cast<int64_t>(takes));
}

Transfer::~Transfer() {
  if (end_ == Moment()) return;
  while (now() < end_) {  // too short to sleep
  }
}

// Two numbers, count and bytes: to the device, to the host, within the device.
extern "C" __attribute__((visibility("default"))) void anymps_torch_transfers(uint64_t* numbers) {
  for (const Counted& direction : counted) {
    *numbers++ = direction.count.load(std::memory_order_relaxed);
    *numbers++ = direction.bytes.load(std::memory_order_relaxed);
  }
}

}  // namespace anymps::aten
