// SPDX-License-Identifier: Apache-2.0
// Backpropagation through time on the CPU. The layer's reserve is given, or made by running the
// layer again. The steps are walked back with one product for each and all sequences of a task;
// what is left are products over all steps.
#include "drivers/cpu/layers/recurrent/recurrent_layer.h"

namespace anymps::cpu {

namespace {

template <typename T>
class RecurrentGradient final : public RecurrentLayer<T> {
  using Base = RecurrentLayer<T>;
  using Kind = RecurrentKind;
  using Base::batch, Base::directions, Base::gates, Base::hidden, Base::linear_, Base::order,
      Base::parts_, Base::steps, Base::width;

 public:
  RecurrentGradient(const KernelRequest& request, Kind kind)
      : Base(request, kind, true),
        first_dy_(kind == Kind::kLstm ? 8 : 6),
        reserve_(request.op->inputs.size() - 1) {
    const int64_t rows = gates * hidden, all = steps * batch, sum = directions * rows;
    const int64_t plain = this->plain_rows();
    const auto make = Base::problem;
    const int64_t x_row = width, kept = directions * this->record_;
    // Steps behind the end of a sequence are read from copies, as zeros.
    const int64_t h_row = this->has(4) ? hidden : kept;
    back_h_.emplace(make(batch, plain, hidden, {rows, 1}, {hidden, 1}, {hidden, 1}, true));
    back_new_.emplace(make(batch, hidden, hidden, {rows, 1}, {hidden, 1}, {hidden, 1}, true));
    to_x_.emplace(make(all, sum, width, {sum, 1}, {width, 1}, {width, 1}, false));
    to_w_.emplace(make(sum, all, width, {1, sum}, {x_row, 1}, {width, 1}, false));
    to_r_.emplace(make(plain, all, hidden, {1, sum}, {h_row, 1}, {hidden, 1}, false));
    to_r_new_.emplace(make(hidden, all, hidden, {1, sum}, {h_row, 1}, {hidden, 1}, false));
    ScratchPlan& plan = this->plan_;
    for (auto& place : packed_) place = plan.take<char>(back_h_->scratch_bytes());
    for (auto& place : packed_new_)
      place = plan.take<char>(this->two_products() ? back_new_->scratch_bytes() : 0);
    size_t most = 0;
    for (const auto* product : {&to_x_, &to_w_, &to_r_, &to_r_new_})
      most = std::max(most, (*product)->scratch_bytes());
    product_ = plan.take<char>(most);
    dz_ = plan.take<T>(all * sum);
    dz_h_ = plan.take<T>(linear_ ? all * sum : 0);
    step_ = plan.take<T>(directions * batch * rows);
    dh_ = plan.take<T>(directions * batch * hidden);
    dc_ = plan.take<T>(kind == Kind::kLstm ? directions * batch * hidden : 0);
    from_next_ = plan.take<T>(directions * batch * hidden);
    clean_ = plan.take<T>(this->has(4) ? all * std::max(width, hidden) : 0);
    if (!this->has(reserve_)) records_ = plan.take<T>(all * kept);
  }

  size_t scratch_bytes() const override { return this->plan_.bytes(); }

  void run(const KernelArgs& args) const override {
    this->read_lengths(args);
    T* records =
        this->has(reserve_) ? static_cast<T*>(args.inputs[reserve_]) : this->at(args, records_);
    if (!this->has(reserve_)) this->forward(args, records, nullptr, nullptr, nullptr);
    const int64_t stored = steps * batch * directions * gates * hidden;
    if (this->has(4)) std::fill_n(this->at(args, dz_), stored, T(0));
    if (this->has(4) && linear_) std::fill_n(this->at(args, dz_h_), stored, T(0));
    this->start_states(args, dh_, first_dy_ + 1);
    const bool lstm = this->kind_ == Kind::kLstm;
    if (lstm) this->start_states(args, dc_, first_dy_ + 2);
    for (int64_t d = 0; d < directions; ++d) {
      back_h_->pack(this->weights(args, 2, d), memory(args, packed_[d]));
      if (this->two_products())
        back_new_->pack(this->weights(args, 2, d, this->plain_rows()),
                        memory(args, packed_new_[d]));
    }
    this->for_each_task(
        2.0 * static_cast<double>(gates * hidden * hidden),
        [&](int64_t d, int64_t first, int64_t last) { walk_back(args, d, first, last, records); });
    this->end_states(args, dh_, out(args, 4));
    if (lstm) this->end_states(args, dc_, out(args, 5));
    sum_up(args, records);
  }

 private:
  static_assert(std::is_floating_point_v<T>);

  char* memory(const KernelArgs& args, int64_t place) const {
    return this->template at<char>(args, place);
  }
  T* out(const KernelArgs& args, size_t i) const {
    return i < this->outputs_ ? static_cast<T*>(args.outputs[i]) : nullptr;
  }
  // The gradients of a step's sums, [gates, hidden].
  T* sums_at(const KernelArgs& args, int64_t place, int64_t d, int64_t row) const {
    return this->at(args, place) + (row * directions + d) * gates * hidden;
  }

  void walk_back(const KernelArgs& args, int64_t d, int64_t first, int64_t last, T* records) const {
    const int64_t rows = gates * hidden;
    const bool two = this->two_products();
    T* const sums = this->at(args, step_) + (d * batch + first) * rows;
    T* const from_next = this->own(args, from_next_, d, first);
    for (int64_t t = steps; t-- > 0;) {
      int64_t end = last;
      while (end > first && this->length(args, end - 1) <= t) --end;
      if (end == first) continue;
      const auto each = [&](const auto& fn) {
        const double ns = (this->vectors_ ? 0.5 : 20.0) * static_cast<double>(rows);
        parallel_for(first, end, ns, [&](int64_t begin, int64_t stop) {
          for (int64_t n = begin; n < stop; ++n) {
            const int64_t length = this->length(args, n);
            if (t < length) fn(n, this->place(d, t, length));
          }
        });
      };
      if (this->has(4)) std::fill_n(sums, (end - first) * rows, T(0));
      each([&](int64_t n, int64_t when) { back_gates(args, d, n, when, records); });
      if (two) {
        back_new_->run_rows(sums + this->plain_rows(),
                            this->weights(args, 2, d, this->plain_rows()), end - first, from_next,
                            memory(args, packed_new_[d]));
        each([&](int64_t n, int64_t when) {
          const CellBack<T> b = row_of_step(args, d, n, when, records);
          back_reset(args, b, d, this->own(args, from_next_, d, n));
          const int64_t block = order[GruUnit<T>::kReset] * hidden;
          std::copy_n(b.dz[GruUnit<T>::kReset], hidden, step_row(args, d, n) + block);
        });
      }
      back_h_->run_rows(sums, this->weights(args, 2, d), end - first, from_next,
                        memory(args, packed_[d]));
      each([&](int64_t n, int64_t) {
        const T* from = this->own(args, from_next_, d, n);
        T* dh = this->own(args, dh_, d, n);
        if (this->kind_ != Kind::kGru)
          std::copy_n(from, hidden, dh);
        else
          for (int64_t u = 0; u < hidden; ++u) dh[u] += from[u];
      });
    }
  }

  // What r is multiplied with on the way back, of sequence n in this step.
  T* step_row(const KernelArgs& args, int64_t d, int64_t n) const {
    return this->at(args, step_) + (d * batch + n) * gates * hidden;
  }

  CellBack<T> row_of_step(const KernelArgs& args, int64_t d, int64_t n, int64_t when,
                          T* records) const {
    CellBack<T> b;
    const int64_t row = this->row_of(n, when);
    const T* kept = this->record(records, d, row);
    T* dz = sums_at(args, dz_, d, row);
    const T* seen = kept + (parts_.sums ? parts_.sum() * hidden : 0);
    for (int64_t gate = 0; gate < gates; ++gate) {
      b.y[gate] = kept + order[gate] * hidden;
      b.z[gate] = seen + order[gate] * hidden;
      b.dz[gate] = dz + order[gate] * hidden;
    }
    b.h = kept + parts_.state() * hidden;
    b.c = b.recurrent = kept + parts_.extra() * hidden;
    b.dh = this->own(args, dh_, d, n);
    if (this->kind_ == Kind::kLstm) b.dc = this->own(args, dc_, d, n);
    if (this->kind_ == Kind::kGru) b.dnew = step_row(args, d, n) + (gates - 1) * hidden;
    return b;
  }

  // The gradients of the sums of a step; of the reset gate only where it scales the product.
  void back_gates(const KernelArgs& args, int64_t d, int64_t n, int64_t when, T* records) const {
    const CellBack<T> b = row_of_step(args, d, n, when, records);
    if (const T* dy = this->in(args, first_dy_)) {
      dy += this->y_at(d, n, when);
      for (int64_t u = 0; u < hidden; ++u) b.dh[u] += dy[u];
    }
    back_cells(args, b, d);
    T* to = step_row(args, d, n);
    const T* dz = sums_at(args, dz_, d, this->row_of(n, when));
    if (this->kind_ != Kind::kGru) return (void)std::copy_n(dz, gates * hidden, to);
    if (linear_) back_reset(args, b, d, nullptr);
    std::copy_n(dz, (gates - 1) * hidden, to);  // dnew is there
    if (linear_) std::copy_n(to, gates * hidden, sums_at(args, dz_h_, d, this->row_of(n, when)));
  }

  void back_cells(const KernelArgs& args, const CellBack<T>& b, int64_t d) const {
    if constexpr (std::is_same_v<T, float>)
      if (this->vectors_) {
        if (this->kind_ == Kind::kLstm) return lstm_back(b, hidden);
        if (this->kind_ == Kind::kGru) return gru_update_back(b, linear_, hidden);
        return rnn_back(b, this->activation(), hidden);
      }
    const CellOptions<T> o = this->options(args, d);
    if (this->kind_ == Kind::kLstm) return lstm_back_plain(b, o);
    if (this->kind_ == Kind::kGru) return gru_update_back_plain(b, o);
    rnn_back_plain(b, o);
  }
  void back_reset(const KernelArgs& args, const CellBack<T>& b, int64_t d, const T* dscaled) const {
    if constexpr (std::is_same_v<T, float>)
      if (this->vectors_) return gru_reset_back(b, dscaled, hidden);
    gru_reset_back_plain(b, dscaled, this->options(args, d));
  }

  // The products over all steps.
  void sum_up(const KernelArgs& args, T* records) const {
    const int64_t rows = gates * hidden, plain = this->plain_rows();
    char* spare = memory(args, product_);
    const T *dz = this->at(args, dz_), *dz_h = this->at(args, linear_ ? dz_h_ : dz_);
    if (T* dx = out(args, 0)) {
      to_x_->run(dz, this->in(args, 1), dx, spare);
      for_each_end(args, [&](int64_t row) { std::fill_n(dx + row * width, width, T(0)); });
    }
    if (T* dw = out(args, 1))
      to_w_->run(dz, cleaned(args, this->in(args, 0), width, width), dw, spare);
    for (int64_t d = 0; out(args, 2) && d < directions; ++d) {
      T* dr = out(args, 2) + d * rows * hidden;
      const T* kept = this->record(records, d, 0);
      const int64_t step = directions * this->record_;
      to_r_->run(dz_h + d * rows, cleaned(args, kept + parts_.state() * hidden, hidden, step), dr,
                 spare);
      if (this->two_products())
        to_r_new_->run(dz_h + d * rows + plain,
                       cleaned(args, kept + parts_.extra() * hidden, hidden, step),
                       dr + plain * hidden, spare);
    }
    if (T* db = out(args, 3)) sum_biases(dz, dz_h, db);
    if (T* dp = out(args, 6)) sum_peepholes(args, records, dp);
  }

  // fn(row) for the rows of x behind the end of their sequence.
  template <typename Fn>
  void for_each_end(const KernelArgs& args, const Fn& fn) const {
    for (int64_t n = 0; this->has(4) && n < batch; ++n)
      for (int64_t when = this->length(args, n); when < steps; ++when) fn(this->row_of(n, when));
  }
  // Rows of `count`, of which those behind the ends are zero: they may hold anything.
  const T* cleaned(const KernelArgs& args, const T* from, int64_t count, int64_t stride) const {
    if (!this->has(4)) return from;
    T* to = this->at(args, clean_);
    for (int64_t row = 0; row < steps * batch; ++row)
      std::copy_n(from + row * stride, count, to + row * count);
    for_each_end(args, [&](int64_t row) { std::fill_n(to + row * count, count, T(0)); });
    return to;
  }

  void sum_biases(const T* dz, const T* dz_h, T* db) const {
    const int64_t rows = gates * hidden, all = steps * batch;
    parallel_for(0, directions * 2, static_cast<double>(all * rows) * 0.2,
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const T* from = (i % 2 ? dz_h : dz) + i / 2 * rows;
                     T* to = db + i * rows;
                     std::fill_n(to, rows, T(0));
                     for (int64_t row = 0; row < all; ++row, from += directions * rows)
                       for (int64_t k = 0; k < rows; ++k) to[k] += from[k];
                   }
                 });
  }

  void sum_peepholes(const KernelArgs& args, T* records, T* dp) const {
    using Unit = LstmUnit<T>;
    std::fill_n(dp, directions * 3 * hidden, T(0));
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t when = 0; when < this->length(args, n); ++when)
        for (int64_t d = 0; d < directions; ++d) {
          const CellBack<T> b = row_of_step(args, d, n, when, records);
          T* to = dp + d * 3 * hidden;
          for (int64_t u = 0; u < hidden; ++u) {
            const T next_c =
                b.y[Unit::kForget][u] * b.c[u] + b.y[Unit::kInput][u] * b.y[Unit::kCell][u];
            for (int64_t gate = 0; gate < 3; ++gate)
              to[gate * hidden + u] += b.dz[gate][u] * (gate == Unit::kOutput ? next_c : b.c[u]);
          }
        }
  }

  size_t first_dy_, reserve_;
  std::optional<TypedGemm> back_h_, back_new_, to_x_, to_w_, to_r_, to_r_new_;
  int64_t packed_[2] = {}, packed_new_[2] = {};
  int64_t product_ = 0, dz_ = 0, dz_h_ = 0, step_ = 0, dh_ = 0, dc_ = 0, from_next_ = 0, clean_ = 0,
          records_ = 0;
};

const KernelFamily kRecurrentGradients =
    recurrent_family<RecurrentGradient>(10, "lstm_gradient", "gru_gradient", "rnn_gradient");

}  // namespace

}  // namespace anymps::cpu
