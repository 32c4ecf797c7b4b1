// SPDX-License-Identifier: Apache-2.0
// Products with weights that a model itself stores in 8 or 4 bits read these, and no floats:
//   matmul(x, dequantize(w, scales, zeros))  ->  weight_only_matmul(x, w', scales', zeros')
// Scales are for columns of the weights or for blocks of a column. What else is known of weights in
// few bits is in quantize_weights.cc. Runs before constants are folded, and leaves products of two
// quantized numbers to quantized_products.
#include <map>
#include <utility>

#include "base/narrow.h"
#include "memory/refreshable.h"
#include "passes/fuse.h"

namespace anymps {

namespace {

constexpr int64_t kLeastStored = 1 << 14;  // elements; smaller ones become floats

// Weights as they are stored, and how far their zero lies from that of the op's form.
struct StoredWeights {
  ConstantPtr w;
  int64_t bits = 8;
  double middle = 0;  // what the form stores as 0
};

class FewBitsProducts {
 public:
  Value* operator()(Graph& graph, Node& node) {
    if (!node.is("matmul") || node.attrs.b("transpose_a") || node.attrs.f("alpha") != 1 ||
        node.attrs.s("activation") != "none" || rank_of(node.input(0)) < 1)
      return nullptr;
    Value *x = node.input(0), *from = node.input(1);
    // Of widen_halves: weights that are not rounded to halves in between are nearer to the exact
    // ones.
    if (const Node* cast = made_by(from, "cast");
        cast && from->dtype() == DType::kF32 && is_half(cast->input(0)->dtype()))
      from = cast->input(0);
    const Node* dequantize = made_by(from, "dequantize");
    if (!dequantize || (x->dtype() != DType::kF32 && !is_half(x->dtype()))) return nullptr;
    const bool rows = node.attrs.b("transpose_b");
    const auto stored = weights_of(*dequantize->input(0), rows);
    if (!stored || (stored->bits == 8 && made_by(x, "dequantize"))) return nullptr;
    const Shape& shape = dequantize->input(0)->constant->shape();
    const int64_t depth = shape[rows ? 1 : 0], columns = shape[rows ? 0 : 1];
    if (!x->shape().back().is(depth)) return nullptr;
    int64_t group = 0;
    if (!groups_fit(*dequantize, rows, depth, columns, stored->bits, group)) return nullptr;
    Value* scales = dequantize->input(1);
    if (scales->dtype() != x->dtype())
      scales = graph.add("cast", {scales}, {{"dtype", x->dtype()}});
    Value* zeros = offsets(graph, *dequantize, scales, stored->middle);
    const auto by_groups = [&](Value* value) {
      return value && rows && group != 0
                 ? graph.add("transpose", {value}, {{"perm", std::vector<int64_t>{1, 0}}})
                 : value;
    };
    Value* y = graph.add("weight_only_matmul",
                         {x, graph.constant(stored->w, dequantize->input(0)->name + ".few"),
                          by_groups(scales), by_groups(zeros)},
                         {{"bits", stored->bits}, {"group", group}}, node.name);
    for (const size_t summand : {2u, 3u})
      if (node.input(summand)) y = graph.add("add", {y, node.input(summand)});
    return y;
  }

 private:
  // In the op's form: [columns, depth], of 4 bits two in a byte.
  const std::optional<StoredWeights>& weights_of(const Value& value, bool rows) {
    static const std::optional<StoredWeights> none;
    const DType dtype = value.dtype();
    const bool four = dtype == DType::kI4 || dtype == DType::kU4;
    if ((!four && dtype != DType::kI8 && dtype != DType::kU8) || !value.is_constant() ||
        is_refreshable(*value.constant))
      return none;
    const Shape& shape = value.constant->shape();
    if (shape.size() != 2 || value.constant->desc().count() < kLeastStored) return none;
    const int64_t depth = shape[rows ? 1 : 0], columns = shape[rows ? 0 : 1];
    if (four && depth % 2 != 0) return none;
    const auto [found, is_new] = stored_.try_emplace({value.constant->id(), rows});
    if (!is_new) return found->second;
    const bool above = dtype == DType::kU4 || dtype == DType::kU8;  // counts from 0
    StoredWeights made{nullptr, four ? 4 : 8, above ? (four ? 8.0 : 128.0) : 0.0};
    const auto recipe = [plain = value.constant, depth, columns, rows, four, above,
                         dtype](std::byte* out) {
      const Constant::Bytes bytes = plain->data();
      const auto* from = reinterpret_cast<const uint8_t*>(bytes.get());
      const auto byte = [&](int64_t n, int64_t k) {
        return from[rows ? n * depth + k : k * columns + n];
      };
      const auto half = [&](int64_t n, int64_t k) {
        return static_cast<int>(narrow_values(dtype)[byte(n, k)]) + (above ? 0 : 8);
      };
      for (int64_t n = 0; n < columns; ++n)
        for (int64_t k = 0; k < depth; k += four ? 2 : 1)
          *out++ = static_cast<std::byte>(four ? half(n, k) << 4 | half(n, k + 1)
                                               : byte(n, k) ^ (above ? 128 : 0));
    };
    made.w =
        Constant::lazy(four ? DType::kU8 : DType::kI8, {columns, four ? depth / 2 : depth}, recipe);
    found->second = std::move(made);
    return found->second;
  }

  // Whether each column has a scale, or each block of it (`group` elements); zero points alike.
  static bool groups_fit(const Node& dequantize, bool rows, int64_t depth, int64_t columns,
                         int64_t bits, int64_t& group) {
    const Value *scale = dequantize.input(1), *zero = dequantize.input(2);
    if (!scale || !scale->type.static_shape() ||
        (scale->dtype() != DType::kF32 && !is_half(scale->dtype())))
      return false;
    if (zero && (!zero->type.static_shape() || !same_shape(zero, scale) ||
                 zero->dtype() != dequantize.input(0)->dtype()))
      return false;
    const Shape of_scale = to_shape(scale->shape());
    const int64_t axis = (dequantize.attrs.i("axis") + 2) % 2,
                  block = dequantize.attrs.i("block_size");
    if (of_scale.size() == 1) return of_scale[0] == columns && axis == (rows ? 0 : 1) && block <= 1;
    if (of_scale.size() != 2 || of_scale[rows ? 0 : 1] != columns) return false;
    const int64_t groups = of_scale[rows ? 1 : 0];
    if (groups == 0 || depth % groups != 0) return false;
    group = depth / groups;
    if (block > 0 && (block != group || axis != (rows ? 1 : 0))) return false;
    return bits == 8 || group % 2 == 0;
  }

  // What is added to the scaled weights; null: nothing.
  static Value* offsets(Graph& graph, const Node& dequantize, Value* scale, double middle) {
    Value* zero = dequantize.input(2);
    const NamedAttrs attrs = {{"dtype", scale->dtype()}, {"zero_point", middle}, {"axis", 0}};
    if (zero) return graph.add("neg", {graph.add("dequantize", {zero, scale}, attrs)});
    const double from_middle = middle - dequantize.attrs.f("zero_point");
    return from_middle == 0 ? nullptr
                            : graph.add("mul", {scale, graph.scalar(scale->dtype(), from_middle)});
  }

  std::map<std::pair<uint64_t, bool>, std::optional<StoredWeights>> stored_;
};

}  // namespace

PASS(few_bits_products, 145, "products with weights stored in few bits read these") {
  return fuse_each(graph, context, FewBitsProducts());
}

}  // namespace anymps
