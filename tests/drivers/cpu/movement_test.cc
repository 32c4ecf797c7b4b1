// SPDX-License-Identifier: Apache-2.0
// Kernels that move elements, and send them back, against the reference: sizes that take several
// threads, every mode, and elements that come more than once.
#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

TEST(CpuMovement, Samples) {
  for (const char* op :
       {"scatter", "scatter_nd", "scatter_along_axis", "im2col", "col2im", "interleave",
        "space_to_batch", "batch_to_space", "slice_update", "slice_gradient", "band_part", "trilu"})
    EXPECT_GE(expect_samples_as_reference(op, kSomeDTypes), 5) << op;
}

TEST(CpuMovement, PlacesAndBytes) {
  EXPECT_GE(expect_samples_as_reference("reinterpret", kAny), 4);
  for (int axis : {0, 1, 2})
    expect_as_reference("coordinate_along_axis", {},
                        {{"shape", Ints{50, 60, 70}}, {"axis", axis}, {"dtype", DType::kF16}});
}

TEST(CpuScatter, CollisionsAreInOrder) {
  const TestTensor rows = TestTensor(DType::kF32, {500, 64}).fill(1);
  const TestTensor data = TestTensor(DType::kF32, {20, 64}).fill(2);
  const TestTensor places = TestTensor(DType::kI64, {500, 1}).fill(3, -20, 19);
  for (const char* mode : {"set", "add", "mul", "max"}) {
    expect_as_reference("scatter_nd", {rows, places, data}, {{"mode", mode}});
    expect_as_reference("scatter_along_axis",
                        {rows, TestTensor(DType::kI32, {500, 64}).fill(4, 0, 19), data},
                        {{"mode", mode}});
  }
}

TEST(CpuScatter, BadIndexIsAnErrorThatNamesIt) {
  TestInputs inputs = {TestTensor(DType::kF32, {2}), TestTensor(DType::kI64, {2}, {0, 7}),
                       TestTensor(DType::kF32, {3})};
  const Prepared prepared = prepare_cpu("scatter", inputs);
  EXPECT_EQ(error_of([&] { run(prepared, inputs); }),
            "[scatter] index 7 is out of range for axis 0 of extent 3");
}

TEST(CpuBandPart, BandsOfManyRows) {
  const TestTensor x = TestTensor(DType::kF32, {6, 90, 70}).fill(1, 1, 2);
  for (int k : {-95, -3, 0, 5, 71}) {
    expect_as_reference("trilu", {x}, {{"k", k}});
    expect_as_reference("trilu", {x}, {{"k", k}, {"upper", false}});
    expect_as_reference("band_part", {x}, {{"lower", k}, {"upper", 2}});
  }
}

TEST(CpuReverseSequence, ManySequences) {
  const TestTensor lengths = TestTensor(DType::kI64, {30}).fill(1, 0, 40);
  for (DType dtype : {DType::kF32, DType::kI8, DType::kC64, DType::kC128}) {
    expect_as_reference("reverse_sequence", {TestTensor(dtype, {40, 30, 20}).fill(2), lengths});
    expect_as_reference("reverse_sequence",
                        {TestTensor(dtype, {30, 7, 40}).fill(2).scrambled(), lengths},
                        {{"batch_axis", 0}, {"time_axis", 2}});
  }
  TestInputs inputs = {random_f32({4, 2}), TestTensor(DType::kI32, {2}, {1, 5})};
  const Prepared prepared = prepare_cpu("reverse_sequence", inputs);
  EXPECT_EQ(error_of([&] { run(prepared, inputs); }),
            "[reverse_sequence] length 5 of sequence 1 is not in [0, 4]");
}

TEST(CpuSparse, PlacesOfManyElements) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kI16, DType::kC64, DType::kC128}) {
    const TestTensor values = TestTensor(dtype, {300}).fill(1, 0, 3);
    expect_as_reference("sparse_to_dense",
                        {values, TestTensor(DType::kI64, {300}).fill(2, 0, 19),
                         TestTensor(DType::kI64, {300}).fill(3, 0, 29)},
                        {{"shape", Ints{30, 20}}}, 2e-3);
  }
  TestInputs outside = {random_f32({1}), TestTensor(DType::kI32, {1}, {2}),
                        TestTensor(DType::kI32, {1}, {0})};
  const Prepared prepared = prepare_cpu("sparse_to_dense", outside, {{"shape", Ints{2, 2}}});
  EXPECT_EQ(error_of([&] { run(prepared, outside); }),
            "[sparse_to_dense] place (0, 2) is outside [2, 2]");
}

TEST(CpuPadGradient, EveryMode) {
  const Ints pads = {0, 5, 20, 1, 3, 11};
  for (const char* mode : {"constant", "reflect", "edge", "wrap", "symmetric", "anti_wrap"})
    for (DType dtype : {DType::kF32, DType::kF16, DType::kI8, DType::kC64, DType::kC128}) {
      const NamedAttrs attrs = {{"pads", pads}, {"mode", mode}};
      const TestTensor dy = TestTensor(dtype, {9, 50, 60}).fill(1, 0, 2);
      expect_as_reference("pad_gradient", {dy}, attrs, 2e-3);
      expect_as_reference("pad_gradient", {dy.scrambled()}, attrs, 2e-3);
    }
}

TEST(CpuTileGradient, Repeats) {
  for (const Ints& repeats : {Ints{4, 1, 1}, Ints{1, 3, 2}, Ints{2, 2, 7}, Ints{1, 1, 1}})
    expect_as_reference("tile_gradient", {random_f32({8, 42, 70})}, {{"repeats", repeats}}, 1e-5);
}

// Data of the same memory as the result: only what is reached changes.
TEST(CpuScatter, InPlace) {
  const TestTensor data = TestTensor(DType::kF32, {20, 64}).fill(2);
  const TestTensor rows = TestTensor(DType::kF32, {5, 64}).fill(1);
  const TestTensor columns = TestTensor(DType::kF32, {20, 3}).fill(1);
  struct Case {
    const char* op;
    TestTensor updates, indices;
    NamedAttrs attrs;
  };
  const std::vector<Case> cases = {
      {"scatter", rows, indices({5}, {3, 19, 3, 0, -2}), {{"mode", "add"}}},
      {"scatter", columns, indices({3}, {3, 60, 3}), {{"mode", "mean"}, {"axis", 1}}},
      {"scatter_nd", rows, indices({5, 1}, {3, 19, 3, 0, -2}), {{"mode", "set"}}},
      {"scatter_along_axis",
       rows,
       TestTensor(DType::kI32, {5, 64}).fill(4, 0, 19),
       {{"mode", "max"}, {"include_self", false}}},
  };
  for (const Case& test : cases) {
    TestInputs inputs = {test.updates, test.indices, data};
    const TestTensor expected = run_reference(test.op, inputs, test.attrs);
    const Prepared prepared = prepare_cpu(test.op, inputs, test.attrs);
    ASSERT_TRUE(prepared.kernel->in_place(2, 0)) << test.op;
    std::vector<void*> in = {inputs[0]->ptr(), inputs[1]->ptr(), inputs[2]->ptr()};
    std::vector<int64_t> scratch(prepared.kernel->scratch_bytes() / 8 + 1);
    prepared.kernel->run({in.data(), &in[2], scratch.data(), nullptr});
    EXPECT_TRUE(same(*inputs[2], expected, 1e-6)) << test.op;
    // A bad index is found before anything is written.
    inputs[2] = data;
    Shape second(inputs[1]->shape().size(), 0);
    second[0] = 1;
    inputs[1]->put(second, 77);
    in[1] = inputs[1]->ptr(), in[2] = inputs[2]->ptr();
    EXPECT_NE(error_of([&] {
                prepared.kernel->run({in.data(), &in[2], scratch.data(), nullptr});
              }),
              "");
    EXPECT_TRUE(same(*inputs[2], data)) << test.op;
  }
}

TEST(CpuGather, ManyPlaces) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kI8, DType::kC64, DType::kC128})
    for (int axis : {0, 1, 2}) {
      const TestTensor x = TestTensor(dtype, {20, 30, 70}).fill(1);
      const TestTensor places = TestTensor(DType::kI64, {20, 30, 70}).fill(2, -20, 19);
      expect_as_reference("gather_along_axis", {x, places}, {{"axis", axis}});
      expect_as_reference("gather_along_axis", {x.scrambled(), places.scrambled()},
                          {{"axis", axis}});
      expect_as_reference("gather", {x, TestTensor(DType::kI32, {400}).fill(2, -20, 19)},
                          {{"axis", axis}});
    }
  expect_as_reference(
      "gather_nd", {random_f32({20, 30, 7}), TestTensor(DType::kI64, {300, 2}).fill(2, -20, 19)});
  TestInputs inputs = {random_f32({40, 50}), TestTensor(DType::kI64, {40, 50})};
  inputs[1]->put({39, 49}, -41);
  const Prepared prepared = prepare_cpu("gather_along_axis", inputs);
  EXPECT_EQ(error_of([&] { run(prepared, inputs); }),
            "[gather_along_axis] index -41 is out of range for axis 0 of extent 40");
}

// Lines of every length, which end inside of a vector, along each axis; and an index that is wrong
// in any of its places.
TEST(CpuGather, LinesOfEveryLength) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kI8, DType::kF16, DType::kC128})
    for (const DType index : {DType::kI64, DType::kI32})
      for (int64_t n = 1; n <= 90; n += n < 20 ? 1 : 7) {
        const TestTensor x = TestTensor(dtype, {3, 50}).fill(1),
                         turned = TestTensor(dtype, {50, 3}).fill(1);
        expect_as_reference("gather_along_axis", {x, TestTensor(index, {3, n}).fill(2, -50, 49)},
                            {{"axis", 1}});
        expect_as_reference("gather_along_axis",
                            {turned, TestTensor(index, {n, 3}).fill(2, -50, 49)}, {{"axis", 0}});
        expect_as_reference(
            "gather_along_axis",
            {TestTensor(dtype, {4, n}).fill(1), TestTensor(index, {2, n}).fill(2, -4, 3)},
            {{"axis", 0}});
        expect_as_reference("gather", {turned, TestTensor(index, {n}).fill(2, -50, 49)},
                            {{"axis", 0}});
        expect_as_reference("gather", {x, TestTensor(index, {n}).fill(2, -50, 49)}, {{"axis", 1}});
      }
  for (const int64_t wrong : {int64_t{50}, int64_t{-51}, int64_t{1} << 40, -(int64_t{1} << 40)})
    for (int64_t at = 0; at < 41; ++at) {
      TestInputs inputs = {random_f32({1, 50}), TestTensor(DType::kI64, {1, 41})};
      inputs[1]->put({0, at}, static_cast<double>(wrong));
      const Prepared prepared = prepare_cpu("gather_along_axis", inputs, {{"axis", 1}});
      EXPECT_EQ(error_of([&] { run(prepared, inputs); }),
                "[gather_along_axis] index " + std::to_string(wrong) +
                    " is out of range for axis 1 of extent 50");
    }
}

TEST(CpuScatter, ManyPlaces) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kI32, DType::kC64, DType::kC128})
    for (int axis : {0, 1, 2})
      for (const char* mode : {"add", "mean"}) {
        const TestTensor x = TestTensor(dtype, {20, 30, 70}).fill(1);
        const TestTensor places = TestTensor(DType::kI64, {20, 30, 70}).fill(2, -20, 19);
        const NamedAttrs attrs = {{"axis", axis}, {"mode", mode}};
        const TestTensor data = TestTensor(dtype, {20, 30, 70}).fill(3);
        expect_as_reference("scatter_along_axis", {x, places, data}, attrs, 1e-6);
        expect_as_reference("scatter_along_axis",
                            {x.scrambled(), places.scrambled(), data.scrambled()}, attrs, 1e-6);
      }
}

TEST(CpuInPlace, OnlyWhatChangesIsWritten) {
  const TestTensor x = random_f32({40, 50}), mask = TestTensor(DType::kBool, {40, 50}).fill(2);
  struct Case {
    const char* op;
    TestInputs inputs;
    NamedAttrs attrs;
  };
  const std::vector<Case> cases = {
      {"masked_scatter", {x, mask, random_f32({2000}, 3)}, {}},
      {"slice_update",
       {x, random_f32({7, 50}, 3)},
       {{"starts", Ints{5}}, {"ends", Ints{12}}, {"axes", Ints{0}}}},
  };
  for (const Case& test : cases) {
    TestInputs inputs = test.inputs;
    const TestTensor expected = run_reference(test.op, inputs, test.attrs);
    const Prepared prepared = prepare_cpu(test.op, inputs, test.attrs);
    ASSERT_TRUE(prepared.kernel && prepared.kernel->in_place(0, 0)) << test.op;
    std::vector<void*> in;
    for (auto& input : inputs) in.push_back(input->ptr());
    prepared.kernel->run({in.data(), in.data(), nullptr, nullptr});
    EXPECT_TRUE(same(*inputs[0], expected)) << test.op;
  }
}

}  // namespace
}  // namespace anymps::testing
