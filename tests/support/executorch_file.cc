// SPDX-License-Identifier: Apache-2.0
#include "support/executorch_file.h"

#include <flatbuffers/flatbuffers.h>

#include <cstring>
#include <optional>

#include "formats/executorch/schema/program_fields.h"

namespace anymps::testing {

namespace {

using namespace executorch;
using Builder = flatbuffers::FlatBufferBuilder;
using Offset = flatbuffers::Offset<void>;

// A table: fields in any order, what they point to made before.
class Table {
 public:
  explicit Table(Builder& builder) : builder_(builder), start_(builder.StartTable()) {}
  template <typename T>
  Table& set(FlatField field, T value) {
    builder_.AddElement<T>(slot(field), value);
    return *this;
  }
  Table& set(FlatField field, Offset to) {
    builder_.AddOffset(slot(field), to);
    return *this;
  }
  Offset end() { return {builder_.EndTable(start_)}; }

 private:
  static flatbuffers::voffset_t slot(FlatField field) {
    return static_cast<flatbuffers::voffset_t>(4 + 2 * field.number);
  }
  Builder& builder_;
  flatbuffers::uoffset_t start_;
};

template <typename T>
Offset numbers(Builder& b, const std::vector<T>& list) {
  return {b.CreateVector(list).o};
}
Offset bytes(Builder& b, std::string_view data, size_t alignment = 16) {
  b.ForceVectorAlignment(data.size(), 1, alignment);
  return {b.CreateVector(reinterpret_cast<const uint8_t*>(data.data()), data.size()).o};
}
Offset text(Builder& b, std::string_view string) {
  return {b.CreateString(string.data(), string.size()).o};
}
Offset tables(Builder& b, const std::vector<Offset>& list) { return {b.CreateVector(list).o}; }

template <typename T, typename Fn>
Offset tables(Builder& b, const std::vector<T>& list, Fn&& write) {
  std::vector<Offset> offsets;
  for (const T& item : list) offsets.push_back(write(item));
  return tables(b, offsets);
}

int8_t scalar_type(DType dtype) {
  for (int8_t type = 0; type < 30; ++type) {
    try {
      if (to_dtype(type) == dtype) return type;
    } catch (const Error&) {
    }
  }
  return 0;
}

Offset union_table(Builder& b, uint8_t kind, Offset value) {
  return Table(b).set(field::EValue::kType, kind).set(field::EValue::kValue, value).end();
}

// Programs and bundles have the same numbers for these.
std::optional<Offset> write_number(Builder& b, const EValue& v) {
  using F = field::EValue;
  if (const auto* i = std::get_if<int64_t>(&v))
    return union_table(b, F::kInt, Table(b).set(field::Int::kValue, *i).end());
  if (const auto* flag = std::get_if<bool>(&v))
    return union_table(b, F::kBool, Table(b).set(field::Bool::kValue, uint8_t{*flag}).end());
  if (const auto* f = std::get_if<double>(&v))
    return union_table(b, F::kDouble, Table(b).set(field::Double::kValue, *f).end());
  return std::nullopt;
}

class ProgramWriter {
 public:
  explicit ProgramWriter(const FileOptions& options) : options_(options) { b_.ForceDefaults(true); }

  std::string write(const Program& program) {
    add_data("");  // constant 0 is none, and so is state 0
    states_.push_back(0);
    std::vector<Offset> plans;
    for (const Method& method : program.methods) plans.push_back(plan(method));
    const Offset plan_list = tables(b_, plans);
    return options_.segments ? with_segments(program, plan_list) : inline_file(program, plan_list);
  }

 private:
  static constexpr uint64_t kAlign = 16;

  uint32_t add_data(std::string_view data) {
    constants_.emplace_back(data);
    return static_cast<uint32_t>(constants_.size() - 1);
  }
  uint32_t add_state(std::string_view data) {
    states_.push_back(state_data_.size());
    state_data_ += data;
    state_data_.resize((state_data_.size() + kAlign - 1) / kAlign * kAlign);
    return static_cast<uint32_t>(states_.size() - 1);
  }

  Offset write_tensor(const executorch::Tensor& t) {
    std::vector<int32_t> sizes(t.sizes.begin(), t.sizes.end());
    const Offset size_list = numbers(b_, sizes), order = numbers(b_, t.dim_order);
    Offset place, extra;
    if (t.planned)
      place = Table(b_)
                  .set(field::AllocationDetails::kMemory, t.memory)
                  .set(field::AllocationDetails::kOffsetLow, static_cast<uint32_t>(t.offset))
                  .set(field::AllocationDetails::kOffsetHigh, static_cast<uint32_t>(t.offset >> 32))
                  .end();
    if (!t.name.empty()) {
      const Offset name = text(b_, t.name);
      extra = Table(b_).set(field::ExtraTensorInfo::kName, name).end();
    }
    const uint32_t buffer = !t.data ? 0 : t.planned ? add_state(*t.data) : add_data(*t.data);
    using F = field::Tensor;
    Table table(b_);
    table.set(F::kScalarType, scalar_type(t.dtype)).set(F::kSizes, size_list);
    table.set(F::kDimOrder, order).set(F::kDataBuffer, buffer);
    table.set(F::kDynamism, static_cast<int8_t>(t.dynamism));
    if (t.planned) table.set(F::kAllocation, place);
    if (!t.name.empty()) table.set(F::kExtra, extra);
    return table.end();
  }

  Offset value(const EValue& v) {
    using F = field::EValue;
    if (const auto number = write_number(b_, v)) return *number;
    if (const auto* t = std::get_if<executorch::Tensor>(&v))
      return union_table(b_, F::kTensor, write_tensor(*t));
    if (const auto* s = std::get_if<std::string>(&v)) {
      const Offset chars = text(b_, *s);
      return union_table(b_, F::kString, Table(b_).set(field::String::kValue, chars).end());
    }
    if (const auto* ints = std::get_if<IntList>(&v))
      return list(F::kIntList,
                  numbers(b_, std::vector<int64_t>(ints->items.begin(), ints->items.end())));
    if (const auto* list_of = std::get_if<std::vector<double>>(&v))
      return list(F::kDoubleList, numbers(b_, *list_of));
    if (const auto* flags = std::get_if<std::vector<bool>>(&v))
      return list(F::kBoolList, numbers(b_, std::vector<uint8_t>(flags->begin(), flags->end())));
    if (const auto* t = std::get_if<TensorList>(&v)) {
      const bool optional = std::find(t->items.begin(), t->items.end(), -1) != t->items.end();
      return list(optional ? F::kOptionalTensorList : F::kTensorList, numbers(b_, t->items));
    }
    return union_table(b_, F::kNull, Table(b_).end());
  }
  Offset list(uint8_t kind, Offset items) {
    return union_table(b_, kind, Table(b_).set(field::List::kItems, items).end());
  }

  Offset instruction(const Instruction& i, const std::vector<std::string>& operators) {
    using F = field::Instruction;
    if (const auto* kernel = std::get_if<KernelCall>(&i)) {
      const Offset args = numbers(b_, kernel->args);
      const auto at = std::find(operators.begin(), operators.end(), kernel->op);
      return union_table(
          b_, F::kKernel,
          Table(b_)
              .set(field::KernelCall::kOperator, static_cast<int32_t>(at - operators.begin()))
              .set(field::KernelCall::kArgs, args)
              .end());
    }
    if (const auto* call = std::get_if<DelegateCall>(&i)) {
      const Offset args = numbers(b_, call->args);
      return union_table(b_, F::kDelegate,
                         Table(b_)
                             .set(field::DelegateCall::kDelegate, call->delegate)
                             .set(field::DelegateCall::kArgs, args)
                             .end());
    }
    if (const auto* move = std::get_if<MoveCall>(&i))
      return union_table(b_, F::kMove,
                         Table(b_)
                             .set(field::MoveCall::kFrom, move->from)
                             .set(field::MoveCall::kTo, move->to)
                             .end());
    if (const auto* jump = std::get_if<JumpFalse>(&i))
      return union_table(b_, F::kJumpFalse,
                         Table(b_)
                             .set(field::JumpFalseCall::kCondition, jump->condition)
                             .set(field::JumpFalseCall::kDestination, jump->destination)
                             .end());
    return union_table(b_, F::kFree,
                       Table(b_).set(field::FreeCall::kValue, std::get<FreeCall>(i).value).end());
  }

  Offset delegate(const Delegate& d) {
    payloads_.push_back(d.payload);
    const Offset specs = tables(b_, d.options, [&](const auto& option) {
      const Offset key = text(b_, option.first), data = bytes(b_, option.second, 1);
      return Table(b_)
          .set(field::CompileSpec::kKey, key)
          .set(field::CompileSpec::kValue, data)
          .end();
    });
    const Offset id = text(b_, d.backend);
    // In a file with segments, that of the constants and that of the states come first.
    const auto index =
        static_cast<uint32_t>(payloads_.size() - 1 + (options_.segments ? kFirstPayload : 0));
    const Offset reference = Table(b_)
                                 .set(field::BackendDelegateDataReference::kLocation,
                                      static_cast<int8_t>(options_.segments))
                                 .set(field::BackendDelegateDataReference::kIndex, index)
                                 .end();
    using F = field::BackendDelegate;
    return Table(b_)
        .set(F::kId, id)
        .set(F::kProcessed, reference)
        .set(F::kCompileSpecs, specs)
        .end();
  }

  Offset plan(const Method& m) {
    std::vector<std::string> operators = m.operators;
    for (const Instruction& i : m.instructions)
      if (const auto* kernel = std::get_if<KernelCall>(&i))
        if (std::find(operators.begin(), operators.end(), kernel->op) == operators.end())
          operators.push_back(kernel->op);
    const Offset name = text(b_, m.name);
    std::vector<Offset> all;
    for (const EValue& v : m.values) all.push_back(value(v));
    if (!all.empty()) all.insert(all.end(), options_.repeat_last_value, Offset(all.back()));
    const Offset values = tables(b_, all);
    const Offset inputs = numbers(b_, m.inputs), outputs = numbers(b_, m.outputs);
    const Offset instructions =
        tables(b_, m.instructions, [&](const Instruction& i) { return instruction(i, operators); });
    const Offset chains =
        tables(b_, {Table(b_).set(field::Chain::kInstructions, instructions).end()});
    const Offset ops = tables(b_, operators, [&](const std::string& op) {
      const size_t dot = op.find('.');
      const Offset first = text(b_, op.substr(0, dot));
      const Offset overload = text(b_, dot == std::string::npos ? "" : op.substr(dot + 1));
      return Table(b_)
          .set(field::Operator::kName, first)
          .set(field::Operator::kOverload, overload)
          .end();
    });
    const Offset delegates =
        tables(b_, m.delegates, [&](const Delegate& d) { return delegate(d); });
    const Offset sizes = numbers(b_, m.planned_bytes);
    using F = field::ExecutionPlan;
    return Table(b_)
        .set(F::kName, name)
        .set(F::kValues, values)
        .set(F::kInputs, inputs)
        .set(F::kOutputs, outputs)
        .set(F::kChains, chains)
        .set(F::kOperators, ops)
        .set(F::kDelegates, delegates)
        .set(F::kNonConstBufferSizes, sizes)
        .end();
  }

  std::string finish(Offset root) {
    b_.Finish(root, options_.identifier);
    return {reinterpret_cast<const char*>(b_.GetBufferPointer()), b_.GetSize()};
  }

  std::string inline_file(const Program& program, Offset plans) {
    const auto pieces = [&](const std::vector<std::string_view>& list, FlatField field) {
      return tables(b_, list, [&](std::string_view data) {
        const Offset storage = bytes(b_, data);
        return Table(b_).set(field, storage).end();
      });
    };
    const Offset constants = pieces(constants_, field::Buffer::kStorage);
    const Offset payloads = pieces(payloads_, field::BackendDelegateInlineData::kData);
    using F = field::Program;
    return finish(Table(b_)
                      .set(F::kVersion, program.version)
                      .set(F::kExecutionPlan, plans)
                      .set(F::kConstantBuffer, constants)
                      .set(F::kBackendDelegateData, payloads)
                      .end());
  }

  // Segments: constants, states, payloads, named data.
  std::string with_segments(const Program& program, Offset plans) {
    std::string data;
    std::vector<std::pair<uint64_t, uint64_t>> segments;
    const auto pad = [&] { data.resize((data.size() + kAlign - 1) / kAlign * kAlign); };
    const auto add_segment = [&](std::string_view piece) {
      pad();
      segments.emplace_back(data.size(), piece.size());
      data += piece;
    };
    std::vector<uint64_t> offsets;
    std::string all_constants;
    for (const std::string_view piece : constants_) {
      all_constants.resize((all_constants.size() + kAlign - 1) / kAlign * kAlign);
      offsets.push_back(all_constants.size());
      all_constants += piece;
    }
    if (options_.change_offsets) options_.change_offsets(offsets);
    add_segment(all_constants);
    add_segment(state_data_);
    for (const std::string_view payload : payloads_) add_segment(payload);
    const Offset named = tables(b_, program.named_data, [&](const auto& item) {
      add_segment(item.second);
      const Offset key = text(b_, item.first);
      return Table(b_)
          .set(field::NamedData::kKey, key)
          .set(field::NamedData::kSegment, static_cast<uint32_t>(segments.size() - 1))
          .end();
    });
    if (options_.change_segments) options_.change_segments(segments);
    const Offset list = tables(b_, segments, [&](const auto& segment) {
      return Table(b_)
          .set(field::DataSegment::kOffset, segment.first)
          .set(field::DataSegment::kSize, segment.second)
          .end();
    });
    const Offset constant_offsets = numbers(b_, offsets), state_offsets = numbers(b_, states_);
    const auto subsegments = [&](uint32_t segment, Offset places) {
      return Table(b_)
          .set(field::SubsegmentOffsets::kSegment, segment)
          .set(field::SubsegmentOffsets::kOffsets, places)
          .end();
    };
    const Offset constant_segment = subsegments(0, constant_offsets);
    const Offset states = tables(b_, {subsegments(1, state_offsets)});
    using F = field::Program;
    const std::string flat = finish(Table(b_)
                                        .set(F::kVersion, program.version)
                                        .set(F::kExecutionPlan, plans)
                                        .set(F::kSegments, list)
                                        .set(F::kConstantSegment, constant_segment)
                                        .set(F::kMutableDataSegments, states)
                                        .set(F::kNamedData, named)
                                        .end());
    return with_header(flat, data);
  }

  // The header goes between the first offset and the rest, so that offset grows.
  static std::string with_header(const std::string& flat, const std::string& data) {
    constexpr uint64_t kHeader = 32;
    std::string file = flat.substr(0, 8) + std::string(kHeader, '\0') + flat.substr(8);
    const auto put = [&](size_t at, auto value) {
      std::memcpy(file.data() + at, &value, sizeof(value));
    };
    uint32_t root;
    std::memcpy(&root, file.data(), sizeof(root));
    put(0, static_cast<uint32_t>(root + kHeader));
    const uint64_t size = file.size(), base = (size + 63) / 64 * 64;
    std::memcpy(file.data() + 8, "eh00", 4);
    put(12, static_cast<uint32_t>(kHeader));
    put(16, size);
    put(24, base);
    put(32, uint64_t{data.size()});
    file.resize(base);
    return file + data;
  }

  static constexpr size_t kFirstPayload = 2;
  const FileOptions& options_;
  Builder b_;
  std::vector<std::string_view> constants_, payloads_;
  std::string state_data_;
  std::vector<uint64_t> states_;
};

Offset test_value(Builder& b, const EValue& v) {
  if (const auto* t = std::get_if<executorch::Tensor>(&v)) {
    std::vector<int32_t> sizes(t->sizes.begin(), t->sizes.end());
    const Offset size_list = numbers(b, sizes), data = bytes(b, *t->data);
    const Offset order = numbers(b, t->dim_order);
    using F = field::BundledTensor;
    return union_table(b, field::BundledValue::kTensor,
                       Table(b)
                           .set(F::kScalarType, scalar_type(t->dtype))
                           .set(F::kSizes, size_list)
                           .set(F::kData, data)
                           .set(F::kDimOrder, order)
                           .end());
  }
  const auto number = write_number(b, v);
  return number ? *number : Table(b).end();
}

std::vector<uint8_t> plain_order(size_t rank) {
  std::vector<uint8_t> order(rank);
  for (size_t i = 0; i < rank; ++i) order[i] = static_cast<uint8_t>(i);
  return order;
}

}  // namespace

std::string write_program(const Program& program, const FileOptions& options) {
  return ProgramWriter(options).write(program);
}

std::string write_bundle(const std::string& program, const std::vector<TestSuite>& suites) {
  Builder b;
  b.ForceDefaults(true);
  const auto values = [&](const std::vector<EValue>& list) {
    return tables(b, list, [&](const EValue& v) { return test_value(b, v); });
  };
  const Offset all = tables(b, suites, [&](const TestSuite& suite) {
    const Offset cases = tables(b, suite.cases, [&](const TestCase& test) {
      const Offset inputs = values(test.inputs), outputs = values(test.outputs);
      return Table(b)
          .set(field::BundledMethodTestCase::kInputs, inputs)
          .set(field::BundledMethodTestCase::kOutputs, outputs)
          .end();
    });
    const Offset name = text(b, suite.method);
    return Table(b)
        .set(field::BundledMethodTestSuite::kMethod, name)
        .set(field::BundledMethodTestSuite::kCases, cases)
        .end();
  });
  const Offset file = bytes(b, program, 32);
  using F = field::BundledProgram;
  b.Finish(Table(b).set(F::kVersion, uint32_t{0}).set(F::kSuites, all).set(F::kProgram, file).end(),
           "BP08");
  return {reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize()};
}

executorch::Tensor tensor(DType dtype, Ints sizes) {
  executorch::Tensor made;
  made.dtype = dtype;
  made.dim_order = plain_order(sizes.size());
  made.sizes = std::move(sizes);
  return made;
}

executorch::Tensor planned(DType dtype, Ints sizes, uint64_t offset) {
  executorch::Tensor made = tensor(dtype, std::move(sizes));
  made.planned = true;
  made.memory = 1;
  made.offset = offset;
  return made;
}

executorch::Tensor constant(DType dtype, Ints sizes, std::string_view data) {
  executorch::Tensor made = tensor(dtype, std::move(sizes));
  made.data = data;
  return made;
}

Program add_program() {
  Method method;
  method.name = "forward";
  method.values = {planned(DType::kF32, {2, 3}, 0), planned(DType::kF32, {2, 3}, 32), int64_t{1},
                   planned(DType::kF32, {2, 3}, 64)};
  method.inputs = {0, 1};
  method.outputs = {3};
  method.instructions = {KernelCall{"aten::add.out", {0, 1, 2, 3, 3}}};
  method.planned_bytes = {0, 96};
  Program program;
  program.methods.push_back(std::move(method));
  return program;
}

}  // namespace anymps::testing
