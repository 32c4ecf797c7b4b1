// SPDX-License-Identifier: Apache-2.0
// Results do not depend on the number of threads, bit for bit: every op on the samples of its
// record, and those that sum on tensors that are large enough to be shared out; by each kernel that
// takes them, for ANYMPS_TUNE may choose any.
#include <cstring>

#include "base/thread_pool.h"
#include "drivers/kernel_ways.h"
#include "op_table/case_request.h"

namespace anymps::testing {
namespace {

using Ints = std::vector<int64_t>;

constexpr int kThreads[] = {2, 3, 8, 16};

// The outputs of a kernel of the cpu driver, prepared for and run by so many threads; the bytes of
// an output lie one after the other. Nothing where it refuses or there is an error.
std::vector<TestTensor> run_with(const OpCase& item, int threads, bool constant_weights,
                                 const KernelEntry& entry, const std::string& way) {
  ThreadPool::get().resize(16);  // however many cores there are
  const ThreadScope scope(get_driver("cpu"), threads);
  CaseRequest given(item, constant_weights);
  KernelRequest& request = given.request;
  std::vector<TestTensor> results;
  try {
    request.outputs = infer_outputs(*item.op, request.attrs, given.inputs, item.outputs);
    std::vector<void*> out;
    const AskedWay asked(way);
    std::string why;
    const KernelPtr kernel = entry.make(request, why);
    if (!kernel) return {};
    for (const TensorDesc& desc : request.outputs) results.emplace_back(desc);
    for (TestTensor& result : results) out.push_back(result.ptr());
    std::vector<std::byte> scratch(kernel->scratch_bytes() + 64);
    auto* aligned =
        reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
    static auto* const strings = new StringStore();
    kernel->run({given.in.data(), out.data(), aligned, nullptr, strings});
  } catch (const Error&) {
    return {};
  }
  return results;
}

// "" or the first output whose bytes are not those of one thread. Counts what was computed.
std::string difference_between_threads(const OpCase& item, bool constant_weights,
                                       const KernelEntry& entry, const std::string& way,
                                       size_t& computed) {
  const std::vector<TestTensor> one = run_with(item, 1, constant_weights, entry, way);
  computed += !one.empty();
  for (const int threads : kThreads) {
    if (one.empty() && threads != kThreads[0]) continue;
    const std::vector<TestTensor> many = run_with(item, threads, constant_weights, entry, way);
    if (one.size() != many.size()) return fmt::format("{} threads: another kernel", threads);
    for (size_t i = 0; i < one.size(); ++i)
      if (one[i].dtype() != DType::kString &&
          std::memcmp(one[i].ptr(), many[i].ptr(), one[i].desc().bytes()) != 0)
        return fmt::format("{} threads, output {}", threads, i);
  }
  return "";
}

// The same by each kernel and way.
std::string difference_between_threads(const OpCase& item, bool constant_weights,
                                       size_t& computed) {
  for (const KernelEntry& entry : get_driver("cpu").kernels(*item.op)) {
    std::vector<std::string> ways = kernel_ways("cpu", item.op->name, entry.name);
    ways.insert(ways.begin(), "");
    for (const std::string& way : ways)
      if (const std::string found =
              difference_between_threads(item, constant_weights, entry, way, computed);
          !found.empty())
        return fmt::format("{} {}: {}", entry.name, way, found);
  }
  return "";
}

TEST(Threads, SamplesOfEveryOp) {
  size_t computed = 0;
  for (const Op* op : all_ops()) {
    if (!op->test.skip.empty() || op->is(kImpure)) continue;
    for_each_case(*op, [&](OpCase& item) {
      EXPECT_EQ(difference_between_threads(item, false, computed), "")
          << op->name << " " << item.label;
    });
  }
  EXPECT_GT(computed, 3000u);
}

struct LargeCase {
  const char* op;
  std::vector<Shape> shapes;
  NamedAttrs attrs = {};
  size_t outputs = 1;
};

// Long sums, and few results to share out: where a kernel would be tempted to split the sum.
std::vector<LargeCase> large_cases() {
  const NamedAttrs padded{{"pads", Ints{1, 1, 1, 1}}};
  const NamedAttr last{"layout", "channels_last"};
  std::vector<LargeCase> cases = {
      {"conv", {{1, 28, 28, 64}, {64, 64, 3, 3}}, {padded[0], last}},
      {"conv", {{1, 28, 28, 160}, {96, 160, 1, 1}}, {last}},
      {"conv", {{1, 56, 56, 96}, {24, 96, 1, 1}}, {last}},
      {"conv", {{1, 28, 28, 96}, {96, 1, 3, 3}}, {padded[0], last, {"groups", 96}}},
      {"conv", {{1, 28, 28, 64}, {96, 64, 3, 3}}, {padded[0], last, {"strides", Ints{2, 2}}}},
      {"conv", {{3, 24, 20, 20}, {32, 24, 3, 3}}, padded},
      {"conv", {{1, 3, 64, 64}, {16, 3, 7, 7}}, {{"strides", Ints{2, 2}}}},
      {"conv", {{2, 32, 24, 24}, {32, 1, 3, 3}}, {{"groups", 32}}},
      {"conv_transpose", {{2, 32, 16, 16}, {32, 16, 3, 3}}},
      {"conv_transpose", {{1, 48, 16, 16}, {48, 16, 4, 4}}, {{"strides", Ints{2, 2}}}},
      {"conv_transpose", {{3, 24, 70}, {24, 40, 5}}, {{"strides", Ints{3}}}},
      {"conv_data_gradient",
       {{4, 32, 9, 9}, {32, 16, 3, 3}},
       {{"shape", Ints{4, 16, 20, 20}}, {"strides", Ints{2, 2}}}},
      {"conv_data_gradient", {{4, 32, 18, 18}, {32, 16, 3, 3}}, {{"shape", Ints{4, 16, 20, 20}}}},
      {"lstm", {{9, 5, 48}, {1, 256, 48}, {1, 256, 64}}, {{"hidden_size", 64}}},
      {"lstm", {{9, 40, 48}, {1, 256, 48}, {1, 256, 64}}, {{"hidden_size", 64}}},
      {"gru", {{9, 1, 48}, {1, 192, 48}, {1, 192, 64}}, {{"hidden_size", 64}}},
      {"rnn", {{9, 17, 48}, {1, 64, 48}, {1, 64, 64}}, {{"hidden_size", 64}}},
      {"sdpa", {{1, 4, 70, 32}, {1, 4, 300, 32}, {1, 4, 300, 32}}},
      {"softmax", {{40, 3000}}},
      {"layer_norm", {{40, 3000}}},
      {"avg_pool", {{2, 16, 40, 40}}, {{"kernel", Ints{7, 7}}}},
      {"cumsum", {{50, 3000}}, {{"axis", 1}}},
      {"softmax_result_gradient", {{40, 3000}, {40, 3000}}},
      {"log_softmax_gradient", {{30, 50, 70}, {30, 50, 70}}, {{"axis", 1}}},
      {"layer_norm_gradient",
       {{700, 300}, {700, 300}, {700, 1}, {700, 1}, {300}},
       {{"axis", 1}},
       3},
      {"rms_norm_gradient", {{700, 300}, {700, 300}, {700, 1}, {300}}, {{"axis", 1}}, 2},
      {"group_norm_gradient",
       {{6, 24, 40, 40}, {6, 24, 40, 40}, {6, 4}, {6, 4}, {24}},
       {{"groups", 4}},
       3},
      {"sdpa_gradient",
       {{1, 6, 70, 32}, {1, 6, 70, 32}, {1, 6, 300, 32}, {1, 6, 300, 32}, {1, 6, 70, 32}},
       {{"causal", true}},
       3},
  };
  for (const char* layout : {"channels_first", "channels_last"}) {
    const Shape x{9, 40, 50, 40};
    cases.push_back({"batch_norm_training", {x}, {{"layout", layout}}, 5});
    cases.push_back(
        {"batch_norm_training_gradient", {x, x, {40}, {40}, {40}}, {{"layout", layout}}, 3});
    cases.push_back({"adaptive_avg_pool", {x}, {{"layout", layout}, {"output_size", Ints{3, 7}}}});
  }
  struct Gradient {
    Shape dy, x;
    Ints w;
    NamedAttrs attrs;
  };
  for (const Gradient& g : std::vector<Gradient>{
           {{8, 32, 26, 26}, {8, 16, 28, 28}, {32, 16, 3, 3}, {}},
           {{1, 24, 40, 40}, {1, 24, 40, 40}, {24, 24, 3, 3}, padded},
           {{2, 16, 31, 31}, {2, 3, 64, 64}, {16, 3, 3, 3}, {{"strides", Ints{2, 2}}}},
           {{4, 32, 28, 28}, {4, 32, 28, 28}, {32, 1, 3, 3}, {{"groups", 32}, padded[0]}},
           {{5, 64, 14, 14}, {5, 32, 14, 14}, {64, 32, 1, 1}, {}},
           {{4, 80, 7, 7}, {4, 96, 7, 7}, {80, 96, 3, 3}, padded},
           {{3, 32, 1000}, {3, 16, 1004}, {32, 16, 5}, {}},
           {{2, 16, 10, 12, 12}, {2, 8, 12, 14, 14}, {16, 8, 3, 3, 3}, {}},
           {{9, 16, 20, 20},
            {9, 16, 24, 24},
            {16, 8, 3, 3},
            {{"groups", 2}, {"dilations", Ints{2, 2}}}}}) {
    LargeCase item{"conv_weights_gradient", {g.dy, g.x}, g.attrs};
    item.attrs.emplace_back("shape", g.w);
    cases.push_back(std::move(item));
  }
  for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{{4, 8192, 8},
                                                                   {16, 20000, 16},
                                                                   {64, 5000, 64},
                                                                   {3, 50000, 5},
                                                                   {128, 1024, 128},
                                                                   {1, 4096, 300},
                                                                   {33, 777, 65}})
    for (const bool a : {false, true})
      for (const bool b : {false, true})
        cases.push_back({"matmul",
                         {a ? Shape{k, m} : Shape{m, k}, b ? Shape{n, k} : Shape{k, n}},
                         {{"transpose_a", a}, {"transpose_b", b}}});
  cases.push_back({"matmul", {{3, 700, 50}, {3, 700, 30}}, {{"transpose_a", true}}});
  for (const Op* op : all_ops())
    if (op->name.starts_with("reduce_") && op->attr_index("axes") >= 0)
      for (const auto& [shape, axes] : std::vector<std::pair<Shape, Ints>>{
               {{200000}, {0}}, {{300, 700}, {0}}, {{300, 700}, {1}}, {{40, 60, 50}, {0, 2}}})
        cases.push_back({op->name.c_str(), {shape}, {{"axes", axes}}});
  return cases;
}

TEST(Threads, LargeSums) {
  size_t computed = 0;
  for (const LargeCase& large : large_cases())
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const Op& op = get_op(large.op);
      if (!contains(op.inputs[0].dtypes, dtype)) continue;
      OpCase item;
      item.op = &op;
      item.attrs = large.attrs;
      item.outputs = large.outputs;
      for (size_t i = 0; i < large.shapes.size(); ++i) {
        item.inputs.emplace_back(TestTensor(dtype, large.shapes[i]).fill(5 + i, -1, 1));
        item.label += to_string(large.shapes[i]) + " ";
      }
      for (const bool constant : {false, true}) {
        EXPECT_EQ(difference_between_threads(item, constant, computed), "")
            << large.op << " " << name(dtype) << " " << item.label
            << (constant ? "constant weights" : "");
      }
    }
  EXPECT_GT(computed, 150u);
}

}  // namespace
}  // namespace anymps::testing
