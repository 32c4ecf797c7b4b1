// SPDX-License-Identifier: Apache-2.0
// Random programs with inputs and outputs of all dtypes and layouts, parameters and casts: the
// fused kernel gives bit for bit what the separate kernels give one after the other, also where
// outputs lie in place of inputs, and what the reference gives.
#include "drivers/cpu/run_cpu.h"
#include "support/program.h"

namespace anymps::testing {
namespace {

struct Choice {
  const char* op;
  size_t inputs;
};
// Exact in every driver, up to the sign of zeros.
constexpr Choice kExact[] = {
    {"add", 2},   {"sub", 2},         {"mul", 2},         {"min", 2},         {"max", 2},
    {"neg", 1},   {"abs", 1},         {"sign", 1},        {"floor", 1},       {"ceil", 1},
    {"rint", 1},  {"relu", 1},        {"identity", 1},    {"less", 2},        {"greater_equal", 2},
    {"equal", 2}, {"logical_and", 2}, {"logical_xor", 2}, {"logical_not", 1}, {"bitwise_and", 2},
    {"where", 3}, {"clamp", 1},       {"cast", 1},
};
// What the drivers compute in different ways, or what tells zeros apart.
constexpr Choice kRounded[] = {{"div", 2},        {"pow", 2},     {"exp", 1},  {"log", 1},
                               {"tanh", 1},       {"sigmoid", 1}, {"gelu", 1}, {"sqrt", 1},
                               {"leaky_relu", 1}, {"sin", 1},     {"elu", 1},  {"reciprocal", 1},
                               {"softplus", 1}};
// Bounded and smooth: an error does not grow.
constexpr Choice kSmooth[] = {{"tanh", 1}, {"sigmoid", 1}, {"sin", 1},
                              {"erf", 1},  {"add", 2},     {"leaky_relu", 1}};

enum class Style { kExact, kRounded, kSmooth };

class RandomProgram {
 public:
  RandomProgram(uint64_t seed, Style style) : random_(seed), style_(style) {
    const std::vector<Shape> shapes = {{},        {7},          {3, 5}, {4, 1, 33}, {2, 3000},
                                       {130, 20}, {2, 3, 4, 5}, {0, 4}, {70, 300},  {1, 1}};
    shape_ = shapes[pick(shapes.size())];
    const size_t count = 1 + pick(3);
    for (size_t i = 0; i < count; ++i) add_input();
    full_inputs_ = count;
    inputs.push_back(f64({3}, {1.5, -2, 0.25}).with_strides({pick(2) ? 2 : 1}));
    inputs.push_back(indices({2}, {3, -2}));
    const size_t length = 1 + pick(12);
    for (size_t tries = 0; steps.size() < length && tries < 500; ++tries) add_step();
    if (steps.empty()) steps.push_back({"identity", {x(0)}});
    // The kernels read both vectors of parameters, so both are always there.
    call("identity", {parameter(count, 0, DType::kF32)});
    call("identity", {parameter(count + 1, 0, DType::kF32)});
    const size_t kept = 1 + pick(std::min<size_t>(steps.size(), 4));
    outputs.push_back(steps.size() - 3);
    for (size_t i = 1; i < kept; ++i) outputs.push_back(pick(steps.size()));
    words = program(steps, outputs);
  }

  // The same with the separate kernels, each with its inputs spread out in full.
  std::vector<TestTensor> separately() const {
    std::vector<TestTensor> results;
    const auto tensor = [&](const ProgramArg& arg, DType dtype) -> TestTensor {
      switch (arg.kind) {
        case ProgramArg::Kind::kInput:
          return spread(*inputs[arg.index]);
        case ProgramArg::Kind::kResult:
          return results[arg.index];
        case ProgramArg::Kind::kImmediate:
          return run_reference("cast", {f64({}, {arg.value})}, {{"dtype", dtype}});
        default:
          return run_reference("cast", {element(arg)}, {{"dtype", dtype}});
      }
    };
    const auto read = ElementwiseProgram::decode(words);
    std::vector<DType> dtypes;
    for (const auto& input : inputs) dtypes.push_back(input->dtype());
    const auto types = read.infer(dtypes);
    for (size_t i = 0; i < read.instructions().size(); ++i) {
      const auto& instruction = read.instructions()[i];
      TestInputs args;
      for (size_t k = 0; k < instruction.args.size(); ++k)
        args.push_back(tensor(instruction.args[k], types.args[i][k]));
      NamedAttrs attrs;
      Attrs all = instruction.attrs;
      for (const auto& [name, arg] : instruction.parameters)
        all.set({name, element(arg).get({}).real()});
      attrs = all.named();
      const Prepared prepared = prepare_cpu(instruction.op->name.c_str(), args, attrs);
      EXPECT_TRUE(prepared.kernel) << instruction.op->name << prepared.refusals;
      results.push_back(spread(run(prepared, args)[0]));
    }
    std::vector<TestTensor> stored;
    for (const size_t output : outputs) stored.push_back(results[output]);
    return stored;
  }

  // Descriptions of the outputs, some of them not contiguous.
  std::vector<TensorDesc> layouts(const std::vector<TestTensor>& results) {
    std::vector<TensorDesc> descs;
    for (const TestTensor& result : results)
      descs.push_back(pick(3) ? result.desc() : result.scrambled().desc());
    return descs;
  }

  size_t pick(size_t count) { return random_() % count; }

  std::vector<ProgramStep> steps;
  std::vector<size_t> outputs;
  Ints words;
  TestInputs inputs;

 private:
  DType any_dtype() {
    if (style_ == Style::kSmooth) return pick(2) ? DType::kF32 : DType::kF64;
    const auto all = dtypes_of(kReal | kBoolean);
    return pick(3) ? all[pick(4)] : all[pick(all.size())];
  }

  void add_input() {
    Shape shape = shape_;
    for (int64_t& extent : shape)
      if (full_ && pick(4) == 0) extent = 1;
    if (full_ && !shape.empty() && pick(4) == 0) shape = Shape(shape.begin() + 1, shape.end());
    full_ = true;
    TestTensor tensor = TestTensor(any_dtype(), shape).fill(random_(), -5, 5);
    inputs.push_back(pick(3) ? tensor : tensor.scrambled());
    values_.push_back({x(inputs.size() - 1), tensor.dtype()});
  }

  void call(const char* op, std::vector<ProgramArg> args, std::vector<ProgramAttr> attrs = {}) {
    steps.push_back({op, std::move(args), std::move(attrs)});
  }

  // A value of the dtype, or a number.
  ProgramArg like(DType dtype) {
    std::vector<ProgramArg> same;
    for (const auto& [arg, type] : values_)
      if (type == dtype) same.push_back(arg);
    switch (pick(same.size() + 3)) {
      case 0:
        return number(static_cast<double>(pick(2)), dtype);
      case 1:
        return parameter(full_inputs_, pick(3), dtype);
      case 2:
        return parameter(full_inputs_ + 1, pick(2), dtype);
      default:
        return same[pick(same.size())];
    }
  }

  void add_step() {
    const Choice* list = style_ == Style::kSmooth ? kSmooth : kExact;
    size_t count = style_ == Style::kSmooth ? std::size(kSmooth) : std::size(kExact);
    if (style_ == Style::kRounded && pick(2)) {
      list = kRounded;
      count = std::size(kRounded);
    }
    const Choice& choice = list[pick(count)];
    const Op& op = get_op(choice.op);
    const auto& [arg, dtype] = values_[pick(values_.size())];
    DType result = op.outputs[0].type == "bool" ? DType::kBool : dtype;
    const std::string_view name = choice.op;
    std::vector<ProgramArg> args = {arg};
    std::vector<ProgramAttr> attrs;
    if (name == "where") {
      if (dtype != DType::kBool) return;
      const auto& [other, type] = values_[pick(values_.size())];
      args.push_back(other);
      args.push_back(like(type));
      result = type;
    } else {
      if (!contains(op.inputs[0].dtypes, dtype)) return;
      if (name == "div" && !is_float(dtype)) return;  // zeros are an error
      if (name == "pow" && !is_float(dtype)) return;
      for (size_t i = 1; i < choice.inputs; ++i) args.push_back(like(dtype));
      if (choice.inputs == 2 && pick(2)) std::swap(args[0], args[1]);
    }
    if (name == "cast") attrs.emplace_back("dtype", result = any_dtype());
    if (name == "clamp") {
      attrs.emplace_back("min", -1.25);
      if (pick(2)) attrs.emplace_back("max", parameter(full_inputs_, 2));
    }
    if (name == "leaky_relu" || name == "elu") {
      if (pick(2))
        attrs.emplace_back("alpha", parameter(full_inputs_, 2));
      else
        attrs.emplace_back("alpha", 0.3);
    }
    call(choice.op, std::move(args), std::move(attrs));
    values_.push_back({t(steps.size() - 1), result});
  }

  TestTensor element(const ProgramArg& arg) const {
    const TestTensor& vector = *inputs[arg.index];
    TestTensor scalar(vector.dtype(), Shape{});
    const int64_t at = static_cast<int64_t>(arg.element) * vector.desc().strides[0] * 8;
    std::memcpy(scalar.ptr(), static_cast<const char*>(vector.ptr()) + at, 8);
    return scalar;
  }

  TestTensor spread(const TestTensor& tensor) const {
    TestTensor full(tensor.dtype(), shape_);
    const Strides strides = broadcast_strides(tensor.desc(), shape_);
    const size_t size = size_of(tensor.dtype());
    char* to = static_cast<char*>(full.ptr());
    for_each_index(shape_, [&](const Shape& index) {
      int64_t at = 0;
      for (size_t i = 0; i < index.size(); ++i) at += index[i] * strides[i];
      std::memcpy(to, static_cast<const char*>(tensor.ptr()) + at * static_cast<int64_t>(size),
                  size);
      to += size;
    });
    return full;
  }

  std::mt19937_64 random_;
  Style style_;
  Shape shape_;
  bool full_ = false;  // an input has the whole shape
  size_t full_inputs_ = 0;
  std::vector<std::pair<ProgramArg, DType>> values_;
};

// Byte for byte, but one NaN is as good as another.
::testing::AssertionResult identical(const TestTensor& actual, const TestTensor& expected) {
  const auto checked = same(actual, expected);
  if (!checked) return checked;
  std::string difference;
  for_each_index(actual.shape(), [&](const Shape& index) {
    const double a = actual.get(index).real(), b = expected.get(index).real();
    if (std::signbit(a) != std::signbit(b) && !std::isnan(a) && difference.empty())
      difference = fmt::format("at {}: {}, expected {}", to_string(index), a, b);
  });
  if (difference.empty()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << difference;
}

// Runs the kernel with outputs in the memory of inputs wherever that is allowed.
void expect_in_place(RandomProgram& random, const std::vector<TestTensor>& expected, bool exact,
                     int& aliases) {
  std::vector<TensorDesc> descs;
  for (const TestTensor& result : expected) descs.push_back(result.desc());
  std::vector<int> input_of(descs.size(), -1);
  std::vector<bool> taken(random.inputs.size(), false);
  for (size_t k = 0; k < descs.size(); ++k)
    for (size_t i = 0; i + 2 < random.inputs.size(); ++i) {
      const TensorDesc& desc = random.inputs[i]->desc();
      if (taken[i] || desc.dtype != descs[k].dtype || desc.shape != descs[k].shape) continue;
      descs[k] = desc;  // strided as the input
      input_of[k] = static_cast<int>(i);
      taken[i] = true;
      ++aliases;
      break;
    }
  const Prepared prepared = prepare_cpu("fused_elementwise", random.inputs,
                                        {{"program", random.words}}, descs.size(), descs);
  ASSERT_TRUE(prepared.kernel) << prepared.refusals;
  const auto run_in_place = [&](const Kernel& kernel, const char* driver, double tolerance) {
    TestInputs inputs = random.inputs;
    std::vector<TestTensor> results;
    for (const TensorDesc& desc : descs) results.emplace_back(desc);
    std::vector<void*> in, out;
    for (auto& input : inputs) in.push_back(input->ptr());
    for (size_t k = 0; k < descs.size(); ++k)
      out.push_back(input_of[k] < 0 ? results[k].ptr() : in[static_cast<size_t>(input_of[k])]);
    kernel.run({in.data(), out.data(), nullptr, nullptr});
    for (size_t k = 0; k < descs.size(); ++k) {
      const TestTensor& result =
          input_of[k] < 0 ? results[k] : *inputs[static_cast<size_t>(input_of[k])];
      EXPECT_TRUE(tolerance < 0 ? identical(result, expected[k])
                                : same(result, expected[k], tolerance))
          << driver << ", output " << k << " in place of " << input_of[k];
    }
  };
  run_in_place(*prepared.kernel, "cpu", -1);
  if (exact) run_in_place(*make_reference_kernel(prepared.request), "reference", 0);
}

void expect_random(uint64_t seed, Style style, int& aliases) {
  RandomProgram random(seed, style);
  SCOPED_TRACE(fmt::format("seed {}: {}", seed, printed(random.words)));
  const std::vector<TestTensor> expected = random.separately();
  if (::testing::Test::HasFailure()) return;
  const NamedAttrs attrs = {{"program", random.words}};
  const Prepared prepared = prepare_cpu("fused_elementwise", random.inputs, attrs, expected.size(),
                                        random.layouts(expected));
  ASSERT_TRUE(prepared.kernel) << prepared.refusals;
  const std::vector<TestTensor> actual = run(prepared, random.inputs);
  for (size_t k = 0; k < expected.size(); ++k)
    EXPECT_TRUE(identical(actual[k], expected[k])) << "output " << k;
  expect_in_place(random, expected, style == Style::kExact, aliases);
  if (style == Style::kRounded) return;
  const auto reference =
      run_reference_all("fused_elementwise", random.inputs, attrs, expected.size());
  for (size_t k = 0; k < expected.size(); ++k)
    EXPECT_TRUE(same(actual[k], reference[k], style == Style::kExact ? 0 : 1e-4))
        << "output " << k << " of the reference";
}

TEST(CpuFusedRandom, ExactPrograms) {
  int aliases = 0;
  for (uint64_t seed = 1; seed <= 400 && !HasFailure(); ++seed)
    expect_random(seed, Style::kExact, aliases);
  EXPECT_GT(aliases, 100);
}

TEST(CpuFusedRandom, RoundedPrograms) {
  int aliases = 0;
  for (uint64_t seed = 1001; seed <= 1300 && !HasFailure(); ++seed)
    expect_random(seed, Style::kRounded, aliases);
  EXPECT_GT(aliases, 50);
}

TEST(CpuFusedRandom, SmoothPrograms) {
  int aliases = 0;
  for (uint64_t seed = 2001; seed <= 2100 && !HasFailure(); ++seed)
    expect_random(seed, Style::kSmooth, aliases);
  EXPECT_GT(aliases, 20);
}

}  // namespace
}  // namespace anymps::testing
