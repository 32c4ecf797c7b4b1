// SPDX-License-Identifier: Apache-2.0
// gRPC unpacks compressed messages before it looks how large they have become, so that a few
// kilobytes can fill the memory. The server therefore takes them packed and unpacks them itself, up
// to the limit.
#include "server/grpc/infer_message.h"

#include <fmt/format.h>
#include <zlib.h>

#include "server/core/clock.h"

namespace anymps::server {
namespace {

constexpr size_t kChunk = size_t{64} << 10;

// The magic number of gzip, or the head of a zlib stream, which gRPC calls deflate. No message
// begins like this: the first is no tag of protobuf, the second is one of a field that requests do
// not have.
bool is_packed(grpc::ByteBuffer& bytes) {
  grpc::ProtoBufferReader reader(&bytes);
  const void* data = nullptr;
  int size = 0;
  if (!reader.Next(&data, &size) || size < 2) return false;
  const auto* head = static_cast<const uint8_t*>(data);
  return (head[0] == 0x1f && head[1] == 0x8b) ||
         (head[0] == 0x78 && (head[0] * 256 + head[1]) % 31 == 0);
}

class Unpacker {
 public:
  Unpacker() { ok_ = inflateInit2(&stream_, 15 + 32) == Z_OK; }  // gzip or zlib, by its head
  ~Unpacker() { inflateEnd(&stream_); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  // False if it is not packed data or if there is more than `limit`: `text` then is longer.
  bool add(const grpc::Slice& slice, std::string& text, uint64_t limit) {
    stream_.next_in = const_cast<Bytef*>(slice.begin());
    stream_.avail_in = static_cast<uInt>(slice.size());
    stream_.avail_out = 0;
    while (ok_ && !ended_ && (stream_.avail_in > 0 || stream_.avail_out == 0)) {
      const size_t before = text.size();
      text.resize(before + kChunk);
      stream_.next_out = reinterpret_cast<Bytef*>(text.data() + before);
      stream_.avail_out = static_cast<uInt>(kChunk);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      text.resize(text.size() - stream_.avail_out);
      ended_ = result == Z_STREAM_END;
      // Z_BUF_ERROR: there was nothing left to do.
      ok_ = (ended_ || result == Z_OK || result == Z_BUF_ERROR) && text.size() <= limit;
    }
    return ok_;
  }
  bool ended() const { return ok_ && ended_; }

 private:
  z_stream stream_{};
  bool ok_ = false, ended_ = false;
};

grpc::Status too_large(uint64_t bytes, uint64_t limit) {
  return {grpc::StatusCode::RESOURCE_EXHAUSTED,
          fmt::format("Received message larger than max ({} vs. {})", bytes, limit)};
}

const grpc::Status& no_room() {
  static const grpc::Status status(grpc::StatusCode::UNAVAILABLE,
                                   "the server holds as many requests as it may: try again");
  return status;
}

const grpc::Status& unreadable() {
  static const grpc::Status status(grpc::StatusCode::INTERNAL, "Unable to parse request");
  return status;
}

}  // namespace

grpc::Status InferMessage::parse(grpc::ByteBuffer& bytes, uint64_t limit, HeldBytes* held) {
  charge_ = HeldBytes::Charge(held);
  if (!charge_.grow(bytes.Length())) return no_room();
  if (!is_packed(bytes)) {
    const bool read =
        grpc::SerializationTraits<inference::ModelInferRequest>::Deserialize(&bytes, &message_)
            .ok();
    return read ? grpc::Status::OK : unreadable();
  }
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return unreadable();
  bytes.Clear();
  std::string text;
  Unpacker unpacker;
  for (const grpc::Slice& slice : slices) {
    const size_t before = text.size();
    if (!unpacker.add(slice, text, limit))
      return text.size() > limit ? too_large(text.size(), limit) : unreadable();
    if (!charge_.grow(text.size() - before)) return no_room();
  }
  return unpacker.ended() && message_.ParseFromString(text) ? grpc::Status::OK : unreadable();
}

RequestPtr InferMessage::decode(const std::shared_ptr<InferMessage>& self,
                                const SharedMemory& memory) {
  const uint64_t received = now_ns();
  RequestPtr request = decode_infer({self, &self->message_}, memory);
  request->times.received = received;
  request->cancelled = {self, &self->cancelled};
  return request;
}

}  // namespace anymps::server
