// SPDX-License-Identifier: Apache-2.0
// Bundles: programs with test cases, and the order in which elements lie.
#include "formats/executorch/program/bundle.h"

#include <gtest/gtest.h>

#include <cstring>

#include "anymps/anymps.hpp"
#include "support/executorch_file.h"

namespace anymps::executorch {
namespace {

using anymps::testing::add_program;
using anymps::testing::bytes_of;
using anymps::testing::constant;
using anymps::testing::write_bundle;
using anymps::testing::write_program;

const std::string kOnes = bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6});
const std::string kTens = bytes_of(std::vector<float>{10, 20, 30, 40, 50, 60});
const std::string kSums = bytes_of(std::vector<float>{11, 22, 33, 44, 55, 66});

TestCase add_test() {
  return {{constant(DType::kF32, {2, 3}, kOnes), constant(DType::kF32, {2, 3}, kTens)},
          {constant(DType::kF32, {2, 3}, kSums)}};
}

Bundle read(const std::string& file) {
  auto copy = std::make_shared<const std::string>(file);
  return read_bundle({*copy, copy, false, "test.bpte"});
}

std::string read_error(const std::string& file) {
  try {
    read(file);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ExecutorchBundle, HasTheProgramAndItsTests) {
  const Bundle bundle =
      read(write_bundle(write_program(add_program()), {{"forward", {add_test(), add_test()}}}));
  EXPECT_TRUE(bundle.bundled);
  const auto& tests = bundle.tests(bundle.program.method(""));
  ASSERT_EQ(tests.size(), 2u);
  ASSERT_EQ(tests[1].inputs.size(), 2u);
  EXPECT_EQ(*std::get<Tensor>(tests[1].inputs[1]).data, kTens);
  EXPECT_EQ(*std::get<Tensor>(tests[1].outputs[0]).data, kSums);
}

TEST(ExecutorchBundle, AProgramAloneHasNoTests) {
  const Bundle bundle = read(write_program(add_program()));
  EXPECT_FALSE(bundle.bundled);
  EXPECT_TRUE(bundle.tests(bundle.program.method("")).empty());
}

TEST(ExecutorchBundle, TestsMustFitTheMethod) {
  const std::string program = write_program(add_program());
  TestCase few = add_test();
  few.inputs.pop_back();
  EXPECT_NE(read_error(write_bundle(program, {{"forward", {few}}}))
                .find("BundledMethodTestCase[0].inputs: there are 1, the method \"forward\" has 2"),
            std::string::npos);
  EXPECT_NE(read_error(write_bundle(program, {{"other", {}}}))
                .find("BundledMethodTestSuite[0].method_name: the program has no method \"other\""),
            std::string::npos);
  TestCase small = add_test();
  std::get<Tensor>(small.inputs[0]).data = std::string_view(kOnes).substr(4);
  EXPECT_NE(read_error(write_bundle(program, {{"forward", {small}}}))
                .find("Tensor[0].data: 20 bytes for [2, 3] of f32"),
            std::string::npos);
  EXPECT_NE(read_error(write_bundle("no program", {})).find("BundledProgram.program: it is not"),
            std::string::npos);
}

TEST(ExecutorchBundle, ATestMayExpectFewerOutputs) {
  Program program = add_program();
  const int32_t sum = program.methods[0].outputs[0];
  program.methods[0].outputs = {sum, sum};
  const std::string file = write_bundle(write_program(program), {{"forward", {add_test()}}});
  const Bundle bundle = read(file);
  const Method& method = bundle.program.method("");
  const TestCase& test = bundle.tests(method)[0];
  EXPECT_EQ(expected_outputs(method, test),
            (std::vector<const EValue*>{&test.outputs[0], nullptr}));
  const amps::Device device = amps::Device::get("reference");
  const auto expected =
      amps::Program::open(std::as_bytes(std::span(file)), "test").test_outputs(0, device);
  ASSERT_EQ(expected.size(), 2u);
  EXPECT_EQ(expected[0].to_vector<float>(), (std::vector<float>{11, 22, 33, 44, 55, 66}));
  EXPECT_FALSE(expected[1]);
  TestCase more = add_test();
  more.outputs.resize(3, more.outputs[0]);
  EXPECT_NE(read_error(write_bundle(write_program(program), {{"forward", {more}}}))
                .find("expected_outputs: there are 3, the method \"forward\" has 2"),
            std::string::npos);
}

// The program gives the input that it changes before its outputs proper, of which the test tells.
TEST(ExecutorchBundle, ChangedInputsComeFirst) {
  Program program = add_program();
  Method& method = program.methods[0];
  const int32_t sum = method.outputs[0];
  method.operators.emplace_back("aten::copy_");
  method.instructions.emplace_back(KernelCall{"aten::copy_", {0, sum, 2, 0}});
  method.outputs = {0, sum};
  const TestCase test = add_test();
  EXPECT_EQ(expected_outputs(method, test),
            (std::vector<const EValue*>{nullptr, &test.outputs[0]}));
  method.instructions.pop_back();  // an input that is given as it is
  EXPECT_EQ(expected_outputs(method, test),
            (std::vector<const EValue*>{&test.outputs[0], nullptr}));
}

TEST(ExecutorchBundle, NumbersOfAMethodAreFixed) {
  Program program = add_program();
  program.methods[0].inputs = {0, 1, 2};  // value 2 is the Int 1
  const std::string file = write_program(program);
  TestCase test = add_test();
  test.inputs.emplace_back(int64_t{1});
  const Bundle bundle = read(write_bundle(file, {{"forward", {test}}}));
  EXPECT_EQ(fed_inputs(bundle.program.method("")), (std::vector<size_t>{0, 1}));
  test.inputs[2] = int64_t{2};
  EXPECT_NE(read_error(write_bundle(file, {{"forward", {test}}}))
                .find("input 2 is a Int, or of another value than the Int of method"),
            std::string::npos);
}

TEST(ExecutorchBundle, ElementsInLogicalOrder) {
  // [1, 2, 2, 3] with the channels innermost: element (c, h, w) is at (h * 3 + w) * 2 + c.
  Tensor tensor = constant(DType::kF32, {1, 2, 2, 3}, "");
  tensor.dim_order = {0, 2, 3, 1};
  EXPECT_FALSE(in_logical_order(tensor));
  std::vector<float> memory(12), logical(12), expected(12);
  for (size_t c = 0; c < 2; ++c)
    for (size_t h = 0; h < 2; ++h)
      for (size_t w = 0; w < 3; ++w) {
        const auto number = static_cast<float>(100 * c + 10 * h + w);
        memory[(h * 3 + w) * 2 + c] = number;
        expected[(c * 2 + h) * 3 + w] = number;
      }
  const std::string data = bytes_of(memory);
  to_logical_order(tensor, data, reinterpret_cast<std::byte*>(logical.data()));
  EXPECT_EQ(logical, expected);
  tensor.sizes = {1, 1, 2, 3};  // one channel: no difference
  EXPECT_TRUE(in_logical_order(tensor));
}

TEST(ExecutorchBundle, TestsThroughTheInterface) {
  TestCase test = add_test();
  Tensor& first = std::get<Tensor>(test.inputs[0]);
  const std::string turned = bytes_of(std::vector<float>{1, 4, 2, 5, 3, 6});
  first.data = turned;
  first.dim_order = {1, 0};
  const std::string file = write_bundle(write_program(add_program()), {{"forward", {test}}});
  const auto program = amps::Program::open(std::as_bytes(std::span(file)), "test");
  EXPECT_EQ(program.methods(), (std::vector<std::string>{"forward"}));
  ASSERT_EQ(program.test_count(), 1u);
  const amps::Device device = amps::Device::get("reference");
  const auto inputs = program.test_inputs(0, device), expected = program.test_outputs(0, device);
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  const auto results = device.compile(program.graph()).run(inputs);
  EXPECT_EQ(results[0].to_vector<float>(), expected[0].to_vector<float>());
  EXPECT_THROW(program.test_inputs(1, device), amps::Error);
  EXPECT_THROW(program.test_count("backward"), amps::Error);
  EXPECT_THROW(amps::Program::open(std::as_bytes(std::span("neither", 7))), amps::Error);
}

}  // namespace
}  // namespace anymps::executorch
