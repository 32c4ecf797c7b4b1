// SPDX-License-Identifier: Apache-2.0
// Writes payloads for tests: values, nodes with fields by number, constants in the segment. What it
// writes is right unless a test asks for something odd.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "formats/executorch/payload/node_kinds.h"
#include "formats/executorch/payload/payload.h"

namespace anymps::executorch {

inline constexpr DType F32 = DType::kF32, F16 = DType::kF16;
inline constexpr DType I64 = DType::kI64, I32 = DType::kI32;

class PayloadBuilder {
 public:
  using List = std::vector<int32_t>;
  // int: an id or a number; int64_t: a `long`; DType: an MPSDataType.
  using Content = std::variant<int, int64_t, float, bool, DType, std::string, List>;
  using Fields = std::vector<std::pair<int, Content>>;

  int input(DType dtype, List dims) {
    inputs_.push_back(value(dtype, std::move(dims)));
    return inputs_.back();
  }
  int value(DType dtype, List dims) {
    values_.push_back({number_of(dtype), std::move(dims), 0, 0, {}});
    return static_cast<int>(values_.size()) - 1;
  }
  template <typename T>
  int constant(DType dtype, List dims, const std::vector<T>& elements) {
    const int id = value(dtype, std::move(dims));
    const std::string bytes(reinterpret_cast<const char*>(elements.data()),
                            elements.size() * sizeof(T));
    if (inline_constants) {
      values_.back().inlined = bytes;
    } else {
      values_.back().offset = segment_.size();
      segment_ += bytes;
    }
    values_.back().size = bytes.size();
    constants_.push_back(id);
    return id;
  }
  void node(std::string_view kind, Fields fields, Fields min_max = {}) {
    nodes_.push_back({kind, std::move(fields), std::move(min_max)});
  }
  void output(int id) { outputs_.push_back(id); }

  // Odd things.
  bool inline_constants = false;
  bool header = true;
  int kind_number = 0;  // of all nodes, instead of their own
  int64_t segment_offset_error = 0;
  struct Value {
    int16_t datatype;
    List dims;
    uint64_t size, offset;
    std::string inlined;
    int num_dims_error = 0;
  };
  Value& edit(int id) { return values_[static_cast<size_t>(id)]; }

  std::string bytes() const {
    const std::string graph = graph_bytes();
    if (!header) return graph;
    std::string result("\0\0\0\0MP00", 8);
    const size_t end = 24 + graph.size(), padding = (16 - end % 16) % 16;
    append(result,
           static_cast<uint64_t>(static_cast<int64_t>(end + padding) + segment_offset_error));
    append(result, uint64_t{segment_.size()});
    return result + graph + std::string(padding, '\0') + segment_;
  }

  std::unique_ptr<Graph> import() const {
    auto owner = std::make_shared<const std::string>(bytes());
    return import_payload({*owner, owner, false, "test"});
  }

 private:
  using Builder = flatbuffers::FlatBufferBuilder;
  struct Node {
    std::string_view kind;
    Fields fields, min_max;
  };

  static int16_t number_of(DType dtype) {
    static constexpr DType kTypes[] = {
        DType::kF16, DType::kF32, DType::kF64, DType::kBF16, DType::kI4,
        DType::kI8,  DType::kI16, DType::kI32, DType::kI64,  DType::kU4,
        DType::kU8,  DType::kU16, DType::kU32, DType::kU64,  DType::kBool,
    };
    const auto found = std::find(std::begin(kTypes), std::end(kTypes), dtype);
    return static_cast<int16_t>(found - std::begin(kTypes) + 1);
  }
  static void append(std::string& to, uint64_t number) {
    to.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  static flatbuffers::voffset_t slot(int field) {
    return static_cast<flatbuffers::voffset_t>(4 + 2 * field);
  }

  static flatbuffers::uoffset_t table(Builder& builder, const Fields& fields) {
    std::vector<flatbuffers::Offset<void>> made(fields.size());
    for (size_t i = 0; i < fields.size(); ++i) {
      if (const auto* text = std::get_if<std::string>(&fields[i].second))
        made[i] = builder.CreateString(*text).o;
      if (const auto* list = std::get_if<List>(&fields[i].second))
        made[i] = builder.CreateVector(*list).o;
    }
    const auto start = builder.StartTable();
    for (size_t i = 0; i < fields.size(); ++i) {
      const auto at = slot(fields[i].first);
      const Content& content = fields[i].second;
      if (const auto* x = std::get_if<int>(&content)) builder.AddElement<int32_t>(at, *x, 0);
      if (const auto* x = std::get_if<int64_t>(&content)) builder.AddElement<int64_t>(at, *x, 0);
      if (const auto* x = std::get_if<float>(&content)) builder.AddElement<float>(at, *x, 0);
      if (const auto* x = std::get_if<bool>(&content)) builder.AddElement<uint8_t>(at, *x, 0);
      if (const auto* x = std::get_if<DType>(&content))
        builder.AddElement<int16_t>(at, number_of(*x), 0);
      if (made[i].o) builder.AddOffset(at, made[i]);
    }
    return builder.EndTable(start);
  }

  std::string graph_bytes() const {
    Builder builder;
    std::vector<flatbuffers::Offset<void>> nodes, values;
    for (const Node& node : nodes_) {
      const flatbuffers::Offset<void> fields = table(builder, node.fields);
      flatbuffers::Offset<void> min_max = 0;
      if (!node.min_max.empty()) min_max = table(builder, node.min_max);
      const auto kinds = node_kinds();
      const auto kind = std::find(kinds.begin(), kinds.end(), node.kind) - kinds.begin() + 1;
      const auto start = builder.StartTable();
      builder.AddElement<uint8_t>(slot(0), static_cast<uint8_t>(kind_number ? kind_number : kind),
                                  0);
      builder.AddOffset(slot(1), fields);
      if (min_max.o) builder.AddOffset(slot(2), min_max);
      nodes.emplace_back(builder.EndTable(start));
    }
    for (const Value& value : values_) {
      const flatbuffers::Offset<void> dims = builder.CreateVector(value.dims).o;
      flatbuffers::Offset<void> buffer = 0;
      if (!value.inlined.empty()) {
        const flatbuffers::Offset<void> storage =
            builder
                .CreateVector(reinterpret_cast<const uint8_t*>(value.inlined.data()),
                              value.inlined.size())
                .o;
        const auto start = builder.StartTable();
        builder.AddOffset(slot(0), storage);
        buffer = builder.EndTable(start);
      }
      const auto start = builder.StartTable();
      builder.AddElement<int16_t>(slot(0), value.datatype, 0);
      builder.AddElement<int32_t>(
          slot(1), static_cast<int32_t>(value.dims.size()) + value.num_dims_error, 0);
      builder.AddOffset(slot(2), dims);
      builder.AddElement<uint64_t>(slot(3), value.size, 0);
      if (buffer.o) builder.AddOffset(slot(4), buffer);
      builder.AddElement<uint64_t>(slot(5), value.offset, 0);
      values.emplace_back(builder.EndTable(start));
    }
    const flatbuffers::Offset<void> node_list = builder.CreateVector(nodes).o;
    const flatbuffers::Offset<void> value_list = builder.CreateVector(values).o;
    const flatbuffers::Offset<void> inputs = builder.CreateVector(inputs_).o;
    const flatbuffers::Offset<void> outputs = builder.CreateVector(outputs_).o;
    const flatbuffers::Offset<void> constants = builder.CreateVector(constants_).o;
    const auto start = builder.StartTable();
    builder.AddOffset(slot(1), node_list);
    builder.AddOffset(slot(2), value_list);
    builder.AddOffset(slot(3), inputs);
    builder.AddOffset(slot(4), outputs);
    builder.AddOffset(slot(5), constants);
    const flatbuffers::Offset<void> root = builder.EndTable(start);
    builder.Finish(root, "MP00");
    return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
  }

  std::vector<Value> values_;
  std::vector<Node> nodes_;
  List inputs_, outputs_, constants_;
  std::string segment_;
};

}  // namespace anymps::executorch
