// SPDX-License-Identifier: Apache-2.0
// Reading FlatBuffers that nobody has vetted. Every offset is checked when it is followed, and an
// error names the table and the field: "Tensor[12].sizes: 4 elements at byte 812 do not fit". The
// readers that flatc generates can only say of a whole file that it is bad. Fields are those of
// schema/.
//
// Tables may share parts, so a small file can describe a huge tree; what is read in all is bounded
// by a multiple of the file's size.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/executorch/schema/field.h"

namespace anymps::executorch {

// The number at a place that is known to lie within.
template <typename T>
T number_at(std::string_view bytes, size_t at = 0) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

class FlatTable;

class FlatBuffer {
 public:
  // `bytes` must outlive the buffer and its tables; `name` is for messages.
  FlatBuffer(std::string_view bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)), budget_(16 * bytes.size() + 4096) {}
  FlatBuffer(const FlatBuffer&) = delete;
  FlatBuffer& operator=(const FlatBuffer&) = delete;

  // The four letters that tell the format; "" when the buffer is too short to have any.
  std::string_view identifier() const;
  FlatTable root(const char* table) const;
  std::string_view bytes() const { return bytes_; }
  const std::string& name() const { return name_; }

 private:
  friend class FlatTable;
  std::string_view bytes_;
  std::string name_;
  mutable uint64_t budget_;  // bytes that may still be read
};

class FlatTable {
 public:
  const char* name() const { return table_; }
  std::string label() const;  // "Tensor[12]": for messages

  bool has(FlatField field) const { return place(field) != 0; }

  template <typename T>
  T scalar(FlatField field, T otherwise = T{}) const {
    const size_t at = place(field);
    return at ? load<T>(at, field.name) : otherwise;
  }
  std::string_view string(FlatField field) const;             // "" when it is absent
  FlatTable table(FlatField field, const char* table) const;  // must be there
  std::optional<FlatTable> maybe(FlatField field, const char* table) const;
  std::vector<FlatTable> tables(FlatField field, const char* table) const;
  std::string_view bytes(FlatField field) const;  // a vector of bytes, in place

  // A vector of numbers; empty when it is absent.
  template <typename T>
  std::vector<T> numbers(FlatField field) const {
    const Span span = vector(field, sizeof(T));
    std::vector<T> result(span.count);
    if (span.count)
      std::memcpy(result.data(), buffer_->bytes_.data() + span.at, span.count * sizeof(T));
    return result;
  }

  template <typename... Args>
  [[noreturn]] void fail(const char* field, fmt::format_string<Args...> format,
                         Args&&... args) const {
    refuse(Code::kCorrupt, field, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  [[noreturn]] void fail(FlatField field, fmt::format_string<Args...> format,
                         Args&&... args) const {
    refuse(Code::kCorrupt, field.name, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  [[noreturn]] void unsupported(FlatField field, fmt::format_string<Args...> format,
                                Args&&... args) const {
    refuse(Code::kUnsupported, field.name, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  [[noreturn]] void unsupported(const char* field, fmt::format_string<Args...> format,
                                Args&&... args) const {
    refuse(Code::kUnsupported, field, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  friend class FlatBuffer;
  struct Span {
    size_t at = 0, count = 0;  // of the first element
  };

  FlatTable(const FlatBuffer* buffer, size_t at, const char* table, int64_t index);

  template <typename T>
  T load(size_t at, const char* name) const {
    need(at, sizeof(T), name);
    return number_at<T>(buffer_->bytes_, at);
  }
  size_t place(FlatField field) const;               // 0: absent
  size_t follow(size_t at, const char* name) const;  // where the offset at `at` leads
  void need(size_t at, uint64_t size, const char* name) const;
  void spend(uint64_t size, const char* name) const;
  Span vector(FlatField field, size_t element) const;
  [[noreturn]] void refuse(Code code, const char* field, const std::string& what) const;

  const FlatBuffer* buffer_;
  size_t at_, fields_ = 0;  // of the table; of the list of its fields
  size_t field_count_ = 0;
  const char* table_;
  int64_t index_;  // in the vector that it came from, or -1
};

}  // namespace anymps::executorch
