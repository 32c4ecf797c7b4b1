// SPDX-License-Identifier: Apache-2.0
// A view must describe exactly the elements that the reference kernel copies: checked for every
// sample of every op that has one, for inputs that lie in memory in several ways.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "support/tensor.h"

namespace anymps::testing {
namespace {

struct Case {
  const Op* op;
  const Sample* sample;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Op* op : all_ops())
    if (op->view)
      for (const Sample& sample : op->test.samples) all.push_back({op, &sample});
  return all;
}

TestInputs inputs_of(const Case& test, DType dtype) {
  TestInputs inputs;
  for (size_t i = 0; i < test.sample->shapes.size(); ++i) {
    const Shape& shape = test.sample->shapes[i];
    if (shape == Sample::absent) {
      inputs.emplace_back();
      continue;
    }
    TestTensor tensor(i == 0 ? dtype : DType::kI64, shape);
    std::vector<double> values;
    for (int64_t n = 0; n < tensor.count(); ++n) values.push_back(static_cast<double>(n + 1));
    inputs.push_back(tensor.set(values));
  }
  for (const auto& [input, values] : test.sample->values)
    inputs[static_cast<size_t>(input)] =
        TestTensor::of<int64_t>(test.sample->shapes[static_cast<size_t>(input)], values);
  return inputs;
}

std::set<int64_t> offsets(const TensorDesc& desc, int64_t first = 0) {
  std::set<int64_t> all;
  for_each_index(desc.shape, [&](const Shape& index) {
    int64_t at = first;
    for (size_t i = 0; i < index.size(); ++i) at += index[i] * desc.strides[i];
    all.insert(at);
  });
  return all;
}

// Checks every output; returns whether all of them were views.
bool check(const Case& test, const TestInputs& inputs, const std::vector<TestTensor>& expected) {
  const Attrs attrs(*test.op, test.sample->attrs);
  std::vector<std::optional<std::vector<int64_t>>> contents;
  for (const auto& input : inputs)
    contents.push_back(input ? content_of(*input) : std::vector<int64_t>());
  const TestTensor& x = *inputs[0];
  const std::set<int64_t> inside = offsets(x.desc());
  bool all = true;
  for (size_t k = 0; k < expected.size(); ++k) {
    const Shape shape = expected[k].shape();
    ViewContext view{attrs, x.desc(), contents, k, shape, {}, 0, expected.size()};
    if (!test.op->view(view)) {
      all = false;
      continue;
    }
    EXPECT_EQ(view.strides.size(), shape.size());
    TensorDesc desc(x.dtype(), shape);
    desc.strides = view.strides;
    for (int64_t at : offsets(desc, view.offset))
      if (!inside.contains(at)) {
        ADD_FAILURE() << "element " << at << " lies outside the input";
        return false;
      }
    const size_t size = size_of(x.dtype());
    for_each_index(shape, [&](const Shape& index) {
      int64_t from = view.offset, to = 0;
      for (size_t i = 0; i < index.size(); ++i) {
        from += index[i] * view.strides[i];
        to += index[i] * expected[k].desc().strides[i];
      }
      EXPECT_EQ(std::memcmp(x.data<char>() + from * static_cast<int64_t>(size),
                            expected[k].data<char>() + to * static_cast<int64_t>(size), size),
                0)
          << "output " << k << " at " << to_string(index);
    });
  }
  return all;
}

// Strides 0 along the first axis: all rows are the same memory.
TestTensor broadcast_rows(const TestTensor& x) {
  TensorDesc desc = x.desc();
  if (!desc.strides.empty()) desc.strides[0] = 0;
  TestTensor rows(desc);
  for_each_index(desc.shape, [&](const Shape& index) {
    rows.put(index, static_cast<double>(index.empty() ? 1 : index.back() + 1));
  });
  return rows;
}

TEST(Views, DescribeWhatTheReferenceCopies) {
  ASSERT_GT(cases().size(), 30u);
  for (const Case& test : cases()) {
    for (DType dtype : {DType::kF32, DType::kU8, DType::kBF16, DType::kC64, DType::kC128}) {
      SCOPED_TRACE(test.op->name + " " + test.sample->label + " " + name(dtype));
      const TestInputs plain = inputs_of(test, dtype);
      auto expected = [&](const TestInputs& inputs) {
        return run_reference_all(test.op->name.c_str(), inputs, test.sample->attrs,
                                 test.sample->outputs);
      };
      EXPECT_TRUE(check(test, plain, expected(plain))) << "contiguous inputs always have a view";
      TestInputs strided = plain;
      strided[0] = plain[0]->scrambled();
      check(test, strided, expected(strided));
      TestInputs rows = plain;
      rows[0] = broadcast_rows(*plain[0]);
      check(test, rows, expected(rows));
    }
  }
}

TEST(Views, ReshapeOfStridedMemory) {
  auto viewed = [](const Shape& shape, const Strides& strides, const Shape& to) {
    TensorDesc desc(DType::kF32, shape);
    desc.strides = strides;
    const Op& op = get_op("reshape");
    const Attrs attrs(op, {});
    ViewContext view{attrs, desc, {}, 0, to, {}, 0, 1};
    return op.view(view)
               ? fmt::format("{}", fmt::join(view.strides.begin(), view.strides.end(), " "))
               : "copy";
  };
  EXPECT_EQ(viewed({2, 3, 4}, {12, 4, 1}, {6, 4}), "4 1");
  EXPECT_EQ(viewed({2, 3, 4}, {24, 8, 2}, {6, 2, 2}), "8 4 2");  // every second column
  EXPECT_EQ(viewed({2, 3, 4}, {24, 4, 1}, {2, 12}), "24 1");     // every second plane
  EXPECT_EQ(viewed({2, 3, 4}, {24, 4, 1}, {6, 4}), "copy");      // the planes do not join
  EXPECT_EQ(viewed({3, 4}, {1, 3}, {12}), "copy");               // transposed
  EXPECT_EQ(viewed({3, 4}, {1, 3}, {3, 2, 2}), "1 6 3");         // but its axes may be cut
  EXPECT_EQ(viewed({3, 4}, {1, 3}, {1, 3, 1, 4, 1}), "1 1 1 3 1");
  EXPECT_EQ(viewed({4}, {-1}, {2, 2}), "-2 -1");
  EXPECT_EQ(viewed({2, 3}, {0, 0}, {6}), "0");
}

}  // namespace
}  // namespace anymps::testing
