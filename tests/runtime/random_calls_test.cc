// SPDX-License-Identifier: Apache-2.0
// Random sequences of eager calls on views of one piece of memory, which overlap as they like: in
// place, across each other, with gaps, backwards. On the CPU at once, on a stream, put off on one
// stream and on several, on threads beside each other and on the reference they leave the same
// bytes behind. Elements are whole numbers, so that all of it is exact.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <thread>

#include "runtime/device.h"
#include "runtime/eager/deferral.h"
#include "runtime/eager/eager.h"

namespace anymps {
namespace {

constexpr int64_t kElements = 192;
using Memory = std::array<float, kElements>;

struct Place {
  Shape dims;
  Strides strides;
  int64_t offset = 0;

  TensorView in(Memory& memory) const {
    return {memory.data() + offset, dims.data(), strides.data(), DType::kF32,
            static_cast<int32_t>(dims.size())};
  }
};

struct RandomStep {
  const BoundOp* op;  // null: the memory from the output's offset on is used for something else
  std::vector<Place> inputs;
  Place output;
  int64_t stream = 0;  // of several
};

enum class How { kAtOnce, kQueued, kPutOff, kPutOffOnTwoStreams };

const BoundOp& bound(const char* name, std::vector<EagerAttr> attrs = {}) {
  return *new BoundOp(get_op(name), attrs);
}

class Program {
 public:
  explicit Program(uint32_t seed) : random_(seed) {
    for (float& element : start_) element = static_cast<float>(pick(17) - 8);
    for (int64_t i = 0, count = 4 + pick(10); i < count; ++i) steps_.push_back(step());
  }

  // The bytes that are left.
  Memory run(const char* driver, How how = How::kAtOnce) const {
    Memory memory = start_;
    const DevicePtr device = Device::get(driver);
    if (how == How::kPutOff || how == How::kPutOffOnTwoStreams) {
      put_off(device, memory, how == How::kPutOff ? 1 : 2);
      return memory;
    }
    const auto queue = how == How::kQueued ? device->create_queue() : nullptr;
    for (const RandomStep& step : steps_) {
      const auto call = [&memory, &step, device] {
        if (!step.op) return use_otherwise(step, memory);
        const TensorView output = step.output.in(memory);
        device->eager().call(*step.op, views(step, memory), {&output, 1}, device->queue());
      };
      if (queue)
        queue->submit(call);
      else
        call();
    }
    if (queue) queue->synchronize();
    return memory;
  }

 private:
  static std::vector<TensorView> views(const RandomStep& step, Memory& memory) {
    std::vector<TensorView> inputs;
    for (const Place& place : step.inputs) inputs.push_back(place.in(memory));
    return inputs;
  }

  static void use_otherwise(const RandomStep& step, Memory& memory) {
    const auto from = memory.begin() + step.output.offset;
    std::fill(from, from + step.output.dims[0], 5.0f);
  }

  void put_off(const DevicePtr& device, Memory& memory, int64_t count) const {
    std::vector<std::unique_ptr<Queue>> queues;
    std::vector<std::shared_ptr<Deferral>> streams;
    for (int64_t i = 0; i < count; ++i) {
      queues.push_back(device->create_queue());
      streams.push_back(Deferral::create(device, *queues.back()));
    }
    for (const RandomStep& step : steps_) {
      if (!step.op) {
        for (const auto& stream : streams)
          stream->forget(memory.data() + step.output.offset,
                         static_cast<size_t>(step.output.dims[0]) * sizeof(float));
        use_otherwise(step, memory);
        continue;
      }
      const TensorView output = step.output.in(memory);
      streams[step.stream % count]->call(*step.op, views(step, memory), {&output, 1}, {});
    }
    for (const auto& stream : streams) {
      stream->finish();
    }
  }

  int64_t pick(int64_t below) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(below));
  }

  // Somewhere in the memory; a broadcast axis has the stride 0, which only inputs may have.
  Place place(const Shape& dims, bool broadcast) {
    Place made{dims, Strides(dims.size()), 0};
    std::vector<size_t> order(dims.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    int64_t step = 1 + pick(2), low = 0, high = 0;
    for (const size_t axis : order) {
      const bool same = broadcast && pick(6) == 0;
      made.strides[axis] = same ? 0 : pick(5) == 0 ? -step : step;
      const int64_t reach = (dims[axis] - 1) * made.strides[axis];
      (reach < 0 ? low : high) += reach;
      if (!same) step *= dims[axis];
      if (pick(4) == 0) ++step;
    }
    if (high - low >= kElements) return place(dims, broadcast);
    made.offset = pick(kElements - (high - low)) - low;
    return made;
  }

  RandomStep step() {
    struct Kind {
      const BoundOp* op;
      size_t inputs;
    };
    static const auto& kinds = *new std::vector<Kind>{
        {&bound("add"), 2},        {&bound("sub"), 2},    {&bound("min"), 2},  {&bound("max"), 2},
        {&bound("identity"), 1},   {&bound("neg"), 1},    {&bound("relu"), 1}, {&bound("abs"), 1},
        {&bound("reduce_max"), 1}, {&bound("reverse"), 1}};
    static const auto& bounded = bound("clamp", [] {
      EagerAttr low{"min", AttrKind::kFloat}, high{"max", AttrKind::kFloat};
      low.f = -64;
      high.f = 64;
      return std::vector<EagerAttr>{low, high};
    }());
    const Kind& kind = pick(6) == 0 ? Kind{&bounded, 1} : kinds[static_cast<size_t>(pick(10))];
    if (pick(10) == 0) {
      const int64_t offset = pick(kElements);
      return {nullptr, {}, {{1 + pick(kElements - offset)}, {1}, offset}};
    }
    Shape dims;
    for (int64_t i = 0, rank = pick(4); i < rank; ++i) dims.push_back(1 + pick(rank == 3 ? 4 : 6));
    if (!known_.empty() && pick(4) > 0) dims = known_.back().dims;  // calls that go together
    RandomStep made{kind.op, {}, {}, pick(2)};
    for (size_t i = 0; i < kind.inputs; ++i) made.inputs.push_back(place_or_known(dims, true));
    Shape result = dims;
    if (kind.op->op.name == "reduce_max") std::fill(result.begin(), result.end(), 1);
    made.output = place_or_known(result, false);
    if (pick(3) == 0 && result == dims) made.inputs[0] = made.output;  // in place
    known_.push_back(made.output);
    return made;
  }

  // Often one that an earlier step wrote.
  Place place_or_known(const Shape& dims, bool broadcast) {
    if (!known_.empty() && pick(2) == 0) {
      const Place& known = known_[static_cast<size_t>(pick(std::ssize(known_)))];
      if (known.dims == dims) return known;
    }
    return place(dims, broadcast);
  }

  std::mt19937 random_;
  Memory start_{};
  std::vector<RandomStep> steps_;
  std::vector<Place> known_;
};

constexpr uint32_t kPrograms = 10000;

TEST(RandomCalls, AgreeWithTheReference) {
  for (uint32_t seed = 0; seed < kPrograms; ++seed) {
    const Program program(seed);
    ASSERT_EQ(program.run("cpu"), program.run("reference")) << "seed " << seed;
  }
}

TEST(RandomCalls, AreTheSameOnAStream) {
  for (uint32_t seed = 0; seed < kPrograms; seed += 20) {
    const Program program(seed);
    ASSERT_EQ(program.run("cpu", How::kQueued), program.run("cpu")) << "seed " << seed;
  }
}

TEST(RandomCalls, AreTheSamePutOff) {
  for (uint32_t seed = 0; seed < kPrograms; ++seed) {
    const Program program(seed);
    const Memory at_once = program.run("cpu");
    ASSERT_EQ(program.run("cpu", How::kPutOff), at_once) << "seed " << seed;
    ASSERT_EQ(program.run("cpu", How::kPutOffOnTwoStreams), at_once) << "seed " << seed;
    if (seed % 10 > 0) continue;
    ASSERT_EQ(program.run("reference", How::kPutOff), at_once) << "seed " << seed;
  }
}

TEST(RandomCalls, AreTheSameBesideEachOther) {
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (uint32_t seed = t; seed < kPrograms; seed += 40) {
        const Program program(seed);
        const Memory alone = program.run("reference");
        EXPECT_EQ(program.run("cpu"), alone) << "seed " << seed;
        EXPECT_EQ(program.run("cpu", How::kPutOff), alone) << "seed " << seed;
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace anymps
