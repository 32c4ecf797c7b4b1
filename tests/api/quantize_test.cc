// SPDX-License-Identifier: Apache-2.0
// Weights in few bits, through the C interface: the numbers of the widened weights, files, and
// options that are wrong.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "anymps/anymps.hpp"
#include "api/error_of.h"

namespace amps::testing {

namespace {

constexpr int64_t kDepth = 192, kColumns = 100;

std::vector<float> waves(int64_t count, double step) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(std::sin(static_cast<double>(i) * step));
  return numbers;
}

const std::vector<float>& matrix() {
  static const std::vector<float> numbers = waves(kDepth * kColumns, 0.37);
  return numbers;
}

// y = relu(x @ w + 0.5), x: f32[N, 192]
Graph model() {
  Graph graph("layer");
  const Value x = graph.input("x", DType::f32, {-1, kDepth}, {"N"});
  const Value w = graph.constant({kDepth, kColumns}, matrix());
  const Value half = graph.constant({}, std::vector<float>{0.5f});
  graph.outputs({graph.relu(graph.add(graph.matmul(x, w), half))});
  return graph;
}

CompileOptions with(const std::string& quantize) {
  CompileOptions options;
  options.quantize = quantize;
  return options;
}

std::vector<float> run(const Device& device, const Executable& executable, int64_t rows) {
  const std::vector<float> x = waves(rows * kDepth, 0.11);
  return executable.run({device.from_host(DType::f32, {rows, kDepth}, x.data())})[0]
      .to_vector<float>();
}

// With the weights of 8 bits, in doubles.
std::vector<double> expected(int64_t rows) {
  const std::vector<float> x = waves(rows * kDepth, 0.11);
  std::vector<double> y;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t n = 0; n < kColumns; ++n) {
      float most = 0;
      for (int64_t k = 0; k < kDepth; ++k)
        most = std::max(most, std::abs(matrix()[k * kColumns + n]));
      const float step = most / 127;
      double sum = 0.5;
      for (int64_t k = 0; k < kDepth; ++k)
        sum += static_cast<double>(x[row * kDepth + k]) * step *
               std::round(matrix()[k * kColumns + n] / step);
      y.push_back(std::max(sum, 0.0));
    }
  return y;
}

// A few rows are multiplied in registers, many with blocks of widened weights.
TEST(Quantize, NumbersOfTheWidenedWeights) {
  const Device device = Device::get("cpu");
  const Executable executable = device.compile(model(), with("int8"));
  EXPECT_NE(executable.text("text").find("weight_only_matmul"), std::string::npos);
  for (const int64_t rows : {1, 3, 9, 40}) {
    const std::vector<float> y = run(device, executable, rows);
    const std::vector<double> right = expected(rows);
    ASSERT_EQ(y.size(), right.size());
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], right[i], 2e-4) << rows << ' ' << i;
  }
}

TEST(Quantize, FourBitsAreFurtherOff) {
  const Device device = Device::get("cpu");
  const auto error = [&](const char* quantize) {
    const std::vector<float> plain = run(device, device.compile(model()), 3);
    const std::vector<float> y = run(device, device.compile(model(), with(quantize)), 3);
    double squares = 0, all = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      squares += std::pow(y[i] - plain[i], 2);
      all += std::pow(plain[i], 2);
    }
    return std::sqrt(squares / all);
  };
  EXPECT_LT(error("int8"), 0.04);
  EXPECT_GT(error("int4"), error("int8"));
  EXPECT_LT(error("int4"), 0.4);
  EXPECT_EQ(error(""), 0);
}

TEST(Quantize, FilesHoldTheFewBits) {
  const Device device = Device::get("cpu");
  const std::string path =
      (std::filesystem::temp_directory_path() / ("quantize_test." + std::to_string(getpid())))
          .string();
  uintmax_t before = 0;
  for (const char* quantize : {"", "int8", "int4"}) {
    const Executable made = device.compile(model(), with(quantize));
    made.save(path);
    const uintmax_t size = std::filesystem::file_size(path);
    EXPECT_TRUE(before == 0 || size < before * 2 / 3) << quantize << ' ' << size;
    before = size;
    for (const int64_t rows : {1, 20})
      EXPECT_EQ(run(device, device.load(path), rows), run(device, made, rows)) << quantize;
    // Elsewhere too.
    const Device reference = Device::get("reference");
    const std::vector<float> y = run(reference, reference.load(path), 2);
    const std::vector<float> here = run(device, made, 2);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], here[i], 2e-4) << quantize;
  }
  std::filesystem::remove(path);
}

// The passes of a compiled file have run; these weights are rounded all the same.
TEST(Quantize, ACompiledFile) {
  const Device device = Device::get("cpu");
  const std::string path =
      (std::filesystem::temp_directory_path() / ("quantize_load." + std::to_string(getpid())))
          .string();
  device.compile(model()).save(path);
  const Executable executable = device.load(path, with("int8"));
  std::filesystem::remove(path);
  EXPECT_EQ(run(device, executable, 3), run(device, device.compile(model(), with("int8")), 3));
}

TEST(Quantize, CachedExecutablesDiffer) {
  const Device device = Device::get("cpu");
  const Graph graph = model();
  const auto cached = [&](const char* quantize) {
    const CompileOptions options = with(quantize);
    const amps_compile_options c = options.c();
    amps_executable* executable = nullptr;
    check(amps_compile_cached(device.c(), graph.c(), &c, &executable));
    return run(device, Executable(executable), 2);
  };
  const std::vector<float> plain = cached("");
  EXPECT_NE(cached("int8"), plain);
  EXPECT_NE(cached("int4"), cached("int8"));
  EXPECT_EQ(cached(""), plain);
}

TEST(Quantize, WrongOptions) {
  const Device device = Device::get("cpu");
  for (const char* wrong : {"int3", "INT8", "8", "int8 "})
    EXPECT_EQ(error_of([&] { device.compile(model(), with(wrong)); }),
              "invalid argument: [compile] quantize '" + std::string(wrong) +
                  "': weights can be int8 or int4");
  CompileOptions options = with("int8");
  options.optimization_level = 0;
  EXPECT_EQ(message_of([&] { device.compile(model(), options); }),
            "[compile] quantize int8 is a pass: it needs optimization level 1");
}

// Callers that know less of the struct: what lies beyond it is not read.
TEST(Quantize, OlderOptions) {
  const Device device = Device::get("cpu");
  const Graph graph = model();
  const CompileOptions plain;
  amps_compile_options options = plain.c();
  options.size = offsetof(amps_compile_options, quantize);
  options.quantize = reinterpret_cast<const char*>(1);
  amps_executable* executable = nullptr;
  check(amps_compile(device.c(), graph.c(), &options, &executable));
  EXPECT_EQ(run(device, Executable(executable), 1), run(device, device.compile(graph), 1));
}

}  // namespace

}  // namespace amps::testing
