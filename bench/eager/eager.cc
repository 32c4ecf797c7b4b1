// SPDX-License-Identifier: Apache-2.0
// What one op costs through the C interface: a cached call with one element is all overhead.
// Run: build/bin/bench_eager  (median of repetitions: --benchmark_repetitions=9)
#include <benchmark/benchmark.h>

#include <vector>

#include "anymps/anymps.hpp"

namespace {

amps::Tensor zeros(const amps::Device& device, int64_t count) {
  const std::vector<float> data(static_cast<size_t>(count), 0.5f);
  return device.from_host(amps::DType::f32, {count}, data.data());
}

// Binary op into a given output: what a framework's `out=` form does.
void add_into(benchmark::State& state) {
  const amps::Device device = amps::Device::get("cpu");
  const amps::Tensor a = zeros(device, state.range(0)), b = zeros(device, state.range(0));
  const amps::Tensor y = zeros(device, state.range(0));
  const amps_op* op = amps_op_find("add");
  amps_tensor* inputs[] = {a.c(), b.c()};
  amps_tensor* outputs[] = {y.c()};
  for (auto _ : state) amps::check(amps_eager(device.c(), op, inputs, 2, nullptr, 0, outputs, 1));
}
BENCHMARK(add_into)->Arg(1)->Arg(1000)->Arg(1000000);

// The result is made by the call and released: what `a + b` does.
void add_new(benchmark::State& state) {
  const amps::Device device = amps::Device::get("cpu");
  const amps::Tensor a = zeros(device, state.range(0)), b = zeros(device, state.range(0));
  const amps_op* op = amps_op_find("add");
  amps_tensor* inputs[] = {a.c(), b.c()};
  for (auto _ : state) {
    amps_tensor* output = nullptr;
    amps::check(amps_eager(device.c(), op, inputs, 2, nullptr, 0, &output, 1));
    amps_tensor_release(output);
  }
}
BENCHMARK(add_new)->Arg(1)->Arg(1000)->Arg(1000000);

// With an attribute: it is part of the key.
void softmax_new(benchmark::State& state) {
  const amps::Device device = amps::Device::get("cpu");
  const amps::Tensor x = zeros(device, state.range(0));
  const amps_op* op = amps_op_find("softmax");
  amps_tensor* inputs[] = {x.c()};
  const amps_attr axis = {"axis", AMPS_ATTR_INT, -1, 0, nullptr, nullptr, nullptr, 0};
  for (auto _ : state) {
    amps_tensor* output = nullptr;
    amps::check(amps_eager(device.c(), op, inputs, 1, &axis, 1, &output, 1));
    amps_tensor_release(output);
  }
}
BENCHMARK(softmax_new)->Arg(1)->Arg(1000);

}  // namespace

BENCHMARK_MAIN();
