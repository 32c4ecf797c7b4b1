// SPDX-License-Identifier: Apache-2.0
// Where the numbers of a FlatBuffer lie, found without its schema: what looks like a table, a list
// or a buffer within a buffer is taken for one. A mutator that changes these places keeps the rest
// of a file readable, so that errors behind the first offset are reached too. Wrong guesses do no
// harm.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

struct FlatPlace {
  enum Kind : uint8_t {
    kNumber,  // a field, or an element of a list
    kOffset,  // to a table or a list
    kCount,   // of a list
    kSlot,    // where a table has a field; 0: absent
  };
  uint32_t at;
  uint8_t width;
  Kind kind;
};

class FlatPlaces {
 public:
  FlatPlaces(const uint8_t* data, size_t size) : data_(data), size_(size), seen_(size / 4 + 1) {
    file(0, size);
  }
  const std::vector<FlatPlace>& places() const { return places_; }

 private:
  static constexpr size_t kMaxPlaces = 4096, kMaxFields = 64, kMaxElements = 64;

  template <typename T>
  T load(size_t at) const {
    T value;
    std::memcpy(&value, data_ + at, sizeof(T));
    return value;
  }
  void add(size_t at, size_t width, FlatPlace::Kind kind) {
    if (places_.size() < kMaxPlaces)
      places_.push_back({static_cast<uint32_t>(at), static_cast<uint8_t>(width), kind});
  }
  std::string_view letters(size_t at) const {
    return {reinterpret_cast<const char*>(data_ + at), 4};
  }

  // A program, a bundle or a payload at [begin, end).
  bool file(size_t begin, size_t end) {
    if (end - begin < 16) return false;
    const std::string_view id = letters(begin + 4);
    if (id == "MP00" && load<uint32_t>(begin) == 0 && end - begin >= 32) {
      add(begin + 8, 8, FlatPlace::kNumber);
      add(begin + 16, 8, FlatPlace::kNumber);
      begin += 24;
    } else if (id != "MP00" && id != "ET12" && id != "BP08") {
      return false;
    }
    if (end - begin >= 40 && letters(begin + 8) == "eh00") {
      add(begin + 12, 4, FlatPlace::kNumber);
      for (const size_t at : {16, 24, 32}) add(begin + at, 8, FlatPlace::kNumber);
    }
    add(begin, 4, FlatPlace::kOffset);
    const size_t outer_end = end_;
    end_ = end;
    const size_t root = begin + load<uint32_t>(begin);
    if (is_table(root, begin)) table(root, begin);
    end_ = outer_end;
    return true;
  }

  bool is_table(size_t at, size_t begin) const {
    if (at < begin + 4 || at % 4 != 0 || at + 4 > end_) return false;
    const int64_t list = static_cast<int64_t>(at) - load<int32_t>(at);
    if (list < static_cast<int64_t>(begin) || list % 2 != 0 ||
        list + 4 > static_cast<int64_t>(end_))
      return false;
    const auto fields = static_cast<size_t>(list);
    const size_t bytes = load<uint16_t>(fields), size = load<uint16_t>(fields + 2);
    if (bytes < 4 || bytes % 2 != 0 || bytes > 4 + 2 * kMaxFields || fields + bytes > end_ ||
        size < 4 || at + size > end_)
      return false;
    for (size_t slot = fields + 4; slot < fields + bytes; slot += 2)
      if (load<uint16_t>(slot) >= size) return false;
    return true;
  }

  void table(size_t at, size_t begin) {
    if (seen_[at / 4].seen || places_.size() >= kMaxPlaces) return;
    seen_[at / 4].seen = true;
    const size_t fields = at - static_cast<size_t>(static_cast<int64_t>(load<int32_t>(at)));
    const size_t bytes = load<uint16_t>(fields);
    uint16_t ends[kMaxFields + 1] = {load<uint16_t>(fields + 2)};  // of fields: where others begin
    size_t count = 1;
    for (size_t slot = fields + 4; slot < fields + bytes; slot += 2)
      if (const auto distance = load<uint16_t>(slot)) ends[count++] = distance;
    std::sort(ends, ends + count);
    for (size_t slot = fields + 4; slot < fields + bytes; slot += 2) {
      add(slot, 2, FlatPlace::kSlot);
      const auto distance = load<uint16_t>(slot);
      if (!distance) continue;
      const size_t room = *std::upper_bound(ends, ends + count, distance) - distance;
      const size_t width = room >= 8 ? 8 : room >= 4 ? 4 : room >= 2 ? 2 : 1;
      field(at + distance, width, begin);
    }
  }

  void field(size_t at, size_t width, size_t begin) {
    if (width >= 4) {
      const uint32_t distance = load<uint32_t>(at);
      const size_t to = at + distance;
      if (distance >= 4 && to % 4 == 0 && to + 4 <= end_) {
        if (is_table(to, begin)) {
          add(at, 4, FlatPlace::kOffset);
          table(to, begin);
          return;
        }
        if (load<uint32_t>(to) <= end_ - to - 4) {
          add(at, 4, FlatPlace::kOffset);
          list(to, begin);
          return;
        }
      }
    }
    add(at, width, FlatPlace::kNumber);
  }

  void list(size_t at, size_t begin) {
    if (seen_[at / 4].seen || places_.size() >= kMaxPlaces) return;
    seen_[at / 4].seen = true;
    add(at, 4, FlatPlace::kCount);
    const size_t count = load<uint32_t>(at), first = at + 4;
    if (count >= 16 && file(first, first + count)) return;
    const bool of_tables =
        count > 0 && first + 4 * count <= end_ && is_table(first + load<uint32_t>(first), begin);
    for (size_t i = 0; i < std::min(count, kMaxElements); ++i) {
      const size_t item = first + 4 * i;
      if (item + 4 > end_) break;
      add(item, 4, of_tables ? FlatPlace::kOffset : FlatPlace::kNumber);
      if (of_tables && is_table(item + load<uint32_t>(item), begin))
        table(item + load<uint32_t>(item), begin);
    }
  }

  const uint8_t* data_;
  size_t size_, end_ = size_;
  struct Mark {
    bool seen = false;
  };
  std::vector<Mark> seen_;  // tables and lists, by their place in words
  std::vector<FlatPlace> places_;
};
