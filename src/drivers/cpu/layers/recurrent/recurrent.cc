// SPDX-License-Identifier: Apache-2.0
// Recurrent layers with oneDNN, for constant weights, whole sequences and plain gates; the rest
// (lengths, clipping, peepholes, weights of the run, a reserve) is left to recurrent_steps.cc.
// Sequences are independent: each thread takes some of them.
#include "drivers/cpu/onednn.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"

namespace anymps::cpu {

namespace {

using dnnl::memory;

// What the ops differ in. `order` maps oneDNN's gates to those of the weights.
struct Cell {
  int64_t gates;
  std::vector<int64_t> order;
  bool reset_after = false;  // gru: an extra bias for the recurrent part of the last gate
};

struct Layer {
  int64_t steps, batch, input, hidden, directions;
  dnnl::rnn_direction direction;
  bool batch_first;
};

Layer layer_of(const KernelRequest& request) {
  const Attrs& attrs = request.attrs;
  const Shape& x = request.in(0).shape;
  const bool batch_first = attrs.i("layout") == 1;
  const std::string& direction = attrs.s("direction");
  return {batch_first ? x[1] : x[0],
          batch_first ? x[0] : x[1],
          x[2],
          attrs.i("hidden_size"),
          direction == "bidirectional" ? 2 : 1,
          direction == "bidirectional" ? dnnl::rnn_direction::bidirectional_concat
          : direction == "reverse"     ? dnnl::rnn_direction::unidirectional_right2left
                                       : dnnl::rnn_direction::unidirectional_left2right,
          batch_first};
}

bool check(const KernelRequest& request, std::string& why) {
  if (request.in(0).dtype != DType::kF32)
    return refuse<bool>(why, fmt::format("dtype {}", name(request.in(0).dtype)));
  if (request.in(0).count() == 0) return refuse<bool>(why, "the input is empty");
  if (request.has(4)) return refuse<bool>(why, "sequences of several lengths");
  if (request.outputs.size() > request.op->main_outputs()) return refuse<bool>(why, "a reserve");
  if (request.attrs.f("clip") != 0) return refuse<bool>(why, "clipping");
  if (!request.attrs.s("activations").empty()) return refuse<bool>(why, "other activations");
  if (request.op->name == "lstm" && request.attrs.b("input_forget"))
    return refuse<bool>(why, "a forget gate that follows the input gate");
  if (request.op->name == "lstm" && request.attrs.b("dynamic_bytes"))
    return refuse<bool>(why, "products of bytes");
  if (request.has(7)) return refuse<bool>(why, "peepholes");
  if (request.has(5) != request.has(6) && request.op->name == "lstm")
    return refuse<bool>(why, "only one of the two initial states");
  for (const size_t i : {1u, 2u, 3u})
    if (request.has(i) && (!request.constant(i) || !request.packed))
      return refuse<bool>(why, "weights that are not constant");
  for (const size_t i : {0u, 5u, 6u})
    if (request.has(i) && has_odd_strides(request.in(i)))
      return refuse<bool>(why, fmt::format("input {} has strides that are not positive", i));
  return true;
}

TensorDesc f32(Shape shape) { return {DType::kF32, std::move(shape)}; }

memory::desc any(const Shape& shape) {
  return {onednn_dims(shape), memory::data_type::f32, memory::format_tag::any};
}

// `count` of the sequences, from number `first` on.
class Recurrent {
 public:
  Recurrent(const KernelRequest& request, const Cell& cell, OneDnnBuilder& builder, int64_t first,
            int64_t count)
      : request_(request),
        cell_(cell),
        layer_(layer_of(request)),
        begin_(first),
        builder_(builder) {
    layer_.batch = count;
    const Layer& l = layer_;
    x_ = onednn_desc(f32({l.steps, l.batch, l.input}));
    y_ = onednn_desc(f32({l.steps, l.batch, l.directions * l.hidden}));
    state_ = onednn_desc(f32({1, l.directions, l.batch, l.hidden}));
    w_ = any({1, l.directions, l.input, cell_.gates, l.hidden});
    r_ = any({1, l.directions, l.hidden, cell_.gates, l.hidden});
    bias_ = onednn_desc(f32({1, l.directions, cell_.gates + cell_.reset_after, l.hidden}));
    if (request.has(5)) first_ = state_;
    if (request.outputs.size() > 1) last_ = state_;
  }

  dnnl::rnn_direction direction() const { return layer_.direction; }
  memory::desc x_, y_, state_, w_, r_, bias_;
  memory::desc first_, last_;  // states before and after, empty if there are none

  template <typename PrimitiveDesc>
  OneDnnBuilder::Call call(const PrimitiveDesc& pd, const dnnl::primitive& primitive) {
    std::vector<PrimitiveArg> args;
    TensorDesc x = request_.in(0);
    if (layer_.batch_first) x = reorder_axes(x, std::vector<size_t>{1, 0, 2});
    const size_t x_offset = cut(x, 1);
    args.push_back({DNNL_ARG_SRC_LAYER, x_, builder_.read(0, x, x_, x_offset)});
    args.push_back({DNNL_ARG_WEIGHTS_LAYER, pd.weights_layer_desc(),
                    weights(1, layer_.input, pd.weights_layer_desc())});
    args.push_back({DNNL_ARG_WEIGHTS_ITER, pd.weights_iter_desc(),
                    weights(2, layer_.hidden, pd.weights_iter_desc())});
    args.push_back({DNNL_ARG_BIAS, bias_, bias()});
    const bool is_lstm = request_.op->name == "lstm";
    if (request_.has(5)) args.push_back({DNNL_ARG_SRC_ITER, state_, read_state(5)});
    if (is_lstm && request_.has(6)) args.push_back({DNNL_ARG_SRC_ITER_C, state_, read_state(6)});
    const size_t outputs = request_.outputs.size();
    if (outputs > 1) args.push_back({DNNL_ARG_DST_ITER, state_, write_state(1)});
    if (outputs > 1 && is_lstm)
      args.push_back({DNNL_ARG_DST_ITER_C, state_,
                      outputs > 2 ? write_state(2) : builder_.scratch(state_.get_size())});
    // y as [steps, batch, directions, hidden], as oneDNN writes it.
    const std::vector<size_t> axes =
        layer_.batch_first ? std::vector<size_t>{1, 0, 2, 3} : std::vector<size_t>{0, 2, 1, 3};
    const memory::desc wide =
        onednn_desc(f32({layer_.steps, layer_.batch, layer_.directions, layer_.hidden}));
    TensorDesc y = reorder_axes(request_.out(), axes);
    const size_t y_offset = cut(y, 1);
    args.push_back({DNNL_ARG_DST_LAYER, y_, builder_.write(0, y, wide, y_offset)});
    return {primitive, pd.scratchpad_desc(), std::move(args)};
  }

 private:
  // Leaves this part's sequences of `desc`, and tells where they begin, in bytes.
  size_t cut(TensorDesc& desc, size_t axis) const {
    desc.shape[axis] = layer_.batch;
    return static_cast<size_t>(begin_ * desc.strides[axis]) * size_of(desc.dtype);
  }
  Place read_state(size_t i) {
    TensorDesc desc = state(request_.in(i));
    const size_t offset = cut(desc, 2);
    return builder_.read(i, desc, state_, offset);
  }
  Place write_state(size_t i) {
    TensorDesc desc = state(request_.outputs[i]);
    const size_t offset = cut(desc, 2);
    return builder_.write(i, desc, state_, offset);
  }

  // [1, directions, batch, hidden] from [directions, batch, hidden] or [batch, directions, hidden].
  TensorDesc state(const TensorDesc& desc) const {
    TensorDesc result = desc;
    if (layer_.batch_first) result = reorder_axes(desc, std::vector<size_t>{1, 0, 2});
    result.shape.insert(0, 1);
    result.strides.insert(0, layer_.directions * layer_.batch * layer_.hidden);
    return result;
  }

  std::string layout() const { return fmt::format("gates {}", fmt::join(cell_.order, " ")); }

  // Constant [directions, gates * hidden, columns] with oneDNN's order of gates and its layout.
  Place weights(size_t i, int64_t columns, const memory::desc& wanted) {
    const int64_t gate = layer_.hidden * columns;
    return builder_.pack(i, layout(), wanted, [&](const std::byte* plain, void* packed) {
      const auto* from = reinterpret_cast<const float*>(plain);
      std::vector<float> ordered;
      for (int64_t d = 0; d < layer_.directions; ++d)
        for (const int64_t g : cell_.order) {
          const float* begin = from + (d * cell_.gates + g) * gate;
          ordered.insert(ordered.end(), begin, begin + gate);
        }
      const int64_t h = layer_.hidden, all = cell_.gates * gate;
      const memory::desc desc({1, layer_.directions, columns, cell_.gates, h},
                              memory::data_type::f32,
                              {layer_.directions * all, all, 1, gate, columns});
      memory source(desc, onednn_engine(), ordered.data()), target(wanted, onednn_engine(), packed);
      dnnl::reorder(source, target).execute(onednn_stream(), source, target);
      onednn_stream().wait();
    });
  }

  // The biases of w and r, [directions, 2 * gates * hidden], as one of each gate.
  Place bias() {
    const int64_t gates = cell_.gates, h = layer_.hidden;
    if (!request_.has(3)) {
      const Place place = builder_.scratch(bias_.get_size());
      builder_.step([place, bytes = bias_.get_size()](const KernelArgs& args) {
        std::fill_n(static_cast<char*>(place.resolve(args)), bytes, '\0');
      });
      return place;
    }
    return builder_.pack(3, layout(), bias_, [&](const std::byte* plain, void* packed) {
      const auto* from = reinterpret_cast<const float*>(plain);
      auto* to = static_cast<float*>(packed);
      for (int64_t d = 0; d < layer_.directions; ++d, from += 2 * gates * h)
        for (int64_t g = 0; g < gates + cell_.reset_after; ++g)
          for (int64_t j = 0; j < h; ++j) {
            const int64_t at = cell_.order[std::min(g, gates - 1)] * h + j;
            const float w = from[at], r = from[gates * h + at];
            *to++ = cell_.reset_after && g >= gates - 1 ? (g == gates ? r : w) : w + r;
          }
    });
  }

  const KernelRequest& request_;
  const Cell& cell_;
  Layer layer_;
  const int64_t begin_;  // the first sequence
  OneDnnBuilder& builder_;
};

constexpr auto kInference = dnnl::prop_kind::forward_inference;
constexpr int64_t kLeastSequences = 4;  // that are worth reading the weights for

// `describe` gives the primitive's description for the tensors of a Recurrent.
template <typename Primitive, typename Describe>
KernelPtr make_parts(const KernelRequest& request, const Cell& cell, std::string& why,
                     Describe describe) {
  OneDnnBuilder builder(request);
  const int64_t batch = layer_of(request).batch;
  const int64_t parts =
      std::clamp<int64_t>(batch / kLeastSequences, 1, static_cast<int64_t>(current_threads()));
  std::vector<OneDnnBuilder::Call> calls;
  std::string detail;
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t first = batch * i / parts, end = batch * (i + 1) / parts;
    Recurrent rnn(request, cell, builder, first, end - first);
    const typename Primitive::primitive_desc pd = describe(rnn);
    if (!pd) return refuse(why, "oneDNN has no implementation");
    detail = pd.impl_info_str();
    calls.push_back(rnn.call(pd, Primitive(pd)));
  }
  builder.calls(std::move(calls));
  return builder.finish(detail);
}

KernelPtr make_lstm(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (!check(request, why)) return nullptr;
  Cell cell{4, {0, 2, 3, 1}};  // i, f, c, o from i, o, f, c
  if (request.attrs.s("gate_order") == "torch") cell.order = {0, 1, 2, 3};
  return make_parts<dnnl::lstm_forward>(request, cell, why, [](const Recurrent& rnn) {
    return dnnl::lstm_forward::primitive_desc(onednn_engine(), kInference, rnn.direction(), rnn.x_,
                                              rnn.first_, rnn.first_, rnn.w_, rnn.r_, rnn.bias_,
                                              rnn.y_, rnn.last_, rnn.last_, onednn_attr({}), true);
  });
}

KernelPtr make_gru(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (!check(request, why)) return nullptr;
  const bool reset_after = request.attrs.b("linear_before_reset");
  Cell cell{3, {0, 1, 2}, reset_after};  // u, r, o from z, r, h
  if (request.attrs.s("gate_order") == "torch") cell.order = {1, 0, 2};
  if (reset_after)
    return make_parts<dnnl::lbr_gru_forward>(request, cell, why, [](const Recurrent& rnn) {
      return dnnl::lbr_gru_forward::primitive_desc(onednn_engine(), kInference, rnn.direction(),
                                                   rnn.x_, rnn.first_, rnn.w_, rnn.r_, rnn.bias_,
                                                   rnn.y_, rnn.last_, onednn_attr({}), true);
    });
  return make_parts<dnnl::gru_forward>(request, cell, why, [](const Recurrent& rnn) {
    return dnnl::gru_forward::primitive_desc(onednn_engine(), kInference, rnn.direction(), rnn.x_,
                                             rnn.first_, rnn.w_, rnn.r_, rnn.bias_, rnn.y_,
                                             rnn.last_, onednn_attr({}), true);
  });
}

KernelPtr make_rnn(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (!check(request, why)) return nullptr;
  const Cell cell{1, {0}};
  const std::string& activation = request.attrs.s("activation");
  const auto algorithm = activation == "relu"      ? dnnl::algorithm::eltwise_relu
                         : activation == "sigmoid" ? dnnl::algorithm::eltwise_logistic
                                                   : dnnl::algorithm::eltwise_tanh;
  return make_parts<dnnl::vanilla_rnn_forward>(request, cell, why, [&](const Recurrent& rnn) {
    return dnnl::vanilla_rnn_forward::primitive_desc(
        onednn_engine(), kInference, algorithm, rnn.direction(), rnn.x_, rnn.first_, rnn.w_, rnn.r_,
        rnn.bias_, rnn.y_, rnn.last_, onednn_attr({}), true);
  });
}

const KernelRegistrar kLstm("cpu", "lstm", "onednn", 10, onednn_factory(make_lstm));
const KernelRegistrar kGru("cpu", "gru", "onednn", 10, onednn_factory(make_gru));
const KernelRegistrar kRnn("cpu", "rnn", "onednn", 10, onednn_factory(make_rnn));

}  // namespace

}  // namespace anymps::cpu
