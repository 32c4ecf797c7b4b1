// SPDX-License-Identifier: Apache-2.0
// Recurrent layers with constant weights and the usual activations, which is what models are
// trained with: the weights are packed once, what comes from x is one product for many steps, and
// each step is one pass over the weights of the state. Lengths, clipping, peepholes and initial
// states cost nothing where they are absent. The states between steps are rows of y itself.
#include <algorithm>
#include <array>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/kernel_family.h"
#include "drivers/cpu/layers/recurrent/recurrent_bytes.h"
#include "drivers/cpu/layers/recurrent/recurrent_panels.h"
#include "drivers/cpu/layers/recurrent/recurrent_parts.h"
#include "drivers/cpu/linear/quantization_simd.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"
#include "ops/layers/recurrent.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kProjected = 64;             // rows of the projection at a time, at least
constexpr int64_t kProjectedFloats = 1 << 16;  // of their results, which stay in the L2 cache
constexpr int64_t kPanelBlock = 4;             // panels of a task, where a step is shared out
constexpr double kPanelFlopsInNs = 50, kByteFlopsInNs = 150;

// A product and what follows it in a step, or the projection.
struct Phase {
  std::vector<int64_t> gates;  // of a unit, in the order of their columns
  int64_t first = 0;           // slot of the first of them
  bool scaled = false;
  bool last_bias = false;
  PanelGates::Kind kind = PanelGates::kLstm;
  BufferRef weights;  // [directions, panels, depth, gates, lanes]
  BufferRef words;    // ByteWeights of each direction, if they are bytes
  BufferRef steps;    // of each row of weights, if these may be bytes
};

class RecurrentPacked final : public Kernel, private RecurrentExtents {
 public:
  RecurrentPacked(const KernelRequest& request, RecurrentKind kind,
                  std::vector<CellActivation::Kind> activations)
      : RecurrentExtents(
            recurrent_extents(request.attrs, request.in(0).shape, recurrent_gates(kind))),
        kind_(kind),
        activations_(std::move(activations)),
        inputs_(request.inputs),
        outputs_(request.outputs.size()),
        op_(request.op->name),
        clip_(static_cast<float>(request.attrs.f("clip"))),
        lanes_(panel_lanes()),
        panels_((hidden + lanes_ - 1) / lanes_) {
    if (kind == RecurrentKind::kLstm) {
      input_forget_ = request.attrs.b("input_forget");
      dynamic_ = request.attrs.b("dynamic_bytes");
    }
    set_phases(kind == RecurrentKind::kGru && request.attrs.b("linear_before_reset"));
    // What comes from x may be of any size.
    pack_bytes(request, 1, projection_);
    if (!dynamic_ || !projection_.words) projection_.weights = packed(request, 1, projection_);
    const bool bounded =
        std::ranges::find(activations_, CellActivation::Kind::kRelu) == activations_.end();
    for (size_t i = 0; i < phase_count_; ++i) {
      if (bounded) pack_bytes(request, 2, phases_[i]);
      if (!phases_[i].words) phases_[i].weights = packed(request, 2, phases_[i]);
    }
    pack_biases(request);
    plan_scratch();
  }

  size_t scratch_bytes() const override { return plan_.bytes(); }
  bool reads(size_t i) const override { return i == 0 || i > 3; }
  std::string detail() const override { return phases_[0].words ? "packed bytes" : "packed"; }

  void run(const KernelArgs& args) const override {
    if (has(4)) read_lengths(op_, *inputs_[4], args.inputs[4], steps, at<int64_t>(args, lengths_));
    if (kind_ == RecurrentKind::kLstm && has(7)) pad_peepholes(args);
    if (dynamic_) *at<DynamicSteps>(args, x_steps_) = steps_of_x(args);
    const int64_t chunks = std::clamp<int64_t>(batch / kLeastSequences, 1, current_threads());
    const double ns = static_cast<double>(steps * batch) / static_cast<double>(chunks) *
                      (row_ns(width) + row_ns(hidden, phases_[0].words != nullptr));
    parallel_for(0, directions * chunks, ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        walk(args, i / chunks, batch * (i % chunks) / chunks, batch * (i % chunks + 1) / chunks);
    });
  }

 private:
  static constexpr int64_t kLeastSequences = 4;  // that are worth reading the weights for

  void set_phases(bool linear) {
    using Gru = GruUnit<float>;
    if (kind_ == RecurrentKind::kGru && linear) {
      slots_ = 4;
      projection_.gates = {Gru::kNew, Gru::kUpdate, Gru::kReset};
      phases_[0].gates = {Gru::kUpdate, Gru::kReset, Gru::kNew};
      phases_[0].first = 1;
      phases_[0].last_bias = true;
      phases_[0].kind = PanelGates::kGruLinear;
      return;
    }
    slots_ = gates;
    for (int64_t gate = 0; gate < gates; ++gate) projection_.gates.push_back(gate);
    phases_[0].gates = projection_.gates;
    phases_[0].kind = kind_ == RecurrentKind::kLstm ? PanelGates::kLstm : PanelGates::kRnn;
    if (kind_ != RecurrentKind::kGru) return;
    phase_count_ = 2;
    phases_[0].gates = {Gru::kUpdate, Gru::kReset};
    phases_[0].kind = PanelGates::kGruReset;
    phases_[1].gates = {Gru::kNew};
    phases_[1].first = 2;
    phases_[1].scaled = true;
    phases_[1].kind = PanelGates::kGruNew;
  }

  int64_t columns(const Phase& phase) const { return std::ssize(phase.gates) * lanes_; }

  std::string form(const char* what, const Phase& phase) const {
    std::string text = fmt::format("{} {}", what, lanes_);
    for (const int64_t gate : phase.gates) text += fmt::format(" {}", order[gate]);
    return text;
  }

  // Calls fn(d, panel, gate of the phase, first unit, units) for each vector of columns, in order.
  template <typename Fn>
  void each_vector(const Phase& phase, const Fn& fn) const {
    for (int64_t d = 0; d < directions; ++d)
      for (int64_t panel = 0; panel < panels_; ++panel)
        for (size_t g = 0; g < phase.gates.size(); ++g)
          fn(d, panel, g, panel * lanes_, std::min(lanes_, hidden - panel * lanes_));
  }

  ByteWeights byte_weights(const Phase& phase, int64_t depth) const {
    return {panels_, depth, std::ssize(phase.gates), lanes_};
  }

  // If the weights are bytes.
  void pack_bytes(const KernelRequest& request, size_t input, Phase& phase) const {
    const int64_t depth = input == 1 ? width : hidden, rows = directions * gates * hidden;
    if (!takes_byte_weights(depth)) return;
    const Constant& weights = *request.constant(input);
    phase.steps =
        request.packed->get(weights, "steps of rows", sizeof(float) * static_cast<size_t>(rows),
                            [&](const std::byte* plain, void* memory) {
                              find_steps(reinterpret_cast<const float*>(plain), rows, depth,
                                         static_cast<float*>(memory));
                            });
    const auto* steps = static_cast<const float*>(phase.steps->data());
    if (!std::all_of(steps, steps + rows, [](float step) { return step > 0; })) return;
    const ByteWeights form_of = byte_weights(phase, depth);
    const int64_t count = directions * form_of.count();
    phase.words = request.packed->get(
        weights, form("byte panels", phase), 4 * static_cast<size_t>(count),
        [&](const std::byte* plain, void* memory) {
          const auto* from = reinterpret_cast<const float*>(plain);
          auto* const to = static_cast<int32_t*>(memory);
          std::fill_n(to, count, 0);
          each_vector(phase, [&](int64_t d, int64_t panel, size_t g, int64_t unit, int64_t units) {
            const int64_t row = (d * gates + order[phase.gates[g]]) * hidden + unit;
            for (int64_t lane = 0; lane < units; ++lane)
              form_of.set_column(panel, static_cast<int64_t>(g) * lanes_ + lane,
                                 from + (row + lane) * depth, steps[row + lane],
                                 to + d * form_of.count());
          });
        });
  }

  BufferRef packed(const KernelRequest& request, size_t input, const Phase& phase) const {
    const int64_t depth = input == 1 ? width : hidden, row = columns(phase);
    const int64_t count = directions * panels_ * depth * row;
    return request.packed->get(
        *request.constant(input), form("panels", phase), sizeof(float) * static_cast<size_t>(count),
        [&](const std::byte* plain, void* memory) {
          const auto* from = reinterpret_cast<const float*>(plain);
          auto* const to = static_cast<float*>(memory);
          std::fill_n(to, count, 0.0f);
          each_vector(phase, [&](int64_t d, int64_t panel, size_t g, int64_t unit, int64_t units) {
            const float* lines =
                from + ((d * gates + order[phase.gates[g]]) * hidden + unit) * depth;
            float* target =
                to + (d * panels_ + panel) * depth * row + static_cast<int64_t>(g) * lanes_;
            for (int64_t k = 0; k < depth; ++k)
              for (int64_t lane = 0; lane < units; ++lane)
                target[k * row + lane] = lines[lane * depth + k];
          });
        });
  }

  // Those of w and r are added up, but for the new gate of a linear gru, whose second one stays
  // apart, behind them.
  void pack_biases(const KernelRequest& request) {
    const int64_t row = columns(projection_), all = directions * panels_ * row;
    const int64_t count = all + directions * panels_ * lanes_;
    if (!has(3)) {
      no_bias_.resize(static_cast<size_t>(count));
      return;
    }
    const auto pack = [&](const std::byte* plain, void* memory) {
      const auto* from = reinterpret_cast<const float*>(plain);
      auto* const to = static_cast<float*>(memory);
      std::fill_n(to, count, 0.0f);
      each_vector(
          projection_, [&](int64_t d, int64_t panel, size_t g, int64_t unit, int64_t units) {
            const int64_t gate = projection_.gates[g];
            const float* w = from + (d * 2 * gates + order[gate]) * hidden + unit;
            const float* r = w + gates * hidden;
            const bool apart = phases_[0].last_bias && gate == phases_[0].gates.back();
            float* sum = to + (d * panels_ + panel) * row + static_cast<int64_t>(g) * lanes_;
            for (int64_t i = 0; i < units; ++i) sum[i] = apart ? w[i] : w[i] + r[i];
            if (apart) std::copy_n(r, units, to + all + (d * panels_ + panel) * lanes_);
          });
    };
    bias_ = request.packed->get(*request.constant(3),
                                form(phases_[0].last_bias ? "linear bias" : "bias", projection_),
                                sizeof(float) * static_cast<size_t>(count), pack);
  }

  void plan_scratch() {
    const int64_t padded = panels_ * lanes_, sequences = directions * batch;
    z_row_ = slots_ * padded;
    span_ = std::clamp<int64_t>(std::max(kProjected, kProjectedFloats / z_row_) / batch, 1, steps);
    copies_x_ = width > 1 && inputs_[0]->strides[2] != 1;
    lengths_ = plan_.take<int64_t>(batch);
    rows_ = plan_.take<PanelRow>(2 * sequences);
    projected_ = plan_.take<PanelRow>(sequences * span_);
    z_ = plan_.take<float>(sequences * span_ * z_row_);
    x_ = plan_.take<float>(copies_x_ ? sequences * span_ * width : 0);
    state_ = plan_.take<float>(sequences * padded);
    cell_ = plan_.take<float>(kind_ == RecurrentKind::kLstm ? sequences * padded : 0);
    scaled_ = plan_.take<float>(phase_count_ == 2 ? sequences * padded : 0);
    peephole_ = plan_.take<float>(has(7) ? directions * 3 * padded : 0);
    x_steps_ = plan_.take<DynamicSteps>(dynamic_ ? 1 : 0);
  }

  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].has_value(); }
  template <typename T>
  T* at(const KernelArgs& args, int64_t place) const {
    return reinterpret_cast<T*>(static_cast<char*>(args.scratch) + place);
  }
  int64_t length(const KernelArgs& args, int64_t n) const {
    return has(4) ? at<int64_t>(args, lengths_)[n] : steps;
  }
  // What a row's product with weights of this depth takes.
  double row_ns(int64_t depth, bool bytes = false) const {
    return 2.0 * static_cast<double>(gates * panels_ * lanes_ * depth) /
           (bytes ? kByteFlopsInNs : kPanelFlopsInNs);
  }

  void pad_peepholes(const KernelArgs& args) const {
    const auto* from = static_cast<const float*>(args.inputs[7]);
    const Strides& strides = inputs_[7]->strides;
    float* to = at<float>(args, peephole_);
    for (int64_t d = 0; d < directions; ++d)
      for (int64_t gate = 0; gate < 3; ++gate)
        for (int64_t unit = 0; unit < panels_ * lanes_; ++unit)
          *to++ = unit < hidden ? from[d * strides[0] + (gate * hidden + unit) * strides[1]] : 0.0f;
  }

  // The initial state of a sequence, from input i.
  void read_state(const KernelArgs& args, size_t i, int64_t d, int64_t n, float* to) const {
    std::fill_n(to, panels_ * lanes_, 0.0f);
    if (!has(i)) return;
    const Strides& strides = inputs_[i]->strides;
    const auto* from =
        static_cast<const float*>(args.inputs[i]) +
        (batch_first ? n * strides[0] + d * strides[1] : d * strides[0] + n * strides[1]);
    for (int64_t unit = 0; unit < hidden; ++unit) to[unit] = from[unit * strides[2]];
  }

  // A row of x.
  const float* row_of_x(const KernelArgs& args, int64_t n, int64_t when, float* copy) const {
    const Strides& strides = inputs_[0]->strides;
    const auto* from =
        static_cast<const float*>(args.inputs[0]) +
        (batch_first ? n * strides[0] + when * strides[1] : when * strides[0] + n * strides[1]);
    if (!copies_x_) return from;
    for (int64_t k = 0; k < width; ++k) copy[k] = from[k * strides[2]];
    return copy;
  }

  DynamicSteps steps_of_x(const KernelArgs& args) const {
    float low = 0, high = 0;
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t t = 0; t < length(args, n); ++t) {
        float least = 0, most = 0;
        range_with_zero(row_of_x(args, n, t, at<float>(args, x_)), static_cast<size_t>(width),
                        least, most);
        low = std::min(low, least);
        high = std::max(high, most);
      }
    return {low, high};
  }

  GateProduct product(const Phase& phase, int64_t d, int64_t depth) const {
    GateProduct p{.depth = depth,
                  .gates = std::ssize(phase.gates),
                  .slots = slots_,
                  .first = phase.first,
                  .scaled = phase.scaled,
                  .dynamic = dynamic_};
    if (phase.words) {
      const ByteWeights form_of = byte_weights(phase, depth);
      form_of.tell(static_cast<const int32_t*>(phase.words->data()) + d * form_of.count(), p);
    }
    if (phase.weights)
      p.weights =
          static_cast<const float*>(phase.weights->data()) + d * panels_ * depth * columns(phase);
    return p;
  }
  const float* biases() const {
    return bias_ ? static_cast<const float*>(bias_->data()) : no_bias_.data();
  }

  // All steps of sequences first to last in direction d.
  void walk(const KernelArgs& args, int64_t d, int64_t first, int64_t last) const {
    const int64_t padded = panels_ * lanes_, begin = d * batch + first;
    PanelRow* const rows = at<PanelRow>(args, rows_) + 2 * begin;
    PanelRow* const active = rows + (last - first);
    int64_t longest = 0;
    for (int64_t n = first; n < last; ++n) {
      const int64_t own = (d * batch + n) * padded;
      PanelRow& row = rows[n - first] = {};
      float* state = at<float>(args, state_) + own;
      read_state(args, 5, d, n, state);
      row.state = state;
      if (kind_ == RecurrentKind::kLstm)
        read_state(args, 6, d, n, row.cell = at<float>(args, cell_) + own);
      if (phase_count_ == 2) row.scaled = at<float>(args, scaled_) + own;
      longest = std::max(longest, length(args, n));
    }
    PanelGates cells{.hidden = hidden, .clip = clip_, .input_forget = input_forget_};
    if (has(7)) cells.peephole = at<float>(args, peephole_) + d * 3 * padded;
    if (!activations_.empty()) cells.activation = activations_[d];
    for (int64_t t = 0; t < longest; ++t) {
      if (t % span_ == 0) project(args, d, first, last, t);
      int64_t count = 0;
      for (int64_t n = first; n < last; ++n) {
        const int64_t length = this->length(args, n);
        if (t >= length) continue;
        PanelRow& row = rows[n - first];
        row.z = z_of(args, d, n, t);
        row.next = static_cast<float*>(args.outputs[0]) + y_at(d, n, place(d, t, length));
        active[count++] = row;
        row.state = row.next;  // of the next step
      }
      step(d, cells, active, count);
    }
    for (int64_t n = first; n < last; ++n) finish(args, d, n, rows[n - first]);
  }

  float* z_of(const KernelArgs& args, int64_t d, int64_t n, int64_t t) const {
    return at<float>(args, z_) + ((d * batch + n) * span_ + t % span_) * z_row_;
  }

  // What comes from x, for steps t to t + span_.
  void project(const KernelArgs& args, int64_t d, int64_t first, int64_t last, int64_t t) const {
    PanelRow* const rows = at<PanelRow>(args, projected_) + (d * batch + first) * span_;
    int64_t count = 0;
    for (int64_t n = first; n < last; ++n) {
      const int64_t length = this->length(args, n);
      float* copy = at<float>(args, x_) + (copies_x_ ? (d * batch + n) * span_ * width : 0);
      for (int64_t i = t; i < std::min(t + span_, length); ++i, copy += copies_x_ ? width : 0)
        rows[count++] = {.state = row_of_x(args, n, place(d, i, length), copy),
                         .z = z_of(args, d, n, i)};
    }
    GateProduct p = product(projection_, d, width);
    p.bias = biases() + d * panels_ * columns(projection_);
    if (dynamic_) p.given = at<DynamicSteps>(args, x_steps_);
    parallel_for(0, count, row_ns(width), [&](int64_t begin, int64_t end) {
      multiply_panels(p, rows + begin, end - begin, 0, panels_);
    });
  }

  void step(int64_t d, PanelGates cells, const PanelRow* rows, int64_t count) const {
    for (size_t i = 0; i < phase_count_; ++i) {
      const Phase& phase = phases_[i];
      GateProduct p = product(phase, d, hidden);
      if (phase.last_bias)
        p.last_bias = biases() + directions * panels_ * columns(projection_) + d * panels_ * lanes_;
      cells.kind = phase.kind;
      const int64_t blocks = (panels_ + kPanelBlock - 1) / kPanelBlock;
      const double ns = static_cast<double>(count) * row_ns(hidden, phase.words != nullptr) /
                        static_cast<double>(blocks) * static_cast<double>(p.gates) /
                        static_cast<double>(gates);
      parallel_for(0, blocks, ns, [&](int64_t begin, int64_t end) {
        const int64_t from = begin * kPanelBlock, to = std::min(panels_, end * kPanelBlock);
        multiply_panels(p, rows, count, from, to);
        apply_gates(cells, rows, count, from, to);
      });
    }
  }

  // The last states, and zeros behind the last step.
  void finish(const KernelArgs& args, int64_t d, int64_t n, const PanelRow& row) const {
    const auto output = [&](size_t i) { return static_cast<float*>(args.outputs[i]); };
    for (int64_t when = length(args, n); when < steps; ++when)
      std::fill_n(output(0) + y_at(d, n, when), hidden, 0.0f);
    if (outputs_ > 1) std::copy_n(row.state, hidden, output(1) + state_at(d, n));
    if (outputs_ > 2) std::copy_n(row.cell, hidden, output(2) + state_at(d, n));
  }

  RecurrentKind kind_;
  std::vector<CellActivation::Kind> activations_;  // rnn: of each direction
  std::vector<std::optional<TensorDesc>> inputs_;
  size_t outputs_;
  std::string op_;
  float clip_;
  bool input_forget_ = false, dynamic_ = false, copies_x_ = false;
  int64_t lanes_, panels_, slots_ = 0;
  Phase projection_;
  std::array<Phase, 2> phases_;
  size_t phase_count_ = 1;
  BufferRef bias_;  // [directions, panels, gates, lanes], then [directions, panels, lanes]
  std::vector<float> no_bias_;
  int64_t span_ = 1;  // steps that are projected at a time
  int64_t z_row_ = 0;
  ScratchPlan plan_;
  int64_t lengths_ = 0, rows_ = 0, projected_ = 0, z_ = 0, x_ = 0, state_ = 0, cell_ = 0,
          scaled_ = 0, peephole_ = 0, x_steps_ = 0;
};

// The activations of each direction's cell, if the vector code has them.
bool usual(const KernelRequest& request, RecurrentKind kind,
           std::vector<CellActivation::Kind>& kinds) {
  using Kind = CellActivation::Kind;
  const int64_t gates = recurrent_gates(kind), directions = recurrent_directions(request.attrs);
  const auto names = usual_activations(request.attrs, gates);
  const auto given = cell_activations(request.attrs, directions, names);
  for (size_t i = 0; i < given.size(); ++i) {
    const Kind one = given[i].kind;
    if (kind == RecurrentKind::kRnn) {
      if (one != Kind::kTanh && one != Kind::kSigmoid && one != Kind::kRelu) return false;
      kinds.push_back(one);
    } else if (one != CellActivation::named(names[i % names.size()], request.op->name).kind) {
      return false;
    }
  }
  return true;
}

template <RecurrentKind kind>
KernelPtr make_packed(const KernelRequest& request, std::string& why) {
  const DType dtype = request.in(0).dtype;
  if (is_half(dtype)) return widened(request, make_packed<kind>, why);
  if (dtype != DType::kF32) return refuse(why, fmt::format("dtype {}", name(dtype)));
  if (!dense_outputs(request, why)) return nullptr;
  if (request.outputs.size() > request.op->main_outputs()) return refuse(why, "a reserve");
  for (const size_t i : {1u, 2u, 3u})
    if (request.has(i) && (!request.constant(i) || !request.packed))
      return refuse(why, "weights that are not constant");
  const Shape& x = request.in(0).shape;
  if (x[0] == 0 || x[1] == 0) return refuse(why, "no steps or no sequences");
  if (x[2] == 0) return refuse(why, "the input is empty");
  std::vector<CellActivation::Kind> activations;
  if (!usual(request, kind, activations)) return refuse(why, "other activations");
  return std::make_shared<RecurrentPacked>(request, kind, std::move(activations));
}

const KernelFamily kRecurrentPacked{"packed",
                                    5,
                                    {{"lstm", make_packed<RecurrentKind::kLstm>},
                                     {"gru", make_packed<RecurrentKind::kGru>},
                                     {"rnn", make_packed<RecurrentKind::kRnn>}}};

}  // namespace

}  // namespace anymps::cpu
