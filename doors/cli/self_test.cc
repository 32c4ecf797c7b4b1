// SPDX-License-Identifier: Apache-2.0
#include "self_test.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <cstring>

namespace anymps::cli {

namespace {

// What goes in and what comes out, element by element, as the bits that lie in memory.
struct Bits {
  amps::DType dtype;
  std::vector<uint64_t> in, out;
};

using enum amps::DType;

// x * x + x for 1, 2, 3; of complex numbers with the imaginary parts 0, 1, 0.
const Bits kArithmetic[] = {
    {f32, {0x3f800000, 0x40000000, 0x40400000}, {0x40000000, 0x40c00000, 0x41400000}},
    {f16, {0x3c00, 0x4000, 0x4200}, {0x4000, 0x4600, 0x4a00}},
    {bf16, {0x3f80, 0x4000, 0x4040}, {0x4000, 0x40c0, 0x4140}},
    {f64,
     {0x3ff0000000000000, 0x4000000000000000, 0x4008000000000000},
     {0x4000000000000000, 0x4018000000000000, 0x4028000000000000}},
    {i8, {1, 2, 3}, {2, 6, 12}},
    {i16, {1, 2, 3}, {2, 6, 12}},
    {i32, {1, 2, 3}, {2, 6, 12}},
    {i64, {1, 2, 3}, {2, 6, 12}},
    {u8, {1, 2, 3}, {2, 6, 12}},
    {u16, {1, 2, 3}, {2, 6, 12}},
    {u32, {1, 2, 3}, {2, 6, 12}},
    {u64, {1, 2, 3}, {2, 6, 12}},
    {c64,
     {0x3f800000, 0x3f80000040000000, 0x40400000},
     {0x40000000, 0x40a0000040a00000, 0x41400000}},
    {c128,
     {0x3ff0000000000000, 0, 0x4000000000000000, 0x3ff0000000000000, 0x4008000000000000, 0},
     {0x4000000000000000, 0, 0x4014000000000000, 0x4014000000000000, 0x4028000000000000, 0}},
};

// 1, 2 (0 and 1 of the two-bit types) as f32 and back.
const Bits kNarrow[] = {
    {i4, {1, 2}, {0x3f800000, 0x40000000}},
    {u4, {1, 2}, {0x3f800000, 0x40000000}},
    {i2, {0, 1}, {0, 0x3f800000}},
    {u2, {0, 1}, {0, 0x3f800000}},
    {f8e4m3, {0x38, 0x40}, {0x3f800000, 0x40000000}},
    {f8e5m2, {0x3c, 0x40}, {0x3f800000, 0x40000000}},
    {f8e4m3fnuz, {0x40, 0x48}, {0x3f800000, 0x40000000}},
    {f8e5m2fnuz, {0x40, 0x44}, {0x3f800000, 0x40000000}},
    {f8e8m0, {0x7f, 0x80}, {0x3f800000, 0x40000000}},
    {f4e2m1, {0x2, 0x4}, {0x3f800000, 0x40000000}},
};

// Bytes of one of the words in which bits are given: a larger element is several of them.
size_t word_of(amps::DType dtype) { return std::min(amps::size_of(dtype), sizeof(uint64_t)); }

std::vector<char> to_bytes(const std::vector<uint64_t>& bits, size_t word) {
  std::vector<char> bytes(bits.size() * word);
  for (size_t i = 0; i < bits.size(); ++i) std::memcpy(&bytes[i * word], &bits[i], word);
  return bytes;
}

std::string compare(const amps::Tensor& tensor, const std::vector<uint64_t>& wanted) {
  const size_t word = word_of(tensor.dtype());
  std::vector<char> bytes(tensor.bytes());
  tensor.to_host(bytes.data(), bytes.size());
  if (bytes == to_bytes(wanted, word)) return {};
  std::vector<uint64_t> got(bytes.size() / word);
  for (size_t i = 0; i < got.size(); ++i) std::memcpy(&got[i], &bytes[i * word], word);
  return fmt::format("the result has the bits {:x} instead of {:x}", fmt::join(got, ", "),
                     fmt::join(wanted, ", "));
}

template <typename Build>
amps::Tensor compute(const amps::Device& device, amps::DType dtype, const amps::Tensor& x,
                     Build&& build) {
  amps::Graph graph("self_test");
  graph.outputs({build(graph, graph.input("x", dtype, x.shape()))});
  return device.compile(graph).run({x})[0];
}

amps::Tensor tensor_of(const amps::Device& device, amps::DType dtype,
                       const std::vector<uint64_t>& bits) {
  const std::vector<char> bytes = to_bytes(bits, word_of(dtype));
  return device.from_host(dtype, {static_cast<int64_t>(bytes.size() / amps::size_of(dtype))},
                          bytes.data());
}

std::string test_strings(const amps::Device& device) {
  const amps::Tensor x = device.from_strings({2}, {"a", "b"});
  const auto y = compute(device, string, x, [](amps::Graph& graph, const amps::Value& value) {
    return graph.string_concat(value, value);
  });
  const std::vector<std::string> got = y.to_strings(), wanted{"aa", "bb"};
  return got == wanted ? "" : fmt::format("the result is {} instead of {}", got, wanted);
}

std::string test(const amps::Device& device, amps::DType dtype) {
  using Value = amps::Value;
  for (const Bits& bits : kArithmetic)
    if (bits.dtype == dtype)
      return compare(
          compute(device, dtype, tensor_of(device, dtype, bits.in),
                  [](amps::Graph& graph, const Value& x) { return graph.add(graph.mul(x, x), x); }),
          bits.out);
  for (const Bits& bits : kNarrow) {
    if (bits.dtype != dtype) continue;
    const auto cast_to = [&](amps::DType from, amps::DType to, const auto& in, const auto& out) {
      return compare(
          compute(device, from, tensor_of(device, from, in),
                  [&](amps::Graph& graph, const Value& x) { return graph.cast(x, {.dtype = to}); }),
          out);
    };
    const std::string wide = cast_to(dtype, f32, bits.in, bits.out);
    return wide.empty() ? cast_to(f32, dtype, bits.out, bits.in) : wide;
  }
  if (dtype == boolean)
    return compare(compute(device, dtype, tensor_of(device, dtype, {1, 0}),
                           [](amps::Graph& graph, const Value& x) { return graph.logical_not(x); }),
                   {0, 1});
  return dtype == string ? test_strings(device) : "there is no test for it";
}

}  // namespace

std::vector<SelfTest> self_test(const amps::Device& device) {
  std::vector<SelfTest> tests;
  for (int code = 0; amps_dtype_size(static_cast<amps_dtype>(code)) > 0; ++code) {
    const auto dtype = static_cast<amps::DType>(code);
    SelfTest one{amps::name(dtype), {}};
    try {
      one.problem = test(device, dtype);
    } catch (const std::exception& error) {
      one.problem = error.what();
    }
    tests.push_back(std::move(one));
  }
  return tests;
}

}  // namespace anymps::cli
