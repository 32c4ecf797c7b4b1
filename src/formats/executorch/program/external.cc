// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/program/external.h"

#include <filesystem>

#include "formats/executorch/program/storage.h"
#include "formats/executorch/schema/program_fields.h"

namespace anymps::executorch {

namespace {

constexpr const char* kDefaultName = "_default_external_constant.ptd";

}  // namespace

ExternalData::ExternalData(const std::string& program) {
  namespace fs = std::filesystem;
  const fs::path path(program);
  std::string tried;
  for (const fs::path& name : {fs::path(path.stem()) += ".ptd", fs::path(kDefaultName)}) {
    const fs::path candidate = path.parent_path() / name;
    std::error_code none;
    if (fs::is_regular_file(candidate, none)) {
      file_ = MappedFile::open(candidate.string(), "executorch");
      read();
      return;
    }
    tried += (tried.empty() ? "" : " nor ") + candidate.string();
  }
  fail(Code::kNotFound, "[executorch] {}: its weights are in a .ptd file, but there is neither {}",
       program, tried);
}

// The header: "FH01" at byte 8, u32 length, u64 offset and size of the FlatBuffer, which starts
// before it, u64 offset and size of the segments.
void ExternalData::read() {
  constexpr size_t kHeaderAt = 8, kHeaderBytes = 40;
  const std::string name = "[executorch] " + file_->path();
  const std::string_view bytes = file_->bytes();
  if (bytes.size() < kHeaderAt + kHeaderBytes || bytes.substr(4, 4) != "FT01" ||
      bytes.substr(kHeaderAt, 4) != "FH01")
    fail(Code::kCorrupt, "{}: it does not start as a .ptd file (FT01, FH01)", name);
  const auto offset = number_at<uint64_t>(bytes, 16), size = number_at<uint64_t>(bytes, 24),
             base = number_at<uint64_t>(bytes, 32), data = number_at<uint64_t>(bytes, 40);
  if (offset > bytes.size() || size > bytes.size() - offset)
    fail(Code::kCorrupt, "{}: header.flatbuffer_size: {} bytes after {} do not fit", name, size,
         offset);
  if (base < offset + size || base > bytes.size() || data > bytes.size() - base)
    fail(Code::kCorrupt, "{}: header.segment_data_size: {} bytes at {} do not fit", name, data,
         base);
  const FlatBuffer flat(bytes.substr(0, offset + size), name);
  const FlatTable root = flat.root("FlatTensor");
  const std::vector<std::string_view> segments =
      read_segments(root, field::FlatTensor::kSegments, bytes.substr(base, data));
  for (const FlatTable& table : root.tables(field::FlatTensor::kNamedData, "NamedData")) {
    const auto index = table.scalar<uint32_t>(field::NamedData::kSegment);
    if (index >= segments.size())
      table.fail(field::NamedData::kSegment, "there is no segment {}; the file has {}", index,
                 segments.size());
    Entry entry{segments[index], false, DType::kF32, {}, {}};
    if (const auto layout = table.maybe(field::NamedData::kLayout, "TensorLayout")) {
      entry.is_tensor = true;
      entry.dtype = read_dtype(*layout, field::TensorLayout::kScalarType);
      entry.sizes = read_sizes(*layout, field::TensorLayout::kSizes);
      entry.dim_order = read_dim_order(*layout, field::TensorLayout::kDimOrder, entry.sizes.size());
    }
    entries_[std::string(table.string(field::NamedData::kKey))] = std::move(entry);
  }
}

std::string_view ExternalData::find(const FlatTable& table, const Tensor& tensor,
                                    size_t bytes) const {
  const auto found = entries_.find(tensor.name);
  if (found == entries_.end())
    table.fail(field::ExtraTensorInfo::kName, "{} has no data \"{}\"", file_->path(), tensor.name);
  const Entry& entry = found->second;
  if (entry.is_tensor && (entry.dtype != tensor.dtype || entry.sizes != tensor.sizes ||
                          entry.dim_order != tensor.dim_order))
    table.fail(field::ExtraTensorInfo::kName, "\"{}\" is of another type or shape in {}",
               tensor.name, file_->path());
  if (entry.data.size() < bytes)
    table.fail(field::ExtraTensorInfo::kName, "the tensor has {} bytes, \"{}\" in {} has {}", bytes,
               tensor.name, file_->path(), entry.data.size());
  return entry.data.substr(0, bytes);
}

}  // namespace anymps::executorch
