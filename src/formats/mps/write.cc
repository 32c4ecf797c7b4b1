// SPDX-License-Identifier: Apache-2.0
// Writes `.mps` files; formats/mps/mps.h says how they look.
#include <algorithm>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "base/checksum.h"
#include "base/output_file.h"
#include "base/string_store.h"
#include "formats/mps/format.h"
#include "formats/mps/mps.h"

namespace anymps {

namespace {

using mps::ByteWriter;
using mps::Section;
using mps::SectionKind;

uint64_t aligned(uint64_t offset) {
  return (offset + mps::kAlignment - 1) / mps::kAlignment * mps::kAlignment;
}

// The bytes of a file, in memory; what OutputFile is for files.
class OutputBytes {
 public:
  void write(const void* data, size_t bytes) {
    if (bytes == 0) return;
    if (bytes_.size() < at_ + bytes) bytes_.resize(at_ + bytes);
    std::memcpy(bytes_.data() + at_, data, bytes);
    at_ += bytes;
  }
  void seek(uint64_t offset) { at_ = offset; }
  uint64_t at() const { return at_; }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
  uint64_t at_ = 0;
};

template <typename Output>
void pad_to(Output& file, uint64_t offset) {
  constexpr char kZeros[mps::kAlignment] = {};
  while (file.at() < offset)
    file.write(kZeros, std::min<uint64_t>(offset - file.at(), sizeof(kZeros)));
}

class GraphWriter {
 public:
  std::string write(const Graph& graph) {
    ByteWriter out;
    add(graph, out, 0);
    return out.bytes();
  }
  // Every constant once, in the order of its number.
  const std::vector<ConstantPtr>& constants() const { return constants_; }

 private:
  using Numbers = std::unordered_map<const Value*, uint32_t>;

  void add(const Graph& graph, ByteWriter& out, int depth) {
    require(depth < mps::kMaxNesting, "[mps] graphs are nested more than {} deep",
            mps::kMaxNesting);
    out.text(graph.name);
    Numbers numbers;
    auto number = [&](const Value* value) {
      numbers.emplace(value, static_cast<uint32_t>(numbers.size()));
    };
    out.count(graph.inputs().size());
    for (const Value* value : graph.inputs()) {
      number(value);
      out.text(value->name);
      add(value->type, out);
    }
    std::vector<const Value*> constants;
    for (const Value* value : graph.values())
      if (value->is_constant()) constants.push_back(value);
    out.count(constants.size());
    for (const Value* value : constants) {
      number(value);
      out.text(value->name);
      out.u32(index_of(value->constant));
    }
    out.count(graph.node_count());
    for (const auto& node : graph.nodes()) {
      out.text(node->op->name);
      out.text(node->name);
      add(*node, out, depth);
      out.count(node->inputs.size());
      for (const Value* value : node->inputs) out.u32(value ? numbers.at(value) : mps::kNoValue);
      out.count(node->outputs.size());
      for (const Value* value : node->outputs) {
        number(value);
        out.text(value->name);
        add(value->type, out);
      }
    }
    out.count(graph.outputs().size());
    for (const Value* value : graph.outputs()) out.u32(numbers.at(value));
  }

  void add(const ValueType& type, ByteWriter& out) {
    out.u8(static_cast<uint8_t>(type.dtype));
    out.u8(static_cast<uint8_t>((type.ranked ? mps::kRanked : 0) | static_cast<int>(type.container)
                                                                       << mps::kContainerShift));
    if (!type.ranked) return;
    out.count(type.shape.size());
    for (const Dim& dim : type.shape) {
      out.u8(static_cast<uint8_t>(dim.known() ? mps::DimTag::kNumber : mps::DimTag::kSymbol));
      if (dim.known())
        out.i64(dim.value());
      else
        out.text(dim.str());
    }
  }

  void add(const Node& node, ByteWriter& out, int depth) {
    const NamedAttrs attrs = node.attrs.named();
    out.count(attrs.size());
    for (const NamedAttr& attr : attrs) {
      const AttrSpec& spec = node.op->attrs[node.op->attr_index(attr.name)];
      out.text(attr.name);
      out.u8(static_cast<uint8_t>(spec.kind));
      switch (spec.kind) {
        case AttrKind::kInt:
        case AttrKind::kBool:
        case AttrKind::kDType:
          out.i64(std::get<int64_t>(attr.value));
          break;
        case AttrKind::kFloat:
          out.f64(std::get<double>(attr.value));
          break;
        case AttrKind::kString:
          out.text(std::get<std::string>(attr.value));
          break;
        case AttrKind::kInts: {
          const auto& list = std::get<std::vector<int64_t>>(attr.value);
          out.count(list.size());
          for (int64_t element : list) out.i64(element);
          break;
        }
        case AttrKind::kFloats: {
          const auto& list = std::get<std::vector<double>>(attr.value);
          out.count(list.size());
          for (double element : list) out.f64(element);
          break;
        }
        case AttrKind::kGraph: {
          const auto& graph = std::get<std::shared_ptr<Graph>>(attr.value);
          out.u8(graph ? 1 : 0);
          if (graph) add(*graph, out, depth + 1);
          break;
        }
      }
    }
  }

  uint32_t index_of(const ConstantPtr& constant) {
    auto [it, fresh] = indices_.emplace(constant.get(), static_cast<uint32_t>(constants_.size()));
    if (fresh) constants_.push_back(constant);
    return it->second;
  }

  std::unordered_map<const Constant*, uint32_t> indices_;
  std::vector<ConstantPtr> constants_;
};

struct ConstantPlace {
  uint64_t offset = 0, bytes = 0, checksum = 0;
};

// Strings have no fixed size: each is written with its length.
std::string string_bytes(const Constant& constant) {
  ByteWriter out;
  const auto data = constant.data();
  const auto* elements = reinterpret_cast<const Text*>(data.get());
  for (int64_t i = 0; i < constant.desc().count(); ++i) out.text(text_of(elements[i]));
  return out.bytes();
}

std::string constant_table(const std::vector<ConstantPtr>& constants,
                           const std::vector<ConstantPlace>& places) {
  ByteWriter out;
  out.count(constants.size());
  for (size_t i = 0; i < constants.size(); ++i) {
    const Constant& constant = *constants[i];
    out.u8(static_cast<uint8_t>(constant.dtype()));
    out.count(constant.shape().size());
    for (int64_t extent : constant.shape()) out.i64(extent);
    out.u64(places[i].offset);
    out.u64(places[i].bytes);
    out.u64(places[i].checksum);
  }
  return out.bytes();
}

std::string header_and_table(const std::vector<Section>& sections, uint64_t file_bytes) {
  ByteWriter header, table;
  header.raw(mps::kMagic);
  header.u32(kMpsVersion);
  header.u32(static_cast<uint32_t>(mps::kHeaderBytes));
  header.u64(file_bytes);
  header.count(sections.size());
  while (header.bytes().size() < mps::kHeaderBytes - 8) header.u8(0);
  for (const Section& section : sections) {
    table.u32(static_cast<uint32_t>(section.kind));
    table.u32(0);
    table.u64(section.offset);
    table.u64(section.bytes);
    table.u64(section.checksum);
  }
  header.u64(Checksum()
                 .add(header.bytes().data(), header.bytes().size())
                 .add(table.bytes().data(), table.bytes().size())
                 .value());
  return header.bytes() + table.bytes();
}

// `open` makes the output when all that can be wrong with the graph has been found.
template <typename Open>
auto write_mps(const Graph& graph, const Metadata& metadata, Open&& open) {
  GraphWriter writer;
  const std::string graph_bytes = writer.write(graph);
  const std::vector<ConstantPtr>& constants = writer.constants();
  std::vector<ConstantPlace> places(constants.size());

  // Sizes are known before the constants are: their table and the header are written last.
  std::vector<std::pair<SectionKind, std::string>> parts;
  parts.emplace_back(SectionKind::kGraph, graph_bytes);
  parts.emplace_back(SectionKind::kConstants, constant_table(constants, places));
  for (const auto& [name, bytes] : metadata) {
    ByteWriter entry;
    entry.text(name);
    entry.raw(bytes);
    parts.emplace_back(SectionKind::kMetadata, entry.bytes());
  }
  require(parts.size() < mps::kMaxSections, "[mps] {} entries of metadata are too many",
          metadata.size());
  std::vector<Section> sections;
  uint64_t at = mps::kHeaderBytes + (parts.size() + 1) * mps::kSectionBytes;
  for (const auto& [kind, bytes] : parts) {
    at = aligned(at);
    sections.push_back({kind, at, bytes.size(), 0});
    at += bytes.size();
  }
  const uint64_t data = aligned(at);

  auto file = open();
  pad_to(*file, data);
  for (size_t i = 0; i < constants.size(); ++i) {
    pad_to(*file, aligned(file->at()));
    places[i].offset = file->at();
    if (constants[i]->dtype() == DType::kString) {
      const std::string text = string_bytes(*constants[i]);
      places[i].bytes = text.size();
      places[i].checksum = checksum(text.data(), text.size());
      file->write(text.data(), text.size());
      continue;
    }
    const auto bytes = constants[i]->data();
    places[i].bytes = constants[i]->bytes();
    places[i].checksum = checksum(bytes.get(), places[i].bytes);
    file->write(bytes.get(), places[i].bytes);
    constants[i]->release();
  }
  const uint64_t end = file->at();
  // The data section's own checksum is unused: each constant has one.
  sections.push_back({SectionKind::kData, data, end - data, 0});
  parts[1].second = constant_table(constants, places);
  for (size_t i = 0; i < parts.size(); ++i) {
    sections[i].checksum = checksum(parts[i].second.data(), parts[i].second.size());
    file->seek(sections[i].offset);
    file->write(parts[i].second.data(), parts[i].second.size());
  }
  const std::string head = header_and_table(sections, end);
  file->seek(0);
  file->write(head.data(), head.size());
  return file;
}

}  // namespace

void save_mps(const Graph& graph, const std::string& path, const Metadata& metadata,
              const MappedFiles& sources) {
  const auto file =
      write_mps(graph, metadata, [&] { return std::make_unique<OutputFile>(path, "mps"); });
  check_whole(sources);
  file->keep();
}

std::string mps_bytes(const Graph& graph, const Metadata& metadata) {
  return write_mps(graph, metadata, [] { return std::make_unique<OutputBytes>(); })->take();
}

}  // namespace anymps
