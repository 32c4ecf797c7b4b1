// SPDX-License-Identifier: Apache-2.0
// Decision trees of ai.onnx.ml. The old ops list nodes and leaves by tree and number, the new one
// by place; both become the flat lists of tree_ensemble.
#include <cmath>
#include <map>
#include <set>

#include "formats/onnx/read/import.h"
#include "formats/onnx/read/ops/learning.h"
#include "formats/onnx/read/registry.h"
#include "graph/known.h"

namespace anymps::onnx {

namespace {

using Ints = std::vector<int64_t>;
using Numbers = std::vector<double>;

struct Forest {
  DType weight_type = DType::kF32;
  Ints nodes;  // five numbers each, as tree_ensemble has them
  Numbers splits;
  Ints roots, leaves = {0}, targets;
  Numbers weights;

  int64_t add_node(int64_t feature, int64_t mode, double split, bool nan_is_yes) {
    nodes.insert(nodes.end(), {feature, mode, 0, 0, nan_is_yes});
    splits.push_back(split);
    return std::ssize(splits) - 1;
  }
  void link(int64_t node, int64_t yes, int64_t no) {
    nodes[5 * node + 2] = yes;
    nodes[5 * node + 3] = no;
  }
};

// Floats, or doubles in a tensor, which make the whole op one of doubles.
Numbers floats_or_tensor(Call& c, const std::string& name, Forest& forest) {
  const std::string long_name = name + "_as_tensor";
  if (const Tensor* tensor = c.tensor(long_name.c_str())) {
    if (tensor->type == DataType::kDouble) forest.weight_type = DType::kF64;
    return doubles_of(*to_constant(*tensor));
  }
  const auto floats = c.floats(name.c_str()).value_or(std::vector<float>{});
  return {floats.begin(), floats.end()};
}

Ints ints_of(Call& c, const std::string& name) { return c.ints(name.c_str()).value_or(Ints{}); }

int64_t mode_of(Call& c, const std::string& name) {
  static const char* kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                 "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  for (size_t i = 0; i < std::size(kModes); ++i)
    if (name == kModes[i]) return static_cast<int64_t>(i);
  c.check(name == "LEAF", "mode '{}' of a node is not known", name);
  return -1;
}

// The form in which nodes bear the number of their tree and one of their own. `what` is "target" or
// "class": whose weights the leaves have.
Forest read_numbered(Call& c, const std::string& what) {
  Forest forest;
  c.ignore({"nodes_hitrates", "nodes_hitrates_as_tensor"});
  const Ints trees = ints_of(c, "nodes_treeids"), ids = ints_of(c, "nodes_nodeids"),
             features = ints_of(c, "nodes_featureids"), yes = ints_of(c, "nodes_truenodeids"),
             no = ints_of(c, "nodes_falsenodeids"),
             nan_is_yes = ints_of(c, "nodes_missing_value_tracks_true");
  const auto modes = c.strings("nodes_modes").value_or(std::vector<std::string>{});
  const Numbers values = floats_or_tensor(c, "nodes_values", forest);
  const size_t count = trees.size();
  c.check(ids.size() == count && features.size() == count && yes.size() == count &&
              no.size() == count && modes.size() == count && values.size() == count,
          "the lists of nodes have different lengths");
  using Key = std::pair<int64_t, int64_t>;
  std::map<Key, std::vector<std::pair<int64_t, double>>> pairs;
  const Ints pair_trees = ints_of(c, what + "_treeids"), pair_nodes = ints_of(c, what + "_nodeids"),
             pair_ids = ints_of(c, what + "_ids");
  const Numbers weights = floats_or_tensor(c, what + "_weights", forest);
  c.check(pair_trees.size() == weights.size() && pair_nodes.size() == weights.size() &&
              pair_ids.size() == weights.size(),
          "the lists of weights have different lengths");
  for (size_t i = 0; i < weights.size(); ++i)
    pairs[{pair_trees[i], pair_nodes[i]}].emplace_back(pair_ids[i], weights[i]);
  std::map<Key, int64_t> places;  // a node, or -1 - leaf
  for (size_t i = 0; i < count; ++i) {
    const Key key{trees[i], ids[i]};
    const int64_t mode = mode_of(c, modes[i]);
    int64_t place;
    if (mode < 0) {
      for (const auto& [target, weight] : pairs[key]) {
        forest.targets.push_back(target);
        forest.weights.push_back(weight);
      }
      place = -std::ssize(forest.leaves);
      forest.leaves.push_back(std::ssize(forest.weights));
    } else {
      place = forest.add_node(features[i], mode, values[i],
                              i < nan_is_yes.size() && nan_is_yes[i] != 0);
    }
    c.check(places.emplace(key, place).second, "node {} of tree {} comes twice", ids[i], trees[i]);
  }
  std::set<int64_t> seen;
  for (size_t i = 0; i < count; ++i) {
    const int64_t place = places.at({trees[i], ids[i]});
    if (seen.insert(trees[i]).second) forest.roots.push_back(place);  // the first of its tree
    if (place < 0) continue;
    const auto child = [&](int64_t id) {
      auto found = places.find({trees[i], id});
      c.check(found != places.end(), "tree {} has no node {}", trees[i], id);
      return found->second;
    };
    forest.link(place, child(yes[i]), child(no[i]));
  }
  return forest;
}

Value* run_forest(Call& c, const Forest& forest, int64_t targets, const char* aggregate) {
  Value* x = c.in(0);
  if (!is_float(x->dtype())) x = c.cast(x, DType::kF64);
  const auto nodes = std::ssize(forest.splits);
  return c.add("tree_ensemble",
               {x, c.graph.constant(anymps::Constant::of<int64_t>({nodes, 5}, forest.nodes)),
                float_list(c, forest.weight_type, forest.splits), c.graph.ints(forest.roots),
                c.graph.ints(forest.leaves), c.graph.ints(forest.targets),
                float_list(c, forest.weight_type, forest.weights)},
               {{"targets", targets}, {"aggregate", aggregate}});
}

Value* with_base(Call& c, Value* scores, const Numbers& base) {
  return base.empty() ? scores : c.add("add", {scores, float_list(c, scores->dtype(), base)});
}

ONNX_READ_IN(kMl, TreeEnsembleRegressor) {
  static const std::map<std::string, const char*> kAggregates = {
      {"SUM", "sum"}, {"AVERAGE", "average"}, {"MIN", "min"}, {"MAX", "max"}};
  Forest forest = read_numbered(c, "target");
  const std::string aggregate = c.s("aggregate_function", "SUM");
  c.check(kAggregates.contains(aggregate), "aggregate_function '{}' is not known", aggregate);
  const Numbers base = floats_or_tensor(c, "base_values", forest);
  Value* y = run_forest(c, forest, c.i("n_targets", 1), kAggregates.at(aggregate));
  return {
      c.cast(transformed(c, with_base(c, y, base), c.s("post_transform", "NONE")), DType::kF32)};
}

// Of two classes, weights for one alone: its score decides.
Values one_score(Call& c, Value* score, Value* labels, bool positive, const std::string& how) {
  if (how == "PROBIT") c.unsupported("post_transform PROBIT of a single score is not supported");
  Value* limit = c.scalar_like(score, positive ? 0.5 : 0.0);
  Value* index = c.cast(c.add("greater", {score, limit}), DType::kI64);
  index = c.add("squeeze", {index}, {{"axes", Ints{1}}});
  Value* other = positive && how != "LOGISTIC" ? c.add("sub", {c.scalar_like(score, 1), score})
                                               : c.add("neg", {score});
  Value* both = c.add("concat", {other, score}, {{"axis", 1}});
  if (how == "LOGISTIC") both = c.add("sigmoid", {both});
  return {label_of(c, labels, index), c.cast(both, DType::kF32)};
}

ONNX_READ_IN(kMl, TreeEnsembleClassifier) {
  Forest forest = read_numbered(c, "class");
  const Numbers base = floats_or_tensor(c, "base_values", forest);
  const std::string how = c.s("post_transform", "NONE");
  Value* labels = class_labels(c, "classlabels_int64s", "classlabels_strings");
  c.check(labels != nullptr, "the labels of the classes are missing");
  const int64_t classes = labels->shape()[0].value();
  const std::set<int64_t> weighted(forest.targets.begin(), forest.targets.end());
  bool positive = true;
  for (double weight : forest.weights) positive = positive && weight >= 0;
  if (classes == 1) c.unsupported("a single class is not supported");
  if (classes == 2 && weighted.size() == 1) {
    if (*weighted.begin() != 0 && !base.empty())
      c.unsupported("base values with weights for the second class alone are not supported");
    c.check(base.size() <= 1, "{} base values for a single score", base.size());
    for (int64_t& target : forest.targets) target = 0;
    Value* score = with_base(c, run_forest(c, forest, 1, "sum"), base);
    if (*weighted.begin() == 0) return one_score(c, score, labels, positive, how);
    Values results = one_score(c, score, labels, positive, "NONE");
    Value* zero = c.add("mul", {score, c.scalar_like(score, 0)});
    Value* both = c.add("concat", {zero, score}, {{"axis", 1}});
    return {results[0], c.cast(transformed(c, both, how), DType::kF32)};
  }
  Value* scores = with_base(c, run_forest(c, forest, classes, "sum"), base);
  Value* best = c.add("arg_max", {scores}, {{"axis", 1}, {"keep_dims", false}});
  return {label_of(c, labels, best), c.cast(transformed(c, scores, how), DType::kF32)};
}

// The op that replaces both, from version 5 on.
ONNX_READ_IN(kMl, TreeEnsemble) {
  Forest forest;
  c.ignore({"nodes_hitrates"});
  const auto tensor = [&](const char* name) {
    const Tensor* given = c.tensor(name);
    return given ? doubles_of(*to_constant(*given)) : Numbers{};
  };
  forest.weight_type = c.in(0)->dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  const Numbers splits = tensor("nodes_splits"), modes = tensor("nodes_modes"),
                weights = tensor("leaf_weights"), members = tensor("membership_values");
  const Ints features = ints_of(c, "nodes_featureids"), yes = ints_of(c, "nodes_truenodeids"),
             no = ints_of(c, "nodes_falsenodeids"), yes_leaf = ints_of(c, "nodes_trueleafs"),
             no_leaf = ints_of(c, "nodes_falseleafs"),
             nan_is_yes = ints_of(c, "nodes_missing_value_tracks_true");
  const size_t count = splits.size();
  c.check(modes.size() == count && features.size() == count && yes.size() == count &&
              no.size() == count && yes_leaf.size() == count && no_leaf.size() == count,
          "the lists of nodes have different lengths");
  // A node that asks for a member of a set becomes one node for each member.
  std::vector<Ints> chains(count);
  size_t member = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto mode = static_cast<int64_t>(modes[i]);
    const bool nan = i < nan_is_yes.size() && nan_is_yes[i] != 0;
    if (mode < 6) {
      chains[i].push_back(forest.add_node(features[i], mode, splits[i], nan));
      continue;
    }
    c.check(mode == 6, "mode {} of a node is not known", mode);
    for (; member < members.size() && !std::isnan(members[member]); ++member)
      chains[i].push_back(forest.add_node(features[i], 4, members[member], nan));
    c.check(member < members.size(), "membership_values ends too soon");
    ++member;
    if (chains[i].empty()) {  // no member: nothing equals a NaN
      chains[i].push_back(forest.add_node(features[i], 4, std::nan(""), nan));
    }
  }
  const auto place = [&](int64_t at, bool leaf) {
    const auto limit = static_cast<int64_t>(leaf ? weights.size() : count);
    c.check(at >= 0 && at < limit, "{} {} does not exist", leaf ? "leaf" : "node", at);
    return leaf ? -1 - at : chains[at][0];
  };
  for (size_t i = 0; i < count; ++i)
    for (size_t k = 0; k < chains[i].size(); ++k)
      forest.link(chains[i][k], place(yes[i], yes_leaf[i] != 0),
                  k + 1 < chains[i].size() ? chains[i][k + 1] : place(no[i], no_leaf[i] != 0));
  for (int64_t root : ints_of(c, "tree_roots")) {
    c.check(root >= 0 && root < static_cast<int64_t>(count), "root {} does not exist", root);
    const size_t at = root;
    const bool leaf = yes_leaf[at] != 0 && no_leaf[at] != 0 && yes[at] == no[at];
    forest.roots.push_back(leaf ? place(yes[at], true) : chains[at][0]);
  }
  forest.targets = ints_of(c, "leaf_targetids");
  forest.weights = weights;
  c.check(forest.targets.size() == weights.size(), "{} targets for {} leaves",
          forest.targets.size(), weights.size());
  for (size_t i = 0; i < weights.size(); ++i) forest.leaves.push_back(static_cast<int64_t>(i) + 1);
  static const char* kAggregates[] = {"average", "sum", "min", "max"};
  static const char* kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const int64_t aggregate = c.i("aggregate_function", 1), how = c.i("post_transform", 0);
  c.check(aggregate >= 0 && aggregate < 4, "aggregate_function {} is not known", aggregate);
  c.check(how >= 0 && how < 5, "post_transform {} is not known", how);
  Value* y = run_forest(c, forest, c.i("n_targets"), kAggregates[aggregate]);
  return {c.cast(transformed(c, y, kTransforms[how]), c.in(0)->dtype())};
}

}  // namespace

}  // namespace anymps::onnx
