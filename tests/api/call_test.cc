// SPDX-License-Identifier: Apache-2.0
// Calls on views of the caller's memory: what frameworks use, one op or one executable at a time.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "anymps/anymps.hpp"

namespace {

using Dims = std::vector<int64_t>;

// Floats of the caller with dims and strides.
struct Floats {
  Floats(Dims shape, float first = 0, float step = 0) : dims(std::move(shape)) {
    int64_t count = 1;
    for (const int64_t extent : dims) count *= extent;
    data.resize(static_cast<size_t>(count));
    for (size_t i = 0; i < data.size(); ++i) data[i] = first + step * static_cast<float>(i);
  }
  amps_view view() {
    return {data.data(), dims.data(), strides.empty() ? nullptr : strides.data(), AMPS_F32,
            static_cast<int32_t>(dims.size())};
  }
  Dims dims, strides;
  std::vector<float> data;
};

struct Call {
  explicit Call(const char* op, std::vector<amps_attr> attrs = {}, const char* device = "cpu") {
    amps_device* on = nullptr;
    amps::check(amps_device_get(device, &on));
    amps::check(
        amps_call_create(on, amps_op_find(op), attrs.data(), attrs.size(), nullptr, 0, &call));
  }
  ~Call() { amps_call_release(call); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  amps_status operator()(std::vector<amps_view> in, std::vector<amps_view> out,
                         amps_stream* stream = nullptr) const {
    return amps_call_run(call, in.data(), in.size(), nullptr, out.data(), out.size(), stream);
  }
  amps_call* call = nullptr;
};

TEST(Calls, WriteIntoTheCallersMemory) {
  const Call add("add");
  Floats a({2, 3}, 0, 1), b({3}, 10), y({2, 3});
  ASSERT_EQ(add({a.view(), b.view()}, {y.view()}), AMPS_OK) << amps_last_error();
  EXPECT_EQ(y.data, (std::vector<float>{10, 11, 12, 13, 14, 15}));
  ASSERT_EQ(add({a.view(), b.view()}, {a.view()}), AMPS_OK);  // in place
  EXPECT_EQ(a.data, y.data);
}

TEST(Calls, OutputsMayHaveAnyStrides) {
  const Call add("add");
  Floats a({2, 2}, 1, 1), y({2, 2});
  y.strides = {1, 2};
  ASSERT_EQ(add({a.view(), a.view()}, {y.view()}), AMPS_OK);
  EXPECT_EQ(y.data, (std::vector<float>{2, 6, 4, 8}));
  Floats rows({2, 4}, -1);  // every second column of a wider matrix
  rows.dims = {2, 2};
  rows.strides = {4, 2};
  ASSERT_EQ(add({a.view(), a.view()}, {rows.view()}), AMPS_OK);
  EXPECT_EQ(rows.data, (std::vector<float>{2, -1, 4, -1, 6, -1, 8, -1}));
  rows.strides = {0, 1};
  EXPECT_EQ(add({a.view(), a.view()}, {rows.view()}), AMPS_INVALID_ARGUMENT);
  EXPECT_NE(std::string(amps_last_error()).find("[add] the elements of output 0 share memory"),
            std::string::npos);
}

TEST(Calls, TellTypesWithoutARun) {
  const int64_t axes[] = {1};
  const Call sum("reduce_sum",
                 {{"axes", AMPS_ATTR_INTS, 0, 0, nullptr, axes, nullptr, 1, nullptr},
                  {"keep_dims", AMPS_ATTR_INT, 0, 0, nullptr, nullptr, nullptr, 0, nullptr}});
  Floats x({2, 3, 4});
  amps_view in = x.view();
  amps_type type{};
  ASSERT_EQ(amps_call_infer(sum.call, &in, 1, &type, 1), AMPS_OK) << amps_last_error();
  EXPECT_EQ(type.dtype, AMPS_F32);
  ASSERT_EQ(type.rank, 2);
  EXPECT_EQ(type.dims[0], 2);
  EXPECT_EQ(type.dims[1], 4);
}

TEST(Calls, ParametersComeWithTheCall) {
  const char* const names[] = {"alpha"};
  amps_call* call = nullptr;
  amps_device* device = amps::Device::get("cpu").c();
  amps::check(amps_call_create(device, amps_op_find("leaky_relu"), nullptr, 0, names, 1, &call));
  Floats x({2}, -1, 2), y({2});
  const amps_view in = x.view(), out = y.view();
  const auto kernels = [&] {
    amps_cache_stats stats{};
    stats.size = sizeof(stats);
    amps::check(amps_device_eager_cache(device, &stats));
    return stats.entries;
  };
  uint64_t first = 0;
  for (const double alpha : {0.5, 0.25, 3.0, 0.5}) {
    ASSERT_EQ(amps_call_run(call, &in, 1, &alpha, &out, 1, nullptr), AMPS_OK) << amps_last_error();
    EXPECT_EQ(y.data, (std::vector<float>{static_cast<float>(-alpha), 1}));
    if (first == 0) first = kernels();
    EXPECT_EQ(kernels(), first) << "one kernel serves all values";
  }
  EXPECT_EQ(amps_call_run(call, &in, 1, nullptr, &out, 1, nullptr), AMPS_INVALID_ARGUMENT);
  amps_call_release(call);
  const char* const wrong[] = {"beta"};
  EXPECT_EQ(amps_call_create(device, amps_op_find("leaky_relu"), nullptr, 0, wrong, 1, &call),
            AMPS_INVALID_ARGUMENT);
}

TEST(Calls, RefuseWhatIsNoTensor) {
  const Call add("add");
  Floats a({2}), y({2}), wrong({3});
  amps_view none = a.view(), negative = a.view(), deep = a.view(), odd = a.view();
  none.data = nullptr;
  const int64_t below[] = {-1};
  negative.dims = below;
  deep.rank = 65;
  odd.dtype = static_cast<amps_dtype>(99);
  for (const amps_view& bad : {none, negative, deep, odd}) {
    EXPECT_EQ(add({a.view(), bad}, {y.view()}), AMPS_INVALID_ARGUMENT);
    EXPECT_EQ(add({a.view(), a.view()}, {bad}), AMPS_INVALID_ARGUMENT);
    EXPECT_STRNE(amps_last_error(), "");
  }
  EXPECT_EQ(add({a.view(), a.view()}, {wrong.view()}), AMPS_INVALID_ARGUMENT);
  EXPECT_NE(std::string(amps_last_error()).find("[add] output 0 must be f32[2]"),
            std::string::npos);
  EXPECT_EQ(add({a.view()}, {y.view()}), AMPS_INVALID_ARGUMENT);
  amps_view absent = a.view();
  absent.rank = -1;
  EXPECT_EQ(add({a.view(), a.view()}, {absent}), AMPS_INVALID_ARGUMENT);
}

TEST(Calls, OnAStreamComeInOrder) {
  const amps::Device device = amps::Device::get("cpu");
  amps_stream* stream = nullptr;
  amps::check(amps_stream_create(device.c(), &stream));
  const Call add("add"), mul("mul");
  Floats x({1000}, 1), two({}, 2);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(mul({x.view(), two.view()}, {x.view()}, stream), AMPS_OK);
    ASSERT_EQ(add({x.view(), two.view()}, {x.view()}, stream), AMPS_OK);
  }
  Floats wrong({3});
  EXPECT_EQ(add({x.view(), two.view()}, {wrong.view()}, stream), AMPS_INVALID_ARGUMENT)
      << "errors come at the call";
  ASSERT_EQ(amps_stream_synchronize(stream), AMPS_OK);
  EXPECT_EQ(x.data[999], ((((1 * 2 + 2) * 2 + 2) * 2 + 2) * 2 + 2) * 2 + 2);
  // A reshape whose target is computed on the stream waits for it.
  std::vector<int64_t> target = {1, 1000};
  const int64_t pair[] = {2}, one[] = {1};
  amps_view shape{target.data(), pair, nullptr, AMPS_I64, 1};
  std::vector<int64_t> half = {500, 2};
  amps_view other{half.data(), pair, nullptr, AMPS_I64, 1};
  (void)one;
  const Call copy("identity"), reshape("reshape");
  Floats y({500, 2});
  ASSERT_EQ(copy({other}, {shape}, stream), AMPS_OK);
  ASSERT_EQ(reshape({x.view(), shape}, {y.view()}, stream), AMPS_OK) << amps_last_error();
  ASSERT_EQ(amps_stream_synchronize(stream), AMPS_OK);
  EXPECT_EQ(y.data, x.data);
  amps_stream_release(stream);
}

TEST(Calls, SlowPathsAreCounted) {
  const amps::Device device = amps::Device::get("cpu:7");
  amps::check(amps_device_reset_eager_report(device.c()));
  const Call add("add", {}, "cpu:7");
  Floats a({2}, 1), y({2});
  ASSERT_EQ(add({a.view(), a.view()}, {y.view()}), AMPS_OK);
  amps_string* text = nullptr;
  amps::check(amps_device_eager_report(device.c(), "json", &text));
  EXPECT_STREQ(amps_string_data(text), "[]") << "nothing slow";
  amps_string_release(text);
  Floats whole({5}, 1, 1);
  amps_view shifted = whole.view(), start = whole.view();
  const int64_t four[] = {4};
  shifted.dims = start.dims = four;
  shifted.data = whole.data.data() + 1;
  ASSERT_EQ(add({start, start}, {shifted}), AMPS_OK);  // overlaps: computed aside
  EXPECT_EQ(whole.data, (std::vector<float>{1, 2, 4, 6, 8}));
  amps::check(amps_device_eager_report(device.c(), "json", &text));
  EXPECT_STREQ(amps_string_data(text),
               R"([{"op":"add","calls":1,"reference":0,"packed":0,"aside":1}])");
  amps_string_release(text);
  EXPECT_EQ(amps_device_eager_report(device.c(), "xml", &text), AMPS_INVALID_ARGUMENT);
}

TEST(Calls, AreSeenByAProfiler) {
  const amps::Device device = amps::Device::get("cpu");
  amps_profiler* profiler = nullptr;
  amps::check(amps_profiler_create(&profiler));
  amps::check(amps_device_profile_eager(device.c(), profiler));
  const Call add("add");
  Floats a({2}, 1), y({2});
  ASSERT_EQ(add({a.view(), a.view()}, {y.view()}), AMPS_OK);
  amps::check(amps_device_profile_eager(device.c(), nullptr));
  ASSERT_EQ(add({a.view(), a.view()}, {y.view()}), AMPS_OK);
  amps_string* text = nullptr;
  amps::check(amps_profiler_text(profiler, "json", &text));
  EXPECT_NE(std::string(amps_string_data(text)).find("\"calls\":1"), std::string::npos)
      << amps_string_data(text);
  amps_string_release(text);
  amps_profiler_release(profiler);
}

TEST(Calls, ManyThreadsUseOne) {
  const Call add("add");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&add, t] {
      for (int64_t n = 1; n < 200; ++n) {
        Floats a({n}, static_cast<float>(t)), y({n});
        EXPECT_EQ(add({a.view(), a.view()}, {y.view()}), AMPS_OK);
        EXPECT_EQ(y.data.back(), 2 * static_cast<float>(t));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Executables, RunOnViewsOfAnyStrides) {
  amps::Graph graph;
  const amps::Value x = graph.input("x", amps::DType::f32, {-1, 2}, {"N"});
  graph.outputs({graph.add(x, x), graph.relu(x)});
  const amps::Device device = amps::Device::get("cpu");
  const amps::Executable executable = device.compile(graph);
  Floats in({2, 2}, -1, 1), sum({2, 2}), positive({2, 2});
  in.strides = sum.strides = {1, 2};
  amps_view feeds[] = {in.view()}, results[] = {sum.view(), positive.view()};
  for (amps_stream* stream : {static_cast<amps_stream*>(nullptr), [&] {
                                amps_stream* made = nullptr;
                                amps::check(amps_stream_create(device.c(), &made));
                                return made;
                              }()}) {
    std::fill(sum.data.begin(), sum.data.end(), 9.f);
    ASSERT_EQ(amps_executable_run_views(executable.c(), feeds, 1, results, 2, stream), AMPS_OK)
        << amps_last_error();
    if (stream) amps::check(amps_stream_synchronize(stream));
    EXPECT_EQ(sum.data, (std::vector<float>{-2, 0, 2, 4}));
    EXPECT_EQ(positive.data, (std::vector<float>{0, 1, 0, 2}));
    amps_stream_release(stream);
  }
  EXPECT_EQ(amps_executable_run_views(executable.c(), feeds, 1, results, 1, nullptr),
            AMPS_INVALID_ARGUMENT);
}

TEST(Devices, OfOneDriverKeepTheirOwnBooks) {
  const amps::Device first = amps::Device::get("cpu:0"), second = amps::Device::get("cpu:1");
  EXPECT_EQ(first.c(), amps::Device::get("cpu").c());
  EXPECT_NE(first.c(), second.c());
  EXPECT_EQ(second.name(), "cpu:1");
  const auto allocated = [](const amps::Device& device) {
    amps_memory_stats stats{};
    stats.size = sizeof(stats);
    amps::check(amps_device_memory_stats(device.c(), &stats));
    return stats.allocated;
  };
  const uint64_t before = allocated(first);
  uint64_t free_before = 0, free_after = 0, total = 0;
  amps::check(amps_device_memory_info(second.c(), &free_before, &total));
  amps_buffer* buffer = nullptr;
  amps::check(amps_buffer_create(second.c(), 1 << 20, &buffer));
  EXPECT_EQ(amps_buffer_size(buffer), size_t{1} << 20);
  EXPECT_EQ(allocated(first), before);
  EXPECT_GE(allocated(second), uint64_t{1} << 20);
  amps::check(amps_device_memory_info(second.c(), &free_after, &total));
  EXPECT_EQ(free_before - free_after, uint64_t{1} << 20);
  amps_buffer_release(buffer);
  EXPECT_EQ(allocated(second), 0u);
  for (const char* name : {"cpu:", "cpu:-1", "cpu:64", "cpu:1x", "nothing:1"})
    EXPECT_THROW(amps::Device::get(name), amps::Error) << name;
}

TEST(Buffers, StayForTheStreamsThatUseThem) {
  const amps::Device device = amps::Device::get("cpu:2");
  amps_stream* stream = nullptr;
  amps::check(amps_stream_create(device.c(), &stream));
  amps_buffer* buffer = nullptr;
  constexpr int64_t kCount = 1 << 20;
  amps::check(amps_buffer_create(device.c(), kCount * sizeof(float), &buffer));
  const int64_t dims[] = {kCount};
  const amps_view x{amps_buffer_data(buffer), dims, nullptr, AMPS_F32, 1};
  const Call exp("exp", {}, "cpu:2");
  for (int i = 0; i < 4; ++i) ASSERT_EQ(exp({x}, {x}, stream), AMPS_OK);
  amps::check(amps_buffer_record_stream(buffer, stream));
  amps_buffer_release(buffer);  // the work may still be running
  amps::check(amps_stream_synchronize(stream));
  amps_stream_release(stream);
  amps::check(amps_device_empty_cache(device.c()));
  amps_memory_stats stats{};
  stats.size = sizeof(stats);
  amps::check(amps_device_memory_stats(device.c(), &stats));
  EXPECT_EQ(stats.allocated, 0u);
}

}  // namespace
