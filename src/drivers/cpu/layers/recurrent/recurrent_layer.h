// SPDX-License-Identifier: Apache-2.0
// What our own kernels of recurrent layers and of their gradients share: the layer's extents and
// inputs, and the walk forward. What comes from x is one product for all steps; what comes from the
// state is one for each step and all sequences of a task. Both kernels take x, w, r, b, seq_lens, …
// first.
#pragma once

#include <string>
#include <vector>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/kernel_family.h"
#include "drivers/cpu/layers/recurrent/recurrent_cells.h"
#include "drivers/cpu/layers/recurrent/recurrent_parts.h"
#include "drivers/cpu/linear/typed_gemm.h"
#include "drivers/cpu/threads.h"
#include "drivers/kernel.h"
#include "ops/layers/recurrent.h"

namespace anymps::cpu {

template <typename T>
class RecurrentLayer : public Kernel, protected RecurrentExtents {
 protected:
  using Kind = RecurrentKind;

  // `keeps`: the walk leaves a reserve, not just what the gates give.
  RecurrentLayer(const KernelRequest& request, Kind kind, bool keeps)
      : RecurrentExtents(
            recurrent_extents(request.attrs, request.in(0).shape, recurrent_gates(kind))),
        kind_(kind),
        outputs_(request.outputs.size()),
        keeps_(keeps),
        parts_(recurrent_parts(request.attrs, gates)),
        op_(request.op->name),
        activations_(
            cell_activations(request.attrs, directions, usual_activations(request.attrs, gates))),
        clip_(request.attrs.f("clip")) {
    for (size_t i = 0; i < request.inputs.size(); ++i) has_.push_back(request.has(i));
    if (has(4)) lengths_of_ = request.in(4);
    if (kind == Kind::kGru) linear_ = request.attrs.b("linear_before_reset");
    if (kind == Kind::kLstm) input_forget_ = request.attrs.b("input_forget");
    vectors_ = std::is_same_v<T, float> && !parts_.sums && !input_forget_ &&
               !(kind == Kind::kLstm && has(7));
    const int64_t rows = gates * hidden, plain = plain_rows();
    record_ = (keeps_ ? parts_.count() : gates) * hidden;
    from_x_.emplace(problem(steps * batch, width, rows, {width, 1}, {1, width},
                            {directions * record_, 1}, false));
    from_h_.emplace(problem(batch, hidden, plain, {hidden, 1}, {1, hidden}, {rows, 1}, true));
    from_scaled_.emplace(problem(batch, hidden, hidden, {hidden, 1}, {1, hidden}, {rows, 1}, true));
    for (auto& place : packed_) place = plan_.take<char>(from_h_->scratch_bytes());
    if (two_products())
      for (auto& place : packed_new_) place = plan_.take<char>(from_scaled_->scratch_bytes());
    product_ = plan_.take<char>(from_x_->scratch_bytes());
    lengths_ = plan_.take<int64_t>(batch);
    bias_ = plan_.take<T>(directions * (gates + 1) * hidden);
    state_ = plan_.take<T>(directions * batch * hidden);
    cell_ = plan_.take<T>(kind == Kind::kLstm ? directions * batch * hidden : 0);
    scaled_ = plan_.take<T>(two_products() ? directions * batch * hidden : 0);
    from_state_ = plan_.take<T>(directions * batch * rows);
  }

  static TypedGemm::Problem problem(int64_t rows, int64_t depth, int64_t columns,
                                    TypedGemm::Matrix a, TypedGemm::Matrix b, TypedGemm::Matrix y,
                                    bool keeps_b) {
    return {.dtype = std::is_same_v<T, float> ? DType::kF32 : DType::kF64,
            .rows = rows,
            .depth = depth,
            .columns = columns,
            .a = a,
            .b = b,
            .y = y,
            .batch = {{}, std::vector<Strides>(3)},
            .pack_a = {},
            .pack_b = {},
            .keeps_b = keeps_b};
  }

  bool has(size_t i) const { return i < has_.size() && has_[i]; }
  const T* in(const KernelArgs& args, size_t i) const {
    return has(i) ? static_cast<const T*>(args.inputs[i]) : nullptr;
  }
  template <typename U = T>
  U* at(const KernelArgs& args, int64_t place) const {
    return reinterpret_cast<U*>(static_cast<char*>(args.scratch) + place);
  }
  int64_t length(const KernelArgs& args, int64_t n) const {
    return has(4) ? at<int64_t>(args, lengths_)[n] : steps;
  }
  // Rows of r whose products are with the state itself: all, or those before the new gate's.
  bool two_products() const { return kind_ == Kind::kGru && !linear_; }
  int64_t plain_rows() const { return (two_products() ? 2 : gates) * hidden; }
  // Weights of direction d: input 1 or 2, from a row on.
  const T* weights(const KernelArgs& args, size_t i, int64_t d, int64_t row = 0) const {
    return in(args, i) + (d * gates * hidden + row) * (i == 1 ? width : hidden);
  }
  T* record(T* records, int64_t d, int64_t row) const {
    return records + (row * directions + d) * record_;
  }
  CellOptions<T> options(const KernelArgs& args, int64_t d) const {
    const auto functions = std::ssize(activations_) / directions;
    const T* peephole = kind_ == Kind::kLstm ? in(args, 7) : nullptr;
    return {.units = hidden,
            .act = {activations_.data() + d * functions, static_cast<T>(clip_)},
            .peephole = peephole ? peephole + d * 3 * hidden : nullptr,
            .input_forget = input_forget_,
            .linear = linear_};
  }
  CellActivation::Kind activation() const { return activations_[0].kind; }

  // Calls fn(d, first, last) for sequences first to last of direction d, in parallel.
  template <typename Fn>
  void for_each_task(double flops, const Fn& fn) const {
    constexpr int64_t kLeast = 8;  // sequences that are worth reading the weights for
    const int64_t chunks = std::clamp<int64_t>(batch / kLeast, 1, current_threads());
    const double ns = flops * static_cast<double>(steps * batch) / static_cast<double>(chunks) / 60;
    parallel_for(0, directions * chunks, ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        fn(i / chunks, batch * (i % chunks) / chunks, batch * (i % chunks + 1) / chunks);
    });
  }

  void read_lengths(const KernelArgs& args) const {
    if (has(4))
      cpu::read_lengths(op_, lengths_of_, args.inputs[4], steps, at<int64_t>(args, lengths_));
  }

  // Runs the layer after read_lengths: writes y, y_h and y_c where they are not null, and records.
  void forward(const KernelArgs& args, T* records, T* y, T* y_h, T* y_c) const {
    sum_biases(args);
    for (int64_t d = 0; d < directions; ++d) {
      from_x_->run(in(args, 0), weights(args, 1, d), record(records, d, 0),
                   at<char>(args, product_));
      from_h_->pack(weights(args, 2, d), at<char>(args, packed_[d]));
      if (two_products())
        from_scaled_->pack(weights(args, 2, d, plain_rows()), at<char>(args, packed_new_[d]));
    }
    start_states(args, state_, 5);
    if (kind_ == Kind::kLstm) start_states(args, cell_, 6);
    for_each_task(
        2.0 * static_cast<double>(gates * hidden * hidden),
        [&](int64_t d, int64_t first, int64_t last) { walk(args, d, first, last, records, y); });
    end_states(args, state_, y_h);
    if (kind_ == Kind::kLstm) end_states(args, cell_, y_c);
  }

  // The state of sequence n, at a place of [directions, batch, hidden].
  T* own(const KernelArgs& args, int64_t place, int64_t d, int64_t n) const {
    return at(args, place) + (d * batch + n) * hidden;
  }
  void start_states(const KernelArgs& args, int64_t place, size_t input) const {
    const T* from = in(args, input);
    for (int64_t d = 0; d < directions; ++d)
      for (int64_t n = 0; n < batch; ++n)
        from ? std::copy_n(from + state_at(d, n), hidden, own(args, place, d, n))
             : std::fill_n(own(args, place, d, n), hidden, T(0));
  }
  void end_states(const KernelArgs& args, int64_t place, T* to) const {
    for (int64_t d = 0; to && d < directions; ++d)
      for (int64_t n = 0; n < batch; ++n)
        std::copy_n(own(args, place, d, n), hidden, to + state_at(d, n));
  }

  Kind kind_;
  size_t outputs_;
  bool keeps_, linear_ = false, vectors_ = false;
  RecurrentParts parts_;
  int64_t record_ = 0;
  ScratchPlan plan_;

 private:
  // By gate of the weights, of both inputs; of the new gate of a gru the two apart.
  void sum_biases(const KernelArgs& args) const {
    const int64_t rows = gates * hidden;
    for (int64_t d = 0; d < directions; ++d) {
      T* to = at(args, bias_) + d * (gates + 1) * hidden;
      std::fill_n(to, rows + hidden, T(0));
      if (!has(3)) continue;
      const T *w = in(args, 3) + d * 2 * rows, *r = w + rows;
      const int64_t both = kind_ == Kind::kGru ? rows - hidden : rows;
      for (int64_t i = 0; i < both; ++i) to[i] = w[i] + r[i];
      std::copy(w + both, w + rows, to + both);
      std::copy(r + both, r + rows, to + both + hidden);
    }
  }

  void walk(const KernelArgs& args, int64_t d, int64_t first, int64_t last, T* records,
            T* y) const {
    const int64_t rows = gates * hidden;
    for (int64_t t = 0; t < steps; ++t) {
      int64_t end = last;  // sequences from there on have ended
      while (end > first && length(args, end - 1) <= t) --end;
      if (end == first) continue;
      T* products = at(args, from_state_) + (d * batch + first) * rows;
      from_h_->run_rows(own(args, state_, d, first), weights(args, 2, d), end - first, products,
                        at<char>(args, packed_[d]));
      const auto each = [&](const auto& fn) {
        const double ns = (vectors_ ? 0.5 : 20.0) * static_cast<double>(rows);
        parallel_for(first, end, ns, [&](int64_t begin, int64_t stop) {
          for (int64_t n = begin; n < stop; ++n)
            if (t < length(args, n)) fn(n, place(d, t, length(args, n)));
        });
      };
      if (two_products()) {
        each([&](int64_t n, int64_t when) {
          reset(args, row_of_step(args, d, n, when, records), d, own(args, scaled_, d, n));
        });
        from_scaled_->run_rows(own(args, scaled_, d, first), weights(args, 2, d, plain_rows()),
                               end - first, products + plain_rows(),
                               at<char>(args, packed_new_[d]));
      }
      each([&](int64_t n, int64_t when) {
        step(args, d, n, when, records);
        if (y) std::copy_n(own(args, state_, d, n), hidden, y + y_at(d, n, when));
      });
    }
  }

  CellRow<T> row_of_step(const KernelArgs& args, int64_t d, int64_t n, int64_t when,
                         T* records) const {
    CellRow<T> r;
    T* kept = record(records, d, row_of(n, when));
    T* products = at(args, from_state_) + (d * batch + n) * gates * hidden;
    const T* bias = at(args, bias_) + d * (gates + 1) * hidden;
    for (int64_t gate = 0; gate < gates; ++gate) {
      const int64_t block = order[gate] * hidden;
      r.z[gate] = r.y[gate] = kept + block;
      r.h[gate] = products + block;
      r.bias[gate] = bias + block;
      if (keeps_ && parts_.sums) r.sums[gate] = kept + parts_.sum() * hidden + block;
    }
    r.new_bias = bias + gates * hidden;
    if (kind_ == Kind::kGru)
      r.recurrent =
          (keeps_ && linear_ ? kept + parts_.extra() * hidden : products + (gates - 1) * hidden);
    r.state = own(args, state_, d, n);
    if (kind_ == Kind::kLstm) r.c = own(args, cell_, d, n);
    return r;
  }

  void reset(const KernelArgs& args, const CellRow<T>& r, int64_t d, T* scaled) const {
    if constexpr (std::is_same_v<T, float>)
      if (vectors_) return gru_reset(r, scaled, hidden);
    gru_reset_plain(r, scaled, options(args, d));
  }

  void step(const KernelArgs& args, int64_t d, int64_t n, int64_t when, T* records) const {
    const CellRow<T> r = row_of_step(args, d, n, when, records);
    if (keeps_) {
      T* kept = record(records, d, row_of(n, when));
      std::copy_n(r.state, hidden, kept + parts_.state() * hidden);
      if (r.c) std::copy_n(r.c, hidden, kept + parts_.extra() * hidden);
      if (two_products())
        std::copy_n(own(args, scaled_, d, n), hidden, kept + parts_.extra() * hidden);
    }
    if (kind_ == Kind::kGru && linear_) reset(args, r, d, nullptr);
    if constexpr (std::is_same_v<T, float>)
      if (vectors_) {
        if (kind_ == Kind::kLstm) return lstm_cells(r, hidden);
        if (kind_ == Kind::kGru) return gru_update(r, linear_, hidden);
        return rnn_cells(r, activation(), hidden);
      }
    const CellOptions<T> o = options(args, d);
    if (kind_ == Kind::kLstm) return lstm_cells_plain(r, o);
    if (kind_ == Kind::kGru) return gru_update_plain(r, o);
    rnn_cells_plain(r, o);
  }

  std::string op_;
  std::vector<bool> has_;
  TensorDesc lengths_of_;
  bool input_forget_ = false;
  std::vector<CellActivation> activations_;  // of each direction
  double clip_;
  std::optional<TypedGemm> from_x_, from_h_, from_scaled_;
  int64_t packed_[2] = {}, packed_new_[2] = {};  // r of each direction
  int64_t product_ = 0, lengths_ = 0, bias_ = 0, state_ = 0, cell_ = 0, scaled_ = 0,
          from_state_ = 0;
};

// The kernel K<T> for floats or doubles; halves go through f32.
template <template <typename> class K, RecurrentKind kind>
KernelPtr make_recurrent(const KernelRequest& request, std::string& why) {
  const DType dtype = request.in(0).dtype;
  if (is_half(dtype)) return widened(request, make_recurrent<K, kind>, why);
  if (!dense(request, why)) return nullptr;
  if (request.op->name == "lstm" && request.attrs.b("dynamic_bytes"))
    return refuse(why, "products of bytes");
  for (const auto& input : request.inputs)
    if (input && is_float(input->dtype) && input->dtype != dtype)
      return refuse(why, "the reserve has another dtype");
  if (dtype == DType::kF64) return std::make_shared<K<double>>(request, kind);
  return std::make_shared<K<float>>(request, kind);
}

// Registers K for the three layers, which are called so.
template <template <typename> class K>
KernelFamily recurrent_family(int order, const char* lstm, const char* gru, const char* rnn) {
  return {"steps",
          order,
          {{lstm, make_recurrent<K, RecurrentKind::kLstm>},
           {gru, make_recurrent<K, RecurrentKind::kGru>},
           {rnn, make_recurrent<K, RecurrentKind::kRnn>}}};
}

}  // namespace anymps::cpu
