// SPDX-License-Identifier: Apache-2.0
#include "server/http/transport/compression.h"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

#include "server/http/transport/message.h"

namespace anymps::server::http {
namespace {

constexpr int kGzipWindow = 15 + 16, kEitherWindow = 15 + 32, kZlibWindow = 15;
constexpr size_t kFirst = 64 * 1024;

uInt step(size_t bytes) {
  return static_cast<uInt>(std::min<size_t>(bytes, std::numeric_limits<uInt>::max()));
}

struct Inflater {
  z_stream stream{};
  Inflater() {
    if (inflateInit2(&stream, kEitherWindow) != Z_OK)
      throw Error(Code::kInternal, "failed to initialize state for data decompression");
  }
  ~Inflater() { inflateEnd(&stream); }
};

struct Deflater {
  z_stream stream{};
  explicit Deflater(Encoding encoding) {
    const int window = encoding == Encoding::kGzip ? kGzipWindow : kZlibWindow;
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
      throw Error(Code::kInternal, "failed to initialize state for data compression");
  }
  ~Deflater() { deflateEnd(&stream); }
};

}  // namespace

std::optional<Encoding> parse_encoding(std::string_view header) {
  header = trim(header);
  if (header.empty() || header == "identity") return Encoding::kIdentity;
  if (header == "gzip") return Encoding::kGzip;
  if (header == "deflate") return Encoding::kDeflate;
  return std::nullopt;
}

std::string_view encoding_name(Encoding encoding) {
  return encoding == Encoding::kGzip      ? "gzip"
         : encoding == Encoding::kDeflate ? "deflate"
                                          : "identity";
}

Encoding preferred_encoding(std::string_view accept) {
  Encoding best = Encoding::kIdentity;
  double best_weight = 0;
  while (!accept.empty()) {
    const size_t comma = std::min(accept.find(','), accept.size());
    std::string_view part = accept.substr(0, comma);
    accept.remove_prefix(std::min(comma + 1, accept.size()));
    double weight = 1;
    if (const size_t q = part.find(";q="); q != std::string_view::npos) {
      const std::string_view number = part.substr(q + 3);
      if (std::from_chars(number.data(), number.data() + number.size(), weight).ec != std::errc())
        continue;
      part = part.substr(0, q);
    }
    part = trim(part);
    const std::optional<Encoding> encoding = part.empty() ? std::nullopt : parse_encoding(part);
    if (encoding && weight > best_weight) {
      best = *encoding;
      best_weight = weight;
    }
  }
  return best;
}

Buffer inflate_body(const Buffer& body, Encoding encoding, size_t limit, HeldBytes* held) {
  if (encoding == Encoding::kIdentity) return body;
  struct Inflated {
    std::string bytes;
    HeldBytes::Charge charge;
  };
  auto owner = std::make_shared<Inflated>();
  owner->charge = HeldBytes::Charge(held);
  Inflater inflater;
  z_stream& stream = inflater.stream;
  std::string& out = owner->bytes;
  size_t given = 0, filled = 0;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    if (stream.avail_in == 0 && given < body.bytes) {
      stream.next_in = reinterpret_cast<Bytef*>(body.data + given);
      stream.avail_in = step(body.bytes - given);
      given += stream.avail_in;
    }
    if (filled == out.size()) {
      if (filled > limit)
        throw Error(Code::kInvalidArgument,
                    "the decompressed request is larger than " + std::to_string(limit) + " bytes");
      // One byte beyond the limit, to tell what just fits from what does not.
      const size_t size = std::min(std::max({kFirst, out.size() * 2, body.bytes}), limit + 1);
      if (!owner->charge.grow(size - out.size()))
        throw Error(Code::kUnavailable, "the server holds as many requests as it may: try again");
      out.resize(size);
    }
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
    stream.avail_out = step(out.size() - filled);
    const uInt room = stream.avail_out;
    status = ::inflate(&stream, Z_NO_FLUSH);
    filled += room - stream.avail_out;
    if (status != Z_OK && status != Z_STREAM_END &&
        !(status == Z_BUF_ERROR && (stream.avail_out == 0 || given < body.bytes)))
      throw Error(Code::kInvalidArgument,
                  "failed to decompress the request: " +
                      std::string(stream.msg ? stream.msg : "it ends too early"));
  }
  if (filled > limit)
    throw Error(Code::kInvalidArgument,
                "the decompressed request is larger than " + std::to_string(limit) + " bytes");
  auto* data = reinterpret_cast<std::byte*>(out.data());
  return {std::move(owner), data, filled};
}

Buffer deflate_body(std::span<const Buffer> pieces, Encoding encoding) {
  Deflater deflater(encoding);
  z_stream& stream = deflater.stream;
  std::string out;
  size_t filled = 0;
  const auto run = [&](int flush) {
    int status = Z_OK;
    do {
      if (filled == out.size()) out.resize(std::max(kFirst, out.size() * 2));
      stream.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
      stream.avail_out = step(out.size() - filled);
      const uInt room = stream.avail_out;
      status = ::deflate(&stream, flush);
      filled += room - stream.avail_out;
      if (status == Z_STREAM_ERROR) throw Error(Code::kInternal, "failed to compress the response");
    } while (flush == Z_FINISH ? status != Z_STREAM_END : stream.avail_in > 0);
  };
  for (const Buffer& piece : pieces) {
    for (size_t at = 0; at < piece.bytes;) {
      stream.next_in = reinterpret_cast<Bytef*>(piece.data + at);
      stream.avail_in = step(piece.bytes - at);
      at += stream.avail_in;
      run(Z_NO_FLUSH);
    }
  }
  run(Z_FINISH);
  out.resize(filled);
  return own(std::move(out));
}

}  // namespace anymps::server::http
