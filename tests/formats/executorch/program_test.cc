// SPDX-License-Identifier: Apache-2.0
// Reading programs: every kind of value, both ways to store data, methods by name.
#include "formats/executorch/program/program.h"

#include <gtest/gtest.h>

#include "formats/executorch/program/program_text.h"
#include "support/executorch_file.h"

namespace anymps::executorch {
namespace {

using anymps::testing::add_program;
using anymps::testing::constant;
using anymps::testing::FileOptions;
using anymps::testing::planned;
using anymps::testing::write_program;

Source source_of(const std::string& file) {
  auto copy = std::make_shared<const std::string>(file);
  return {*copy, copy, false, "test.pte"};
}

bool inside(std::string_view part, std::string_view whole) {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

Program rich_program() {
  Program program = add_program();
  Method& method = program.methods[0];
  method.values.insert(
      method.values.end(),
      {None{}, true, 2.5, std::string("mean"), IntList{{2, 2}}, std::vector<double>{0.5, 2},
       std::vector<bool>{true, false}, TensorList{{0, 1}}, TensorList{{0, -1}},
       constant(DType::kI32, {2}, std::string_view("\1\0\0\0\2\0\0\0", 8))});
  Tensor state = planned(DType::kU8, {3}, 96);
  state.data = "abc";
  state.name = "mod.buffer";
  method.values.emplace_back(state);
  method.delegates.push_back({"SomeBackend", "payload of it", {{"use_fp16", std::string(1, 1)}}});
  method.instructions.emplace_back(DelegateCall{0, {0, 3}});
  method.instructions.emplace_back(MoveCall{0, 1});
  method.instructions.emplace_back(JumpFalse{5, 5});
  method.instructions.emplace_back(FreeCall{3});
  program.named_data = {{"key", "value"}};
  Method other = add_program().methods[0];
  other.name = "second";
  program.methods.push_back(other);
  return program;
}

TEST(ExecutorchProgram, ReadsEveryKindOfValue) {
  const std::string file = write_program(rich_program());
  const Source source = source_of(file);
  ASSERT_TRUE(is_program(source.bytes));
  const Program program = read_program(source);
  ASSERT_EQ(program.methods.size(), 2u);
  const Method& method = program.methods[0];
  std::vector<std::string> kinds;
  for (const EValue& value : method.values) kinds.emplace_back(kind_of(value));
  EXPECT_EQ(fmt::format("{}", fmt::join(kinds, " ")),
            "Tensor Tensor Int Tensor None Bool Double String IntList DoubleList BoolList "
            "TensorList TensorList Tensor Tensor");
  EXPECT_EQ(std::get<int64_t>(method.values[2]), 1);
  EXPECT_EQ(std::get<double>(method.values[6]), 2.5);
  EXPECT_EQ(std::get<std::string>(method.values[7]), "mean");
  EXPECT_EQ(std::get<IntList>(method.values[8]).items, (std::vector<int32_t>{2, 2}));
  EXPECT_EQ(std::get<std::vector<bool>>(method.values[10]), (std::vector<bool>{true, false}));
  EXPECT_EQ(std::get<TensorList>(method.values[12]).items, (std::vector<int32_t>{0, -1}));
  const Tensor& input = std::get<Tensor>(method.values[1]);
  EXPECT_EQ(input.sizes, (Ints{2, 3}));
  EXPECT_TRUE(input.planned);
  EXPECT_EQ(input.memory, 1u);
  EXPECT_EQ(input.offset, 32u);
  EXPECT_FALSE(input.is_constant());
}

TEST(ExecutorchProgram, DataStaysInTheFile) {
  const Source source = source_of(write_program(rich_program()));
  const Program program = read_program(source);
  const Method& method = program.methods[0];
  const Tensor& weights = std::get<Tensor>(method.values[13]);
  ASSERT_TRUE(weights.is_constant());
  EXPECT_EQ(*weights.data, std::string_view("\1\0\0\0\2\0\0\0", 8));
  EXPECT_TRUE(inside(*weights.data, source.bytes));
  const Tensor& state = std::get<Tensor>(method.values[14]);
  ASSERT_TRUE(state.is_state());
  EXPECT_EQ(*state.data, "abc");
  EXPECT_EQ(state.name, "mod.buffer");
  ASSERT_EQ(method.delegates.size(), 1u);
  EXPECT_EQ(method.delegates[0].payload, "payload of it");
  EXPECT_TRUE(inside(method.delegates[0].payload, source.bytes));
  EXPECT_EQ(method.delegates[0].options[0].first, "use_fp16");
  EXPECT_EQ(method.delegates[0].options[0].second, std::string(1, 1));
  ASSERT_EQ(program.named_data.size(), 1u);
  EXPECT_EQ(program.named_data[0].first, "key");
  EXPECT_EQ(program.named_data[0].second, "value");
}

TEST(ExecutorchProgram, DataInsideTheFlatBuffer) {
  Program written = rich_program();
  std::get<Tensor>(written.methods[0].values[14]).data.reset();  // states need a segment
  FileOptions options;
  options.segments = false;
  const Program program = read_program(source_of(write_program(written, options)));
  const Method& method = program.methods[0];
  EXPECT_EQ(*std::get<Tensor>(method.values[13]).data, std::string_view("\1\0\0\0\2\0\0\0", 8));
  EXPECT_EQ(method.delegates[0].payload, "payload of it");
}

TEST(ExecutorchProgram, InstructionsInOrder) {
  const Program program = read_program(source_of(write_program(rich_program())));
  const auto& list = program.methods[0].instructions;
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(std::get<KernelCall>(list[0]).op, "aten::add.out");
  EXPECT_EQ(std::get<KernelCall>(list[0]).args, (std::vector<int32_t>{0, 1, 2, 3, 3}));
  EXPECT_EQ(std::get<DelegateCall>(list[1]).args, (std::vector<int32_t>{0, 3}));
  EXPECT_EQ(std::get<MoveCall>(list[2]).to, 1);
  EXPECT_EQ(std::get<JumpFalse>(list[3]).destination, 5);
  EXPECT_EQ(std::get<FreeCall>(list[4]).value, 3);
}

TEST(ExecutorchProgram, MethodsByName) {
  const Program program = read_program(source_of(write_program(rich_program())));
  EXPECT_EQ(program.method("").name, "forward");
  EXPECT_EQ(program.method("second").name, "second");
  try {
    program.method("third");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kNotFound);
    EXPECT_STREQ(error.what(),
                 "[executorch] test.pte: there is no method \"third\"; it has: forward, second");
  }
  Program only = add_program();
  only.methods[0].name = "encode";
  EXPECT_EQ(only.method("").name, "encode");
}

TEST(ExecutorchProgram, TextSaysWhatIsInside) {
  const Bundle bundle = read_bundle(source_of(write_program(rich_program())));
  const std::string text = program_text(bundle, "text");
  for (const char* part :
       {"ExecuTorch program", "2 methods", "method forward: 5 instructions", "input 0: f32[2, 3]",
        "delegate 0: SomeBackend, 13 B, use_fp16=1", "aten::add.out", "named data key: 5 B",
        "1 buffers with initial content"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  const std::string json = program_text(bundle, "json");
  EXPECT_NE(json.find("\"backend\": \"SomeBackend\""), std::string::npos) << json;
  EXPECT_THROW(program_text(bundle, "xml"), Error);
}

}  // namespace
}  // namespace anymps::executorch
