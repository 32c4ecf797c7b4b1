// SPDX-License-Identifier: Apache-2.0
// Environment variables: each is declared once, with its default and its meaning, so that
// `anymps doctor` can list them all. A value that does not parse is an error, not a silent default.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace anymps {

struct EnvVariable {
  std::string name, default_value, doc;
  std::vector<std::string> words = {};  // all that its comma-separated value may hold; empty: any
};

// All variables the engine reads, sorted by name.
const std::vector<EnvVariable>& env_variables();

// Reads a declared variable. Sizes take the suffixes K, M, G (powers of 1024).
std::string env_string(const char* name);
std::vector<std::string> env_words(const char* name);  // comma-separated
bool env_contains(const char* name, const char* word);
int64_t env_int(const char* name);
double env_double(const char* name);
int64_t env_bytes(const char* name);

int64_t parse_bytes(const std::string& what, const std::string& text);

}  // namespace anymps
