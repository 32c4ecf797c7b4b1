// SPDX-License-Identifier: Apache-2.0
// How far the outputs of one model are from those of another, over several sets of inputs.
#pragma once

#include <map>
#include <string>

#include "session.h"

namespace anymps::cli {

// What is known of one output. Errors are summed over all inputs, as parts of the whole output.
class Difference {
 public:
  void add(const Array& expected, const Array& got);

  double max() const { return part(worst_, largest_); }  // of the largest number
  double rms() const;
  double snr_db() const;  // infinite where nothing differs
  double cosine() const;
  // Rows of a matrix, as scores of classes: how many there are, and whose largest is the same.
  int64_t rows = 0, same_top = 0;
  // Of whole numbers and strings: how many there are, and how many are the same.
  int64_t exact = 0, same = 0;
  bool same_shape = true;

 private:
  static double part(double of, double whole);
  void add_rows(const Array& expected, const Array& got);

  double worst_ = 0, largest_ = 0, errors_ = 0, squares_ = 0, other_squares_ = 0, products_ = 0;
};

using Differences = std::map<std::string, Difference>;  // by the output's name

// Runs both with `samples` sets of inputs: files where options name them, else random numbers of
// options.seed and the seeds that follow it.
Differences compare(const Session& expected, const Session& got, ModelOptions options,
                    int64_t samples);

nlohmann::ordered_json to_json(const Differences& differences);
void print(const Differences& differences);

}  // namespace anymps::cli
