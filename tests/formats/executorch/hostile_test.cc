// SPDX-License-Identifier: Apache-2.0
// Broken and hostile files: an error that names the table and the field, whatever is wrong.
#include <gtest/gtest.h>

#include <cstring>

#include "formats/executorch/import.h"
#include "formats/executorch/program/program_text.h"
#include "support/executorch_file.h"

namespace anymps::executorch {
namespace {

using anymps::testing::add_program;
using anymps::testing::constant;
using anymps::testing::FileOptions;
using anymps::testing::write_bundle;
using anymps::testing::write_program;

// Reads and converts all that is in a file: the message, or "" when nothing is wrong.
std::string file_error(const std::string& file) {
  auto copy = std::make_shared<const std::string>(file);
  try {
    const Bundle bundle = read_bundle({*copy, copy, false, "x.pte"});
    program_text(bundle, "text");
    for (const Method& method : bundle.program.methods)
      verify(*import_method(bundle.program, method));
  } catch (const Error& error) {
    EXPECT_NE(error.code(), Code::kInternal) << error.what();
    return error.what();
  }
  return {};
}

const std::string_view kEightBytes("\1\0\0\0\2\0\0\0", 8);

Program two_constants() {
  Program program = add_program();
  program.methods[0].values.emplace_back(constant(DType::kI32, {2}, kEightBytes));
  program.methods[0].values.emplace_back(constant(DType::kI32, {2}, kEightBytes));
  program.methods[0].delegates.push_back({"Other", "0123456789abcdef", {}});
  return program;
}

struct Case {
  const char* name;
  std::function<void(Program&, FileOptions&)> change;
  const char* expected;  // a part of the message
};

Tensor& tensor_at(Program& program, size_t i) {
  return std::get<Tensor>(program.methods[0].values[i]);
}

const Case kCases[] = {
    {"input",
     [](Program& p, FileOptions&) {
       p.methods[0].inputs = {0, 99};
     },
     "ExecutionPlan[0].inputs: there is no value 99; the method has 6 (method \"forward\")"},
    {"negative_output", [](Program& p, FileOptions&) { p.methods[0].outputs = {-1}; },
     "ExecutionPlan[0].outputs: there is no value -1"},
    {"argument",
     [](Program& p, FileOptions&) {
       p.methods[0].instructions = {KernelCall{"aten::add.out", {0, 1, 2, 3, 1000}}};
     },
     "KernelCall[0].args: there is no value 1000"},
    {"delegate",
     [](Program& p, FileOptions&) {
       p.methods[0].instructions = {DelegateCall{7, {0}}};
     },
     "DelegateCall[0].delegate_index: there is no delegate 7; the method has 1"},
    {"move",
     [](Program& p, FileOptions&) {
       p.methods[0].instructions = {MoveCall{0, -5}};
     },
     "MoveCall[0].move_to: there is no value -5"},
    {"free", [](Program& p, FileOptions&) { p.methods[0].instructions = {FreeCall{6}}; },
     "FreeCall[0].value_index: there is no value 6"},
    {"jump",
     [](Program& p, FileOptions&) {
       p.methods[0].instructions = {JumpFalse{0, 2}};
     },
     "JumpFalseCall[0].destination_instruction: there is no instruction 2; the chain has 1"},
    {"int_list", [](Program& p, FileOptions&) { p.methods[0].values.emplace_back(IntList{{0}}); },
     "IntList[6].items: value 0 is a Tensor, not an Int"},
    {"int_list_dangling",
     [](Program& p, FileOptions&) {
       p.methods[0].values.emplace_back(IntList{{2, 50}});
     },
     "IntList[6].items: there is no value 50"},
    {"tensor_list",
     [](Program& p, FileOptions&) { p.methods[0].values.emplace_back(TensorList{{6}}); },
     "TensorList[6].items: value 6 is a TensorList, not a Tensor"},
    {"negative_size",
     [](Program& p, FileOptions&) {
       tensor_at(p, 0).sizes = {2, -3};
     },
     "Tensor[0].sizes: extent -3 is negative"},
    {"huge_dims",
     [](Program& p, FileOptions&) {
       tensor_at(p, 0).sizes.assign(4, 0x7fffffff);
       tensor_at(p, 0).dim_order = {0, 1, 2, 3};
     },
     "Tensor[0].sizes: [2147483647, 2147483647, 2147483647, 2147483647] has too many elements"},
    {"many_axes",
     [](Program& p, FileOptions&) {
       tensor_at(p, 0).sizes.assign(17, 1);
       tensor_at(p, 0).dim_order.clear();
     },
     "Tensor[0].sizes: 17 axes are more than 16"},
    {"dim_order",
     [](Program& p, FileOptions&) {
       tensor_at(p, 1).dim_order = {1, 1};
     },
     "Tensor[1].dim_order: [1, 1] does not order 2 axes"},
    {"dim_order_count", [](Program& p, FileOptions&) { tensor_at(p, 1).dim_order = {0}; },
     "Tensor[1].dim_order: 1 axes for a tensor of 2"},
    {"constant_too_small", [](Program& p, FileOptions&) { tensor_at(p, 5).sizes = {3}; },
     "Tensor[5].data_buffer_idx: the tensor has 12 bytes, its data 8"},
    {"offset_past_end",
     [](Program&, FileOptions& o) {
       o.change_offsets = [](auto& offsets) { offsets.back() = 1 << 20; };
     },
     "SubsegmentOffsets.offsets: 1048576 is past the end of segment 0"},
    {"segment_past_end",
     [](Program&, FileOptions& o) {
       o.change_segments = [](auto& segments) { segments.back().first = uint64_t{1} << 60; };
     },
     "DataSegment[2].offset: 1152921504606846976 of"},
    {"segment_too_large",
     [](Program&, FileOptions& o) {
       o.change_segments = [](auto& segments) { segments.back().second = ~uint64_t{0}; };
     },
     "DataSegment[2].size: 18446744073709551615 bytes at"},
    {"overlapping_segments",
     [](Program&, FileOptions& o) {
       o.change_segments = [](auto& segments) { segments.back().first = 0; };
     },
     "DataSegment[2].offset: 0 is inside the segment before, which ends at"},
    {"identifier", [](Program&, FileOptions& o) { o.identifier = "ET99"; },
     "identifier \"ET99\", only \"ET12\" is known"},
    {"loop",
     [](Program& p, FileOptions&) {
       p.methods[0].values[2] = false;
       p.methods[0].instructions = {FreeCall{3}, JumpFalse{2, 0}};
     },
     "its loops unroll to more than 16384 instructions"},
    {"many_arguments",
     [](Program& p, FileOptions&) {
       Method& method = p.methods[0];
       method.values.emplace_back(TensorList{std::vector<int32_t>(1 << 12, 0)});
       const auto list = static_cast<int32_t>(method.values.size()) - 1;
       method.instructions.assign(1 << 11, KernelCall{"aten::cat.out", {list, 2, 3, 3}});
     },
     "the instructions have more than 4194304 arguments"},
    {"never_written", [](Program& p, FileOptions&) { p.methods[0].inputs = {0}; },
     "value 1 is read, but nothing is ever written to it"},
    {"wrong_shape",
     [](Program& p, FileOptions&) {
       tensor_at(p, 3).sizes = {3, 2};
     },
     "3"},
    {"wrong_kind",
     [](Program& p, FileOptions&) {
       p.methods[0].instructions = {KernelCall{"aten::neg.out", {2, 3, 3}}};
     },
     "instruction 0 (aten::neg.out): argument 0 must be a Tensor, it is Int"},
    {"no_arguments",
     [](Program& p, FileOptions&) {
       p.methods[0].instructions = {KernelCall{"aten::add.out", {}}};
     },
     "instruction 0 (aten::add.out)"},
    {"unknown_operators",
     [](Program& p, FileOptions&) {
       p.methods[0].instructions = {
           KernelCall{"aten::nope.out", {0, 3, 3}}, KernelCall{"aten::add.out", {0, 1, 2, 3, 3}},
           KernelCall{"my::op", {3, 3}}, KernelCall{"aten::nope.out", {0, 3, 3}}};
     },
     "not supported: aten::nope.out (instructions 0, 3), my::op (instruction 2)"},
    {"other_backend",
     [](Program& p, FileOptions&) {
       p.methods[0].instructions = {DelegateCall{0, {0, 3}}};
     },
     "delegates of backend Other (instruction 0); only delegates of MPSBackend can be run"},
    {"payload",
     [](Program& p, FileOptions&) {
       p.methods[0].delegates[0].backend = "MPSBackend";
       p.methods[0].instructions = {DelegateCall{0, {0, 3}}};
     },
     "delegate 0: header of the payload: it does not start with MP00"},
    {"no_outputs", [](Program& p, FileOptions&) { p.methods[0].outputs.clear(); },
     "the method has no outputs"},
};

TEST(ExecutorchHostile, ErrorsNameTheTableAndTheField) {
  for (const Case& test : kCases) {
    SCOPED_TRACE(test.name);
    Program program = two_constants();
    FileOptions options;
    test.change(program, options);
    const std::string message = file_error(write_program(program, options));
    EXPECT_NE(message.find(test.expected), std::string::npos) << message;
    EXPECT_EQ(message.find("[executorch] x.pte: "), 0u) << message;
  }
  EXPECT_EQ(file_error(write_program(two_constants())), "");
}

TEST(ExecutorchHostile, ExtendedHeader) {
  const std::string file = write_program(two_constants());
  struct Field {
    size_t at;
    uint64_t value;
    size_t size;
    const char* expected;
  };
  for (const Field& field : {Field{12, 8, 4, "extended header.length: 8 bytes"},
                             Field{12, 0xffffffff, 4, "extended header.length: 4294967295 bytes"},
                             Field{16, ~uint64_t{0}, 8, "extended header.program_size"},
                             Field{16, 9, 8, "extended header.program_size: 9 of a file of"},
                             Field{24, 16, 8, "extended header.segment_base_offset: 16, but"},
                             Field{24, ~uint64_t{0}, 8, "extended header.segment_base_offset"},
                             Field{24, 0, 8, "Program.segments: there are"},
                             Field{32, ~uint64_t{0}, 8, "extended header.segment_data_size"}}) {
    std::string broken = file;
    std::memcpy(broken.data() + field.at, &field.value, field.size);
    const std::string message = file_error(broken);
    EXPECT_NE(message.find(field.expected), std::string::npos) << message;
  }
  std::string version = file;
  version[11] = '9';
  EXPECT_NE(file_error(version).find("extended header.magic"), std::string::npos);
}

std::string bundle_file() {
  static const std::string elements(24, '\0');
  const TestCase test{
      {constant(DType::kF32, {2, 3}, elements), constant(DType::kF32, {2, 3}, elements)},
      {constant(DType::kF32, {2, 3}, elements)}};
  return write_bundle(write_program(two_constants()), {{"forward", {test}}});
}

// A file that ends early is an error, or lacks only what nothing needs; either way it is answered.
TEST(ExecutorchHostile, TruncatedAnywhere) {
  for (const std::string& file : {write_program(two_constants()), bundle_file()}) {
    ASSERT_EQ(file_error(file), "");
    size_t refused = 0;
    for (size_t size = 0; size < file.size(); ++size)
      refused += !file_error(file.substr(0, size)).empty();
    EXPECT_GT(refused, file.size() * 9 / 10);
  }
}

TEST(ExecutorchHostile, AnyBitFlipped) {
  for (std::string file : {write_program(two_constants()), bundle_file()}) {
    size_t refused = 0;
    for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
      file[bit / 8] = static_cast<char>(file[bit / 8] ^ 1 << bit % 8);
      refused += !file_error(file).empty();
      file[bit / 8] = static_cast<char>(file[bit / 8] ^ 1 << bit % 8);
    }
    EXPECT_GT(refused, 8 * file.size() / 20);
  }
}

// A vector whose entries all are the same table: small in the file, large when it is read.
TEST(ExecutorchHostile, SharedTablesAreBounded) {
  Program program = add_program();
  program.methods[0].values.emplace_back(std::string(1 << 16, 'x'));
  FileOptions options;
  options.repeat_last_value = 1 << 16;
  const std::string file = write_program(program, options);
  EXPECT_LT(file.size(), size_t{1} << 20);
  const std::string message = file_error(file);
  EXPECT_NE(message.find("the file refers to the same parts too many times"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace anymps::executorch
