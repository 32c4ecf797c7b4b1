// SPDX-License-Identifier: Apache-2.0
#include "server/http/transport/message.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "server/http/json_writer.h"

namespace anymps::server::http {
namespace {

constexpr size_t kUsualFields = 12;

constexpr std::array<bool, 256> kTokens = [] {
  std::array<bool, 256> tokens{};
  for (const unsigned char c : std::string_view("!#$%&'*+-.^_`|~")) tokens[c] = true;
  for (size_t c = '0'; c <= '9'; ++c) tokens[c] = true;
  for (size_t c = 'a'; c <= 'z'; ++c) tokens[c] = tokens[c - 'a' + 'A'] = true;
  return tokens;
}();

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return kTokens[static_cast<unsigned char>(c)];
  });
}

bool is_control(char c) {
  const unsigned char u = static_cast<unsigned char>(c);
  return (u < 0x20 && c != '\t') || u == 0x7F;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool same_letters(const char* a, const char* b, size_t count) {
  return std::equal(a, a + count, b, [](char x, char y) { return lower(x) == lower(y); });
}

inline bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && same_letters(a.data(), b.data(), a.size());
}

// Whether a list of tokens has this one.
bool lists(std::string_view header, std::string_view token) {
  while (!header.empty()) {
    const size_t comma = std::min(header.find(','), header.size());
    if (same(trim(header.substr(0, comma)), token)) return true;
    header.remove_prefix(std::min(comma + 1, header.size()));
  }
  return false;
}

void parse_request_line(std::string_view line, Head& head, bool& old) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last)
    throw BadMessage{400, "malformed request line"};
  const std::string_view method = line.substr(0, first), version = line.substr(last + 1);
  std::string_view target = line.substr(first + 1, last - first - 1);
  if (!is_token(method)) throw BadMessage{400, "malformed method"};
  if (version == "HTTP/1.0")
    old = true;
  else if (version != "HTTP/1.1")
    throw BadMessage{505, "HTTP/1.1 is needed"};
  head.method = method == "GET"       ? Method::kGet
                : method == "POST"    ? Method::kPost
                : method == "HEAD"    ? Method::kHead
                : method == "OPTIONS" ? Method::kOptions
                                      : Method::kOther;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;  // the absolute form, for proxies
    target.remove_prefix(scheme.size());
    const size_t slash = target.find('/');
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  if (target.empty() || (target[0] != '/' && target != "*") ||
      std::any_of(target.begin(), target.end(), [](char c) { return c == ' ' || is_control(c); }))
    throw BadMessage{400, "malformed request target"};
  head.path = target.substr(0, target.find_first_of("?#"));
}

}  // namespace

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

const std::string* Head::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (same(key, name)) return &value;
  return nullptr;
}

std::optional<std::pair<Head, size_t>> parse_head(std::string_view text) {
  // An empty line or two before a request are left over from sloppy clients.
  size_t begin = 0;
  while (begin < 4 && text.substr(begin).starts_with("\r\n")) begin += 2;
  const size_t end = text.find("\r\n\r\n", begin);
  if (end == std::string_view::npos) {
    if (text.size() - begin > kMaxHeadBytes)
      throw BadMessage{
          431, "the header fields are larger than " + std::to_string(kMaxHeadBytes) + " bytes"};
    return std::nullopt;
  }
  if (end - begin > kMaxHeadBytes)
    throw BadMessage{
        431, "the header fields are larger than " + std::to_string(kMaxHeadBytes) + " bytes"};
  std::string_view lines = text.substr(begin, end - begin);
  Head head;
  bool old = false;
  size_t line_end = std::min(lines.find("\r\n"), lines.size());
  parse_request_line(lines.substr(0, line_end), head, old);
  bool has_length = false;
  std::string_view connection;
  head.keep_alive = !old;
  head.headers.reserve(kUsualFields);
  while (line_end < lines.size()) {
    lines.remove_prefix(line_end + 2);
    line_end = std::min(lines.find("\r\n"), lines.size());
    const std::string_view line = lines.substr(0, line_end);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon)))
      throw BadMessage{400, "malformed header field"};
    const std::string_view name = line.substr(0, colon), value = trim(line.substr(colon + 1));
    if (std::any_of(value.begin(), value.end(), is_control))
      throw BadMessage{400, "malformed value of header field"};
    if (same(name, "content-length")) {
      uint64_t length = 0;
      const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), length);
      if (error != std::errc() || rest != value.data() + value.size() ||
          (has_length && length != head.content_length))
        throw BadMessage{400, "malformed Content-Length"};
      has_length = true;
      head.content_length = length;
    } else if (same(name, "transfer-encoding")) {
      if (head.chunked || !same(value, "chunked"))
        throw BadMessage{501, "only the transfer encoding 'chunked' is known"};
      head.chunked = true;
    } else if (same(name, "connection")) {
      if (lists(value, "close"))
        head.keep_alive = false;
      else if (old && lists(value, "keep-alive"))
        head.keep_alive = true;
    } else if (same(name, "expect")) {
      if (!same(value, "100-continue")) throw BadMessage{417, "unknown expectation"};
      head.expects_continue = !old;
    }
    if (head.headers.size() == kMaxFields)
      throw BadMessage{431, "there are more than " + std::to_string(kMaxFields) + " header fields"};
    head.headers.emplace_back(name, value);
  }
  if (head.chunked && (has_length || old))
    throw BadMessage{400, "a body has either a Content-Length or a Transfer-Encoding"};
  return std::pair(std::move(head), end + 4);
}

bool ChunkReader::take_line(std::string_view text, size_t& used) {
  constexpr size_t kMaxLine = 4096;
  const size_t feed = text.find('\n', used);
  const size_t end = std::min(feed, text.size());
  line_.append(text.substr(used, end - used));
  if (line_.size() > kMaxLine) throw BadMessage{400, "malformed chunk"};
  used = end;
  if (feed == std::string_view::npos) return false;
  ++used;
  if (line_.empty() || line_.back() != '\r') throw BadMessage{400, "malformed chunk"};
  line_.pop_back();
  return true;
}

size_t ChunkReader::feed(std::string_view text, std::string& body, uint64_t limit) {
  size_t used = 0;
  while (used < text.size() && state_ != State::kDone) {
    if (state_ == State::kData) {
      const size_t part = std::min<uint64_t>(left_, text.size() - used);
      body.append(text.substr(used, part));
      used += part;
      left_ -= part;
      if (left_ == 0) state_ = State::kDataEnd;
      continue;
    }
    if (!take_line(text, used)) break;
    if (state_ == State::kSize) {
      const std::string_view size = trim(std::string_view(line_).substr(0, line_.find(';')));
      const auto [rest, error] = std::from_chars(size.data(), size.data() + size.size(), left_, 16);
      if (error != std::errc() || rest != size.data() + size.size())
        throw BadMessage{400, "malformed chunk"};
      if (left_ > limit || body.size() > limit - left_)
        throw BadMessage{413, "the request is larger than " + std::to_string(limit) + " bytes"};
      state_ = left_ == 0 ? State::kTrailer : State::kData;
    } else if (state_ == State::kDataEnd) {
      if (!line_.empty()) throw BadMessage{400, "malformed chunk"};
      state_ = State::kSize;
    } else if (line_.empty()) {
      state_ = State::kDone;
    } else if ((trailer_bytes_ += line_.size()) > kMaxHeadBytes) {
      throw BadMessage{
          431, "the trailer fields are larger than " + std::to_string(kMaxHeadBytes) + " bytes"};
    }
    line_.clear();
  }
  return used;
}

size_t Reply::body_bytes() const {
  size_t bytes = 0;
  for (const Buffer& piece : body) bytes += piece.bytes;
  return bytes;
}

Reply text_reply(int status, std::string_view content_type, std::string body) {
  Reply reply{status, content_type, {}, {}};
  if (!body.empty()) reply.body.push_back(own(std::move(body)));
  return reply;
}

Reply error_reply(int status, std::string_view message) {
  return text_reply(status, "application/json", error_json(message));
}

Reply error_reply(const Error& error) { return error_reply(status_of(error.code()), error.what()); }

int status_of(Code code) {
  switch (code) {
    case Code::kInternal:
      return 500;
    case Code::kNotFound:
      return 404;
    case Code::kUnavailable:
      return 503;
    case Code::kUnsupported:
      return 501;
    default:
      return 400;
  }
}

std::string_view reason(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 417:
      return "Expectation Failed";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

std::string head_of(const Reply& reply, bool keep_alive) {
  std::string head = "HTTP/1.1 ";
  head.reserve(192);
  head.append(std::to_string(reply.status)).append(" ").append(reason(reply.status));
  if (!reply.content_type.empty()) head.append("\r\nContent-Type: ").append(reply.content_type);
  for (const auto& [name, value] : reply.headers)
    head.append("\r\n").append(name).append(": ").append(value);
  if (reply.chunked)
    head.append("\r\nTransfer-Encoding: chunked");
  else
    head.append("\r\nContent-Length: ").append(std::to_string(reply.body_bytes()));
  if (!keep_alive) head.append("\r\nConnection: close");
  head.append("\r\n\r\n");
  return head;
}

std::optional<std::string> decode_segment(std::string_view text) {
  if (text.find('%') == std::string_view::npos) return std::string(text);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    unsigned value = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [rest, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc() || digits.size() != 2 || rest != digits.data() + 2)
      return std::nullopt;
    out.push_back(static_cast<char>(value));
    i += 2;
  }
  return out;
}

}  // namespace anymps::server::http
