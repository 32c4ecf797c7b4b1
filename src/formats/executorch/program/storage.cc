// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/program/storage.h"

#include <algorithm>

#include "formats/executorch/schema/program_fields.h"

namespace anymps::executorch {

namespace {

constexpr size_t kHeaderAt = 8;        // after the FlatBuffer's first offset and its identifier
constexpr uint32_t kHeaderBytes = 24;  // magic, its length, two u64; a third one in newer files

struct Header {
  bool there = false;
  uint64_t program_size = 0, segment_base = 0, segment_size = 0;  // segment_size 0: not told
};

Header read_header(const Source& source) {
  Header header;
  const std::string_view bytes = source.bytes;
  if (bytes.size() < kHeaderAt + 4 || bytes.substr(kHeaderAt, 2) != "eh") return header;
  const auto wrong = [&](const char* field, const std::string& what) {
    fail(Code::kCorrupt, "[executorch] {}: extended header.{}: {}", source.name, field, what);
  };
  if (bytes.substr(kHeaderAt, 4) != "eh00")
    fail(Code::kUnsupported, "[executorch] {}: extended header.magic: only \"eh00\" is known",
         source.name);
  if (bytes.size() < kHeaderAt + kHeaderBytes) wrong("length", "the file ends before it");
  const auto length = number_at<uint32_t>(bytes, kHeaderAt + 4);
  if (length < kHeaderBytes || length > bytes.size() - kHeaderAt)
    wrong("length",
          fmt::format("{} bytes, must be {} or more and fit into the file", length, kHeaderBytes));
  header.there = true;
  header.program_size = number_at<uint64_t>(bytes, kHeaderAt + 8);
  header.segment_base = number_at<uint64_t>(bytes, kHeaderAt + 16);
  if (length >= kHeaderBytes + 8) header.segment_size = number_at<uint64_t>(bytes, kHeaderAt + 24);
  if (header.program_size > bytes.size() || header.program_size < kHeaderAt + length)
    wrong("program_size",
          fmt::format("{} of a file of {} bytes", header.program_size, bytes.size()));
  if (header.segment_base != 0 &&
      (header.segment_base < header.program_size || header.segment_base > bytes.size()))
    wrong("segment_base_offset",
          fmt::format("{}, but the program ends at {} and the file at {}", header.segment_base,
                      header.program_size, bytes.size()));
  if (header.segment_size > bytes.size() - header.segment_base)
    wrong("segment_data_size", fmt::format("{} bytes from byte {} do not fit into {}",
                                           header.segment_size, header.segment_base, bytes.size()));
  return header;
}

std::string_view first_bytes(const FlatTable& table, FlatField field, std::string_view piece,
                             size_t bytes) {
  if (piece.size() < bytes)
    table.fail(field, "the tensor has {} bytes, its data {}", bytes, piece.size());
  return piece.substr(0, bytes);
}

}  // namespace

std::string_view Storage::flat_part(const Source& source) {
  const Header header = read_header(source);
  return header.there ? source.bytes.substr(0, header.program_size) : source.bytes;
}

Storage::Storage(const Source& source)
    : source_(source),
      flat_(flat_part(source), "[executorch] " + source.name),
      root_(flat_.root("Program")) {
  if (flat_.identifier() != "ET12")
    fail(Code::kUnsupported, "[executorch] {}: identifier \"{}\", only \"ET12\" is known",
         source.name, flat_.identifier());
  read_segments();
  for (const FlatTable& buffer : root_.tables(field::Program::kConstantBuffer, "Buffer"))
    inline_constants_.push_back(buffer.bytes(field::Buffer::kStorage));
  for (const FlatTable& data :
       root_.tables(field::Program::kBackendDelegateData, "BackendDelegateInlineData"))
    inline_payloads_.push_back(data.bytes(field::BackendDelegateInlineData::kData));
  if (const auto offsets = root_.maybe(field::Program::kConstantSegment, "SubsegmentOffsets"))
    constants_ = pieces(*offsets);
  for (const FlatTable& offsets :
       root_.tables(field::Program::kMutableDataSegments, "SubsegmentOffsets"))
    states_.push_back(pieces(offsets));
}

void Storage::read_segments() {
  const Header header = read_header(source_);
  const std::vector<FlatTable> tables = root_.tables(field::Program::kSegments, "DataSegment");
  // A program without constants has an empty segment for them, and no header.
  const bool empty = std::all_of(tables.begin(), tables.end(), [](const FlatTable& table) {
    return table.scalar<uint64_t>(field::DataSegment::kSize) == 0;
  });
  if (empty) {
    segments_.resize(tables.size());
    return;
  }
  if (!header.there || header.segment_base == 0)
    root_.fail(field::Program::kSegments,
               "there are {}, but the file has no extended header that tells where", tables.size());
  const std::string_view all = source_.bytes.substr(
      header.segment_base, header.segment_size ? header.segment_size : std::string_view::npos);
  segments_ = executorch::read_segments(root_, field::Program::kSegments, all);
}

Storage::Pieces Storage::pieces(const FlatTable& table) const {
  Pieces result;
  const auto offsets = table.numbers<uint64_t>(field::SubsegmentOffsets::kOffsets);
  if (offsets.empty()) return result;
  const auto index = table.scalar<uint32_t>(field::SubsegmentOffsets::kSegment);
  if (index >= segments_.size())
    table.fail(field::SubsegmentOffsets::kSegment, "there is no segment {}; the file has {}", index,
               segments_.size());
  result.there = true;
  for (const uint64_t offset : offsets) {
    if (offset > segments_[index].size())
      table.fail(field::SubsegmentOffsets::kOffsets, "{} is past the end of segment {}, at {}",
                 offset, index, segments_[index].size());
    result.list.push_back(segments_[index].substr(offset));
  }
  return result;
}

std::string_view Storage::constant(const FlatTable& table, uint64_t buffer, size_t bytes) const {
  if (constants_.there && !inline_constants_.empty())
    root_.fail(field::Program::kConstantBuffer, "there is a constant_segment as well");
  const auto& list = constants_.there ? constants_.list : inline_constants_;
  if (buffer >= list.size())
    table.fail(field::Tensor::kDataBuffer, "there is no constant {}; the file has {}", buffer,
               list.size());
  return first_bytes(table, field::Tensor::kDataBuffer, list[buffer], bytes);
}

std::string_view Storage::state(const FlatTable& table, uint64_t segment, uint64_t buffer,
                                size_t bytes) const {
  if (segment >= states_.size())
    table.fail(field::Tensor::kExtra, "mutable_data_segments_idx is {}; the file has {}", segment,
               states_.size());
  const auto& list = states_[segment].list;
  if (buffer >= list.size())
    table.fail(field::Tensor::kDataBuffer,
               "there is no initial state {}; mutable_data_segments[{}] has {}", buffer, segment,
               list.size());
  return first_bytes(table, field::Tensor::kDataBuffer, list[buffer], bytes);
}

std::string_view Storage::external(const FlatTable& table, const Tensor& tensor,
                                   size_t bytes) const {
  if (!source_.mapped)
    table.unsupported(field::ExtraTensorInfo::kLocation,
                      "the elements of \"{}\" are in a .ptd file: open the program "
                      "from its path",
                      tensor.name);
  if (!external_) external_ = std::make_unique<ExternalData>(source_.name);
  return external_->find(table, tensor, bytes);
}

std::shared_ptr<const void> Storage::external_file() const {
  return external_ ? external_->file() : nullptr;
}

std::string_view Storage::payload(const FlatTable& reference) const {
  const auto location = reference.scalar<int8_t>(field::BackendDelegateDataReference::kLocation);
  const auto index = reference.scalar<uint32_t>(field::BackendDelegateDataReference::kIndex);
  if (location != 0 && location != 1)
    reference.fail(field::BackendDelegateDataReference::kLocation, "{} is none of 0, 1", location);
  const auto& list = location == 0 ? inline_payloads_ : segments_;
  if (index >= list.size())
    reference.fail(field::BackendDelegateDataReference::kIndex,
                   "there is no {} {}; the file has {}",
                   location == 0 ? "backend_delegate_data" : "segment", index, list.size());
  return list[index];
}

std::vector<std::pair<std::string, std::string_view>> Storage::named_data() const {
  std::vector<std::pair<std::string, std::string_view>> result;
  for (const FlatTable& table : root_.tables(field::Program::kNamedData, "NamedData")) {
    const auto index = table.scalar<uint32_t>(field::NamedData::kSegment);
    if (index >= segments_.size())
      table.fail(field::NamedData::kSegment, "there is no segment {}; the file has {}", index,
                 segments_.size());
    result.emplace_back(table.string(field::NamedData::kKey), segments_[index]);
  }
  return result;
}

std::vector<std::string_view> read_segments(const FlatTable& root, FlatField field,
                                            std::string_view all) {
  std::vector<std::string_view> segments;
  uint64_t end = 0;
  for (const FlatTable& table : root.tables(field, "DataSegment")) {
    const auto offset = table.scalar<uint64_t>(field::DataSegment::kOffset),
               size = table.scalar<uint64_t>(field::DataSegment::kSize);
    if (offset > all.size())
      table.fail(field::DataSegment::kOffset, "{} of {} bytes", offset, all.size());
    if (size > all.size() - offset)
      table.fail(field::DataSegment::kSize, "{} bytes at {} do not fit into {}", size, offset,
                 all.size());
    if (size && offset < end)
      table.fail(field::DataSegment::kOffset, "{} is inside the segment before, which ends at {}",
                 offset, end);
    if (size) end = offset + size;
    segments.push_back(all.substr(offset, size));
  }
  return segments;
}

DType read_dtype(const FlatTable& table, FlatField field) {
  const auto type = table.scalar<int8_t>(field);
  try {
    return to_dtype(type);
  } catch (const Error& error) {
    table.unsupported(field, "{}", error.what());
  }
}

}  // namespace anymps::executorch
