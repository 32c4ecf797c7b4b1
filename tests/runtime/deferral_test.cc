// SPDX-License-Identifier: Apache-2.0
// Calls that are put off: what runs when, what is stored, and that the numbers are those of calls
// at once, bit for bit. Whether a call has run is seen in the memory it writes.
#include "runtime/eager/deferral.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <thread>

#include "support/child.h"
#include "support/deferring_stream.h"

namespace anymps {
namespace {

using testing::end_of_child;
using testing::Floats;
using testing::op;
using testing::Stream;

uint64_t misses(Device& device) { return device.eager().stats().misses; }

TEST(Deferral, CallsWaitAndRunAsOnePass) {
  Stream stream;
  Floats x(100, 2), y(100, -1), z(100, -1);
  const auto profiler = std::make_shared<Profiler>();
  stream.device->eager().watch(profiler);
  stream.call("add", {&x, &x}, y);
  stream.call("mul", {&y, &x}, z);
  stream.call("neg", {&z}, y);
  EXPECT_EQ(y, Floats(100, -1));
  stream.deferral->flush();
  stream.device->eager().watch(nullptr);
  EXPECT_EQ(y, Floats(100, -8));
  EXPECT_EQ(z, Floats(100, 8));
  const std::string events = profiler->json();
  EXPECT_NE(events.find("fused_elementwise"), std::string::npos) << events;
  EXPECT_EQ(events.find("\"neg\""), std::string::npos) << events;
}

TEST(Deferral, ALoopMakesItsPassOnce) {
  Stream stream;
  Floats x(64, 0), g(64, 1), t(64);
  uint64_t first = 0;
  for (int i = 0; i < 5; ++i) {
    stream.call("mul", {&g, &g}, t);
    stream.call("add", {&x, &t}, x);
    stream.deferral->flush();
    if (i == 0) first = misses(*stream.device);
  }
  EXPECT_EQ(misses(*stream.device), first);
  EXPECT_EQ(x, Floats(64, 5));
}

TEST(Deferral, ErrorsComeAtTheCall) {
  Stream stream;
  Floats x(4, 1), y(4, 0), wrong(5);
  stream.call("add", {&x, &x}, y);
  EXPECT_THROW(stream.call("add", {&x, &wrong}, y), Error);
  EXPECT_THROW(stream.call("add", {&x, &x}, wrong), Error);
  EXPECT_THROW(stream.call("add", {&x}, y), Error);
  stream.call("add", {&y, &x}, y);
  stream.deferral->finish();
  EXPECT_EQ(y, Floats(4, 3));
}

TEST(Deferral, AFullWindowRuns) {
  Stream stream;
  Floats x(8, 1), y(8, 0);
  for (int i = 0; i < 1000; ++i) stream.call("add", {&y, &x}, y);
  EXPECT_GE(y[0], 1000 - Deferral::kMostCalls);
  stream.deferral->set_limit(3);
  EXPECT_EQ(y, Floats(8, 1000));
  stream.call("add", {&y, &x}, y);
  stream.call("add", {&y, &x}, y);
  EXPECT_EQ(y, Floats(8, 1000));
  stream.call("add", {&y, &x}, y);
  EXPECT_EQ(y, Floats(8, 1003));
  stream.deferral->set_limit(0);
  stream.call("add", {&y, &x}, y);
  EXPECT_EQ(y, Floats(8, 1004));
}

// More tensors than a window has room for, each with its own memory.
TEST(Deferral, ManyPlacesRunInSeveralPasses) {
  Stream stream;
  const Floats ones(16, 1);
  std::vector<Floats> xs(200, ones), ys(200, Floats(16, 0));
  for (size_t i = 0; i < xs.size(); ++i) stream.call("add", {&xs[i], &xs[(i + 1) % 200]}, ys[i]);
  stream.deferral->flush();
  for (const Floats& y : ys) ASSERT_EQ(y, Floats(16, 2));
}

TEST(Deferral, OtherOpsRunWhatWaits) {
  Stream stream;
  Floats x(4, 1), y(4), sum(1);
  stream.call("add", {&x, &x}, y);
  stream.call("reduce_sum", {&y}, sum);
  EXPECT_EQ(sum[0], 8);
}

TEST(Deferral, OtherStreamsAndThreadsRunWhatWaits) {
  Stream stream, other;
  Floats x(4, 1), y(4, 0), z(4, 0);
  stream.call("add", {&x, &x}, y);
  other.call("add", {&y, &x}, z);
  EXPECT_EQ(y, Floats(4, 2));
  Deferral::flush_thread();
  EXPECT_EQ(z, Floats(4, 3));
  stream.call("add", {&y, &x}, y);
  std::thread([&] { stream.call("neg", {&x}, z); }).join();
  EXPECT_EQ(y, Floats(4, 3));
  Deferral::flush_device(*stream.device);
  EXPECT_EQ(z, Floats(4, -1));
}

TEST(Deferral, AStreamThatIsGoneIsNotWaitedFor) {
  Floats x(4, 1), y(4, 0);
  {
    Stream stream;
    stream.call("add", {&x, &x}, y);
    std::thread([&] { stream.deferral.reset(); }).join();
  }
  EXPECT_EQ(y, Floats(4, 2));
  Deferral::flush_thread();
  Stream fresh;
  fresh.call("add", {&y, &x}, y);
  fresh.deferral.reset();
  EXPECT_EQ(y, Floats(4, 3));
}

TEST(Deferral, QueuedWorkComesFirst) {
  Stream stream;
  Floats x(4, 1), y(4, 0);
  stream.queue->submit([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    x.assign(4, 5);
  });
  stream.call("add", {&x, &x}, y);
  stream.deferral->flush();
  EXPECT_EQ(y, Floats(4, 10));
}

TEST(Deferral, NumbersAreReadAtTheCall) {
  Stream stream;
  Floats x(4, 1), y(4, 0);
  for (int i = 0; i < 3; ++i) {
    Floats number(1, static_cast<float>(i));
    stream.call("add", {i == 0 ? &x : &y, &number}, y);
    number[0] = 100;
  }
  stream.deferral->flush();
  EXPECT_EQ(y, Floats(4, 4));
}

// Fills with an attribute and with a number, and a copy of one number to all elements.
TEST(Deferral, FillsWaitToo) {
  Stream stream;
  EagerAttr attrs[] = {{"shape", AttrKind::kInts}, {"value", AttrKind::kFloat}};
  const int64_t four = 4, none = 0;
  attrs[0].ints = {&four, 1};
  attrs[1].f = 2.5;
  const BoundOp by_attribute(get_op("fill"), attrs), by_input(get_op("fill"), {attrs, 1});
  Floats x(4, -1), y(4, -1), z(4, -1), sum(4, -1);
  float number = 3;
  const TensorView inputs[] = {{}, {&number, nullptr, nullptr, DType::kF32, 0}},
                   spread{&number, &four, &none, DType::kF32, 1},
                   out{y.data(), &four, nullptr, DType::kF32, 1},
                   copied{z.data(), &four, nullptr, DType::kF32, 1};
  stream.call(by_attribute, {}, x);
  stream.deferral->call(by_input, inputs, {&out, 1}, {});
  number = 4;
  stream.deferral->call(op("identity"), {&spread, 1}, {&copied, 1}, {});
  number = 5;
  stream.call("add", {&x, &y}, sum);
  stream.call("add", {&sum, &z}, sum);
  EXPECT_EQ(x, Floats(4, -1));
  EXPECT_EQ(z, Floats(4, -1));
  stream.deferral->forget(x.data(), 4 * sizeof(float));
  stream.deferral->flush();
  EXPECT_EQ(x, Floats(4, -1));
  EXPECT_EQ(y, Floats(4, 3));
  EXPECT_EQ(z, Floats(4, 4));
  EXPECT_EQ(sum, Floats(4, 9.5));
}

TEST(Deferral, ParametersComeWithTheCall) {
  const BoundOp leaky(get_op("leaky_relu"), {}, {"alpha"});
  const BoundOp clamp(get_op("clamp"), {}, {"min", "max"});
  Stream stream;
  Floats x(4, -8), y(4, 0);
  for (const double alpha : {0.5, 0.25}) {
    const double bounds[] = {-8 * alpha + 1, 9};
    stream.call(leaky, {&x}, y, {&alpha, 1});
    stream.call(leaky, {&y}, y, {&alpha, 1});
    stream.call(clamp, {&y}, y, bounds);
    stream.deferral->flush();
    EXPECT_EQ(y, Floats(4, static_cast<float>(std::max(-8 * alpha * alpha, bounds[0]))));
  }
}

TEST(Deferral, WhatNobodyCanSeeIsNotStored) {
  Stream stream;
  Floats x(4, 3), t(4, -1), y(4, 0);
  stream.call("add", {&x, &x}, t);
  stream.call("mul", {&t, &x}, y);
  stream.deferral->forget(t.data(), sizeof(float) * 4);
  t.assign(4, 7);  // the memory is somebody else's
  stream.call("add", {&y, &t}, y);
  stream.deferral->flush();
  EXPECT_EQ(t, Floats(4, 7));
  EXPECT_EQ(y, Floats(4, 25));
  // What is read must be read before the memory goes.
  stream.call("add", {&x, &x}, y);
  stream.deferral->forget(x.data(), sizeof(float) * 4);
  EXPECT_EQ(y, Floats(4, 6));
  // Only a part goes: the rest can be seen.
  stream.call("neg", {&x}, y);
  stream.deferral->forget(y.data(), sizeof(float) * 2);
  EXPECT_EQ(y[3], -3);
}

TEST(Deferral, ABufferThatIsReleasedIsNotStoredTo) {
  Stream stream;
  Floats x(4, 3), y(4, 0);
  int64_t four = 4;
  BufferRef kept = stream.device->allocator().allocate(16),
            gone = stream.device->allocator().allocate(16);
  std::memset(kept->data(), 0, 16);
  std::memset(gone->data(), 0, 16);
  EXPECT_FALSE(stream.deferral->keep(gone));  // nothing waits
  const std::weak_ptr<Buffer> seen = gone;
  const auto view = [&](void* data) { return TensorView{data, &four, nullptr, DType::kF32, 1}; };
  const TensorView in[] = {view(x.data()), view(x.data())}, t = view(gone->data()),
                   z = view(kept->data()), out = view(y.data());
  stream.deferral->call(op("add"), in, {&t, 1}, {});
  stream.deferral->call(op("neg"), {&t, 1}, {&z, 1}, {});
  stream.deferral->call(op("neg"), {&z, 1}, {&out, 1}, {});
  EXPECT_TRUE(stream.deferral->keep(kept) && stream.deferral->keep(gone));
  const float* memory = static_cast<const float*>(gone->data());
  gone.reset();
  EXPECT_FALSE(seen.expired());
  EXPECT_EQ(memory[0], 0);
  stream.deferral->flush();
  EXPECT_TRUE(seen.expired());
  EXPECT_EQ(static_cast<const float*>(kept->data())[0], -6);
  EXPECT_EQ(y, Floats(4, 6));
}

TEST(Deferral, CallsThatNoPassHoldsRunOneByOne) {
  Stream stream("reference");
  Floats x(4, 3), t(4, -1), y(4, 0);
  stream.call("add", {&x, &x}, t);
  stream.call("mul", {&t, &x}, x);  // in place of an input: the reference's programs cannot
  stream.call("add", {&t, &x}, y);
  stream.deferral->forget(t.data(), sizeof(float) * 4);
  stream.deferral->flush();
  EXPECT_EQ(t, Floats(4, -1));
  EXPECT_EQ(x, Floats(4, 18));
  EXPECT_EQ(y, Floats(4, 24));
}

TEST(Deferral, StreamsOnThreadsDoNotMeet) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int round = 0; round < 50; ++round) {
        Stream stream;
        Floats x(33, static_cast<float>(t)), y(33, 0);
        for (int i = 0; i < 30; ++i) stream.call("add", {&y, &x}, y);
        stream.deferral->flush();
        ASSERT_EQ(y, Floats(33, 30.0f * static_cast<float>(t)));
      }
    });
  for (int i = 0; i < 200; ++i) Deferral::flush_device(*Device::get("cpu"));
  for (std::thread& thread : threads) thread.join();
}

TEST(Deferral, OneStreamServesSeveralThreads) {
  Stream stream;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&stream] {
      Floats x(17, 1), y(17, 0);
      for (int i = 0; i < 200; ++i) stream.call("add", {&y, &x}, y);
      stream.deferral->flush();
      EXPECT_EQ(y, Floats(17, 200));
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Deferral, AChildSeesWhatWaitedAndGoesOn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has no threads in a child of a program with threads";
#endif
  Stream stream;
  Floats x(4, 1), y(4, 0);
  stream.call("add", {&x, &x}, y);
  stream.call("add", {&y, &x}, y);
  EXPECT_EQ(end_of_child([&] {
              bool good = y == Floats(4, 3);
              stream.call("add", {&y, &x}, y);
              stream.call("add", {&y, &x}, y);
              stream.deferral->flush();
              return good && y == Floats(4, 5);
            }),
            "good");
  stream.call("add", {&y, &x}, y);
  stream.deferral->flush();
  EXPECT_EQ(y, Floats(4, 4));
}

// While another thread works on the stream the child has an empty one.
TEST(Deferral, AChildForkedBesideOtherThreadsGoesOn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has no threads in a child of a program with threads";
#endif
  Stream stream;
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    Floats x(1000, 1), y(1000, 0);
    while (!stop) stream.call("add", {&y, &x}, y);
    stream.deferral->flush();
  });
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(end_of_child([&] {
                Floats x(4, 1), y(4, 0);
                for (int k = 0; k < 100; ++k) stream.call("add", {&y, &x}, y);
                stream.deferral->flush();
                return y == Floats(4, 100);
              }),
              "good");
  stop = true;
  busy.join();
}

[[noreturn]] void end_with_calls_waiting(float* result) {
  static auto& stream = *new Stream;  // nobody releases it
  static auto& x = *new Floats(4, 1);
  static const int64_t four = 4;
  const TensorView one{x.data(), &four, nullptr, DType::kF32, 1},
      out{result, &four, nullptr, DType::kF32, 1};
  const TensorView first[] = {one, one}, second[] = {out, one};
  stream.deferral->call(op("add"), first, {&out, 1}, {});
  stream.deferral->call(op("add"), second, {&out, 1}, {});
  std::exit(result[0] == 0 ? 0 : 1);
}

TEST(Deferral, TheEndOfTheProcessRunsWhatWaits) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has no threads in a child of a program with threads";
#endif
  auto* shared = static_cast<float*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(shared, MAP_FAILED);
  GTEST_FLAG_SET(death_test_style, "fast");
  EXPECT_EXIT(end_with_calls_waiting(shared), ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(shared[3], 3);
  munmap(shared, 4096);
}

}  // namespace
}  // namespace anymps
