// SPDX-License-Identifier: Apache-2.0
// What executables take subnormal numbers for, through the C interface.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "anymps/anymps.hpp"

namespace {

constexpr float kTiny = 0x1p-140f;  // subnormal

amps::Graph doubling() {
  amps::Graph graph;
  const amps::Value x = graph.input("x", amps::DType::f32, {1});
  graph.outputs({graph.add(x, x)});
  return graph;
}

float result_of(const amps::Device& device, const amps::Executable& executable) {
  return executable.run({device.from_host(amps::DType::f32, {1}, &kTiny)})[0].to_vector<float>()[0];
}

TEST(Denormals, AnOptionOfEachExecutable) {
  const amps::Device device = amps::Device::get("cpu");
  const amps::Graph graph = doubling();
  EXPECT_EQ(result_of(device, device.compile(graph)), 0);
  EXPECT_EQ(result_of(device, device.compile(graph, {.denormals = AMPS_DENORMALS_FLUSH})), 0);
  for (const amps_denormals kept : {AMPS_DENORMALS_KEEP, AMPS_DENORMALS_AS_CALLS})
    EXPECT_EQ(result_of(device, device.compile(graph, {.denormals = kept})), 2 * kTiny);
}

TEST(Denormals, CachedExecutablesDiffer) {
  const amps::Device device = amps::Device::get("cpu");
  const amps::Graph graph = doubling();
  const auto cached = [&](amps_denormals denormals) {
    amps::CompileOptions options;
    options.denormals = denormals;
    const amps_compile_options c = options.c();
    amps_executable* executable = nullptr;
    amps::check(amps_compile_cached(device.c(), graph.c(), &c, &executable));
    return result_of(device, amps::Executable(executable));
  };
  EXPECT_EQ(cached(AMPS_DENORMALS_FLUSH), 0);
  EXPECT_EQ(cached(AMPS_DENORMALS_KEEP), 2 * kTiny);
  EXPECT_EQ(cached(AMPS_DENORMALS_FLUSH), 0);
}

// Callers that know less of the struct get the default; what is no mode is refused.
TEST(Denormals, OlderAndWrongOptions) {
  const amps::Device device = amps::Device::get("cpu");
  const amps::Graph graph = doubling();
  const amps::CompileOptions plain;
  amps_compile_options options = plain.c();
  options.size = offsetof(amps_compile_options, denormals);
  options.denormals = 77;  // beyond what the caller has
  amps_executable* executable = nullptr;
  amps::check(amps_compile(device.c(), graph.c(), &options, &executable));
  EXPECT_EQ(result_of(device, amps::Executable(executable)), 0);
  options.size = sizeof(options);
  for (const int wrong : {-1, 4, 77}) {
    options.denormals = wrong;
    EXPECT_EQ(amps_compile(device.c(), graph.c(), &options, &executable), AMPS_INVALID_ARGUMENT);
    EXPECT_NE(std::string(amps_last_error()).find("[compile] denormals"), std::string::npos);
  }
}

}  // namespace
