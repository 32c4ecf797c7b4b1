// SPDX-License-Identifier: Apache-2.0
#include "flat_mutator.h"

#include <random>

#include "flat_places.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

class FlatMutator {
 public:
  FlatMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed)
      : data_(data), size_(size), max_size_(max_size), random_(seed) {}

  size_t mutate() {
    if (below(16) == 0) return LLVMFuzzerMutate(data_, size_, max_size_);
    const FlatPlaces found(data_, size_);
    const std::vector<FlatPlace>& places = found.places();
    if (places.empty()) return LLVMFuzzerMutate(data_, size_, max_size_);
    for (size_t edits = 1 + below(3) * below(2); edits > 0; --edits)
      change(places[below(places.size())], places);
    return below(64) == 0 ? 1 + below(size_) : size_;
  }

 private:
  size_t below(size_t limit) { return random_() % limit; }

  template <typename T>
  T load(size_t at) const {
    T value;
    std::memcpy(&value, data_ + at, sizeof(T));
    return value;
  }
  uint64_t read(const FlatPlace& place) const {
    uint64_t value = 0;
    std::memcpy(&value, data_ + place.at, place.width);
    return value;
  }
  void write(const FlatPlace& place, uint64_t value) {
    std::memcpy(data_ + place.at, &value, place.width);
  }

  void change(const FlatPlace& place, const std::vector<FlatPlace>& places) {
    const uint64_t value = read(place);
    const FlatPlace& other = places[below(places.size())];
    switch (place.kind) {
      case FlatPlace::kNumber:
        return write(place, number(value, other));
      case FlatPlace::kCount:
        return write(place, below(4) ? value + below(5) - 2 : number(value, other));
      case FlatPlace::kSlot:
        return write(place, below(3) == 0                    ? 0
                            : other.kind == FlatPlace::kSlot ? read(other)
                                                             : value + 4 * below(3) - 4);
      case FlatPlace::kOffset:
        // Where another offset leads: parts that are shared, of the wrong type, in circles.
        return write(place, other.kind == FlatPlace::kOffset ? other.at + read(other) - place.at
                                                             : value + 4 * below(5) - 8);
    }
  }

  uint64_t number(uint64_t value, const FlatPlace& other) {
    static constexpr uint64_t kOdd[] = {
        0,          1,          2,       3,          16,         17,         127,
        128,        255,        256,     0x7fff,     0x7fffffff, 0x80000000, 0xffffffff,
        0x3f800000, 0x7f800000, ~0ull,   ~0ull >> 1, 1ull << 63, 1ull << 31, 0x100000000,
        0xfffe,     0xfffffffe, 0x10000, 1000000,    0x40000000, 1ull << 40, 0x7fc00000,
    };
    switch (below(6)) {
      case 0:
        return kOdd[below(std::size(kOdd))];
      case 1:
        return read(other);
      case 2:
        return below(32);  // ids, axes, kinds
      case 3:
        return value ^ 1ull << below(64);
      default:
        return value + below(9) - 4;
    }
  }

  uint8_t* data_;
  size_t size_, max_size_;
  std::minstd_rand random_;
};

}  // namespace

size_t mutate_flat(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return FlatMutator(data, size, max_size, seed).mutate();
}
