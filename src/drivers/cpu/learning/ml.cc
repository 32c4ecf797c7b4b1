// SPDX-License-Identifier: Apache-2.0
// Decision trees: nodes packed in 24 bytes and checked when the kernel is made, rows in parallel.
#include <algorithm>
#include <cstring>

#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"
#include "semantics/tree_ensemble.h"

namespace anymps::cpu {

namespace {

struct TreeNode {
  double split;
  int32_t feature, yes, no;
  uint8_t mode, nan_is_yes;
};

struct Pair {
  double weight;
  int64_t target;
};

struct Forest {
  std::vector<TreeNode> nodes;
  std::vector<int32_t> roots;
  std::vector<int64_t> leaves;
  std::vector<Pair> pairs;
};

std::vector<int64_t> whole_numbers(const Constant& constant) {
  const auto bytes = constant.data();
  std::vector<int64_t> numbers(constant.desc().count());
  std::memcpy(numbers.data(), bytes.get(), numbers.size() * sizeof(int64_t));
  return numbers;
}

std::vector<double> real_numbers(const Constant& constant) {
  const auto bytes = constant.data();
  std::vector<double> numbers(constant.desc().count());
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (constant.desc().dtype == DType::kF64) {
      std::memcpy(&numbers[i], bytes.get() + i * sizeof(double), sizeof(double));
    } else {
      float value;
      std::memcpy(&value, bytes.get() + i * sizeof(float), sizeof(float));
      numbers[i] = double{value};
    }
  }
  return numbers;
}

// Packs the forest; false and a reason where the reference kernel is to find what is wrong.
bool pack(const KernelRequest& request, Forest& forest, std::string& why) {
  for (size_t i = 1; i < 7; ++i)
    if (!request.constant(i)) return refuse<bool>(why, "the trees are not constant");
  const std::vector<int64_t> nodes = whole_numbers(*request.constant(1)),
                             roots = whole_numbers(*request.constant(3)),
                             targets = whole_numbers(*request.constant(5));
  const std::vector<double> splits = real_numbers(*request.constant(2)),
                            weights = real_numbers(*request.constant(6));
  forest.leaves = whole_numbers(*request.constant(4));
  const auto node_count = std::ssize(splits), leaf_count = std::ssize(forest.leaves) - 1,
             pair_count = std::ssize(weights);
  if (node_count > INT32_MAX || leaf_count > INT32_MAX)
    return refuse<bool>(why, "the trees are large");
  const auto exists = [&](int64_t at) { return at < 0 ? -1 - at < leaf_count : at < node_count; };
  for (int64_t i = 0; i < node_count; ++i) {
    const int64_t* node = nodes.data() + 5 * i;
    // A walk that only goes forward ends; others may go in a circle.
    const bool forward = (node[2] < 0 || node[2] > i) && (node[3] < 0 || node[3] > i);
    if (!forward) return refuse<bool>(why, "a node comes before its parent");
    if (!exists(node[2]) || !exists(node[3]) || node[0] < 0 || node[0] >= request.in(0).shape[1] ||
        node[1] < 0 || node[1] > 5)
      return refuse<bool>(why, fmt::format("node {} is not valid", i));
    forest.nodes.push_back({splits[i], static_cast<int32_t>(node[0]), static_cast<int32_t>(node[2]),
                            static_cast<int32_t>(node[3]), static_cast<uint8_t>(node[1]),
                            node[4] != 0});
  }
  for (int64_t root : roots) {
    if (!exists(root)) return refuse<bool>(why, fmt::format("root {} is not valid", root));
    forest.roots.push_back(static_cast<int32_t>(root));
  }
  for (size_t i = 0; i < forest.leaves.size(); ++i)
    if (forest.leaves[i] < 0 || forest.leaves[i] > pair_count)
      return refuse<bool>(why, fmt::format("leaf {} is not valid", i));
  for (int64_t i = 0; i < pair_count; ++i) {
    const int64_t target = targets[i];
    if (target < 0 || target >= request.out().shape[1])
      return refuse<bool>(why, fmt::format("target {} is not valid", target));
    forest.pairs.push_back({weights[i], target});
  }
  return true;
}

enum class Aggregate { kSum, kAverage, kMin, kMax };

class TreeEnsemble final : public Kernel {
 public:
  TreeEnsemble(const KernelRequest& request, Forest forest)
      : forest_(std::move(forest)), x_(request.in(0)), y_(request.out()) {
    const std::string& how = request.attrs.s("aggregate");
    aggregate_ = how == "min"       ? Aggregate::kMin
                 : how == "max"     ? Aggregate::kMax
                 : how == "average" ? Aggregate::kAverage
                                    : Aggregate::kSum;
  }
  bool reads(size_t i) const override { return i == 0; }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(y_.count()) * (sizeof(double) + 1);
  }
  void run(const KernelArgs& args) const override {
    auto* sums = static_cast<double*>(args.scratch);
    auto* given = reinterpret_cast<uint8_t*>(sums + y_.count());
    const double ns = 40.0 * static_cast<double>(forest_.roots.size());
    parallel_for(0, y_.shape[0], ns, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        double* sum = sums + n * y_.shape[1];
        uint8_t* set = given + n * y_.shape[1];
        std::fill_n(sum, y_.shape[1], 0.0);
        std::fill_n(set, y_.shape[1], uint8_t{0});
        if (x_.dtype == DType::kF32)
          walk(static_cast<const float*>(args.inputs[0]) + n * x_.strides[0], sum, set);
        else
          walk(static_cast<const double*>(args.inputs[0]) + n * x_.strides[0], sum, set);
        store(args.outputs[0], n, sum);
      }
    });
  }

 private:
  template <typename T>
  void walk(const T* row, double* sum, uint8_t* set) const {
    const int64_t step = x_.strides[1];
    for (int32_t at : forest_.roots) {
      while (at >= 0) {
        const TreeNode& node = forest_.nodes[at];
        const auto x = static_cast<double>(row[node.feature * step]);
        const bool yes = branch_holds(node.mode, x, node.split) || (node.nan_is_yes && x != x);
        at = yes ? node.yes : node.no;
      }
      const size_t leaf = -1 - at;
      for (int64_t i = forest_.leaves[leaf]; i < forest_.leaves[leaf + 1]; ++i) {
        const Pair& pair = forest_.pairs[i];
        double& place = sum[pair.target];
        if (aggregate_ == Aggregate::kMin && set[pair.target])
          place = std::min(place, pair.weight);
        else if (aggregate_ == Aggregate::kMax && set[pair.target])
          place = std::max(place, pair.weight);
        else
          place += pair.weight;
        set[pair.target] = 1;
      }
    }
  }

  void store(void* out, int64_t n, const double* sum) const {
    const double divisor = aggregate_ == Aggregate::kAverage && !forest_.roots.empty()
                               ? static_cast<double>(forest_.roots.size())
                               : 1.0;
    for (int64_t t = 0; t < y_.shape[1]; ++t) {
      const int64_t at = n * y_.strides[0] + t * y_.strides[1];
      if (y_.dtype == DType::kF64)
        static_cast<double*>(out)[at] = sum[t] / divisor;
      else
        static_cast<float*>(out)[at] = static_cast<float>(sum[t] / divisor);
    }
  }

  Forest forest_;
  TensorDesc x_, y_;
  Aggregate aggregate_ = Aggregate::kSum;
};

CPU_KERNEL(tree_ensemble, "packed") {
  const DType dtype = request.in(0).dtype;
  if (dtype != DType::kF32 && dtype != DType::kF64) return refuse(why, "x is not f32 or f64");
  Forest forest;
  if (!pack(request, forest, why)) return nullptr;
  return std::make_shared<TreeEnsemble>(request, std::move(forest));
}

}  // namespace

}  // namespace anymps::cpu
