// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

// Every elementwise op with one shape for all inputs, over its dtypes.
std::vector<const Op*> elementwise_ops() {
  std::vector<const Op*> ops;
  for (const Op* op : all_ops())
    if (op->is(kElementwise) && !op->is(kInternal) && !op->inputs[0].variadic) ops.push_back(op);
  return ops;
}

Domain domain_of(const Op& op, const std::string& input) {
  for (const auto& [name, domain] : op.test.input_domains)
    if (name == input) return domain;
  return op.test.domain;
}

TestInputs make_inputs(const Op& op, DType dtype, const std::vector<Shape>& shapes) {
  TestInputs inputs;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const Domain domain = domain_of(op, op.inputs[i].name);
    const DType type = contains(op.inputs[i].dtypes, dtype) ? dtype : DType::kBool;
    TestTensor tensor(type, shapes[i % shapes.size()]);
    tensor.fill(i + 17, domain.low, domain.high);
    // Integer division fails on zero.
    if (i == 1 && is_int(type) && (op.name == "div" || op.name.find("mod") != std::string::npos)) {
      for_each_index(tensor.shape(), [&](const Shape& index) {
        if (tensor.get(index).real() == 0) tensor.put(index, 1);
      });
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

NamedAttrs attrs_of(const Op& op) {
  if (op.name == "cast") return {{"dtype", DType::kF32}};
  return {};
}

TEST(CpuElementwise, AllOpsAllDtypes) {
  int cases = 0;
  for (const Op* op : elementwise_ops())
    for (DType dtype : dtypes_of(op->inputs.back().dtypes))
      for (const Shape& shape :
           {Shape{}, Shape{1}, Shape{3}, Shape{7, 9}, Shape{3, 700}, Shape{0, 4}}) {
        expect_as_reference(op->name.c_str(), make_inputs(*op, dtype, {shape}), attrs_of(*op),
                            op->test.tolerance.of(dtype));
        ++cases;
      }
  EXPECT_GT(cases, 1000);
}

TEST(CpuElementwise, AllOpsStrided) {
  for (const Op* op : elementwise_ops())
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kI32, DType::kBool}) {
      if (!contains(op->inputs.back().dtypes, dtype)) continue;
      for (const Shape& shape : {Shape{5, 6}, Shape{40, 300}, Shape{2, 3, 4, 5}}) {
        TestInputs inputs = make_inputs(*op, dtype, {shape});
        for (auto& input : inputs) input = input->scrambled();
        expect_as_reference(op->name.c_str(), inputs, attrs_of(*op), op->test.tolerance.of(dtype));
      }
    }
}

TEST(CpuElementwise, Broadcasting) {
  const std::vector<std::vector<Shape>> cases = {{{4, 5}, {5}},
                                                 {{5}, {4, 5}},
                                                 {{4, 1}, {1, 5}},
                                                 {{2000, 16}, {16}},
                                                 {{2, 3, 7, 7}, {3, 1, 1}},
                                                 {{2, 3, 40, 40}, {3, 1, 1}},
                                                 {{}, {3, 4}},
                                                 {{3, 4}, {}},
                                                 {{1, 1}, {3, 1000}},
                                                 {{7, 300}, {7, 1}},
                                                 {{7, 30}, {7, 1}},
                                                 {{1, 300}, {70, 1}},
                                                 {{2, 1, 5, 1, 3}, {1, 4, 1, 6, 1}},
                                                 {{0, 3}, {1, 3}},
                                                 {{1, 5000}, {3, 1}}};
  for (const char* op : {"add", "sub", "max", "prelu", "mod", "less"})
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI64})
      for (const auto& shapes : cases) {
        const Op& record = get_op(op);
        if (!contains(record.inputs[0].dtypes, dtype)) continue;
        expect_as_reference(op, make_inputs(record, dtype, shapes), {},
                            record.test.tolerance.of(dtype));
      }
  for (const Shape& condition : {Shape{}, Shape{5}, Shape{4, 1}, Shape{3, 1, 1}})
    for (DType dtype : dtypes_of(kAny))
      expect_as_reference("where",
                          {TestTensor(DType::kBool, condition).fill(1),
                           TestTensor(dtype, {3, 4, 5}).fill(2), TestTensor(dtype, {5}).fill(3)});
}

TEST(CpuElementwise, StridedOutputs) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kI8}) {
    TestInputs inputs = {TestTensor(dtype, {40, 30}).fill(1), TestTensor(dtype, {30}).fill(2)};
    for (const Strides& strides :
         {Strides{1, 40}, Strides{60, 2}, Strides{-30, 1}, Strides{35, 1}}) {
      TensorDesc desc(dtype, {40, 30});
      desc.strides = strides;
      const Prepared prepared = prepare_cpu("add", inputs, {}, 1, {desc});
      ASSERT_TRUE(prepared.kernel);
      EXPECT_TRUE(same(run(prepared, inputs)[0], run_reference("add", inputs), 1e-2));
    }
  }
}

// Casts with vector code: the ends of ranges, NaN, and bools that others filled with more than 1.
TEST(CpuElementwise, CastsOfFloatsAndBools) {
  const std::vector<double> edges = {0.0,         -0.0,         0.5,          -0.5,
                                     1.5,         -1.5,         kInf,         -kInf,
                                     kNan,        2147483520.,  -2147483648., 1e10,
                                     -1e10,       4e18,         -4e18,        9223372036854775807.,
                                     -9.3e18,     1e30,         2147483648.,  -2147483904.,
                                     7.99,        -7.99,        1e-40,        3e9,
                                     1073741824., -1073741888., 123456.7};
  for (const DType to : {DType::kI32, DType::kI64, DType::kU8, DType::kI16})
    for (const int64_t n : {1, 7, 8, 15, 16, 17, 33, 1000}) {
      TestTensor x = random_f32({n}, 3, -3000, 3000), y(DType::kF32, {n});
      for (int64_t i = 0; i < n; ++i) y.put({i}, edges[static_cast<size_t>(i) % edges.size()]);
      for (const TestTensor& input : {x, y}) expect_as_reference("cast", {input}, {{"dtype", to}});
    }
  for (const DType to : {DType::kF32, DType::kI32, DType::kI64, DType::kF64, DType::kU8})
    for (const int64_t n : {1, 7, 9, 31, 64, 1000}) {
      TestTensor x = TestTensor(DType::kBool, {n}).fill(5);
      auto* bytes = static_cast<uint8_t*>(x.ptr());
      for (int64_t i = 0; i < n; i += 3) bytes[i] = static_cast<uint8_t>(i * 5);
      expect_as_reference("cast", {x}, {{"dtype", to}});
      const TestTensor a = TestTensor(DType::kI64, {n}).fill(1, -99, 99);
      expect_as_reference("where", {x, a, TestTensor(DType::kI64, {n}).fill(2, -99, 99)});
      expect_as_reference(
          "where", {x, TestTensor(DType::kF64, {n}).fill(1), TestTensor(DType::kF64, {n}).fill(2)});
    }
}

// Exponents that need no logarithm, with what else has one beside them.
TEST(CpuElementwise, PowersThatAreRootsAndCubes) {
  const std::vector<double> bases = {0.0,  -0.0,  1,    -1,   kInf, -kInf, kNan, 4,     2.25,
                                     1e30, 1e-30, 3e38, -3.5, 0.3,  1e-12, 7,    -1e20, 100};
  const auto n = static_cast<int64_t>(bases.size());
  const TestTensor x(DType::kF32, {n}, bases);
  for (const double exponent : {0.5, -0.5, 3.0, -3.0, 2.5})
    for (const bool mixed : {false, true}) {
      TestTensor y(DType::kF32, {n});
      for (int64_t i = 0; i < n; ++i) y.put({i}, mixed && i % 3 == 0 ? -exponent : exponent);
      expect_as_reference("pow", {x, y}, {}, 1e-6);
      expect_as_reference("pow", {x, TestTensor(DType::kF32, {}, {exponent})}, {}, 1e-6);
    }
}

TEST(CpuElementwise, EdgesOfFloats) {
  const std::vector<double> edges = {
      0.0,   -0.0,   1.0,  -1.0,  0.5,  -0.5, 1.5,   2.5,  -2.5, kInf, -kInf, kNan,
      1e-40, -1e-40, 1e30, -1e30, 88.5, 89.5, -87.5, -104, -150, 3e38, 40000, -40000,
      1e9,   0.999,  10,   -10,   5.9,  6.1,  -5.9,  -9,   20,   -20,  1e-8,  -1e-8};
  for (const Op* op : elementwise_ops()) {
    const int64_t n = static_cast<int64_t>(edges.size());
    for (DType dtype : {DType::kF32, DType::kF16}) {
      if (!contains(op->inputs.back().dtypes, dtype)) continue;
      TestInputs inputs;
      for (size_t i = 0; i < op->inputs.size(); ++i) {
        Shape shape = i == 0 && op->inputs.size() > 1 ? Shape{n, 1} : Shape{n};
        if (contains(op->inputs[i].dtypes, dtype))
          inputs.push_back(TestTensor(dtype, shape, edges));
        else
          inputs.push_back(TestTensor(DType::kBool, shape).fill(3));
      }
      if (op->name == "clamp") inputs.resize(1);
      expect_as_reference(op->name.c_str(), inputs, attrs_of(*op), op->test.tolerance.of(dtype));
    }
  }
}

TEST(CpuElementwise, CastsBetweenAllDtypes) {
  for (DType from : dtypes_of(kAny))
    for (DType to : dtypes_of(kAny))
      expect_as_reference("cast", {TestTensor(from, {3, 50}).fill(5, -300, 300)}, {{"dtype", to}});
  const TestTensor edges(DType::kF32, {7}, {kNan, kInf, -kInf, 3e9, -3e9, 1e20, 200.7});
  for (DType to : dtypes_of(kInt)) expect_as_reference("cast", {edges}, {{"dtype", to}});
}

TEST(CpuElementwise, AttributesReachTheFunctions) {
  const TestTensor x = TestTensor(DType::kF32, {100}).fill(1, -4, 4);
  expect_as_reference("leaky_relu", {x}, {{"alpha", 0.3}}, 1e-6);
  expect_as_reference("elu", {x}, {{"alpha", 0.3}}, 1e-6);
  expect_as_reference("celu", {x}, {{"alpha", 0.3}}, 1e-6);
  expect_as_reference("selu", {x}, {{"alpha", 0.3}, {"gamma", 2.0}}, 1e-6);
  expect_as_reference("hard_sigmoid", {x}, {{"alpha", 0.3}, {"beta", 0.1}}, 1e-6);
  expect_as_reference("thresholded_relu", {x}, {{"alpha", 2.0}});
  expect_as_reference("gelu", {x}, {{"approximate", "tanh"}}, 1e-6);
  const TestTensor y = TestTensor(DType::kF32, {100}).fill(2, 1, 3);
  const TestTensor i = TestTensor(DType::kI32, {100}).fill(2, -9, 9),
                   j = TestTensor(DType::kI32, {100}).fill(3, 1, 4);
  for (const char* rounding : {"none", "trunc", "floor"}) {
    expect_as_reference("div", {x, y}, {{"rounding", rounding}}, 1e-6);
    expect_as_reference("div", {i, j}, {{"rounding", rounding}});
  }
  const TestTensor odd(DType::kF32, {6}, {1, kNan, 3, kInf, -kInf, kNan});
  const TestTensor even(DType::kF32, {6}, {kNan, 2, 1, 5, 7, kNan});
  for (bool propagate : {false, true}) {
    expect_as_reference("min", {odd, even}, {{"propagate_nan", propagate}});
    expect_as_reference("max", {odd, even}, {{"propagate_nan", propagate}});
    expect_as_reference("is_inf", {odd}, {{"positive", propagate}, {"negative", true}});
    expect_as_reference("is_inf", {odd}, {{"positive", propagate}, {"negative", false}});
  }
  expect_as_reference("clamp", {x, std::nullopt, std::nullopt}, {{"min", -1.0}, {"max", 0.5}});
  expect_as_reference("clamp", {i, std::nullopt, j}, {});
}

TEST(CpuElementwise, IntegerDivisionByZeroIsAnError) {
  TestInputs inputs = {TestTensor(DType::kI32, {9}).fill(1), TestTensor(DType::kI32, {9})};
  for (const char* op : {"div", "mod", "floor_mod"}) {
    const Prepared prepared = prepare_cpu(op, inputs);
    EXPECT_NE(error_of([&] { run(prepared, inputs); }).find("division by zero"), std::string::npos);
  }
}

TEST(CpuElementwise, InPlace) {
  TestInputs inputs = {TestTensor(DType::kF32, {5000}).fill(1),
                       TestTensor(DType::kF32, {1}).fill(2)};
  const TestTensor expected = run_reference("add", inputs);
  const Prepared prepared = prepare_cpu("add", inputs);
  EXPECT_TRUE(prepared.kernel->in_place(0, 0));
  EXPECT_FALSE(prepared.kernel->in_place(1, 0));
  void* in[] = {inputs[0]->ptr(), inputs[1]->ptr()};
  prepared.kernel->run({in, in, nullptr, nullptr});
  EXPECT_TRUE(same(*inputs[0], expected, 1e-6));
  const Prepared compare = prepare_cpu("less", inputs);
  EXPECT_FALSE(compare.kernel->in_place(0, 0));
}

TEST(CpuElementwise, ThreadsDoNotChangeResults) {
  TestInputs inputs = {TestTensor(DType::kF32, {300, 1001}).fill(1),
                       TestTensor(DType::kF32, {1001}).fill(2)};
  const Prepared prepared = prepare_cpu("mul", inputs);
  get_driver("cpu").use_threads(1);
  const TestTensor one = run(prepared, inputs)[0];
  get_driver("cpu").use_threads(2);
  EXPECT_TRUE(same(run(prepared, inputs)[0], one));
}

TEST(CpuComplex, Planar) { EXPECT_GE(expect_samples_as_reference("planar", kAny), 4); }

}  // namespace
}  // namespace anymps::testing
