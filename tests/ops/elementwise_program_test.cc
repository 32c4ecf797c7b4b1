// SPDX-License-Identifier: Apache-2.0
// The text form of fused programs: what it means, and that no text does harm.
#include "ops/elementwise/elementwise_program.h"

#include <gtest/gtest.h>

#include <random>

#include "support/tensor.h"

namespace anymps::testing {
namespace {

using Arg = ElementwiseProgram::Arg;

TEST(ElementwiseProgram, ParsesAndPrints) {
  const char* text = "t0=mul(x0,x1); t1=add(t0,0.5); t2=leaky_relu(t1;alpha=0.1); y=max(t2,x2)";
  const auto program = ElementwiseProgram::parse(text);
  EXPECT_EQ(program.print(), text);
  EXPECT_EQ(program.input_count(), 3u);
  ASSERT_EQ(program.instructions().size(), 4u);
  const auto& add = program.instructions()[1];
  EXPECT_EQ(add.op, &get_op("add"));
  EXPECT_EQ(add.args[0].kind, Arg::Kind::kTemp);
  EXPECT_EQ(add.args[1].kind, Arg::Kind::kImmediate);
  EXPECT_EQ(add.args[1].value, 0.5);
  EXPECT_EQ(program.instructions()[2].attrs.f("alpha"), 0.1);
}

TEST(ElementwiseProgram, PrintsOneForm) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {" t0 = neg( x0 ) ;\n y = exp( t0 ) ; ", "t0=neg(x0); y=exp(t0)"},
      {"y=clamp(x0,_,6)", "y=clamp(x0,_,6)"},
      {"y=clamp(x0;min=0,max=6)", "y=clamp(x0;min=0,max=6)"},
      {"y=cast(x0;dtype=float16)", "y=cast(x0;dtype=f16)"},
      {"y=gelu(x0;approximate=tanh)", "y=gelu(x0;approximate=\"tanh\")"},
      {"y=is_inf(x0;positive=false)", "y=is_inf(x0;positive=false)"},
      {"y=add(x0,-0)", "y=add(x0,-0)"},
      {"y=max(x0,-inf)", "y=max(x0,-inf)"},
      {"y=add(x0,1e-3)", "y=add(x0,0.001)"},
      {"y=leaky_relu(x0;alpha=0.01)", "y=leaky_relu(x0)"},
  };
  for (const auto& [text, printed] : cases) {
    EXPECT_EQ(ElementwiseProgram::parse(text).print(), printed);
    EXPECT_EQ(ElementwiseProgram::parse(printed).print(), printed);
  }
}

TEST(ElementwiseProgram, CanBeBuilt) {
  ElementwiseProgram program;
  const size_t scaled = program.append(get_op("mul"), {}, {Arg::input(0), Arg::immediate(2)});
  program.append(get_op("elu"), {{"alpha", 0.5}}, {Arg::temp(scaled)});
  EXPECT_EQ(program.print(), "t0=mul(x0,2); y=elu(t0;alpha=0.5)");
}

TEST(ElementwiseProgram, RefusesWhatIsNoProgram) {
  const std::vector<std::pair<std::string, const char*>> cases = {
      {"", "expected a name"},
      {"   ", "expected a name"},
      {"y", "expected '='"},
      {"y=", "expected a name"},
      {"y=relu", "expected '('"},
      {"y=relu(", "expected a name"},
      {"y=relu()", "expected a name"},
      {"y=relu(x0", "expected ')'"},
      {"y=relu(x0;", "expected a name"},
      {"y=relu(x0) y=relu(x0)", "nothing may follow"},
      {"y=relu(x0); t0=relu(x0)", "nothing may follow"},
      {"t0=relu(x0)", "expected ';'"},
      {"t0=relu(x0);", "expected a name"},
      {"t1=relu(x0); y=relu(t1)", "'t1' is assigned where 't0' or 'y' must be"},
      {"z=relu(x0)", "'z' is assigned where 't0' or 'y' must be"},
      {"y=reluu(x0)", "there is no op 'reluu'"},
      {"y=relu(t0)", "t0 is used before it is made"},
      {"t0=relu(t1); y=relu(t0)", "t1 is used before it is made"},
      {"y=relu(y)", "'y' is not an input, a temporary or a number"},
      {"y=relu(x)", "'x' is not an input"},
      {"y=relu(x00)", "'x00' is not an input"},
      {"y=relu(x1024)", "above the limit of 1024 inputs"},
      {"y=relu(x99999999999999999999999)", "is not an input"},
      {"y=relu(x-1)", "'x' is not an input"},
      {"y=add(x0)", "takes 2 to 2 arguments, 1 given"},
      {"y=relu(x0,x1)", "takes 1 to 1 arguments, 2 given"},
      {"y=relu(_)", "input 'x' of op 'relu' is not optional"},
      {"y=softmax(x0)", "op 'softmax' is not elementwise"},
      {"y=fused_elementwise(x0)", "op 'fused_elementwise' is not elementwise"},
      {"y=elu(x0;alph=1)", "op 'elu' has no attribute 'alph'"},
      {"y=elu(x0;alpha=x)", "expected a number"},
      {"y=elu(x0;alpha=1,alpha=1)", "given twice"},
      {"y=elu(x0;alpha)", "expected '='"},
      {"y=elu(x0;alpha=1e999)", "out of range"},
      {"y=gelu(x0;approximate=maybe)", "must be one of none, tanh"},
      {"y=gelu(x0;approximate=\"tanh)", "the string does not end"},
      {"y=is_inf(x0;positive=2)", "expected true or false"},
      {"y=cast(x0)", "attribute 'dtype' is required"},
      {"y=cast(x0;dtype=f33)", "'f33' is not a dtype"},
      {"y=add(x0,0.5x)", "'0' is not"},
      {"y=add(x0,1.2.3)", "expected ')'"},
      {std::string("y=relu(x0)\0", 11), "nothing may follow"},
      {"y=relu(x0)\x80\xff", "nothing may follow"},
  };
  for (const auto& [text, reason] : cases) {
    const std::string message = error_of([&, &text = text] { ElementwiseProgram::parse(text); });
    EXPECT_NE(message.find(reason), std::string::npos) << text << "\n  said: " << message;
  }
}

TEST(ElementwiseProgram, LimitsItsLength) {
  std::string text;
  for (size_t i = 0; i < ElementwiseProgram::kMaxInstructions; ++i)
    text += fmt::format("t{}=neg(x0); ", i);
  EXPECT_NE(error_of([&] { ElementwiseProgram::parse(text + "y=neg(x0)"); }).find("at most 4096"),
            std::string::npos);
  const std::string message =
      error_of([] { ElementwiseProgram::parse(std::string(1 << 20, 'a')); });
  EXPECT_LT(message.size(), 500u);
}

TEST(ElementwiseProgram, DamagedTextsParseOrFail) {
  const std::string good =
      "t0=mul(x0,x1); t1=clamp(t0,_,6.5); t2=gelu(t1;approximate=\"tanh\"); y=cast(t2;dtype=f16)";
  std::mt19937 random(1);
  size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (int edits = 0; edits < 1 + round % 3; ++edits) {
      const size_t at = random() % text.size();
      if (random() % 3 == 0)
        text.erase(at, 1 + random() % 4);
      else if (random() % 2 == 0)
        text.insert(at, 1, static_cast<char>(random()));
      else
        text[at] = "();,=_xyt019.-\""[random() % 15];
    }
    try {
      const auto program = ElementwiseProgram::parse(text);
      EXPECT_EQ(ElementwiseProgram::parse(program.print()).print(), program.print());
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 10000u);
}

TEST(ElementwiseProgram, InfersDtypes) {
  const auto program =
      ElementwiseProgram::parse("t0=greater(x0,0); t1=cast(x1;dtype=f32); y=where(t0,t1,-1)");
  const std::vector<DType> inputs = {DType::kF16, DType::kI32};
  const auto types = program.infer(inputs, DType::kF32);
  EXPECT_EQ(types.results, (std::vector<DType>{DType::kBool, DType::kF32, DType::kF32}));
  EXPECT_EQ(types.args[0], (std::vector<DType>{DType::kF16, DType::kF16}));
  EXPECT_EQ(types.args[2], (std::vector<DType>{DType::kBool, DType::kF32, DType::kF32}));
  const auto choice = ElementwiseProgram::parse("y=where(x0,1,0)");
  EXPECT_EQ(choice.infer(std::vector<DType>{DType::kBool}, DType::kI8).args[0][1], DType::kI8);
}

TEST(ElementwiseProgram, RefusesWrongDtypes) {
  const auto infer = [](const char* text, std::vector<DType> inputs, DType output) {
    return error_of([&] { ElementwiseProgram::parse(text).infer(inputs, output); });
  };
  EXPECT_EQ(infer("y=add(x0,x1)", {DType::kF32}, DType::kF32),
            "[fused_elementwise] the program reads 2 inputs, 1 given");
  EXPECT_EQ(
      infer("y=add(x0,x1)", {DType::kF32, DType::kI32}, DType::kF32),
      "[fused_elementwise] y=add(x0,x1): [add] input 'b' is i32, but must have the same dtype "
      "as the inputs before it, f32");
  EXPECT_EQ(infer("y=relu(x0)", {DType::kF32}, DType::kF16),
            "[fused_elementwise] y=relu(x0): the result is f32, dtype says f16");
  EXPECT_EQ(infer("y=add(x0,0.5)", {DType::kI32}, DType::kI32),
            "[fused_elementwise] y=add(x0,0.5): 0.5 is not a value of i32");
  EXPECT_EQ(infer("y=add(x0,256)", {DType::kU8}, DType::kU8),
            "[fused_elementwise] y=add(x0,256): 256 is not a value of u8");
  EXPECT_EQ(infer("y=add(x0,nan)", {DType::kI64}, DType::kI64),
            "[fused_elementwise] y=add(x0,nan): nan is not a value of i64");
}

}  // namespace
}  // namespace anymps::testing
