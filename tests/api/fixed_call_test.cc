// SPDX-License-Identifier: Apache-2.0
// Calls that are looked up once: the numbers of amps_call_run for any memory, from any thread, and
// nothing for calls that take more than a kernel.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "anymps/anymps.hpp"

namespace {
namespace fixed_calls {  // their names are theirs alone

class Call {
 public:
  explicit Call(const char* op, const std::vector<amps_attr>& attrs = {}) {
    amps_device* device = nullptr;
    amps::check(amps_device_get("cpu", &device));
    amps::check(
        amps_call_create(device, amps_op_find(op), attrs.data(), attrs.size(), nullptr, 0, &call));
  }
  ~Call() {
    amps_fixed_call_release(fixed);
    amps_call_release(call);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  bool fix(const std::vector<amps_view>& inputs, const std::vector<amps_view>& outputs) {
    amps::check(
        amps_call_fix(call, inputs.data(), inputs.size(), outputs.data(), outputs.size(), &fixed));
    return fixed != nullptr;
  }
  void run(std::vector<void*> inputs, std::vector<void*> outputs) const {
    amps::check(amps_fixed_call_run(fixed, inputs.data(), outputs.data()));
  }

  amps_call* call = nullptr;
  amps_fixed_call* fixed = nullptr;
};

const int64_t kFour[] = {4}, kTwoByTwo[] = {2, 2}, kColumns[] = {1, 2};
const amps_view kVector{nullptr, kFour, nullptr, AMPS_F32, 1};

using Four = std::vector<float>;

TEST(FixedCall, ComputesForAnyMemory) {
  Call add("add");
  ASSERT_TRUE(add.fix({kVector, kVector}, {kVector}));
  for (float i = 0; i < 3; ++i) {
    Four a{i, 1, 2, 3}, b{10, 20, 30, 40}, y(4);
    add.run({a.data(), b.data()}, {y.data()});
    EXPECT_EQ(y, (Four{i + 10, 21, 32, 43}));
  }
}

TEST(FixedCall, IsRightWhereMemoryIsShared) {
  Call add("add");
  ASSERT_TRUE(add.fix({kVector, kVector}, {kVector}));
  Four a{1, 2, 3, 4}, b{10, 20, 30, 40};
  add.run({a.data(), b.data()}, {a.data()});  // in place
  EXPECT_EQ(a, (Four{11, 22, 33, 44}));
  Four shifted{1, 2, 3, 4, 5};
  add.run({shifted.data(), b.data()}, {shifted.data() + 1});  // overlapping
  EXPECT_EQ(shifted, (Four{1, 11, 22, 33, 44}));
  Call flip("reverse", {[] {
              static const int64_t kAxis[] = {0};
              amps_attr attr{};
              attr.name = "axes";
              attr.kind = AMPS_ATTR_INTS;
              attr.ints = kAxis;
              attr.count = 1;
              return attr;
            }()});
  ASSERT_TRUE(flip.fix({kVector}, {kVector}));
  Four x{1, 2, 3, 4};
  flip.run({x.data()}, {x.data()});  // the kernel cannot work in place
  EXPECT_EQ(x, (Four{4, 3, 2, 1}));
}

TEST(FixedCall, TakesStrides) {
  Call neg("neg");
  ASSERT_TRUE(neg.fix({{nullptr, kTwoByTwo, kColumns, AMPS_F32, 2}},
                      {{nullptr, kTwoByTwo, nullptr, AMPS_F32, 2}}));
  Four x{1, 2, 3, 4}, y(4);
  neg.run({x.data()}, {y.data()});
  EXPECT_EQ(y, (Four{-1, -3, -2, -4}));
}

TEST(FixedCall, OutlivesTheCallAndServesThreads) {
  Call mul("mul");
  ASSERT_TRUE(mul.fix({kVector, kVector}, {kVector}));
  amps_call_release(std::exchange(mul.call, nullptr));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) {
        Four a(4, static_cast<float>(t)), b(4, static_cast<float>(i)), y(4);
        mul.run({a.data(), b.data()}, {y.data()});
        ASSERT_EQ(y, Four(4, static_cast<float>(t * i)));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(FixedCall, IsNotThereForWhatTakesMore) {
  Call shaped("nonzero");  // a shape that depends on elements
  const int64_t dims[] = {4, 1};
  EXPECT_FALSE(shaped.fix({kVector}, {{nullptr, dims, nullptr, AMPS_I64, 2}}));
}

TEST(FixedCall, MissesItsMemory) {
  Call neg("neg");
  ASSERT_TRUE(neg.fix({kVector}, {kVector}));
  Four x{1, 2, 3, 4};
  void *some = x.data(), *none = nullptr;
  EXPECT_NE(amps_fixed_call_run(neg.fixed, &none, &some), AMPS_OK);
  EXPECT_NE(std::strstr(amps_last_error(), "input 0 is NULL"), nullptr) << amps_last_error();
  EXPECT_NE(amps_fixed_call_run(neg.fixed, &some, &none), AMPS_OK);
  EXPECT_NE(std::strstr(amps_last_error(), "output 0 is NULL"), nullptr) << amps_last_error();
  Call of_nothing("neg");
  const int64_t zero[] = {0};
  const amps_view empty{nullptr, zero, nullptr, AMPS_F32, 1};
  ASSERT_TRUE(of_nothing.fix({empty}, {empty}));
  of_nothing.run({nullptr}, {nullptr});
}

TEST(FixedCall, RefusesWhatTheCallRefuses) {
  Call add("add");
  const int64_t three[] = {3};
  const amps_view other{nullptr, three, nullptr, AMPS_F32, 1};
  const amps_view inputs[] = {kVector, other};
  EXPECT_NE(amps_call_fix(add.call, inputs, 2, &kVector, 1, &add.fixed), AMPS_OK);
  EXPECT_NE(std::strstr(amps_last_error(), "[add]"), nullptr) << amps_last_error();
  const amps_view fitting[] = {kVector, kVector};
  EXPECT_NE(amps_call_fix(add.call, fitting, 2, &other, 1, &add.fixed), AMPS_OK);
  EXPECT_NE(std::strstr(amps_last_error(), "output 0"), nullptr) << amps_last_error();
  EXPECT_EQ(add.fixed, nullptr);
}

}  // namespace fixed_calls
}  // namespace
