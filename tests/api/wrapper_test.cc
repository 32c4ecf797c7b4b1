// SPDX-License-Identifier: Apache-2.0
// The C++ layer itself: what it checks before it calls C.
#include <gtest/gtest.h>

#include <vector>

#include "anymps/anymps.hpp"

namespace {

TEST(Wrapper, ElementsAreReadAsWhatTheyAre) {
  const amps::Device device = amps::Device::get("cpu");
  const std::vector<float> numbers = {1, 2};
  const amps::Tensor floats = device.from_host(amps::DType::f32, {2}, numbers.data());
  EXPECT_EQ(floats.to_vector<float>(), numbers);
  EXPECT_THROW(floats.to_vector<int32_t>(), amps::Error);
  EXPECT_THROW(floats.to_vector<double>(), amps::Error);
  const std::vector<uint16_t> bits = {0x3c00, 0x4000};
  for (const amps::DType dtype : {amps::DType::f16, amps::DType::bf16, amps::DType::u16}) {
    const amps::Tensor tensor = device.from_host(dtype, {2}, bits.data());
    EXPECT_EQ(tensor.to_vector<uint16_t>(), bits);
    EXPECT_THROW(tensor.to_vector<int16_t>(), amps::Error);
  }
  const std::vector<uint8_t> truths = {1, 0, 1};
  const amps::Tensor booleans = device.from_host(amps::DType::boolean, {3}, truths.data());
  EXPECT_EQ(booleans.to_vector<uint8_t>(), truths);
  const std::vector<std::complex<float>> turns = {{0, 1}};
  const amps::Tensor complex = device.from_host(amps::DType::c64, {1}, turns.data());
  EXPECT_EQ(complex.to_vector<std::complex<float>>(), turns);
  EXPECT_THROW(complex.to_vector<double>(), amps::Error);
  const std::vector<std::complex<double>> wide = {{0.1, 1e-300}};
  const amps::Tensor doubles = device.from_host(amps::DType::c128, {1}, wide.data());
  EXPECT_EQ(doubles.to_vector<std::complex<double>>(), wide);
}

TEST(Wrapper, HandlesOfNothingAreErrors) {
  const amps::Tensor none;
  EXPECT_TRUE(none.shape().empty());
  EXPECT_THROW(none.to_vector<float>(), amps::Error);
  amps::Graph graph("graph");
  EXPECT_THROW(graph.relu(amps::Value()), amps::Error);
  const amps::Graph moved = std::move(graph);
  EXPECT_THROW(graph.input("x", amps::DType::f32, {1}), amps::Error);  // NOLINT: that is the test
}

TEST(Wrapper, StringsGoInAndOut) {
  const amps::Device device = amps::Device::get("cpu");
  const std::vector<std::string> words = {"a", "", std::string("\0b", 2), "\u00e9t\u00e9"};
  const amps::Tensor tensor = device.from_strings({2, 2}, words);
  EXPECT_EQ(tensor.to_strings(), words);
  EXPECT_EQ(tensor.shape(), (std::vector<int64_t>{2, 2}));
  EXPECT_THROW(device.from_strings({3}, words), amps::Error);
  EXPECT_THROW(tensor.to_vector<uint64_t>(), amps::Error);
}

// Strings and lists are no plain memory: whoever takes them for that gets an error, not a crash.
TEST(Wrapper, WhatIsNoPlainMemoryIsNotTakenForIt) {
  const amps::Device device = amps::Device::get("cpu");
  const amps::Tensor strings = device.from_strings({1}, {"text"});
  std::vector<uint64_t> room(8);
  EXPECT_THROW(strings.to_host(room.data(), strings.bytes()), amps::Error);
  EXPECT_THROW(device.empty(amps::DType::string, {2}), amps::Error);
  EXPECT_THROW(device.from_host(amps::DType::string, {2}, room.data()), amps::Error);
  EXPECT_THROW(device.wrap(amps::DType::string, {2}, room.data()), amps::Error);

  const float one = 1;
  const amps::Tensor item = device.from_host(amps::DType::f32, {1}, &one);
  const amps::Tensor list = device.list(amps::DType::f32, {item, item});
  EXPECT_EQ(list.container(), AMPS_SEQUENCE);
  EXPECT_EQ(list.items().at(1).to_vector<float>(), std::vector<float>{1});
  EXPECT_TRUE(item.items().empty());
  EXPECT_EQ(list.data(), nullptr);
  EXPECT_THROW(list.to_host(room.data(), list.bytes()), amps::Error);
  EXPECT_THROW(list.to_vector<float>(), amps::Error);
  amps_tensor* view = nullptr;
  EXPECT_EQ(amps_tensor_view(list.c(), 0, nullptr, nullptr, 0, &view), AMPS_INVALID_ARGUMENT);
  for (const amps::Tensor& odd : {list, strings}) {
    EXPECT_THROW(device.eager("add", {odd, odd}), amps::Error);
    EXPECT_THROW(device.eager("relu", {odd}), amps::Error);
    amps::Graph graph("graph");
    graph.outputs({graph.relu(graph.input("x", amps::DType::f32, {1}))});
    EXPECT_THROW(device.compile(graph).run({odd}), amps::Error);
  }
}

TEST(Wrapper, KnowsEveryDtype) {
  for (int i = 0; amps_dtype_size(static_cast<amps_dtype>(i)) != 0; ++i) {
    const auto dtype = static_cast<amps::DType>(i);
    EXPECT_EQ(amps::parse_dtype(amps::name(dtype)), dtype);
  }
  EXPECT_STREQ(amps::name(amps::DType::string), "string");
  EXPECT_STREQ(amps::name(amps::DType::f4e2m1), "f4e2m1");
}

}  // namespace
