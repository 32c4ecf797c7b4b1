// SPDX-License-Identifier: Apache-2.0
// The C interface under callers who give too little, too much, or what is not theirs: each gets a
// status, and the process goes on with the memory that it had.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "anymps/anymps.hpp"

namespace {

using Ints = std::vector<int64_t>;

amps::Executable relu_of(const amps::Device& device, const Ints& dims) {
  amps::Graph graph("graph");
  graph.outputs({graph.relu(graph.input("x", amps::DType::f32, dims))});
  return device.compile(graph);
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const amps::Error& error) {
    return error.what();
  }
  return "";
}

TEST(Hostile, ShapesForAPlanAreCounted) {
  const amps::Device device = amps::Device::get("cpu");
  const amps::Executable dynamic = relu_of(device, {-1, 3});
  for (const char* format : {"plan", "memory"}) {
    for (const Ints& wrong : {Ints{}, Ints{2}, Ints{2, 3, 4}, Ints{2, 4}, Ints{-2, 3}})
      EXPECT_NE(error_of([&] { dynamic.text(format, wrong); }), "") << format << wrong.size();
    EXPECT_NE(dynamic.text(format, {2, 3}), "");
    EXPECT_NE(relu_of(device, {2, 3}).text(format), "");
  }
  EXPECT_NE(error_of([&] { dynamic.text("plan", {2}); }).find("1 extents are given"),
            std::string::npos);
  amps_string* text = nullptr;
  EXPECT_EQ(amps_executable_text_for(dynamic.c(), "plan", nullptr, 2, &text),
            AMPS_INVALID_ARGUMENT);
  const int64_t dims[] = {2, 3};
  EXPECT_EQ(amps_executable_text(dynamic.c(), "plan", dims, &text), AMPS_OK);
  amps_string_release(text);
}

TEST(Hostile, ShapesForResultsAreCounted) {
  const amps::Device device = amps::Device::get("cpu");
  const amps::Executable dynamic = relu_of(device, {-1, 3});
  const size_t ranks[] = {2, 2};
  const int64_t dims[] = {2, 3, 4};
  int64_t result_ranks[] = {7, 7}, result_dims[] = {7, 7, 7};
  size_t count = 0;
  const auto shapes = [&](size_t feeds, size_t extents, size_t results) {
    return amps_executable_result_dims_for(dynamic.c(), feeds ? ranks : nullptr, feeds, dims,
                                           extents, result_ranks, results, result_dims, 3, &count);
  };
  for (const auto& [feeds, extents, results] : {std::array<size_t, 3>{2, 2, 1},
                                                {1, 1, 1},
                                                {1, 3, 1},
                                                {1, 2, 0},
                                                {1, 2, 2},
                                                {0, 1, 1},
                                                {0, 3, 1},
                                                {0, 0, 1}}) {
    EXPECT_EQ(shapes(feeds, extents, results), AMPS_INVALID_ARGUMENT)
        << feeds << extents << results;
    EXPECT_EQ(result_ranks[0], 7);
  }
  EXPECT_EQ(amps_executable_result_dims_for(dynamic.c(), nullptr, 1, dims, 2, result_ranks, 1,
                                            result_dims, 3, &count),
            AMPS_INVALID_ARGUMENT);
  for (const size_t feeds : {0, 1}) {
    ASSERT_EQ(shapes(feeds, 2, 1), AMPS_OK) << amps_last_error();
    EXPECT_EQ(count, 2u);
    EXPECT_EQ(result_ranks[0], 2);
    EXPECT_EQ(result_ranks[1], 7);
    EXPECT_EQ(std::vector<int64_t>(result_dims, result_dims + 3), (Ints{2, 3, 7}));
  }
}

TEST(Hostile, ResultsMustBeThere) {
  const amps::Device device = amps::Device::get("cpu");
  const amps::Executable executable = relu_of(device, {1});
  const float one = 1;
  const amps::Tensor held = device.from_host(amps::DType::f32, {1}, &one);
  amps_tensor* feed = held.c();
  EXPECT_EQ(amps_executable_run(executable.c(), &feed, 1, nullptr, 1, nullptr, nullptr),
            AMPS_INVALID_ARGUMENT);
  EXPECT_EQ(amps_graph_values(nullptr, nullptr, 4), 0u);
  amps::Graph graph("graph");
  graph.input("x", amps::DType::f32, {1});
  EXPECT_EQ(amps_graph_values(graph.c(), nullptr, 4), 1u);
}

TEST(Hostile, ValuesOfOtherGraphsAreRefused) {
  amps::Graph mine("mine"), other("other");
  const amps::Value x = mine.input("x", amps::DType::f32, {2});
  const amps::Value foreign = other.input("x", amps::DType::f32, {2});
  EXPECT_NE(error_of([&] { mine.add(x, foreign); }).find("input 1 is no value of this graph"),
            std::string::npos);
  EXPECT_NE(error_of([&] { mine.outputs({foreign}); }), "");
  const amps::Value y = mine.relu(x);
  EXPECT_NE(error_of([&] { mine.gradient(y, {foreign}); }), "");
  EXPECT_NE(error_of([&] { mine.gradient(foreign, {x}); }), "");
  EXPECT_NE(error_of([&] { mine.gradient(y, {x}, foreign); }), "");
  mine.outputs({y});
  const std::vector<float> numbers = {-1, 2};
  const amps::Device device = amps::Device::get("cpu");
  const amps::Tensor feed = device.from_host(amps::DType::f32, {2}, numbers.data());
  EXPECT_EQ(device.compile(mine).run({feed})[0].to_vector<float>(), (std::vector<float>{0, 2}));
}

TEST(Hostile, NumbersWithoutSenseAreRefused) {
  const amps::Device device = amps::Device::get("cpu");
  const int64_t huge = INT64_MAX;
  for (const Ints& dims : {Ints{-1}, Ints{huge}, Ints{huge, huge}, Ints(65, 1), Ints{0, -3}}) {
    EXPECT_NE(error_of([&] { device.empty(amps::DType::f32, dims); }), "") << dims.size();
    float number = 0;
    EXPECT_NE(error_of([&] { device.from_host(amps::DType::f32, dims, &number); }), "");
    EXPECT_NE(error_of([&] { device.wrap(amps::DType::f32, dims, &number); }), "");
  }
  amps_tensor* view = nullptr;
  const amps::Tensor four = device.empty(amps::DType::f32, {4});
  const int64_t two[] = {2, 2};
  for (const Ints& strides :
       {Ints{huge, 1}, Ints{1, huge}, Ints{-huge, 1}, Ints{4, 1}, Ints{-1, 1}})
    EXPECT_EQ(amps_tensor_view(four.c(), 2, two, strides.data(), 0, &view), AMPS_INVALID_ARGUMENT);
  for (const int64_t offset : {huge, -huge - 1, int64_t{1}, int64_t{-1}})
    EXPECT_EQ(amps_tensor_view(four.c(), 2, two, nullptr, offset, &view), AMPS_INVALID_ARGUMENT);
  amps::Graph graph("graph");
  const amps::Value x = graph.input("x", amps::DType::f32, {2});
  amps_value* in = x.c();
  std::vector<amps_value*> out(4);
  EXPECT_NE(amps_graph_op(graph.c(), amps_op_find("relu"), &in, 1, nullptr, 0, "y", nullptr, 1),
            AMPS_OK);
  EXPECT_NE(
      amps_graph_op(graph.c(), amps_op_find("relu"), &in, 1, nullptr, 0, "y", out.data(), SIZE_MAX),
      AMPS_OK);
  graph.outputs({graph.relu(x)});
  amps::CompileOptions options;
  options.threads = 2'000'000'000;
  EXPECT_NE(error_of([&] { device.compile(graph, options); }), "");
}

TEST(Hostile, NamesMayHoldAnyBytes) {
  amps::Graph graph("\xff\xfe");
  const amps::Value x = graph.input("in\x80put\"\n", amps::DType::f32, {-1});
  graph.outputs({graph.relu(x, "\xc3(")});
  for (const char* format : {"text", "json", "svg"}) EXPECT_NE(graph.text(format), "");
  EXPECT_EQ(graph.text("json").find('\x80'), std::string::npos);
  const amps::Device device = amps::Device::get("cpu");
  EXPECT_NE(device.compile(graph).text("plan", {2}), "");
  for (const char* path : {"", "/", "\xff", "/dev/null", "no\nsuch\nfile"})
    EXPECT_NE(error_of([&] { amps::Graph::load(path); }), "") << path;
}

size_t peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss);
}

// An attribute or one small input says how large the result is.
TEST(Hostile, ResultsThatNoMemoryHoldsAreRefusedBeforeAnyIsTaken) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  const amps::Device device = amps::Device::get("cpu");
  const auto number = [&](int64_t value) { return device.from_host(amps::DType::i64, {}, &value); };
  const auto list = [&](const Ints& values) {
    return device.from_host(amps::DType::i64, {static_cast<int64_t>(values.size())}, values.data());
  };
  const auto zeros = [&](const Ints& shape) {
    const std::vector<float> values(64, 0);
    return device.from_host(amps::DType::f32, shape, values.data());
  };
  const amps::Tensor signal = zeros({1, 8, 1}), one = zeros({1}), image = zeros({1, 1, 2, 2});
  struct Call {
    const char* op;
    std::vector<amps::Tensor> inputs;
    amps::Attrs attrs;
  };
  const std::vector<Call> calls = {
      {"dft", {signal}, {{"length", kHuge}}},
      {"dft", {signal}, {{"length", kHuge - 1}}},  // no small factors: other tables
      {"dft", {signal, number(kHuge)}, {}},
      {"window", {}, {{"size", kHuge}}},
      {"window", {number(kHuge)}, {}},
      {"range", {number(0), number(kHuge), number(1)}, {}},
      {"fill", {list({kHuge}), zeros({})}, {}},
      {"tile", {one}, {{"repeats", Ints{kHuge}}}},
      {"pad", {one}, {{"pads", Ints{0, kHuge}}}},
      {"one_hot", {number(3), number(kHuge), zeros({2})}, {}},
      {"resize", {image}, {{"sizes", Ints{1, 1, 1 << 21, 1 << 21}}}},
      {"col2im", {zeros({1, 4, 9})}, {{"image", Ints{4, kHuge}}, {"kernel", Ints{2, 2}}}},
  };
  const size_t before = peak_kilobytes();
  for (const Call& call : calls) {
    const amps_op* op = amps_op_find(call.op);
    ASSERT_NE(op, nullptr) << call.op;
    std::vector<amps_tensor*> in;
    for (const amps::Tensor& input : call.inputs) in.push_back(input.c());
    const std::vector<amps_attr> attrs = amps::c_attrs(call.attrs);
    amps_tensor* out = nullptr;
    const amps_status status =
        amps_eager(device.c(), op, in.data(), in.size(), attrs.data(), attrs.size(), &out, 1);
    EXPECT_TRUE(status == AMPS_OUT_OF_MEMORY || status == AMPS_INVALID_ARGUMENT)
        << call.op << ": " << amps_last_error();
    EXPECT_EQ(out, nullptr) << call.op;
  }
  EXPECT_LT(peak_kilobytes() - before, size_t{100} << 10);
  amps::Graph graph("graph");
  graph.outputs(
      graph.op("dft", {graph.input("x", amps::DType::f32, {1, 8, 1})}, {{"length", kHuge}}));
  EXPECT_NE(error_of([&] { device.compile(graph); }).find("[dft]"), std::string::npos);
  EXPECT_LT(peak_kilobytes() - before, size_t{100} << 10);
}

// Rows beyond all counting, with nothing in them.
TEST(Hostile, TensorsWithoutElementsTakeNoTime) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  const amps::Device device = amps::Device::get("cpu");
  const amps::Tensor empty = device.empty(amps::DType::f32, {kHuge, 0});
  for (const char* op : {"layer_norm", "rms_norm", "softmax", "relu", "cumsum", "sort"})
    EXPECT_EQ(device.eager(op, {empty})[0].shape(), (Ints{kHuge, 0})) << op;
}

// The last to know a stream may be a feed that goes with the stream's work.
TEST(Hostile, AStreamMayEndInItsOwnWork) {
  const amps::Device device = amps::Device::get("cpu");
  const amps::Executable executable = relu_of(device, {2});
  struct Host {
    std::atomic<bool> go = false, held = false, missed = false, released = false;
    amps_stream* stream = nullptr;
    std::thread::id main = std::this_thread::get_id();
  } host;
  std::vector<float> numbers = {-1, 2};
  const int64_t dims[] = {2};
  const auto wrap = [&](void (*release)(void*)) {
    amps_tensor* made = nullptr;
    EXPECT_EQ(amps_tensor_wrap(device.c(), AMPS_F32, 1, dims, nullptr, numbers.data(), release,
                               &host, &made),
              AMPS_OK);
    return made;
  };
  ASSERT_EQ(amps_stream_create(device.c(), &host.stream), AMPS_OK);
  std::vector<amps_tensor*> results;
  const auto submit = [&](amps_tensor* feed) {
    results.push_back(nullptr);
    EXPECT_EQ(amps_executable_submit(executable.c(), &feed, 1, &results.back(), 1, host.stream),
              AMPS_OK);
    amps_tensor_release(feed);
  };
  // Holds the stream's thread until this one has let go of the next feed; again if the work was
  // done before this thread gave its reference up.
  while (!host.held) {
    host.missed = false;
    submit(wrap([](void* context) {
      auto* mine = static_cast<Host*>(context);
      if (std::this_thread::get_id() == mine->main) {
        mine->missed = true;
        return;
      }
      mine->held = true;
      while (!mine->go) std::this_thread::yield();
    }));
    while (!host.held && !host.missed) std::this_thread::yield();
  }
  submit(wrap([](void* context) {
    auto* mine = static_cast<Host*>(context);
    amps_stream_release(mine->stream);
    mine->released = true;
  }));
  submit(wrap(nullptr));
  amps_event* event = nullptr;
  ASSERT_EQ(amps_stream_record(host.stream, &event), AMPS_OK);
  host.go = true;
  EXPECT_EQ(amps_event_synchronize(event), AMPS_OK);  // what came after is done all the same
  EXPECT_TRUE(host.released);
  for (amps_tensor* result : results)
    EXPECT_EQ(amps::Tensor(result).to_vector<float>(), (std::vector<float>{0, 2}));
  amps_event_release(event);
}

}  // namespace
