// SPDX-License-Identifier: Apache-2.0
// Fused programs as data: what the words mean, and that no words do harm.
#include "ops/elementwise/elementwise_program.h"

#include <gtest/gtest.h>

#include <random>

#include "ops/elementwise/program_words.h"
#include "support/program.h"
#include "support/tensor.h"

namespace anymps::testing {
namespace {

using Kind = ProgramArg::Kind;
using Words = std::vector<int64_t>;

ElementwiseProgram decoded(const std::vector<ProgramStep>& calls,
                           const std::vector<size_t>& outputs = {}) {
  return ElementwiseProgram::decode(program(calls, outputs));
}

TEST(ElementwiseProgram, ComesBackAsItWasWritten) {
  const auto read = decoded({{"mul", {x(0), x(1)}},
                             {"add", {t(0), number(0.5)}},
                             {"leaky_relu", {t(1)}, {{"alpha", 0.1}}},
                             {"max", {t(2), x(2)}}});
  EXPECT_EQ(read.input_count(), 3u);
  EXPECT_EQ(read.outputs(), (std::vector<size_t>{3}));
  ASSERT_EQ(read.instructions().size(), 4u);
  const auto& add = read.instructions()[1];
  EXPECT_EQ(add.op, &get_op("add"));
  EXPECT_EQ(add.args[0].kind, Kind::kResult);
  EXPECT_EQ(add.args[1].kind, Kind::kImmediate);
  EXPECT_EQ(add.args[1].value, 0.5);
  EXPECT_EQ(read.instructions()[2].attrs.f("alpha"), 0.1);
}

TEST(ElementwiseProgram, IsShownToPeople) {
  const std::vector<std::pair<Words, const char*>> cases = {
      {program({{"mul", {x(0), x(1)}}, {"leaky_relu", {t(0)}, {{"alpha", 0.1}}}}),
       "t0=mul(x0,x1); y=leaky_relu(t0;alpha=0.1)"},
      {program({{"clamp", {x(0), absent(), number(6)}}}), "y=clamp(x0,_,6)"},
      {program({{"clamp", {x(0)}, {{"min", 0}, {"max", 6.0}}}}), "y=clamp(x0;min=0,max=6)"},
      {program({{"cast", {x(0)}, {{"dtype", DType::kF16}}}}), "y=cast(x0;dtype=f16)"},
      {program({{"gelu", {x(0)}, {{"approximate", "tanh"}}}}), "y=gelu(x0;approximate=\"tanh\")"},
      {program({{"is_inf", {x(0)}, {{"positive", false}}}}), "y=is_inf(x0;positive=false)"},
      {program({{"add", {x(0), number(-0.0)}}}), "y=add(x0,-0)"},
      {program({{"max", {x(0), number(-kInf)}}}), "y=max(x0,-inf)"},
      {program({{"add", {x(0), number(0.001, DType::kF16)}}}), "y=add(x0,0.001)"},
      {program({{"where", {x(0), number(1, DType::kI8), number(0, DType::kI8)}}}),
       "y=where(x0,i8(1),i8(0))"},
      {program({{"leaky_relu", {x(0)}, {{"alpha", 0.01}}}}), "y=leaky_relu(x0)"},
      {program({{"mul", {x(0), parameter(1, 3)}}, {"elu", {t(0)}, {{"alpha", parameter(1, 0)}}}}),
       "t0=mul(x0,x1[3]); y=elu(t0;alpha=x1[0])"},
      {program({{"identity", {parameter(0, 0, DType::kF32)}}}), "y=identity(f32(x0[0]))"},
      {program({{"neg", {x(0)}}, {"exp", {t(0)}}}, {1, 0}), "t0=neg(x0); t1=exp(t0); return t1 t0"},
      {program({{"neg", {x(0)}}, {"exp", {t(0)}}}, {0}), "t0=neg(x0); t1=exp(t0); return t0"},
  };
  for (const auto& [words, text] : cases) EXPECT_EQ(printed(words), text);
}

TEST(ElementwiseProgram, ABuilderIsUsedAgainAndAgain) {
  ElementwiseProgramBuilder builder;
  const ProgramArg twice = builder.call(get_op("mul"), {x(0), number(2)});
  builder.output(twice);
  const Words first(builder.words().begin(), builder.words().end());
  // Words can be asked for in between.
  builder.output(builder.call(get_op("neg"), {twice}));
  EXPECT_EQ(printed(Words(builder.words().begin(), builder.words().end())),
            "t0=mul(x0,2); t1=neg(t0); return t0 t1");
  const auto* memory = builder.words().data();
  builder.clear();
  builder.output(builder.call(get_op("mul"), {x(0), number(2)}));
  EXPECT_EQ(Words(builder.words().begin(), builder.words().end()), first);
  EXPECT_EQ(builder.words().data(), memory);  // nothing was allocated
  EXPECT_NE(error_of([&] { builder.output(x(0)); }).find("must be the result"), std::string::npos);
  EXPECT_NE(error_of([&] { builder.output(t(1)); }).find("must be the result"), std::string::npos);
}

TEST(ElementwiseProgram, NamesLiveInTheWords) {
  // Files hold these: what they mean must not change.
  EXPECT_EQ(program({{"elu", {x(2)}, {{"alpha", 0.5}}}}),
            (Words{0x000100010001, 0x010101, 0x756c65, 0x020001, 0x010101, 0x6168706c61,
                   0x3fe0000000000000, 0}));
  EXPECT_EQ(program({{"leaky_relu", {parameter(1, 3, DType::kF16)}}, {"abs", {t(0)}}}, {1, 0}),
            (Words{0x000200020001, 0x000102, 0x65725f796b61656c, 0x756c, 0x000300010204, 0x000101,
                   0x736261, 0x000002, 1, 0}));
}

TEST(ElementwiseProgram, RefusesWhatIsNoProgram) {
  const std::vector<std::pair<Words, const char*>> cases = {
      {{}, "the words end"},
      {{0}, "of another version"},
      {{0x000100010002, 0, 0}, "of another version"},
      {{0x1000100010001, 0, 0}, "of another version"},
      {{-1}, "of another version"},
      {{0x000100000001}, "0 instructions"},
      {{0x000110010001}, "4097 instructions"},
      {{0x000000010001}, "0 outputs"},
      {{0x040100010001}, "1025 outputs"},
      {{0x00010fff0001, 1}, "4095 instructions in 2 words"},
      {{0x000100010001, 0x000101}, "the words end"},
      {{0x000100010001, 0x000100, 1, 0}, "a name is no name"},
      {{0x000100010001, 0x000101, 0x756c6552, 1, 0}, "a name is no name"},
      {{0x000100010001, 0x000101, 0x6500756c, 1, 0}, "text has bytes"},
      {{0x000100010001, 0x000101, -1, 1, 0}, "text has bytes"},
      {{0x000100010001, 0x000102, 0x756c65, 0x756c65, 1, 0}, "text has bytes"},
      {{0x000100010001, 0x000102, 0x756c65, 0, 1, 0}, "text ends early"},
      {{0x000100010001, 0x000109, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0}, "9 words of text"},
      {{0x000100010001, 0x000101, 0x756c6565, 1, 0}, "there is no op 'eelu'"},
      {{0x000100010001, 0x01000101, 0x756c65, 1, 0}, "bits that mean nothing"},
      {{0x000100010001, 0x000101, 0x756c65, 5, 0}, "an argument is of kind 5"},
      {{0x000100010001, 0x000101, 0x756c65, 0x1000000000001, 0}, "an argument is of kind 1"},
      {{0x000100010001, 0x000101, 0x756c65, 0x000f03, 0, 0}, "15 is not a dtype of numbers"},
      {{0x000100010001, 0x000101, 0x756c65, 0x000101, 0}, "has a dtype, but is not a number"},
      {{0x000100010001, 0x000101, 0x756c65, 0x100000001, 0}, "but is no parameter"},
      {{0x000100010001, 0x000101, 0x756c65, 0x010003, 0, 0}, "a number has the index 1"},
      {{0x000100010001, 0x000101, 0x756c65, 0x04000001, 0}, "above the limit of 1024 inputs"},
      {{0x000100010001, 0x000101, 0x756c65, 2, 0}, "t0 is used before it is made"},
      {{0x000100010001, 0x000101, 0x756c65, 0, 0}, "input 'x' is not optional"},
      {{0x000100010001, 0x000101, 0x756c65, 3}, "the words end"},
      {{0x000100010001, 0x000201, 0x756c65, 1, 1, 0}, "takes 1 to 1 arguments, 2 given"},
      {{0x000100010001, 0x000101, 0x646461, 1, 0}, "takes 2 to 2 arguments, 1 given"},
      {{0x000100010001, 0x000101, 0x756c65, 1}, "the words end"},
      {{0x000100010001, 0x000101, 0x756c65, 1, 1}, "output 0 is the result of instruction 1"},
      {{0x000100010001, 0x000101, 0x756c65, 1, -1}, "output 0 is the result of instruction -1"},
      {{0x000100010001, 0x000101, 0x756c65, 1, 0, 0}, "1 words are left over"},
      {{0x000100010001, 0x010101, 0x756c65, 1, 0x010104, 0x6168706c61, 0, 0}, "of form 4"},
      {{0x000100010001, 0x010101, 0x756c65, 1, 0x020101, 0x6168706c61, 0, 0}, "has 2 words"},
      {{0x000100010001, 0x010101, 0x756c65, 1, 0x010103, 0x6168706c61, 1, 0}, "is no parameter"},
  };
  for (const auto& [words, reason] : cases) {
    const std::string message =
        error_of([&, &words = words] { ElementwiseProgram::decode(words); });
    EXPECT_NE(message.find(reason), std::string::npos) << reason << "\n  said: " << message;
    EXPECT_EQ(message.find("[fused_elementwise]"), 0u) << message;
  }
  const std::vector<std::pair<std::vector<ProgramStep>, const char*>> calls = {
      {{{"softmax", {x(0)}}}, "op 'softmax' is not elementwise"},
      {{{"fused_elementwise", {x(0)}}}, "op 'fused_elementwise' is not elementwise"},
      {{{"elu", {x(0)}, {{"alph", 1.0}}}}, "has no attribute 'alph'"},
      {{{"elu", {x(0)}, {{"alpha", "x"}}}}, "attribute 'alpha' must be of kind float"},
      {{{"elu", {x(0)}, {{"alpha", 1.0}, {"alpha", 1.0}}}}, "given twice"},
      {{{"gelu", {x(0)}, {{"approximate", "maybe"}}}}, "must be one of none, tanh"},
      {{{"gelu", {x(0)}, {{"approximate", parameter(1, 0)}}}}, "that could be a parameter"},
      {{{"gelu", {x(0)}, {{"approximate", ""}}}}, "must be one of none, tanh"},
      {{{"cast", {x(0)}}}, "attribute 'dtype' is required"},
      {{{"cast", {x(0)}, {{"dtype", 99}}}}, "99 is not a dtype"},
      {{{"add", {x(0), parameter(0, 0)}}}, "both as a tensor and for parameters"},
  };
  for (const auto& [list, reason] : calls) {
    const std::string message = error_of([&, &list = list] { decoded(list); });
    EXPECT_NE(message.find(reason), std::string::npos) << reason << "\n  said: " << message;
  }
}

TEST(ElementwiseProgram, DamagedWordsAreReadOrRefused) {
  const Words good = program({{"mul", {x(0), x(1)}},
                              {"clamp", {t(0), absent(), number(6.5)}},
                              {"leaky_relu", {t(1)}, {{"alpha", parameter(2, 1)}}},
                              {"gelu", {t(2)}, {{"approximate", "tanh"}}},
                              {"cast", {t(3)}, {{"dtype", DType::kF16}}}},
                             {4, 1});
  std::mt19937_64 random(1);
  size_t refused = 0, read = 0;
  for (int round = 0; round < 40000; ++round) {
    Words words = good;
    for (int edits = 0; edits < 1 + round % 3; ++edits) {
      const size_t at = random() % words.size();
      switch (random() % 5) {
        case 0:
          words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
          break;
        case 1:
          words.insert(words.begin() + static_cast<std::ptrdiff_t>(at),
                       static_cast<int64_t>(random() % 5));
          break;
        case 2:
          words[at] = static_cast<int64_t>(random());
          break;
        default:
          words[at] ^= int64_t{1} << random() % 64;
      }
    }
    try {
      const auto program = ElementwiseProgram::decode(words);
      ++read;
      EXPECT_FALSE(program.print().empty());
      const std::vector<DType> dtypes(program.input_count(), DType::kF64);
      program.infer(dtypes);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 20000u);
  EXPECT_GT(read, 300u);
}

TEST(ElementwiseProgram, InfersDtypes) {
  const auto chosen = decoded({{"greater", {x(0), number(0)}},
                               {"cast", {x(1)}, {{"dtype", DType::kF32}}},
                               {"where", {t(0), t(1), number(-1)}}});
  const auto types = chosen.infer(std::vector<DType>{DType::kF16, DType::kI32});
  EXPECT_EQ(types.results, (std::vector<DType>{DType::kBool, DType::kF32, DType::kF32}));
  EXPECT_EQ(types.args[0], (std::vector<DType>{DType::kF16, DType::kF16}));
  EXPECT_EQ(types.args[2], (std::vector<DType>{DType::kBool, DType::kF32, DType::kF32}));
  const auto filled = decoded({{"identity", {parameter(0, 2, DType::kI8)}}});
  EXPECT_TRUE(filled.holds_parameters(0));
  EXPECT_EQ(filled.infer(std::vector<DType>{DType::kI64}).results[0], DType::kI8);
}

TEST(ElementwiseProgram, RefusesWrongDtypes) {
  const auto infer = [](const std::vector<ProgramStep>& calls, std::vector<DType> inputs) {
    return error_of([&] { decoded(calls).infer(inputs); });
  };
  EXPECT_EQ(infer({{"add", {x(0), x(1)}}}, {DType::kF32}),
            "[fused_elementwise] the program reads 2 inputs, 1 given");
  EXPECT_EQ(
      infer({{"add", {x(0), x(1)}}}, {DType::kF32, DType::kI32}),
      "[fused_elementwise] y=add(x0,x1): [add] input 'b' is i32, but must have the same dtype "
      "as the inputs before it, f32");
  EXPECT_EQ(infer({{"add", {x(0), number(0.5)}}}, {DType::kI32}),
            "[fused_elementwise] y=add(x0,0.5): 0.5 is not a value of i32");
  EXPECT_EQ(infer({{"add", {x(0), number(256)}}}, {DType::kU8}),
            "[fused_elementwise] y=add(x0,256): 256 is not a value of u8");
  EXPECT_EQ(infer({{"add", {x(0), number(kNan)}}}, {DType::kI64}),
            "[fused_elementwise] y=add(x0,nan): nan is not a value of i64");
  EXPECT_EQ(infer({{"where", {x(0), number(1), number(0)}}}, {DType::kBool}),
            "[fused_elementwise] y=where(x0,1,0): the dtype of argument 1 is not told");
  EXPECT_EQ(infer({{"cast", {x(0)}, {{"dtype", DType::kString}}}}, {DType::kF32}),
            "[fused_elementwise] y=cast(x0;dtype=string): the result is a string");
  EXPECT_EQ(infer({{"cast", {x(0)}, {{"dtype", DType::kI4}}}, {"where", {x(1), t(0), number(0)}}},
                  {DType::kF32, DType::kBool}),
            "[fused_elementwise] y=where(x1,t0,0): a number cannot be i4");
  EXPECT_EQ(infer({{"mul", {x(0), parameter(1, 0)}}}, {DType::kF32, DType::kF32}),
            "[fused_elementwise] x1 holds parameters, so it must be f64 or i64, not f32");
  EXPECT_EQ(infer({{"mul", {x(0), number(1, DType::kF16)}}}, {DType::kF32}),
            "[fused_elementwise] y=mul(x0,1): [mul] input 'b' is f16, but must have the same dtype "
            "as the inputs before it, f32");
}

}  // namespace
}  // namespace anymps::testing
