// SPDX-License-Identifier: Apache-2.0
// Every op writes where it is told: into memory with gaps, in other orders of the axes, and over
// its own inputs. What lies between the elements stays as it was.
#include <cstring>

#include "op_table/eager_attrs.h"
#include "op_table/op_cases.h"
#include "runtime/device.h"
#include "runtime/eager/eager.h"

namespace anymps::testing {
namespace {

constexpr unsigned char kUntouched = 0xa5;

// Memory of a tensor with the strides that were asked for.
struct Place {
  Place(DType dtype, const Shape& shape, const std::string& layout) : desc(dtype, shape) {
    std::vector<size_t> order(shape.size());  // of the axes, outermost first
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (layout == "backwards") std::reverse(order.begin(), order.end());
    if (layout == "channels_last" && order.size() > 2)
      std::rotate(order.begin() + 1, order.begin() + 2, order.end());
    int64_t step = layout == "gaps" ? 3 : 1;
    for (size_t i = order.size(); i-- > 0;) {
      desc.strides[order[i]] = step;
      step *= std::max<int64_t>(shape[order[i]], 1);
      if (layout == "gaps") step += 2;
    }
    bytes.assign(static_cast<size_t>(std::max<int64_t>(byte_range(desc).end, 1)) + 64, kUntouched);
  }
  TensorView view() {
    return {bytes.data(), desc.shape.data(), desc.strides.data(), desc.dtype,
            static_cast<int32_t>(desc.rank())};
  }
  // Row-major; `rest` is left with what lies between.
  TestTensor elements(std::vector<unsigned char>& rest) const {
    TestTensor result(desc.dtype, desc.shape);
    rest = bytes;
    const size_t size = size_of(desc.dtype);
    for (int64_t i = 0; i < result.count(); ++i) {
      int64_t offset = 0, index = i;
      for (size_t axis = desc.shape.size(); axis-- > 0;) {
        offset += index % desc.shape[axis] * desc.strides[axis];
        index /= desc.shape[axis];
      }
      std::memcpy(static_cast<char*>(result.ptr()) + static_cast<size_t>(i) * size,
                  bytes.data() + static_cast<size_t>(offset) * size, size);
      std::memset(rest.data() + static_cast<size_t>(offset) * size, kUntouched, size);
    }
    return result;
  }

  TensorDesc desc;
  std::vector<unsigned char> bytes;
};

TensorView view_of(TestTensor& tensor) {
  return {tensor.ptr(), tensor.desc().shape.data(), tensor.desc().strides.data(), tensor.dtype(),
          static_cast<int32_t>(tensor.desc().rank())};
}

struct Calls {
  explicit Calls(OpCase& case_of) : item(case_of), op(*item.op, eager_attrs(item.attrs)) {
    for (auto& input : item.inputs) inputs.push_back(input ? view_of(*input) : TensorView());
  }

  // False: the op refuses the case.
  bool infer() {
    try {
      results.resize(item.outputs);
      device->eager().infer(op, inputs, item.outputs, device->queue(),
                            [&](size_t i, const TensorDesc& desc) { results[i] = desc; });
      expected = run("dense");
    } catch (const Error&) {
      return false;
    }
    return true;
  }
  std::vector<TestTensor> run(const std::string& layout) {
    std::vector<Place> places;
    std::vector<TensorView> outputs;
    for (const TensorDesc& desc : results) places.emplace_back(desc.dtype, desc.shape, layout);
    for (Place& place : places) outputs.push_back(place.view());
    device->eager().call(op, inputs, outputs, device->queue());
    std::vector<TestTensor> elements;
    for (const Place& place : places) {
      std::vector<unsigned char> rest;
      elements.push_back(place.elements(rest));
      EXPECT_TRUE(std::all_of(rest.begin(), rest.end(),
                              [](unsigned char byte) { return byte == kUntouched; }))
          << item.op->name << ", " << item.label << ", " << layout << ": writes past its elements";
    }
    return elements;
  }
  // Output `k` over a copy of input `i`.
  std::vector<TestTensor> run_over(size_t i, size_t k) {
    std::vector<TestTensor> made;
    for (const TensorDesc& desc : results) made.emplace_back(desc.dtype, desc.shape);
    std::memcpy(made[k].ptr(), item.inputs[i]->ptr(), made[k].desc().bytes());
    std::vector<TensorView> from = inputs, to;
    for (TestTensor& tensor : made) to.push_back(view_of(tensor));
    from[i].data = to[k].data;
    device->eager().call(op, from, to, device->queue());
    return made;
  }

  OpCase& item;
  const BoundOp op;
  DevicePtr device = Device::get("cpu");
  std::vector<TensorView> inputs;
  std::vector<TensorDesc> results;
  std::vector<TestTensor> expected;
};

class Outputs : public ::testing::TestWithParam<const Op*> {};

TEST_P(Outputs, MayLieAnywhere) {
  const Op& op = *GetParam();
  if (!op.test.skip.empty()) GTEST_SKIP() << op.test.skip;
  if (op.is(kStructural)) GTEST_SKIP() << "it is for graphs";
  const char* const layouts[] = {"gaps", "backwards", "channels_last"};
  size_t number = 0;
  for_each_case(op, [&](OpCase& item) {
    for (const auto& input : item.inputs)
      if (input && input->dtype() == DType::kString) return;
    Calls calls(item);
    if (!calls.infer()) return;
    const auto agree = [&](const std::vector<TestTensor>& actual, const std::string& how) {
      for (size_t i = 0; i < actual.size(); ++i)
        EXPECT_EQ(difference(op, actual[i], calls.expected[i]), "")
            << op.name << ", " << item.label << ", " << how << ", output " << i;
    };
    const std::string layout = layouts[number++ % std::size(layouts)];
    agree(calls.run(layout), layout);
    for (size_t k = 0; k < calls.results.size(); ++k)
      for (size_t i = 0; i < item.inputs.size(); ++i)
        if (item.inputs[i] && item.inputs[i]->desc() == calls.results[k])
          agree(calls.run_over(i, k), fmt::format("output {} over input {}", k, i));
  });
}

INSTANTIATE_TEST_SUITE_P(All, Outputs, ::testing::ValuesIn(all_ops()),
                         [](const auto& info) { return info.param->name; });

}  // namespace
}  // namespace anymps::testing
