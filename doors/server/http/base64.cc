// SPDX-License-Identifier: Apache-2.0
// OpenSSL decodes. It takes other things for white space than we do, and its lengths are ints, so
// what it gets are whole groups of four characters that have been looked at.
#include "server/http/base64.h"

#include <openssl/evp.h>

#include <algorithm>
#include <iterator>

#include "serving/error.h"

namespace anymps::server::http {

std::string decode_base64(std::string_view text) {
  constexpr std::string_view kSpace = "\n\r \t";
  constexpr size_t kPiece = size_t{1} << 24;  // a multiple of four
  std::string digits;
  digits.reserve(text.size() + 3);
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits),
               [&](char c) { return kSpace.find(c) == kSpace.npos; });
  digits.erase(digits.find_last_not_of('=') + 1);
  serving::check(std::all_of(digits.begin(), digits.end(),
                             [](unsigned char c) {
                               return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                                      (c >= '0' && c <= '9') || c == '+' || c == '/';
                             }),
                 "a file of the load request is not base64");
  const size_t bytes = digits.size() / 4 * 3 + digits.size() % 4 * 6 / 8;
  digits.resize((digits.size() + 3) / 4 * 4, 'A');  // zeros, for a last group that is not whole
  std::string out(digits.size() / 4 * 3, 0);
  const auto* from = reinterpret_cast<const unsigned char*>(digits.data());
  auto* to = reinterpret_cast<unsigned char*>(out.data());
  for (size_t at = 0; at < digits.size(); at += kPiece)
    EVP_DecodeBlock(to + at / 4 * 3, from + at,
                    static_cast<int>(std::min(kPiece, digits.size() - at)));
  out.resize(bytes);
  return out;
}

}  // namespace anymps::server::http
