// SPDX-License-Identifier: Apache-2.0
// The user's own ops: registered, found in ONNX files, computed on every device, kept in .mps
// files.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "anymps/anymps.hpp"

namespace {

const char* infer_scale(const amps_custom_call* call) {
  if (call->input_count != 1 || call->inputs[0].rank < 1) return "takes one tensor with axes";
  if (call->inputs[0].dtype != AMPS_F32) return "takes f32";
  call->outputs[0] = call->inputs[0];  // the extents that are not known too
  if (call->output_count > 1) {
    call->outputs[1].dtype = AMPS_I64;
    call->outputs[1].rank = 1;
    call->outputs[1].dims[0] = call->inputs[0].rank;
  }
  return nullptr;
}

const char* run_scale(const amps_custom_call* call) {
  double factor = 1;
  int64_t shift = 0;
  for (size_t i = 0; i < call->attr_count; ++i) {
    if (!std::strcmp(call->attrs[i].name, "factor")) factor = call->attrs[i].f;
    if (!std::strcmp(call->attrs[i].name, "shift"))
      for (size_t k = 0; k < call->attrs[i].count; ++k) shift += call->attrs[i].ints[k];
  }
  int64_t count = 1;
  for (int64_t i = 0; i < call->inputs[0].rank; ++i) count *= call->inputs[0].dims[i];
  const auto* x = static_cast<const float*>(call->inputs[0].data);
  auto* y = static_cast<float*>(call->outputs[0].data);
  for (int64_t i = 0; i < count; ++i) {
    if (x[i] == 666) return "does not like this number";
    y[i] = x[i] * static_cast<float>(factor) + static_cast<float>(shift);
  }
  ++*static_cast<int*>(call->context);
  return nullptr;
}

int runs = 0;

void add_scale() {
  static const bool once = [] {
    amps_custom_op op{sizeof(amps_custom_op), "test.ops.Scale", infer_scale, run_scale, &runs};
    amps::check(amps_op_register(&op));
    return true;
  }();
  (void)once;
}

// A protobuf field of bytes.
std::string field(int number, const std::string& bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  for (size_t size = bytes.size();; size >>= 7) {
    out += static_cast<char>(size < 128 ? size : (size & 127) | 128);
    if (size < 128) break;
  }
  return out + bytes;
}
std::string number(int field_number, uint64_t value) {
  return std::string(1, static_cast<char>(field_number << 3)) + static_cast<char>(value);
}
std::string tensor_type(const std::string& name) {  // f32[N, 2]
  const std::string shape = field(1, field(2, "N")) + field(1, number(1, 2));
  return field(1, name) + field(2, field(1, number(1, 1) + field(2, shape)));
}
// y = test.ops.Scale(x) {factor: 2, shift: [1, 2]}
std::string model(const std::string& op = "Scale") {
  std::string factor(4, '\0');
  const float two = 2;
  std::memcpy(factor.data(), &two, 4);
  const std::string attrs =
      field(5, field(1, "factor") + std::string(1, 2 << 3 | 5) + factor +
                   std::string("\xa0\x01\x01")) +
      field(5, field(1, "shift") + number(8, 1) + number(8, 2) + std::string("\xa0\x01\x07"));
  const std::string node =
      field(1, "x") + field(2, "y") + field(4, op) + field(7, "test.ops") + attrs;
  const std::string graph =
      field(1, node) + field(2, "g") + field(11, tensor_type("x")) + field(12, tensor_type("y"));
  return number(1, 8) + field(7, graph) + field(8, field(1, "test.ops") + number(2, 1));
}

amps::Graph load(const std::string& bytes) {
  return amps::Graph::load(std::as_bytes(std::span(bytes)), "custom.onnx");
}

TEST(CustomOp, RunsInOnnxModels) {
  add_scale();
  const amps::Graph graph = load(model());
  EXPECT_EQ(graph.outputs()[0].dim_name(0), "N");  // the symbol has come through
  for (const char* name : {"cpu", "reference"}) {
    const amps::Device device = amps::Device::get(name);
    const amps::Executable executable = device.compile(graph);
    const float x[4] = {1, 2, 3, 4};
    const int before = runs;
    const auto y = executable.run({device.from_host(amps::DType::f32, {2, 2}, x)});
    EXPECT_EQ(y[0].to_vector<float>(), (std::vector<float>{5, 7, 9, 11})) << name;
    EXPECT_EQ(runs, before + 1);
    EXPECT_EQ(executable.result_shapes({{5, 2}})[0], (std::vector<int64_t>{5, 2}));
  }
}

TEST(CustomOp, IsKeptInFiles) {
  add_scale();
  const std::string path = testing::TempDir() + "custom_op_test.mps";
  load(model()).save(path);
  const amps::Graph graph = amps::Graph::load(path);
  const amps::Device device = amps::Device::get("cpu");
  const float x[2] = {1, -1};
  const auto y = device.compile(graph).run({device.from_host(amps::DType::f32, {1, 2}, x)});
  EXPECT_EQ(y[0].to_vector<float>(), (std::vector<float>{5, 1}));
  std::remove(path.c_str());
}

TEST(CustomOp, SaysWhatIsWrong) {
  add_scale();
  amps_custom_op op{sizeof(amps_custom_op), "test.ops.Scale", infer_scale, run_scale, nullptr};
  EXPECT_EQ(amps_op_register(&op), AMPS_INVALID_ARGUMENT);
  EXPECT_STREQ(amps_last_error(), "[custom] there is an op 'test.ops.Scale' already");
  op.name = "NoDomain";
  EXPECT_EQ(amps_op_register(&op), AMPS_INVALID_ARGUMENT);
  op.name = "test.ops.Nothing";
  op.run = nullptr;
  EXPECT_EQ(amps_op_register(&op), AMPS_INVALID_ARGUMENT);
  EXPECT_EQ(amps_op_register(nullptr), AMPS_INVALID_ARGUMENT);
  EXPECT_EQ(amps_op_library_load("/no/such/library.so"), AMPS_NOT_FOUND);
  try {
    load(model("Unknown"));
    ADD_FAILURE() << "loaded";
  } catch (const amps::Error& error) {
    EXPECT_EQ(error.status(), AMPS_UNSUPPORTED);
    EXPECT_NE(std::string(error.what()).find("test.ops.Unknown"), std::string::npos)
        << error.what();
  }
  const amps::Device device = amps::Device::get("cpu");
  const float x[2] = {1, 666};
  try {
    device.compile(load(model())).run({device.from_host(amps::DType::f32, {1, 2}, x)});
    ADD_FAILURE() << "ran";
  } catch (const amps::Error& error) {
    EXPECT_STREQ(error.what(), "[test.ops.Scale] does not like this number (node \"y\")");
  }
}

}  // namespace
