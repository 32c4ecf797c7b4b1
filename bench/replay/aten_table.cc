// SPDX-License-Identifier: Apache-2.0
// The table from ATen's overloads to the engine's ops: names, arguments, attributes.
#include <unordered_map>

#include "lowering.h"

namespace bench {

namespace {

using Rule = void (*)(Lowering&);

std::vector<int64_t> both_ends(std::vector<int64_t> pads) {
  const std::vector<int64_t> begins = pads;
  pads.insert(pads.end(), begins.begin(), begins.end());
  return pads;
}

const std::vector<int64_t>& kept(std::vector<int64_t> values) {
  static std::deque<std::vector<int64_t>> all;  // attributes point into it
  return all.emplace_back(std::move(values));
}

// x + alpha * y
void add_scaled(Lowering& l, Operand x, Operand y, Operand to, double alpha, at::ScalarType dtype) {
  if (alpha == 1)
    l.op("add", {x, y}, {to});
  else
    l.op("addcmul", {x, y, l.scalar(1, dtype)}, {to}, {Attr("value", alpha)});
}

Operand tensor_or_number(Lowering& l, size_t i, at::ScalarType dtype) {
  return l.arg(i).kind == 't' ? l.in(i) : l.scalar(l.number(i), dtype);
}

void add(Lowering& l) {
  const at::ScalarType dtype = l.about(0).dtype;
  add_scaled(l, l.in(0), tensor_or_number(l, 1, dtype), l.out(0), l.number(2), dtype);
}

// `name` of each tensor of a list; `to` says where to: the list itself, or the results.
template <typename Fn>
void each(Lowering& l, Fn fn) {
  for (size_t i = 0; i < l.length(0); ++i) fn(i);
}

void copy(Lowering& l, size_t from) { l.op("identity", {l.in(from)}, {l.out(0)}); }

std::vector<Attr> window(Lowering& l, size_t strides, size_t pads, size_t dilations) {
  return {Attr("strides", kept(l.ints(strides))), Attr("pads", kept(both_ends(l.ints(pads)))),
          Attr("dilations", kept(l.ints(dilations)))};
}

std::vector<Attr> pool(Lowering& l, size_t first) {
  std::vector<Attr> attrs = window(l, first + 1, first + 2, first + 3);
  attrs.emplace_back("kernel", kept(l.ints(first)));
  attrs.emplace_back("ceil_mode", l.arg(first + 4).i);
  attrs.emplace_back("indices", "global_2d");
  return attrs;
}

void convolution_backward(Lowering& l) {
  std::vector<Attr> attrs = window(l, 4, 5, 6);
  attrs.emplace_back("groups", l.arg(9).i);
  const auto shaped = [&](size_t like) {
    std::vector<Attr> all = attrs;
    all.emplace_back("shape", l.about(like).dims);
    return all;
  };
  if (l.wants(0)) l.op("conv_data_gradient", {l.in(0), l.in(2)}, {l.out(0)}, shaped(1));
  if (l.wants(1)) l.op("conv_weights_gradient", {l.in(0), l.in(1)}, {l.out(1)}, shaped(2));
  if (l.wants(2))
    l.op("reduce_sum", {l.in(0)}, {l.out(2)},
         {Attr("axes", kept({0, 2, 3})), Attr("keep_dims", int64_t{0})});
}

void batch_norm(Lowering& l) {
  const Attr epsilon("epsilon", l.number(7));
  if (l.arg(5).i)
    l.op("batch_norm_training", {l.in(0), l.in(1), l.in(2), l.in(3), l.in(4)},
         {l.out(0), l.out(1), l.out(2), l.in(3), l.in(4)},
         {epsilon, Attr("momentum", l.number(6))});
  else
    l.op("batch_norm", {l.in(0), l.in(3), l.in(4), l.in(1), l.in(2)}, {l.out(0)}, {epsilon});
}

int64_t first_normalized(Lowering& l, size_t shape) {
  return -static_cast<int64_t>(l.length(shape));
}

const char* reduction(Lowering& l, size_t i) {
  const char* const names[] = {"none", "mean", "sum"};
  return names[l.arg(i).i];
}

void reduce(Lowering& l, const char* name) {
  l.op(name, {l.in(0)}, {l.out(0)}, {Attr("axes", kept(l.ints(1))), Attr("keep_dims", l.arg(2).i)});
}

std::vector<Attr> attention(Lowering& l, size_t causal, size_t scale) {
  return {Attr("causal", l.arg(causal).i), Attr("scale", l.number(scale))};
}

void fused_sgd(Lowering& l) {
  each(l, [&](size_t i) {
    l.op("sgd_step", {l.in(0, i), l.in(1, i), l.scalar(l.number(5)), l.in(2, i)},
         {l.in(0, i), l.in(2, i)},
         {Attr("weight_decay", l.number(3)), Attr("momentum", l.number(4)),
          Attr("dampening", l.number(6)), Attr("nesterov", l.arg(7).i),
          Attr("maximize", l.arg(8).i)});
  });
}

void fused_adamw(Lowering& l) {
  each(l, [&](size_t i) {
    l.op("adam_step",
         {l.in(0, i), l.in(1, i), l.scalar(l.number(6)), l.in(5, i), l.in(2, i), l.in(3, i)},
         {l.in(0, i), l.in(2, i), l.in(3, i)},
         {Attr("beta1", l.number(7)), Attr("beta2", l.number(8)), Attr("weight_decay", l.number(9)),
          Attr("epsilon", l.number(10)), Attr("decoupled", int64_t{1}),
          Attr("maximize", l.arg(12).i)});
  });
}

// `name` of a list's tensors and one number, in place.
void each_with_number(Lowering& l, const char* name) {
  each(l, [&](size_t i) {
    const double value = l.arg(1).kind == '[' ? l.arg(1).list.at(i).f : l.number(1);
    l.op(name, {l.in(0, i), l.scalar(value, l.about(0).dtype)}, {l.in(0, i)});
  });
}

const std::unordered_map<std::string, Rule>& rules() {
  static const std::unordered_map<std::string, Rule> all = {
      {"aten::add.Tensor", add},
      {"aten::add_.Tensor", add},
      {"aten::relu_.", [](Lowering& l) { l.op("relu", {l.in(0)}, {l.out(0)}); }},
      {"aten::hardtanh_.",
       [](Lowering& l) {
         l.op("clamp", {l.in(0)}, {l.out(0)}, {Attr("min", l.number(1)), Attr("max", l.number(2))});
       }},
      {"aten::hardtanh_backward.",
       [](Lowering& l) {
         l.op("hardtanh_gradient", {l.in(0), l.in(1)}, {l.out(0)},
              {Attr("min", l.number(2)), Attr("max", l.number(3))});
       }},
      {"aten::threshold_backward.",
       [](Lowering& l) {
         l.op("threshold_gradient", {l.in(0), l.in(1)}, {l.out(0)}, {Attr("alpha", l.number(2))});
       }},
      {"aten::gelu.",
       [](Lowering& l) {
         l.op("gelu", {l.in(0)}, {l.out(0)}, {Attr("approximate", l.arg(1).s.c_str())});
       }},
      {"aten::gelu_backward.",
       [](Lowering& l) {
         l.op("gelu_gradient", {l.in(0), l.in(1)}, {l.out(0)},
              {Attr("approximate", l.arg(2).s.c_str())});
       }},
      {"aten::clone.", [](Lowering& l) { copy(l, 0); }},
      {"aten::copy_.", [](Lowering& l) { copy(l, 1); }},
      {"aten::stack.",
       [](Lowering& l) {
         std::vector<Operand> in;
         each(l, [&](size_t i) { in.push_back(l.in(0, i)); });
         l.op("stack", in, {l.out(0)}, {Attr("axis", l.arg(1).i)});
       }},
      {"aten::ones_like.",
       [](Lowering& l) {
         l.op("fill", {}, {l.out(0)}, {Attr("shape", l.about(0).dims), Attr("value", 1.0)});
       }},
      {"aten::div.Scalar",
       [](Lowering& l) {
         l.op("div", {l.in(0), l.scalar(l.number(1), l.about(0).dtype)}, {l.out(0)});
       }},
      {"aten::mean.dim", [](Lowering& l) { reduce(l, "reduce_mean"); }},
      {"aten::sum.dim_IntList", [](Lowering& l) { reduce(l, "reduce_sum"); }},
      {"aten::mm.",
       [](Lowering& l) {
         l.op("matmul", {l.in(0), l.in(1)}, {l.out(0)});
       }},
      {"aten::addmm.",
       [](Lowering& l) {
         l.op("matmul", {l.in(1), l.in(2), l.in(0)}, {l.out(0)});
       }},
      {"aten::convolution.",
       [](Lowering& l) {
         std::vector<Attr> attrs = window(l, 3, 4, 5);
         attrs.emplace_back("groups", l.arg(8).i);
         l.op("conv", {l.in(0), l.in(1), l.in(2)}, {l.out(0)}, attrs);
       }},
      {"aten::convolution_backward.", convolution_backward},
      {"aten::native_batch_norm.", batch_norm},
      {"aten::native_batch_norm_backward.",
       [](Lowering& l) {
         l.op("batch_norm_training_gradient", {l.in(0), l.in(1), l.in(5), l.in(6), l.in(2)},
              {l.out(0), l.out(1), l.out(2)});
       }},
      {"aten::max_pool2d_with_indices.",
       [](Lowering& l) {
         l.op("max_pool", {l.in(0)}, {l.out(0), l.out(1)}, pool(l, 1));
       }},
      {"aten::max_pool2d_with_indices_backward.",
       [](Lowering& l) {
         std::vector<Attr> attrs = pool(l, 2);
         attrs.emplace_back("shape", l.about(1).dims);
         attrs.emplace_back("reduce", "add");
         l.op("max_unpool", {l.in(0), l.in(7)}, {l.out(0)}, attrs);
       }},
      {"aten::native_layer_norm.",
       [](Lowering& l) {
         l.op("layer_norm", {l.in(0), l.in(2), l.in(3)}, {l.out(0), l.out(1), l.out(2)},
              {Attr("axis", first_normalized(l, 1)), Attr("epsilon", l.number(4))});
       }},
      {"aten::native_layer_norm_backward.",
       [](Lowering& l) {
         l.op("layer_norm_gradient", {l.in(0), l.in(1), l.in(3), l.in(4), l.in(5)},
              {l.out(0), l.out(1), l.out(2)}, {Attr("axis", first_normalized(l, 2))});
       }},
      {"aten::_scaled_dot_product_flash_attention_for_cpu.",
       [](Lowering& l) {
         l.op("sdpa", {l.in(0), l.in(1), l.in(2), l.in(5)}, {l.out(0), l.out(1)},
              attention(l, 4, 6));
       }},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward.",
       [](Lowering& l) {
         l.op("sdpa_gradient", {l.in(0), l.in(1), l.in(2), l.in(3), l.in(4), l.in(5), l.in(8)},
              {l.out(0), l.out(1), l.out(2)}, attention(l, 7, 9));
       }},
      {"aten::_log_softmax.",
       [](Lowering& l) { l.op("log_softmax", {l.in(0)}, {l.out(0)}, {Attr("axis", l.arg(1).i)}); }},
      {"aten::_log_softmax_backward_data.",
       [](Lowering& l) {
         l.op("log_softmax_gradient", {l.in(0), l.in(1)}, {l.out(0)}, {Attr("axis", l.arg(2).i)});
       }},
      {"aten::nll_loss_forward.",
       [](Lowering& l) {
         l.op("nll_loss", {l.in(0), l.in(1), l.in(2)}, {l.out(0), l.out(1)},
              {Attr("reduction", reduction(l, 3)), Attr("ignore_index", l.arg(4).i)});
       }},
      {"aten::nll_loss_backward.",
       [](Lowering& l) {
         l.op("nll_loss_gradient", {l.in(0), l.in(1), l.in(2), l.in(3), l.in(6)}, {l.out(0)},
              {Attr("reduction", reduction(l, 4)), Attr("ignore_index", l.arg(5).i)});
       }},
      {"aten::embedding.",
       [](Lowering& l) {
         l.op("gather", {l.in(0), l.in(1)}, {l.out(0)});
       }},
      {"aten::embedding_dense_backward.",
       [](Lowering& l) {
         l.op("embedding_gradient", {l.in(0), l.in(1)}, {l.out(0)},
              {Attr("rows", l.arg(2).i), Attr("padding_idx", l.arg(3).i),
               Attr("scale_grad_by_freq", l.arg(4).i)});
       }},
      {"aten::_fused_sgd_.", fused_sgd},
      {"aten::_fused_adamw_.", fused_adamw},
      {"aten::_foreach_add_.Scalar", [](Lowering& l) { each_with_number(l, "add"); }},
      {"aten::_foreach_mul_.Scalar", [](Lowering& l) { each_with_number(l, "mul"); }},
      {"aten::_foreach_div_.ScalarList", [](Lowering& l) { each_with_number(l, "div"); }},
      {"aten::_foreach_add_.Tensor",
       [](Lowering& l) {
         each(l, [&](size_t i) {
           add_scaled(l, l.in(0, i), l.in(1), l.in(0, i), l.number(2), l.about(0).dtype);
         });
       }},
      {"aten::_foreach_add_.List",
       [](Lowering& l) {
         each(l, [&](size_t i) {
           add_scaled(l, l.in(0, i), l.in(1, i), l.in(0, i), l.number(2), l.about(0).dtype);
         });
       }},
      {"aten::_foreach_add.List",
       [](Lowering& l) {
         each(l, [&](size_t i) {
           add_scaled(l, l.in(0, i), l.in(1, i), l.out(0, i), l.number(2), l.about(0).dtype);
         });
       }},
      {"aten::_foreach_sqrt.",
       [](Lowering& l) { each(l, [&](size_t i) { l.op("sqrt", {l.in(0, i)}, {l.out(0, i)}); }); }},
      {"aten::_foreach_lerp_.Scalar",
       [](Lowering& l) {
         each(l, [&](size_t i) {
           l.op("lerp", {l.in(0, i), l.in(1, i), l.scalar(l.number(2))}, {l.in(0, i)});
         });
       }},
      {"aten::_foreach_addcmul_.Scalar",
       [](Lowering& l) {
         each(l, [&](size_t i) {
           l.op("addcmul", {l.in(0, i), l.in(1, i), l.in(2, i)}, {l.in(0, i)},
                {Attr("value", l.number(3))});
         });
       }},
      {"aten::_foreach_addcdiv_.ScalarList",
       [](Lowering& l) {
         each(l, [&](size_t i) {
           l.op("addcdiv", {l.in(0, i), l.in(1, i), l.in(2, i)}, {l.in(0, i)},
                {Attr("value", l.arg(3).list.at(i).f)});
         });
       }},
  };
  return all;
}

}  // namespace

std::vector<Step> lower(const Recording& recording, const RecordedCall& call) {
  const auto rule = rules().find(call.op);
  if (rule == rules().end()) throw std::runtime_error("replay: no row for " + call.op);
  Lowering lowering(recording, call);
  rule->second(lowering);
  return std::move(lowering.steps);
}

}  // namespace bench
