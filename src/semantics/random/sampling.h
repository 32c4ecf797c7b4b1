// SPDX-License-Identifier: Apache-2.0
// Numbers drawn from distributions whose parameters are tensors. Element i has a stream of random
// words to itself, as long as it needs, so results depend neither on threads nor on how often
// another element rejects what it drew.
#pragma once

#include <cstdint>
#include <vector>

#include "semantics/random/philox.h"

namespace anymps {

// The random words of one element: block 0 is the one that op `random` would use at this place;
// those after it come under other keys, so that the state advances by one for each element.
class RandomStream {
 public:
  RandomStream(const Philox& state, uint64_t index) : at_(state.advanced(index)) {}
  double uniform();  // of 53 bits in (0, 1), never at the ends
  double normal();

 private:
  Philox at_;
  std::array<uint32_t, 4> words_{};
  uint64_t blocks_ = 0;
  int used_ = 4;
};

namespace draw {

// Each gives NaN for parameters that make no distribution.
double exponential(RandomStream& stream, double rate);
double geometric(RandomStream& stream, double chance);  // trials up to the first success
double poisson(RandomStream& stream, double rate);
double standard_gamma(RandomStream& stream, double shape);
double normal(RandomStream& stream, double mean, double deviation);
double log_normal(RandomStream& stream, double mean, double deviation);
double cauchy(RandomStream& stream, double median, double scale);
double binomial(RandomStream& stream, double count, double chance);
// The logarithm of what standard_gamma gives, where that is too small for a number.
double log_standard_gamma(RandomStream& stream, double shape);

// The ops that are one of these and nothing more, of one tensor of parameters and of two.
#define ANYMPS_SAMPLED_OPS(ONE, TWO) \
  ONE(exponential)                   \
  ONE(geometric)                     \
  ONE(poisson)                       \
  ONE(standard_gamma)                \
  TWO(normal)                        \
  TWO(log_normal)                    \
  TWO(cauchy)                        \
  TWO(binomial)

}  // namespace draw

// Gammas as parts of their sum; all that was drawn may be too small for a number.
void dirichlet_line(const Philox& state, uint64_t first, std::vector<double>& line);

// A whole number of [low, high], both ends of which may be any of 64 bits: 128 random bits times
// the size of the range, so that no number is favoured by more than 2^-64.
int64_t whole_number(const Philox& state, uint64_t index, int64_t low, int64_t high);

// 0 to count - 1 in random order.
std::vector<int64_t> permutation(const Philox& state, int64_t count);

}  // namespace anymps
