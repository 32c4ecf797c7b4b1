// SPDX-License-Identifier: Apache-2.0
// Reads `.mps` files; formats/mps/mps.h says how they look. Nothing in a file is trusted: places
// and sizes are checked against the file, names against the op table, shapes by inference.
#include <algorithm>
#include <span>

#include "base/checksum.h"
#include "base/string_store.h"
#include "formats/mps/format.h"
#include "formats/mps/mps.h"
#include "memory/string_constant.h"

namespace anymps {

namespace {

using mps::ByteReader;
using mps::Section;
using mps::SectionKind;

DType read_dtype(ByteReader& in) {
  const uint8_t code = in.u8();
  if (code >= kDTypeCount) fail(Code::kCorrupt, "{} is not a dtype", code);
  return static_cast<DType>(code);
}

uint32_t read_rank(ByteReader& in, size_t least) {
  const uint32_t rank = in.count(least);
  if (rank > mps::kMaxRank) fail(Code::kCorrupt, "rank {} is too large", rank);
  return rank;
}

int64_t read_extent(ByteReader& in) {
  const int64_t extent = in.i64();
  if (extent < 0) fail(Code::kCorrupt, "an extent is {}", extent);
  return extent;
}

std::string read_name(ByteReader& in, const char* what) {
  const std::string_view name = in.text();
  if (name.empty()) fail(Code::kCorrupt, "{} has no name", what);
  return std::string(name);
}

ValueType read_type(ByteReader& in) {
  ValueType type;
  type.dtype = read_dtype(in);
  const uint8_t flags = in.u8();
  const int container = flags >> mps::kContainerShift;
  if (container >= kContainerCount) fail(Code::kCorrupt, "unknown value flags {}", flags);
  type.ranked = flags & mps::kRanked;
  type.container = static_cast<Container>(container);
  if (!type.ranked) return type;
  const uint32_t rank = read_rank(in, 5);
  for (uint32_t i = 0; i < rank; ++i) {
    const uint8_t tag = in.u8();
    if (tag == static_cast<uint8_t>(mps::DimTag::kNumber)) {
      type.shape.push_back(read_extent(in));
    } else if (tag == static_cast<uint8_t>(mps::DimTag::kSymbol)) {
      type.shape.push_back(Dim::parse(read_name(in, "a dimension")));
    } else {
      fail(Code::kCorrupt, "unknown kind {} of dimension", tag);
    }
  }
  return type;
}

// What inference finds must not contradict what the file says.
bool agree(const ValueType& said, const ValueType& found) {
  if (said.dtype != found.dtype || said.container != found.container) return false;
  if (!said.ranked || !found.ranked) return true;
  return std::equal(said.shape.begin(), said.shape.end(), found.shape.begin(), found.shape.end(),
                    [](const Dim& a, const Dim& b) { return !a.known() || !b.known() || a == b; });
}

class GraphReader {
 public:
  GraphReader(ByteReader& in, const std::vector<ConstantPtr>& constants)
      : in_(in), constants_(constants) {}

  // `where` names the place for errors while it changes.
  std::unique_ptr<Graph> read(int depth, std::string& where) {
    if (depth >= mps::kMaxNesting) fail(Code::kCorrupt, "graphs are nested too deep");
    auto graph = std::make_unique<Graph>();
    graph->name = in_.text();
    std::vector<Value*> values;
    for (uint32_t i = in_.count(6); i > 0; --i) {
      const std::string name = read_name(in_, "an input");
      values.push_back(graph->input(name, read_type(in_)));
    }
    for (uint32_t i = in_.count(8); i > 0; --i) {
      const std::string name = read_name(in_, "a constant");
      const uint32_t index = in_.u32();
      if (index >= constants_.size())
        fail(Code::kCorrupt, "constant '{}' is number {} of {}", name, index, constants_.size());
      Value* value = graph->constant(constants_[index], name);
      check_name(*value, name);
      values.push_back(value);
    }
    const uint32_t nodes = in_.count(20);
    const std::string outside = where;
    for (uint32_t i = 0; i < nodes; ++i) {
      where = fmt::format("{}node {}", outside, i);
      read_node(*graph, values, depth, where);
    }
    where = outside + "outputs";
    std::vector<Value*> outputs;
    for (uint32_t i = in_.count(4); i > 0; --i) outputs.push_back(read_value(values));
    graph->set_outputs(std::move(outputs));
    where = outside;
    return graph;
  }

 private:
  static void check_name(const Value& value, const std::string& name) {
    if (value.name != name) fail(Code::kCorrupt, "there are two values called '{}'", name);
  }

  Value* read_value(const std::vector<Value*>& values) {
    const uint32_t index = in_.u32();
    if (index >= values.size())
      fail(Code::kCorrupt, "value {} is used before it is made ({} exist)", index, values.size());
    return values[index];
  }

  void read_node(Graph& graph, std::vector<Value*>& values, int depth, std::string& where) {
    const std::string op_name(in_.text());
    const std::string name = read_name(in_, "a node");
    where += fmt::format(" \"{}\"", name);
    const Op* op = find_op(op_name);
    if (!op) fail(Code::kCorrupt, "there is no op '{}'", op_name);
    const NamedAttrs attrs = read_attrs(*op, depth, where);
    std::vector<Value*> inputs;
    for (uint32_t i = in_.count(4); i > 0; --i) {
      const uint32_t index = in_.u32();
      if (index != mps::kNoValue && index >= values.size())
        fail(Code::kCorrupt, "value {} is used before it is made ({} exist)", index, values.size());
      inputs.push_back(index == mps::kNoValue ? nullptr : values[index]);
    }
    const uint32_t outputs = in_.count(6);
    if (outputs == 0) fail(Code::kCorrupt, "it has no outputs");
    std::vector<std::string> names;
    std::vector<ValueType> types;
    for (uint32_t i = 0; i < outputs; ++i) {
      names.push_back(read_name(in_, "an output"));
      types.push_back(read_type(in_));
    }
    const Node* node = graph.add_node(*op, std::move(inputs), attrs, name, outputs);
    for (uint32_t i = 0; i < outputs; ++i) {
      Value* value = node->outputs[i];
      if (!agree(types[i], value->type))
        fail(Code::kCorrupt, "'{}' is said to be {}, but is {}", names[i], to_string(types[i]),
             to_string(value->type));
      graph.rename(value, names[i]);
      check_name(*value, names[i]);
      values.push_back(value);
    }
  }

  NamedAttrs read_attrs(const Op& op, int depth, std::string& where) {
    NamedAttrs attrs;
    for (uint32_t i = in_.count(6); i > 0; --i) {
      const std::string name(in_.text());
      const uint8_t code = in_.u8();
      const int index = op.attr_index(name);
      if (index < 0) fail(Code::kCorrupt, "[{}] has no attribute '{}'", op.name, name);
      const AttrKind kind = op.attrs[index].kind;
      if (code != static_cast<uint8_t>(kind))
        fail(Code::kCorrupt, "[{}] attribute '{}' is of kind {}, not {}", op.name, name,
             anymps::name(kind), code);
      attrs.emplace_back(name, read_attr(kind, depth, where));
    }
    return attrs;
  }

  AttrValue read_attr(AttrKind kind, int depth, std::string& where) {
    switch (kind) {
      case AttrKind::kInt:
      case AttrKind::kBool:
      case AttrKind::kDType:
        return in_.i64();
      case AttrKind::kFloat:
        return in_.f64();
      case AttrKind::kString:
        return std::string(in_.text());
      case AttrKind::kInts: {
        std::vector<int64_t> list(in_.count(8));
        for (int64_t& element : list) element = in_.i64();
        return list;
      }
      case AttrKind::kFloats: {
        std::vector<double> list(in_.count(8));
        for (double& element : list) element = in_.f64();
        return list;
      }
      case AttrKind::kGraph: {
        if (in_.u8() == 0) return std::shared_ptr<Graph>();
        const std::string outside = where;
        where += ": ";
        std::shared_ptr<Graph> graph = read(depth + 1, where);
        where = outside;
        return graph;
      }
    }
    fail(Code::kCorrupt, "unknown kind of attribute");
  }

  ByteReader& in_;
  const std::vector<ConstantPtr>& constants_;
};

class FileReader {
 public:
  FileReader(std::string_view bytes, std::shared_ptr<const void> owner, const LoadOptions& options,
             bool mapped)
      : bytes_(bytes), owner_(std::move(owner)), options_(options), mapped_(mapped) {}

  // Where reading is, for errors.
  const std::string& where() const { return where_; }

  std::unique_ptr<Graph> read() {
    read_header();
    const Section *graph = nullptr, *constants = nullptr, *data = nullptr;
    for (const Section& section : sections_) {
      switch (section.kind) {
        case SectionKind::kGraph:
          only(graph, section);
          break;
        case SectionKind::kConstants:
          only(constants, section);
          break;
        case SectionKind::kData:
          only(data, section);
          break;
        case SectionKind::kMetadata:
          read_metadata(section);
          break;
      }
    }
    where_ = "section table";
    if (!graph || !constants || !data)
      fail(Code::kCorrupt, "there is no {} section",
           !graph       ? "graph"
           : !constants ? "constants"
                        : "data");
    read_constants(*constants, *data);
    ByteReader in(content(*graph, "graph"));
    where_ = "graph: ";
    auto result = GraphReader(in, constants_).read(0, where_);
    where_ = "graph";
    if (in.left() > 0) fail(Code::kCorrupt, "{} bytes are left over", in.left());
    return result;
  }
  Metadata& metadata() { return metadata_; }

 private:
  void read_header() {
    where_ = "header";
    if (!is_mps(bytes_)) fail(Code::kCorrupt, "this is not an .mps file");
    if (bytes_.size() < mps::kHeaderBytes)
      fail(Code::kCorrupt, "{} bytes are too few", bytes_.size());
    ByteReader in(bytes_.substr(0, mps::kHeaderBytes));
    in.take(mps::kMagic.size());
    const uint32_t version = in.u32();
    if (version > kMpsVersion)
      fail(Code::kUnsupported, "format version {} is newer than {}, the newest that can be read",
           version, kMpsVersion);
    if (version == 0 || in.u32() != mps::kHeaderBytes)
      fail(Code::kCorrupt, "version and size do not go together");
    const uint64_t file_bytes = in.u64();
    if (file_bytes != bytes_.size())
      fail(Code::kCorrupt, "the file should have {} bytes, it has {}", file_bytes, bytes_.size());
    const uint32_t count = in.u32();
    if (count > mps::kMaxSections ||
        count > (bytes_.size() - mps::kHeaderBytes) / mps::kSectionBytes)
      fail(Code::kCorrupt, "{} sections are promised", count);
    const std::string_view table = bytes_.substr(mps::kHeaderBytes, count * mps::kSectionBytes);
    const uint64_t found = Checksum()
                               .add(bytes_.data(), mps::kHeaderBytes - 8)
                               .add(table.data(), table.size())
                               .value();
    if (options_.verify_structure &&
        found != ByteReader(bytes_.substr(mps::kHeaderBytes - 8, 8)).u64())
      fail(Code::kCorrupt, "the checksum is wrong");
    read_sections(table, count);
  }

  void read_sections(std::string_view table, uint32_t count) {
    ByteReader in(table);
    for (uint32_t i = 0; i < count; ++i) {
      where_ = fmt::format("section {}", i);
      const uint32_t kind = in.u32();
      if (kind < 1 || kind > 4) fail(Code::kCorrupt, "its kind, {}, is unknown", kind);
      if (in.u32() != 0) fail(Code::kCorrupt, "reserved bytes are in use");
      Section section{static_cast<SectionKind>(kind), in.u64(), in.u64(), in.u64()};
      if (section.offset > bytes_.size() || section.bytes > bytes_.size() - section.offset)
        fail(Code::kCorrupt, "its {} bytes at {} reach outside the file", section.bytes,
             section.offset);
      sections_.push_back(section);
    }
  }

  void only(const Section*& slot, const Section& section) {
    where_ = "section table";
    if (slot) fail(Code::kCorrupt, "two sections are of kind {}", static_cast<int>(section.kind));
    slot = &section;
  }

  std::string_view content(const Section& section, const char* name) {
    where_ = name;
    const std::string_view bytes = bytes_.substr(section.offset, section.bytes);
    if (options_.verify_structure && checksum(bytes.data(), bytes.size()) != section.checksum)
      fail(Code::kCorrupt, "the checksum is wrong");
    return bytes;
  }

  void read_metadata(const Section& section) {
    ByteReader in(content(section, "metadata"));
    const std::string name(in.text());
    if (!metadata_.emplace(name, in.take(in.left())).second)
      fail(Code::kCorrupt, "there are two entries called '{}'", name);
  }

  void read_constants(const Section& section, const Section& data) {
    ByteReader in(content(section, "constants"));
    const uint32_t count = in.count(29);
    for (uint32_t i = 0; i < count; ++i) {
      where_ = fmt::format("constants: constant {}", i);
      const DType dtype = read_dtype(in);
      Shape shape;
      for (uint32_t rank = read_rank(in, 8); rank > 0; --rank) shape.push_back(read_extent(in));
      const uint64_t offset = in.u64(), size = in.u64(), sum = in.u64();
      const size_t expected = byte_count(dtype, shape);
      const bool text = dtype == DType::kString;
      if (text ? size < expected / size_of(DType::kString) * sizeof(uint32_t) : size != expected)
        fail(Code::kCorrupt, "{}{} takes {} bytes, not {}", name(dtype), to_string(shape), expected,
             size);
      if (offset % mps::kAlignment != 0 || offset < data.offset ||
          offset - data.offset > data.bytes || size > data.bytes - (offset - data.offset))
        fail(Code::kCorrupt, "its {} bytes at {} are not inside the data section", size, offset);
      const char* at = bytes_.data() + offset;
      if (text) {
        if (options_.verify_constants && checksum(at, size) != sum)
          fail(Code::kCorrupt, "the checksum is wrong");
        constants_.push_back(read_strings(shape, std::string_view(at, size)));
        continue;
      }
      constants_.push_back(aligned_
                               ? Constant::view(dtype, shape, at, owner_, mapped_)
                               : Constant::copy(dtype, shape, std::as_bytes(std::span(at, size))));
      if (!options_.verify_constants) continue;
      if (checksum(at, size) != sum) fail(Code::kCorrupt, "the checksum is wrong");
      constants_.back()->release();
    }
    if (in.left() > 0) fail(Code::kCorrupt, "{} bytes are left over", in.left());
  }

  static ConstantPtr read_strings(const Shape& shape, std::string_view bytes) {
    ByteReader in(bytes);
    std::vector<std::string> values(element_count(shape));
    for (std::string& value : values) value = in.text();
    if (in.left() > 0) fail(Code::kCorrupt, "{} bytes are left over", in.left());
    return string_constant(shape, std::move(values));
  }

  std::string_view bytes_;
  std::shared_ptr<const void> owner_;
  LoadOptions options_;
  bool mapped_;
  // Memory that is not a file's may start anywhere; elements must not.
  bool aligned_ = reinterpret_cast<uintptr_t>(bytes_.data()) % 16 == 0;
  std::string where_;
  std::vector<Section> sections_;
  std::vector<ConstantPtr> constants_;
  Metadata metadata_;
};

}  // namespace

bool is_mps(std::string_view start_of_file) { return start_of_file.starts_with(mps::kMagic); }

std::unique_ptr<Graph> load_mps(std::string_view bytes, std::shared_ptr<const void> owner,
                                bool mapped, const std::string& name, Metadata* metadata,
                                const LoadOptions& options) {
  FileReader reader(bytes, std::move(owner), options, mapped);
  try {
    auto graph = reader.read();
    if (metadata) *metadata = std::move(reader.metadata());
    return graph;
  } catch (const Error& error) {
    std::string where = reader.where();
    while (where.ends_with(' ') || where.ends_with(':')) where.pop_back();
    const Code code = error.code() == Code::kUnsupported || error.code() == Code::kOutOfMemory
                          ? error.code()
                          : Code::kCorrupt;
    fail(code, "[mps] {}: {}: {}", name, where, error.what());
  }
}

}  // namespace anymps
