// SPDX-License-Identifier: Apache-2.0
// The sum over all ways in which a sequence of frames can spell labels, with blanks between them
// and repeats: the forward and backward variables of connectionist temporal classification, in
// logarithms. The reference and the CPU driver share it; tests have numbers from elsewhere.
#pragma once

#include <limits>
#include <vector>

#include "semantics/running.h"

namespace anymps {

template <typename LogProb>  // log_prob(frame, class)
class CtcSequence {
 public:
  CtcSequence(int64_t frames, std::vector<int64_t> labels, int64_t blank, LogProb log_prob)
      : frames_(frames),
        states_(2 * std::ssize(labels) + 1),
        labels_(std::move(labels)),
        blank_(blank),
        log_prob_(std::move(log_prob)) {
    run_forward();
  }

  double loss() const { return loss_; }

  // Adds to slope(frame, class) the loss's derivative with respect to each log probability: minus
  // the part of all spellings that have this class at this frame.
  template <typename Slope>
  void differentiate(Slope slope) const {
    std::vector<double> after(states_), next;
    for (int64_t t = frames_; t-- > 0;) {
      next.swap(after);
      after.assign(states_, kNever);
      for (int64_t s = 0; s < states_; ++s) {
        double sum = kNever;
        if (t + 1 == frames_) {
          if (s + 2 >= states_) sum = 0;
        } else {
          for (int64_t to = s; to < states_ && to <= s + 2; ++to)
            if (to < s + 2 || may_skip_to(to))
              sum = log_of_sum(sum, next[to] + log_prob_(t + 1, label(to)));
        }
        after[s] = sum;
        slope(t, label(s)) -= std::exp(before(t, s) + sum + loss_);
      }
    }
  }

 private:
  static constexpr double kNever = -std::numeric_limits<double>::infinity();

  int64_t label(int64_t state) const { return state % 2 ? labels_[state / 2] : blank_; }
  // From the label before, over the blank between: not if both are the same.
  bool may_skip_to(int64_t state) const {
    return state % 2 == 1 && state >= 3 && label(state) != label(state - 2);
  }
  double& before(int64_t t, int64_t s) { return alphas_[t * states_ + s]; }
  double before(int64_t t, int64_t s) const { return alphas_[t * states_ + s]; }

  void run_forward() {
    if (frames_ == 0) {
      loss_ = labels_.empty() ? 0 : -kNever;
      return;
    }
    alphas_.assign(frames_ * states_, kNever);
    for (int64_t t = 0; t < frames_; ++t)
      for (int64_t s = 0; s < states_; ++s) {
        double sum = t == 0 && s < 2 ? 0 : kNever;
        if (t > 0) {
          sum = before(t - 1, s);
          if (s > 0) sum = log_of_sum(sum, before(t - 1, s - 1));
          if (may_skip_to(s)) sum = log_of_sum(sum, before(t - 1, s - 2));
        }
        before(t, s) = sum + log_prob_(t, label(s));
      }
    loss_ = -before(frames_ - 1, states_ - 1);
    if (states_ > 1)
      loss_ = -log_of_sum(before(frames_ - 1, states_ - 1), before(frames_ - 1, states_ - 2));
  }

  int64_t frames_, states_;
  std::vector<int64_t> labels_;
  int64_t blank_;
  LogProb log_prob_;
  std::vector<double> alphas_;  // [frame][state]
  double loss_ = 0;
};

}  // namespace anymps
