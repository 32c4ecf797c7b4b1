// SPDX-License-Identifier: Apache-2.0
#include "base/env.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string_view>

#include "base/error.h"

namespace anymps {

const std::vector<EnvVariable>& env_variables() {
  static const std::vector<EnvVariable> kVariables = {
      {"ANYMPS_CACHE_SIZE", "64", "Executables kept in the executable cache."},
      {"ANYMPS_CHECK",
       "",
       "'reference' runs every node on the reference driver too and compares.",
       {"reference"}},
      {"ANYMPS_CHECK_RTOL", "",
       "Relative tolerance of ANYMPS_CHECK; empty: that of the op's record."},
      {"ANYMPS_DENORMALS",
       "",
       "Subnormal numbers: 'flush' takes them for zeros, 'keep' does not; empty: executables "
       "flush, single ops do as the calling thread.",
       {"flush", "keep"}},
      {"ANYMPS_DRIVER", "cpu", "The driver of the default device."},
      {"ANYMPS_DUMP", "", "'passes' prints the graph after each pass to stderr.", {"passes"}},
      {"ANYMPS_ISA",
       "",
       "Upper bound of the instruction set: sse4, avx2, avx512 or amx.",
       {"sse4", "avx2", "avx512", "amx"}},
      {"ANYMPS_JOIN",
       "on",
       "'off' runs each kernel by itself where several can go through an image row by row.",
       {"on", "off"}},
      {"ANYMPS_NUM_THREADS", "0", "Threads of the CPU driver; 0: all cores."},
      {"ANYMPS_PASSES", "",
       "Passes to leave out, each with a '-' before its name: '-layout,-fuse_conv'."},
      {"ANYMPS_TUNE",
       "off",
       "'on' measures the kernels that can compute a node of an executable and takes the fastest.",
       {"on", "off"}},
      {"ANYMPS_TUNE_CACHE", "",
       "Folder for what ANYMPS_TUNE has measured; empty: $XDG_CACHE_HOME/anymps, or "
       "~/.cache/anymps."},
      {"ANYMPS_VERBOSE",
       "",
       "Words: dispatch (chosen kernels, why others refused, what was measured), cache (new "
       "plans), check (how far each result is from the reference, under ANYMPS_CHECK).",
       {"dispatch", "cache", "check"}},
      {"ANYMPS_VERIFY",
       "",
       "'passes' verifies the graph after each pass, not only after the last.",
       {"passes"}},
      {"ANYMPS_WINOGRAD",
       "",
       "'off' computes all 3x3 convolutions directly; '2' or '4': by tiles of that size; with "
       "' late': their weights are transformed in each run.",
       {"off", "2", "4", "2 late", "4 late"}},
      {"MPS_MAX_BUFFER_AGE", "60000", "Milliseconds a free pooled buffer is kept."},
      {"MPS_MAX_POOL_SIZE", "1G", "Bytes of free memory that the pool keeps at most."},
      {"MPS_MEMORY_LIMIT", "0",
       "Bytes that a device may hold; 0: what the machine or its container has."},
  };
  return kVariables;
}

static std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream parts(text);
  for (std::string word; std::getline(parts, word, ',');)
    if (!word.empty()) words.push_back(word);
  return words;
}

std::string env_string(const char* name) {
  for (const EnvVariable& variable : env_variables()) {
    if (variable.name != name) continue;
    const char* set = std::getenv(name);
    std::string text = set && *set ? set : variable.default_value;
    if (!variable.words.empty())
      for (const std::string& word : split_words(text))
        require(
            std::find(variable.words.begin(), variable.words.end(), word) != variable.words.end(),
            "[env] {}='{}': it takes {}", name, text, fmt::join(variable.words, ", "));
    return text;
  }
  fail(Code::kInternal, "[env] {} is not declared in base/env.cc", name);
}

std::vector<std::string> env_words(const char* name) { return split_words(env_string(name)); }

bool env_contains(const char* name, const char* word) {
  const std::vector<std::string> words = env_words(name);
  return std::find(words.begin(), words.end(), word) != words.end();
}

static int64_t parse_int(const std::string& what, std::string_view text) {
  int64_t value = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(ec == std::errc() && end == text.data() + text.size() && !text.empty(),
          "[env] {}='{}' is not an integer", what, text);
  return value;
}

int64_t env_int(const char* name) { return parse_int(name, env_string(name)); }

double env_double(const char* name) {
  const std::string text = env_string(name);
  double value = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(ec == std::errc() && end == text.data() + text.size(), "[env] {}='{}' is not a number",
          name, text);
  return value;
}

int64_t parse_bytes(const std::string& what, const std::string& text) {
  std::string_view digits = text;
  int shift = 0;
  if (!digits.empty() && (digits.back() == 'B' || digits.back() == 'b')) digits.remove_suffix(1);
  if (!digits.empty()) {
    switch (digits.back()) {
      case 'K':
      case 'k':
        shift = 10;
        break;
      case 'M':
      case 'm':
        shift = 20;
        break;
      case 'G':
      case 'g':
        shift = 30;
        break;
      default:
        break;
    }
  }
  if (shift) digits.remove_suffix(1);
  int64_t value = parse_int(what, digits);
  require(value >= 0 && value <= (std::numeric_limits<int64_t>::max() >> shift),
          "[env] {}='{}' is out of range", what, text);
  return value << shift;
}

int64_t env_bytes(const char* name) { return parse_bytes(name, env_string(name)); }

}  // namespace anymps
