// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/program/flat.h"

namespace anymps::executorch {

std::string_view FlatBuffer::identifier() const {
  return bytes_.size() >= 8 ? bytes_.substr(4, 4) : std::string_view();
}

FlatTable FlatBuffer::root(const char* table) const {
  const FlatTable start(this, 0, nullptr, -1);
  return FlatTable(this, start.follow(0, table), table, -1);
}

// A table starts with the distance back to the list of its fields: u16 bytes of the list, u16
// bytes of the table, then for each field the u16 distance from the table, 0 when it is absent.
FlatTable::FlatTable(const FlatBuffer* buffer, size_t at, const char* table, int64_t index)
    : buffer_(buffer), at_(at), table_(table), index_(index) {
  if (!table) return;  // the buffer itself, of which only the first offset is read
  spend(8, nullptr);
  const int64_t list = static_cast<int64_t>(at) - load<int32_t>(at, nullptr);
  if (list < 0 || list > std::ssize(buffer->bytes_))
    fail(nullptr, "its list of fields is said to be at byte {}", list);
  fields_ = list;
  const auto bytes = load<uint16_t>(fields_, nullptr);
  if (bytes < 4 || bytes % 2 != 0) fail(nullptr, "its list of fields has {} bytes", bytes);
  need(fields_, bytes, nullptr);
  field_count_ = (bytes - 4u) / 2;
}

std::string FlatTable::label() const {
  if (!table_) return "the file";
  return index_ < 0 ? table_ : fmt::format("{}[{}]", table_, index_);
}

size_t FlatTable::place(FlatField field) const {
  if (static_cast<size_t>(field.number) >= field_count_) return 0;
  const auto distance =
      load<uint16_t>(fields_ + 4 + 2 * static_cast<size_t>(field.number), nullptr);
  return distance ? at_ + distance : 0;
}

size_t FlatTable::follow(size_t at, const char* name) const {
  const auto distance = load<uint32_t>(at, name);
  if (distance == 0 || distance > buffer_->bytes_.size() - at)
    fail(name, "it is said to be {} bytes after byte {}, past the end at {}", distance, at,
         buffer_->bytes_.size());
  return at + distance;
}

void FlatTable::need(size_t at, uint64_t size, const char* name) const {
  const size_t end = buffer_->bytes_.size();
  if (at > end || size > end - at)
    fail(name, "{} bytes at byte {} do not fit into {} bytes", size, at, end);
}

void FlatTable::spend(uint64_t size, const char* name) const {
  if (size > buffer_->budget_) fail(name, "the file refers to the same parts too many times");
  buffer_->budget_ -= size;
}

FlatTable::Span FlatTable::vector(FlatField field, size_t element) const {
  const size_t slot = place(field);
  if (!slot) return {};
  const size_t at = follow(slot, field.name);
  const uint64_t count = load<uint32_t>(at, field.name);
  need(at + 4, count * element, field.name);
  spend(count * element, field.name);
  return {at + 4, static_cast<size_t>(count)};
}

std::string_view FlatTable::string(FlatField field) const {
  const std::string_view text = bytes(field);
  spend(text.size(), field.name);
  return text;
}

std::string_view FlatTable::bytes(FlatField field) const {
  const size_t slot = place(field);
  if (!slot) return {};
  const size_t at = follow(slot, field.name);
  const uint64_t count = load<uint32_t>(at, field.name);
  need(at + 4, count, field.name);
  return buffer_->bytes_.substr(at + 4, count);
}

std::optional<FlatTable> FlatTable::maybe(FlatField field, const char* table) const {
  const size_t slot = place(field);
  if (!slot) return std::nullopt;
  return FlatTable(buffer_, follow(slot, field.name), table, index_);
}

FlatTable FlatTable::table(FlatField field, const char* table) const {
  auto result = maybe(field, table);
  if (!result) fail(field.name, "it is missing");
  return *result;
}

std::vector<FlatTable> FlatTable::tables(FlatField field, const char* table) const {
  const Span span = vector(field, 4);
  std::vector<FlatTable> result;
  result.reserve(span.count);
  for (size_t i = 0; i < span.count; ++i)
    result.push_back(
        FlatTable(buffer_, follow(span.at + 4 * i, field.name), table, static_cast<int64_t>(i)));
  return result;
}

void FlatTable::refuse(Code code, const char* field, const std::string& what) const {
  if (field) anymps::fail(code, "{}: {}.{}: {}", buffer_->name_, label(), field, what);
  anymps::fail(code, "{}: {}: {}", buffer_->name_, label(), what);
}

}  // namespace anymps::executorch
