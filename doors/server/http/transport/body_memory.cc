// SPDX-License-Identifier: Apache-2.0
#include "server/http/transport/body_memory.h"

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

namespace anymps::server::http {
namespace {

constexpr size_t kAlignment = 64;

struct Block {
  Block(size_t bytes, HeldBytes* held)
      : data(static_cast<std::byte*>(std::malloc(bytes))), charge(held) {
    if (!data) throw std::bad_alloc();
  }
  ~Block() { std::free(data); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::byte* data;
  HeldBytes::Charge charge;
};

size_t to_boundary(uintptr_t address) { return (kAlignment - address % kAlignment) % kAlignment; }

size_t json_bytes_of(const Head& head) {
  const std::string* header = head.header("Inference-Header-Content-Length");
  size_t bytes = 0;
  if (header) std::from_chars(header->data(), header->data() + header->size(), bytes);
  return bytes;
}

}  // namespace

std::pair<Buffer, HeldBytes::Charge*> allocate_body(const Head& head, size_t bytes,
                                                    HeldBytes* held) {
  auto block = std::make_shared<Block>(bytes + kAlignment, held);
  HeldBytes::Charge* charge = &block->charge;
  const auto address = reinterpret_cast<uintptr_t>(block->data);
  std::byte* data = block->data + to_boundary(address + json_bytes_of(head));
  return {Buffer{std::move(block), data, bytes}, charge};
}

}  // namespace anymps::server::http
