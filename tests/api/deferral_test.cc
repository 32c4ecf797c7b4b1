// SPDX-License-Identifier: Apache-2.0
// Calls put off through the C interface: what makes them run, and that nothing is stored for
// nobody.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "anymps/anymps.hpp"

namespace {

using Numbers = std::vector<float>;

struct Deferring {
  explicit Deferring(const char* on) {
    amps::check(amps_device_get(on, &device));
    amps::check(amps_stream_create(device, &stream));
    amps::check(amps_stream_defer(stream, AMPS_MAX_WINDOW));
  }
  ~Deferring() {
    amps_stream_release(stream);
    for (amps_call* call : calls) amps_call_release(call);
  }
  Deferring(const Deferring&) = delete;
  Deferring& operator=(const Deferring&) = delete;

  amps_status run(const char* op, std::vector<amps_view> in, amps_view out) {
    amps_call* call = nullptr;
    amps::check(amps_call_create(device, amps_op_find(op), nullptr, 0, nullptr, 0, &call));
    calls.push_back(call);
    return amps_call_run(call, in.data(), in.size(), nullptr, &out, 1, stream);
  }
  // y = x + x, which waits.
  void twice(Numbers& x, Numbers& y) {
    amps::check(run("add", {view(x), view(x)}, view(y)));
    ASSERT_NE(y, Numbers(4, 2 * x[0]));
  }

  static amps_view view(Numbers& numbers) {
    static const int64_t four = 4;
    return {numbers.data(), &four, nullptr, AMPS_F32, 1};
  }

  amps_device* device = nullptr;
  amps_stream* stream = nullptr;
  std::vector<amps_call*> calls;
};

TEST(DeferredCalls, RunWhenSomethingNeedsThem) {
  Deferring d("cpu:9");
  amps_device* device = d.device;
  Numbers x(4, 1), y(4), z(4);
  const auto make_call = [&] {
    const amps_view in[] = {d.view(x)}, out = d.view(z);
    amps::check(amps_call_run(d.calls[0], in, 1, nullptr, &out, 1, nullptr));
  };
  amps::check(d.run("neg", {d.view(x)}, d.view(z)));
  const std::pair<const char*, std::function<void()>> needs[] = {
      {"flush", [&] { amps::check(amps_stream_flush(d.stream)); }},
      {"synchronize", [&] { amps::check(amps_stream_synchronize(d.stream)); }},
      {"the device", [&] { amps::check(amps_device_synchronize(device)); }},
      {"an event",
       [&] {
         amps_event* event = nullptr;
         amps::check(amps_stream_record(d.stream, &event));
         EXPECT_TRUE(amps_event_done(event));
         amps::check(amps_stream_wait(d.stream, event));
         amps_event_release(event);
       }},
      {"a call at once", make_call},
      {"another op", [&] { amps::check(d.run("reverse", {d.view(x)}, d.view(z))); }},
      {"a host read",
       [&] {
         const int64_t four = 4;
         amps_tensor* tensor = nullptr;
         amps::check(amps_tensor_wrap(device, AMPS_F32, 1, &four, nullptr, y.data(), nullptr,
                                      nullptr, &tensor));
         Numbers read(4);
         amps::check(amps_tensor_to_host(tensor, read.data(), 16));
         EXPECT_EQ(read, Numbers(4, 2));
         amps_tensor_release(tensor);
       }},
      {"no window", [&] { amps::check(amps_stream_defer(d.stream, 0)); }},
  };
  for (const auto& [what, need] : needs) {
    SCOPED_TRACE(what);
    y.assign(4, -1);
    d.twice(x, y);
    need();
    EXPECT_EQ(y, Numbers(4, 2));
  }
  amps::check(amps_stream_defer(d.stream, 5));
  y.assign(4, -1);
  d.twice(x, y);
  amps_stream_release(d.stream);
  d.stream = nullptr;
  EXPECT_EQ(y, Numbers(4, 2)) << "released";
}

TEST(DeferredCalls, FailAtTheCall) {
  Deferring d("cpu");
  Numbers x(4, 1), y(4, -1);
  d.twice(x, y);
  amps_view wrong = d.view(y), none = d.view(y);
  wrong.dtype = AMPS_I32;
  none.data = nullptr;
  EXPECT_EQ(d.run("add", {d.view(x), wrong}, d.view(y)), AMPS_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(amps_last_error()).find("[add]"), 0u) << amps_last_error();
  EXPECT_EQ(d.run("add", {d.view(x), d.view(x)}, none), AMPS_INVALID_ARGUMENT);
  EXPECT_EQ(d.run("add", {d.view(x)}, d.view(y)), AMPS_INVALID_ARGUMENT);
  EXPECT_EQ(amps_stream_synchronize(d.stream), AMPS_OK);
  EXPECT_EQ(y, Numbers(4, 2));
  EXPECT_EQ(amps_stream_defer(d.stream, -1), AMPS_INVALID_ARGUMENT);
  EXPECT_EQ(amps_stream_defer(nullptr, 1), AMPS_INVALID_ARGUMENT);
}

TEST(DeferredCalls, BuffersLiveUntilTheCallsHaveRun) {
  Deferring d("cpu");
  Numbers x(4, 1), y(4, -1);
  amps_buffer* buffer = nullptr;
  amps::check(amps_buffer_create(d.device, 16, &buffer));
  amps_view middle = d.view(x);
  middle.data = amps_buffer_data(buffer);
  auto* memory = static_cast<float*>(middle.data);
  std::fill(memory, memory + 4, 7.0f);
  amps::check(d.run("add", {d.view(x), d.view(x)}, middle));
  amps::check(d.run("add", {middle, d.view(x)}, d.view(y)));
  amps::check(amps_buffer_record_stream(buffer, d.stream));
  amps_buffer_release(buffer);
  amps::check(amps_stream_flush(d.stream));
  EXPECT_EQ(y, Numbers(4, 3));
  // Memory of one's own: whoever has it next is not written over.
  Numbers t(4, 0);
  amps::check(d.run("neg", {d.view(x)}, d.view(t)));
  amps::check(d.run("neg", {d.view(t)}, d.view(y)));
  amps::check(amps_stream_forget(d.stream, t.data(), 16));
  t.assign(4, 9);
  amps::check(amps_stream_flush(d.stream));
  EXPECT_EQ(t, Numbers(4, 9));
  EXPECT_EQ(y, Numbers(4, 1));
}

// An ordinary stream takes the same calls and has nothing to flush or to forget.
TEST(DeferredCalls, OrdinaryStreamsHaveNone) {
  amps_stream* stream = nullptr;
  amps::check(amps_stream_create(amps::Device::get("cpu").c(), &stream));
  EXPECT_EQ(amps_stream_flush(stream), AMPS_OK);
  EXPECT_EQ(amps_stream_forget(stream, &stream, sizeof(stream)), AMPS_OK);
  amps_stream_release(stream);
}

}  // namespace
