// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 on the wire: heads of requests, chunked bodies, heads of responses. Strict where
// leniency lets requests be smuggled past a proxy (both lengths at once, bare line feeds, folded
// headers). Knows nothing of sockets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/core/request.h"

namespace anymps::server::http {

// A request that cannot be understood: answered with this status, then the connection is closed.
struct BadMessage {
  int status = 400;
  std::string what;
};

// A value without the blanks around it.
std::string_view trim(std::string_view text);

enum class Method { kGet, kPost, kHead, kOptions, kOther };

struct Head {
  Method method = Method::kOther;
  std::string path;  // without the query
  std::vector<std::pair<std::string, std::string>> headers;
  bool keep_alive = true;
  bool expects_continue = false;
  bool chunked = false;
  uint64_t content_length = 0;

  // Case does not matter; nullptr: not there.
  const std::string* header(std::string_view name) const;
};

// The head at the beginning of `text` and how many bytes it takes; nullopt: more must come. Throws
// BadMessage.
constexpr size_t kMaxHeadBytes = 64 * 1024, kMaxFields = 128;
std::optional<std::pair<Head, size_t>> parse_head(std::string_view text);

// Takes a chunked body apart as it comes.
class ChunkReader {
 public:
  // How much of `text` was used; appends to `body`. Throws BadMessage (also if the body becomes
  // larger than `limit`).
  size_t feed(std::string_view text, std::string& body, uint64_t limit);
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State { kSize, kData, kDataEnd, kTrailer, kDone } state_ = State::kSize;
  std::string line_;
  uint64_t left_ = 0;
  size_t trailer_bytes_ = 0;
  bool take_line(std::string_view text, size_t& used);
};

// What goes back to a client.
struct Reply {
  int status = 200;
  std::string_view content_type = "application/json";  // "": no such header
  std::vector<std::pair<std::string_view, std::string>> headers;
  std::vector<Buffer> body;
  bool chunked = false;  // sent as one chunk, as Triton does for the generate extension

  size_t body_bytes() const;
};
Reply text_reply(int status, std::string_view content_type, std::string body);
Reply error_reply(int status, std::string_view message);
Reply error_reply(const Error& error);
int status_of(Code code);
std::string_view reason(int status);

std::string head_of(const Reply& reply, bool keep_alive);

// Said to connections that there is no room for.
constexpr std::string_view kFull = "the server has as many connections as it may: try again";

// Percent-decodes; nullopt if it is malformed.
std::optional<std::string> decode_segment(std::string_view text);

}  // namespace anymps::server::http
