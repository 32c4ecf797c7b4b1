// SPDX-License-Identifier: Apache-2.0
// Eager calls: the cache and its key, outputs given and made, memory shared with inputs.
#include "runtime/eager/eager.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "runtime/lru_cache.h"
#include "runtime/profiler.h"
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::error_of;

struct Call {
  DevicePtr device = Device::get("cpu");
  Eager eager{*device, 64};

  Tensor tensor(Shape shape, const std::vector<float>& values) {
    return device->from_host(TensorDesc(DType::kF32, std::move(shape)), values.data());
  }
  std::vector<float> floats(const Tensor& tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.desc.count()));
    device->to_host(tensor, values.data());
    return values;
  }
  Tensor operator()(const char* op, std::vector<Tensor> inputs, std::vector<EagerAttr> attrs = {}) {
    std::vector<const Tensor*> pointers;
    for (const Tensor& input : inputs) pointers.push_back(&input);
    Tensor output;
    eager.call(get_op(op), pointers, attrs, {&output, 1});
    return output;
  }
};

TEST(Eager, ValuesAreNotPartOfTheKey) {
  Call call;
  for (int i = 0; i < 100; ++i) {
    const auto y =
        call("mul", {call.tensor({2}, {1, 2}), call.tensor({}, {static_cast<float>(i)})});
    EXPECT_EQ(call.floats(y)[1], 2.0f * static_cast<float>(i));
  }
  EXPECT_EQ(call.eager.stats().size, 1u);
  EXPECT_EQ(call.eager.stats().hits, 99u);
}

TEST(Eager, AttributesShapesAndStridesAre) {
  Call call;
  const Tensor x = call.tensor({2, 2}, {1, 2, 3, 4});
  auto sum = [&](int64_t axis, const Tensor& tensor) {
    EagerAttr axes{"axes", AttrKind::kInts}, keep{"keep_dims", AttrKind::kInt};
    axes.ints = {&axis, 1};
    return call.floats(call("reduce_sum", {tensor}, {axes, keep}));
  };
  EXPECT_EQ(sum(0, x), (std::vector<float>{4, 6}));
  EXPECT_EQ(sum(1, x), (std::vector<float>{3, 7}));
  Tensor transposed = x;
  transposed.desc.strides = {1, 2};
  EXPECT_EQ(sum(0, transposed), (std::vector<float>{3, 7}));
  EXPECT_EQ(call.eager.stats().size, 3u);
}

TEST(Eager, ShapesFromTensorsAreLookedUpWithTheirElements) {
  Call call;
  const Tensor x = call.tensor({6}, {1, 2, 3, 4, 5, 6});
  for (const auto& dims :
       {std::vector<int64_t>{2, 3}, std::vector<int64_t>{3, 2}, std::vector<int64_t>{2, 3}}) {
    const Tensor shape = call.device->from_host(TensorDesc(DType::kI64, {2}), dims.data());
    EXPECT_EQ(call("reshape", {x, shape}).desc.shape, Shape(dims.begin(), dims.end()));
  }
}

TEST(Eager, OutputMayBeAnInputOrStrided) {
  Call call;
  Tensor x = call.tensor({2, 2}, {1, 2, 3, 4});
  const Tensor* inputs[] = {&x};
  EagerAttr perm{"perm", AttrKind::kInts};
  const int64_t swapped[] = {1, 0};
  perm.ints = swapped;
  Tensor output = x;  // the transpose of x, written over x
  call.eager.call(get_op("transpose"), inputs, {&perm, 1}, {&output, 1});
  EXPECT_EQ(call.floats(x), (std::vector<float>{1, 3, 2, 4}));
  Tensor strided = call.tensor({4}, {0, 0, 0, 0});
  strided.desc.shape = {2};
  strided.desc.strides = {2};
  const Tensor y = call.tensor({2}, {-5, 6});
  const Tensor* more[] = {&y};
  call.eager.call(get_op("relu"), more, {}, {&strided, 1});
  strided.desc = TensorDesc(DType::kF32, {4});
  EXPECT_EQ(call.floats(strided), (std::vector<float>{0, 0, 6, 0}));
}

// A part of `whole` from element `first` on, with this stride.
Tensor part(const Tensor& whole, int64_t first, int64_t count, int64_t stride) {
  Tensor view = whole;
  view.desc.shape = {count};
  view.desc.strides = {stride};
  view.offset += static_cast<size_t>(first) * sizeof(float);
  return view;
}

// An output that overlaps an input must not change what the kernel has yet to read.
TEST(Eager, OutputMayOverlapAnInput) {
  Call call;
  for (const int64_t n : {4, 37, 5000, 100000}) {
    std::vector<float> numbers(static_cast<size_t>(n) + 1);
    std::iota(numbers.begin(), numbers.end(), 1.0f);
    struct Case {
      int64_t from, from_stride, to, to_stride;
    };
    for (const Case& c : {Case{0, 1, 1, 1}, Case{1, 1, 0, 1}, Case{n - 1, -1, 0, 1},
                          Case{0, 1, n - 1, -1}, Case{0, 0, 0, 1}, Case{0, 1, 0, 1}}) {
      const Tensor memory = call.tensor({n + 1}, numbers);
      const Tensor from = part(memory, c.from, n, c.from_stride);
      Tensor to = part(memory, c.to, n, c.to_stride);
      const Tensor* inputs[] = {&from};
      call.eager.call(get_op("neg"), inputs, {}, {&to, 1});
      const std::vector<float> result = call.floats(to);
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(result[static_cast<size_t>(i)],
                  -numbers[static_cast<size_t>(c.from + i * c.from_stride)])
            << n << ": " << c.from << " by " << c.from_stride << " to " << c.to << " by "
            << c.to_stride << ", element " << i;
    }
  }
}

TEST(Eager, RefusesOutputsThatOverlapThemselvesOrEachOther) {
  Call call;
  const Tensor x = call.tensor({4}, {1, 2, 3, 4});
  const Tensor* inputs[] = {&x};
  Tensor output = part(call.tensor({4}, {0, 0, 0, 0}), 0, 4, 0);
  EXPECT_EQ(error_of([&] {
              call.eager.call(get_op("neg"), inputs, {}, {&output, 1});
            }),
            "[neg] the elements of output 0 share memory: f32[4] strides (0)");
  EagerAttr axis{"axis", AttrKind::kInt}, k{"k", AttrKind::kInt};
  k.i = 2;
  const Tensor room = call.tensor({4}, {0, 0, 0, 0});
  Tensor outputs[] = {part(room, 2, 2, 1), part(room, 0, 2, 1)};
  outputs[1].desc.dtype = DType::kI64;
  EXPECT_EQ(error_of([&] {
              call.eager.call(get_op("top_k"), inputs, {{axis, k}}, outputs);
            }),
            "[top_k] outputs 0 and 1 share memory");
}

// A step of an optimizer overwrites the parameter and its states; one that is crossed is put right.
TEST(Eager, EachOutputMayBeAnInput) {
  Call call;
  std::vector<float> values(40), gradient(40), momentum(40);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i);
    gradient[i] = 1 + static_cast<float>(i % 3);
    momentum[i] = 2 - static_cast<float>(i % 5);
  }
  EagerAttr rate{"momentum", AttrKind::kFloat};
  rate.f = 0.5;
  for (const bool crossed : {false, true}) {
    const Tensor x = call.tensor({40}, values), m = call.tensor({40}, momentum);
    const Tensor g = call.tensor({40}, gradient), lr = call.tensor({}, {0.5f});
    std::vector<Tensor> outputs = crossed ? std::vector<Tensor>{m, x} : std::vector<Tensor>{x, m};
    const Tensor* inputs[] = {&x, &g, &lr, &m};
    call.eager.call(get_op("sgd_step"), inputs, {&rate, 1}, outputs);
    const std::vector<float> new_values = call.floats(outputs[0]),
                             new_momentum = call.floats(outputs[1]);
    for (size_t i = 0; i < values.size(); ++i) {
      const float expected = 0.5f * momentum[i] + gradient[i];
      EXPECT_EQ(new_momentum[i], expected);
      EXPECT_EQ(new_values[i], values[i] - 0.5f * expected);
    }
    EXPECT_EQ(outputs[0].data(), crossed ? m.data() : x.data());
  }
}

TEST(Eager, RefusesWrongOutputs) {
  Call call;
  Tensor x = call.tensor({2}, {1, 2}), y = call.tensor({3}, {0, 0, 0});
  const Tensor* inputs[] = {&x};
  EXPECT_EQ(error_of([&] {
              call.eager.call(get_op("relu"), inputs, {}, {&y, 1});
            }),
            "[relu] output 0 must be f32[2], f32[3] given");
}

TEST(Eager, ManyThreads) {
  Call call;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const int64_t count = 1 + (i + t) % 5;
        const Tensor x = call.tensor({count}, std::vector<float>(static_cast<size_t>(count), 2));
        for (const float value : call.floats(call("square", {x}))) wrong += value != 4;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(LruCache, ForgetsTheLeastRecentlyUsed) {
  LruCache<int, int> cache(2);
  cache.insert(1, std::make_shared<int>(10));
  cache.insert(2, std::make_shared<int>(20));
  EXPECT_EQ(*cache.find(1), 10);
  cache.insert(3, std::make_shared<int>(30));
  EXPECT_EQ(cache.find(2), nullptr);
  EXPECT_EQ(*cache.find(1), 10);
  EXPECT_EQ(*cache.insert(1, std::make_shared<int>(99)), 10);  // what is there stays
  const CacheStats stats = cache.stats();
  EXPECT_EQ(stats.evictions, 1u);
  EXPECT_EQ(stats.hits, 2u);
  EXPECT_EQ(stats.misses, 1u);
  cache.set_capacity(0);
  EXPECT_EQ(cache.stats().size, 0u);
  EXPECT_EQ(*cache.insert(5, std::make_shared<int>(50)), 50);
  EXPECT_EQ(cache.find(5), nullptr);
}

TEST(LruCache, IsBoundedByWeight) {
  LruCache<int, int> cache(10);
  for (int i = 0; i < 5; ++i) cache.insert(i, std::make_shared<int>(i));
  cache.insert(5, std::make_shared<int>(5), 8);
  EXPECT_EQ(cache.stats().size, 3u);  // two light ones and the heavy one
  EXPECT_EQ(cache.find(2), nullptr);
  EXPECT_NE(cache.find(3), nullptr);
  EXPECT_EQ(*cache.insert(6, std::make_shared<int>(6), 11), 6);  // never fits
  EXPECT_EQ(cache.stats().size, 0u);
  cache.insert(7, std::make_shared<int>(7), 10);
  EXPECT_EQ(cache.stats().size, 1u);
  cache.clear();
  cache.insert(8, std::make_shared<int>(8), 10);
  EXPECT_EQ(cache.stats().size, 1u);
}

// Thousands of shapes of products would hold hundreds of megabytes of oneDNN's code.
TEST(Eager, ProductsFillTheCacheSoonerThanOtherOps) {
  Call call;
  for (int64_t n = 1; n <= 100; ++n)
    call("add", {call.device->empty(DType::kF32, {n}), call.device->empty(DType::kF32, {n})});
  EXPECT_EQ(call.eager.stats().size, 64u);
  for (int64_t n = 1; n <= 20; ++n)
    call("matmul",
         {call.device->empty(DType::kF32, {n, 128}), call.device->empty(DType::kF32, {128, 64})});
  EXPECT_LE(call.eager.stats().size, 64u / 8);
}

TEST(Profiler, SumsByNodeAndEscapesNames) {
  Profiler profiler;
  for (int i = 0; i < 3; ++i)
    profiler.add({"a \"b\"\n", "conv", "cpu:x", "", "f32[1]", 10 * i, 100, 400, 200, 1});
  profiler.add_run(0, 300);
  EXPECT_NE(profiler.json().find("\"a \\\"b\\\"\\u000a\""), std::string::npos) << profiler.json();
  EXPECT_NE(profiler.json().find("\"calls\":3,\"total_ns\":300"), std::string::npos);
  EXPECT_NE(profiler.table().find("2.0"), std::string::npos);  // 200 FLOP in 100 ns: 2 GFLOP/s
  EXPECT_NE(profiler.trace().find("\"ph\":\"X\""), std::string::npos);
  profiler.reset();
  EXPECT_TRUE(profiler.events().empty());
}

}  // namespace
}  // namespace anymps
