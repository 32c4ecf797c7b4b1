// SPDX-License-Identifier: Apache-2.0
// Random calls on tensors of several dtypes: put off they give the bits that they give at once,
// with halves rounded wherever a call would have stored them.
#include <gtest/gtest.h>

#include <random>

#include "support/deferring_stream.h"

namespace anymps {
namespace {

using testing::op;
using testing::Stream;

class TypedProgram {
 public:
  explicit TypedProgram(uint32_t seed) : random_(seed) {
    static constexpr DType kTypes[] = {DType::kF32, DType::kF16,  DType::kBF16, DType::kI32,
                                       DType::kF64, DType::kBool, DType::kU8};
    count_ = 1 + pick(300);
    for (int i = 0; i < 14; ++i) {
      const DType dtype = kTypes[i % 7];
      Variable made{dtype, std::vector<std::byte>(static_cast<size_t>(count_) * size_of(dtype))};
      dispatch<kReal | kBoolean>(dtype, [&]<typename T>() {
        auto* elements = reinterpret_cast<T*>(made.bytes.data());
        for (int64_t k = 0; k < count_; ++k)
          elements[k] = static_cast<T>(static_cast<Compute<T>>(
              static_cast<float>(pick(2000)) / 100.0f - (std::is_integral_v<T> ? 0.0f : 10.0f)));
      });
      start_.push_back(std::move(made));
    }
    for (int i = 0; i < 20; ++i) steps_.push_back(step());
  }

  using Bytes = std::vector<std::byte>;
  std::vector<Bytes> run(bool put_off) const {
    std::vector<Bytes> memory;
    for (const Variable& variable : start_) memory.push_back(variable.bytes);
    Stream stream;
    if (!put_off) stream.deferral->set_limit(0);
    for (const TypedStep& step : steps_) {
      std::vector<TensorView> in;
      for (const size_t i : step.inputs) in.push_back(view(memory, i));
      const TensorView out = view(memory, step.output);
      stream.deferral->call(*step.op, in, {&out, 1}, step.parameters);
    }
    stream.deferral->finish();
    return memory;
  }

 private:
  struct Variable {
    DType dtype;
    Bytes bytes;
  };
  struct TypedStep {
    const BoundOp* op = nullptr;
    std::vector<size_t> inputs;
    size_t output = 0;
    std::vector<double> parameters = {};
  };

  int64_t pick(int64_t below) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(below));
  }
  TensorView view(std::vector<Bytes>& memory, size_t i) const {
    return {memory[i].data(), &count_, nullptr, start_[i].dtype, 1};
  }
  size_t any() { return static_cast<size_t>(pick(14)); }
  size_t like(size_t i) { return pick(2) ? i : (i + 7) % 14; }  // of the same dtype

  static const BoundOp& cast_to(DType dtype) {
    static std::map<DType, std::unique_ptr<BoundOp>> casts;
    auto& made = casts[dtype];
    EagerAttr attr{"dtype", AttrKind::kInt};
    attr.i = static_cast<int64_t>(dtype);
    if (!made) made = std::make_unique<BoundOp>(get_op("cast"), std::span(&attr, 1));
    return *made;
  }

  TypedStep step() {
    static const BoundOp leaky(get_op("leaky_relu"), {}, {"alpha"});
    static const BoundOp clamp(get_op("clamp"), {}, {"min", "max"});
    const size_t x = any(), y = like(x);
    const DType dtype = start_[x].dtype;
    const size_t truth = pick(2) ? 5 : 12;
    switch (pick(8)) {
      case 0: {
        const size_t to = any();
        return {&cast_to(start_[to].dtype), {x}, to};
      }
      case 1:
        return {&op("identity"), {x}, y};
      case 2:
        return {&op("where"), {truth, x, like(x)}, y};
      case 3:
        return {&op("equal"), {x, y}, truth};
      case 4:
        if (!contains(kFloat, dtype)) break;
        return {&leaky, {x}, y, {static_cast<double>(pick(100)) / 77}};
      case 5:
        if (dtype == DType::kBool) break;
        return {&clamp, {x}, y, {static_cast<double>(pick(5)) - 2.3, 3.1}};
      default:
        break;
    }
    static const char* const kFloats[] = {"mul",     "add",  "sub", "div",
                                          "sigmoid", "tanh", "exp", "sqrt"};
    static const char* const kInts[] = {"mul", "add", "sub", "max"};
    if (dtype == DType::kBool) return {&op("logical_xor"), {x, like(x)}, y};
    const char* name = contains(kFloat, dtype) ? kFloats[pick(8)] : kInts[pick(4)];
    if (op(name).op.inputs.size() == 1) return {&op(name), {x}, y};
    return {&op(name), {x, like(x)}, y};
  }

  std::mt19937 random_;
  int64_t count_ = 0;
  std::vector<Variable> start_;
  std::vector<TypedStep> steps_;
};

TEST(Deferral, NumbersAreThoseOfCallsAtOnce) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const TypedProgram program(seed);
    ASSERT_EQ(program.run(true), program.run(false)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace anymps
