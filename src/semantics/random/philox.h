// SPDX-License-Identifier: Apache-2.0
// Random numbers as a pure function of a state and an index: Philox 4x32-10 (Salmon et al., 2011)
// and the distributions made of its words. Shared by the kernels of every driver, so that a state
// means the same numbers on each.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace anymps {

// The state tensor holds these words: the counter, lowest first, the key, and 0.
inline constexpr int64_t kPhiloxWords = 7;

struct Philox {
  std::array<uint32_t, 4> counter{};
  std::array<uint32_t, 2> key{};

  // The four words at `steps` after this state.
  std::array<uint32_t, 4> words(uint64_t steps) const {
    std::array<uint32_t, 4> c = advanced(steps).counter;
    std::array<uint32_t, 2> k = key;
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53u} * c[0], b = uint64_t{0xCD9E8D57u} * c[2];
      c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(b),
           static_cast<uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(a)};
      k[0] += 0x9E3779B9u;
      k[1] += 0xBB67AE85u;
    }
    return c;
  }
  Philox advanced(uint64_t steps) const {
    Philox next = *this;
    uint64_t carry = steps;
    for (uint32_t& word : next.counter) {
      const uint64_t sum = uint64_t{word} + (carry & 0xffffffffu);
      word = static_cast<uint32_t>(sum);
      carry = (carry >> 32) + (sum >> 32);
    }
    return next;
  }

  static Philox read(const int32_t* state, int64_t stride = 1) {
    Philox philox;
    for (int i = 0; i < 4; ++i) philox.counter[i] = static_cast<uint32_t>(state[i * stride]);
    for (int i = 0; i < 2; ++i) philox.key[i] = static_cast<uint32_t>(state[(4 + i) * stride]);
    return philox;
  }
  void write(int32_t* state, int64_t stride = 1) const {
    for (size_t i = 0; i < 4; ++i)
      state[static_cast<int64_t>(i) * stride] = static_cast<int32_t>(counter[i]);
    for (size_t i = 0; i < 2; ++i)
      state[static_cast<int64_t>(4 + i) * stride] = static_cast<int32_t>(key[i]);
    state[6 * stride] = 0;
  }
};

// The place below which a part p of the normal distribution lies (Wichura's AS 241).
double normal_quantile(double p);
inline double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

// One of the distributions of op `random`. Numbers come in blocks, one for each step of Philox.
class Distribution {
 public:
  enum class Kind { kUniform, kWhole, kNormal, kBoxMuller, kTruncated };
  struct Parameters {
    Kind kind = Kind::kUniform;
    bool wide = false;  // 53 random bits per number, else 24
    double low = 0, high = 1, mean = 0, deviation = 1;
  };
  explicit Distribution(const Parameters& parameters);

  int64_t per_block() const { return p_.wide ? 2 : 4; }
  int64_t blocks(int64_t count) const { return (count + per_block() - 1) / per_block(); }
  // The numbers of block b, per_block() of them.
  std::array<double, 4> block(const Philox& state, int64_t b) const;

 private:
  double shape(double u) const;

  Parameters p_;
  double cdf_low_ = 0, cdf_high_ = 1;
};

// 24 random bits as a number in [0, 1).
inline double unit(uint32_t word) { return static_cast<double>(word >> 8) * 0x1p-24; }

}  // namespace anymps
