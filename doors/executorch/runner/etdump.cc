// SPDX-License-Identifier: Apache-2.0
// Tables are built field by field: the numbers are those of the fields in upstream's
// devtools/etdump/etdump_schema_flatcc.fbs.
#include "etdump.h"

#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace anymps::runner {

namespace {

using flatbuffers::Offset;
using flatbuffers::Table;
using Builder = flatbuffers::FlatBufferBuilder;

constexpr flatbuffers::voffset_t field(int number) {
  return static_cast<flatbuffers::voffset_t>(4 + 2 * number);
}

enum TensorField { kScalarType, kSizes, kStrides, kOffset };
enum ValueField { kKind = 0, kTensor = 1, kOutput = 7 };
enum DebugField { kDebugInstruction = 1, kEntry = 2, kDebugDelegate = 4, kDebugName = 5 };
enum ProfileField {
  kName = 0,
  kInstruction = 2,
  kDelegate = 4,
  kMetadata = 5,
  kStart = 6,
  kEnd = 7
};
enum EventField { kProfileEvent = 0, kDebugEvent = 2 };
enum RunField { kRunName = 0, kBundledInput = 1, kEvents = 3 };
constexpr int8_t kValueIsTensor = 5;

// ExecuTorch's numbers of the dtypes that the Inspector knows.
constexpr std::pair<amps::DType, int> kScalarTypes[] = {
    {amps::DType::u8, 0},   {amps::DType::i8, 1},  {amps::DType::i16, 2},
    {amps::DType::i32, 3},  {amps::DType::i64, 4}, {amps::DType::f16, 5},
    {amps::DType::f32, 6},  {amps::DType::f64, 7}, {amps::DType::boolean, 11},
    {amps::DType::u16, 27},
};

int scalar_type(amps::DType dtype) {  // -1: the Inspector would stop at it
  for (const auto& [known, number] : kScalarTypes)
    if (known == dtype) return number;
  return -1;
}

// Types that the Inspector cannot read are written as floats.
common::Array readable(const common::Array& array) {
  if (scalar_type(array.dtype) >= 0) return array;
  common::Array floats{amps::DType::f32, array.shape, {}, {}};
  floats.data.resize(array.count() * sizeof(float));
  for (size_t i = 0; i < array.count(); ++i) {
    const auto value = static_cast<float>(common::element(array, i));
    std::memcpy(floats.data.data() + i * sizeof(float), &value, sizeof(float));
  }
  return floats;
}

class Writer {
 public:
  explicit Writer(int64_t debug_limit) : debug_limit_(debug_limit) {}

  void block(const RunBlock& run) {
    std::vector<Offset<Table>> events;
    for (const ProfileEvent& event : run.profile) events.push_back(profile(event));
    for (const DebugEvent& event : run.debug) events.push_back(debug(event));
    const auto name = builder_.CreateString(run.name);
    const auto list = builder_.CreateVector(events);
    const auto start = builder_.StartTable();
    builder_.AddOffset(field(kRunName), name);
    builder_.AddElement<int32_t>(field(kBundledInput), run.bundled_input, -1);
    builder_.AddOffset(field(kEvents), list);
    runs_.emplace_back(builder_.EndTable(start));
  }

  Etdump finish() {
    if (needed_ > debug_limit_)
      throw amps::Error(
          AMPS_INVALID_ARGUMENT,
          fmt::format(
              "what was to be recorded takes {0} bytes, and --debug_buffer_size allows {1}: "
              "run again with --debug_buffer_size={0}",
              needed_, debug_limit_));
    const auto runs = builder_.CreateVector(runs_);
    const auto start = builder_.StartTable();
    builder_.AddElement<uint32_t>(field(0), 0, 0);
    builder_.AddOffset(field(1), runs);
    builder_.FinishSizePrefixed(Offset<Table>(builder_.EndTable(start)), "ED00");
    const uint8_t* data = builder_.GetBufferPointer();
    return {{data, data + builder_.GetSize()}, std::move(buffer_)};
  }

 private:
  Offset<flatbuffers::String> text(const std::string& text) {
    return text.empty() ? Offset<flatbuffers::String>() : builder_.CreateString(text);
  }

  Offset<Table> profile(const ProfileEvent& event) {
    const auto name = text(event.name), delegate = text(event.delegate);
    const auto metadata = builder_.CreateVector(
        reinterpret_cast<const uint8_t*>(event.metadata.data()), event.metadata.size());
    auto start = builder_.StartTable();
    builder_.AddOffset(field(kName), name);
    builder_.AddElement<int32_t>(field(kInstruction), event.instruction, -1);
    builder_.AddOffset(field(kDelegate), delegate);
    builder_.AddOffset(field(kMetadata), metadata);
    builder_.AddElement<uint64_t>(field(kStart), static_cast<uint64_t>(event.start_ns), 0);
    builder_.AddElement<uint64_t>(field(kEnd), static_cast<uint64_t>(event.end_ns), 0);
    const Offset<Table> made(builder_.EndTable(start));
    return wrap(kProfileEvent, made);
  }

  Offset<Table> debug(const DebugEvent& event) {
    const auto name = text(event.name);
    const Offset<Table> entry = value(readable(event.value), event.output);
    const auto start = builder_.StartTable();
    builder_.AddElement<int32_t>(field(kDebugInstruction), event.instruction, -1);
    builder_.AddOffset(field(kEntry), entry);
    if (!event.output) builder_.AddOffset(field(kDebugDelegate), name);
    builder_.AddOffset(field(kDebugName), name);
    const Offset<Table> made(builder_.EndTable(start));
    return wrap(kDebugEvent, made);
  }

  Offset<Table> value(const common::Array& array, bool output) {
    std::vector<int64_t> strides(array.shape.size(), 1);
    for (size_t i = strides.size(); i-- > 1;)
      strides[i - 1] = strides[i] * std::max<int64_t>(array.shape[i], 1);
    const auto sizes = builder_.CreateVector(array.shape);
    const auto steps = builder_.CreateVector(strides);
    auto start = builder_.StartTable();
    builder_.AddElement<int8_t>(field(kScalarType), static_cast<int8_t>(scalar_type(array.dtype)),
                                0);
    builder_.AddOffset(field(kSizes), sizes);
    builder_.AddOffset(field(kStrides), steps);
    builder_.AddElement<int64_t>(field(kOffset), keep(array), 0);
    const Offset<Table> tensor(builder_.EndTable(start));
    start = builder_.StartTable();
    builder_.AddElement<uint8_t>(field(0), 1, 0);
    const Offset<Table> yes(builder_.EndTable(start));
    start = builder_.StartTable();
    builder_.AddElement<int8_t>(field(kKind), kValueIsTensor, 0);
    builder_.AddOffset(field(kTensor), tensor);
    if (output) builder_.AddOffset(field(kOutput), yes);
    return builder_.EndTable(start);
  }

  Offset<Table> wrap(EventField kind, Offset<Table> event) {
    const auto start = builder_.StartTable();
    builder_.AddOffset(field(kind), event);
    return builder_.EndTable(start);
  }

  // Where the elements lie in the debug buffer, on a boundary of 64 bytes as upstream has them.
  int64_t keep(const common::Array& array) {
    const int64_t at = (needed_ + 63) / 64 * 64;
    needed_ = at + std::ssize(array.data);
    if (needed_ <= debug_limit_) {
      buffer_.resize(needed_);
      std::copy(array.data.begin(), array.data.end(), buffer_.begin() + at);
    }
    return at;
  }

  Builder builder_;
  std::vector<Offset<Table>> runs_;
  std::vector<char> buffer_;
  int64_t debug_limit_, needed_ = 0;
};

}  // namespace

Etdump make_etdump(const std::vector<RunBlock>& blocks, int64_t debug_limit) {
  Writer writer(debug_limit);
  for (const RunBlock& block : blocks) writer.block(block);
  return writer.finish();
}

}  // namespace anymps::runner
