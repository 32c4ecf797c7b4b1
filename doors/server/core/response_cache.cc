// SPDX-License-Identifier: Apache-2.0
// Keys are written so that no two different requests have the same one: every text and every list
// has its length before it. Inputs go in by name, whatever order the client sent them in.
#include "server/core/response_cache.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace anymps::server {
namespace {

// What an entry costs beside its key and its elements.
constexpr uint64_t kEntryOverhead = 256;

void put(std::string& key, uint64_t number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  key.append(bytes, sizeof number);
}

void put(std::string& key, std::string_view text) {
  put(key, uint64_t{text.size()});
  key.append(text);
}

__extension__ using Wide = unsigned __int128;

uint64_t mix(uint64_t a, uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t load(const char* data) {
  uint64_t word;
  std::memcpy(&word, data, sizeof word);
  return word;
}

}  // namespace

// Folded 64 x 64 -> 128 bit products over 16 bytes at a time.
size_t ResponseCache::Hash::operator()(std::string_view text) const {
  constexpr uint64_t kFirst = 0x9e3779b97f4a7c15, kSecond = 0xd6e8feb86659fd93;
  const char* data = text.data();
  size_t left = text.size();
  uint64_t state = seed ^ kFirst;
  for (; left >= 16; left -= 16, data += 16)
    state = mix(load(data) ^ kSecond ^ state, load(data + 8) ^ kFirst ^ (state >> 32));
  char tail[16] = {};
  std::memcpy(tail, data, left);
  state = mix(load(tail) ^ kFirst ^ state, load(tail + 8) ^ kSecond);
  return mix(state ^ text.size(), kSecond ^ seed);
}

ResponseCache::ResponseCache(uint64_t capacity_bytes)
    : capacity_(capacity_bytes),
      by_key_(0, Hash{(uint64_t{std::random_device{}()} << 32) | std::random_device{}()}) {
  usage_.capacity = capacity_bytes;
}

std::string ResponseCache::key(const Request& request) const {
  if (!enabled() || request.in_sequence()) return {};
  for (const RequestedOutput& output : request.outputs)
    if (output.target.data) return {};
  size_t bytes = 64 + request.model.size();
  std::vector<const InputTensor*> inputs;
  inputs.reserve(request.inputs.size());
  for (const InputTensor& input : request.inputs) {
    inputs.push_back(&input);
    bytes += 64 + input.name.size() + 8 * input.shape.size();
    for (const Buffer& buffer : input.buffers) bytes += buffer.bytes;
  }
  // Larger than the cache: nothing that it could keep.
  if (bytes > capacity_) return {};
  std::sort(inputs.begin(), inputs.end(),
            [](const InputTensor* a, const InputTensor* b) { return a->name < b->name; });

  std::string key;
  key.reserve(bytes);
  put(key, request.model);
  put(key, static_cast<uint64_t>(request.version));
  put(key, uint64_t{inputs.size()});
  for (const InputTensor* input : inputs) {
    put(key, input->name);
    put(key, static_cast<uint64_t>(input->dtype));
    put(key, uint64_t{input->shape.size()});
    for (int64_t extent : input->shape) put(key, static_cast<uint64_t>(extent));
    size_t total = 0;
    for (const Buffer& buffer : input->buffers) total += buffer.bytes;
    put(key, uint64_t{total});
    for (const Buffer& buffer : input->buffers)
      if (buffer.bytes) key.append(reinterpret_cast<const char*>(buffer.data), buffer.bytes);
  }
  put(key, uint64_t{request.outputs.size()});
  for (const RequestedOutput& output : request.outputs) {
    put(key, output.name);
    put(key, uint64_t{output.classes});
  }
  return key;
}

std::optional<Response> ResponseCache::find(const std::string& key) {
  if (key.empty()) return std::nullopt;
  std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    ++usage_.misses;
    return std::nullopt;
  }
  ++usage_.hits;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->response;
}

void ResponseCache::insert(const std::string& key, const Response& response) {
  if (key.empty() || response.error) return;
  uint64_t elements = 0;
  for (const OutputTensor& output : response.outputs) elements += output.data.bytes;
  const uint64_t bytes = key.size() + elements + kEntryOverhead;
  if (bytes > capacity_) return;

  // A copy: the answer's own memory may be part of a larger block, which would stay alive with it.
  Entry entry{key, response.model, response, bytes};
  entry.response.id.clear();
  std::shared_ptr<std::byte[]> block(new std::byte[elements]);
  size_t offset = 0;
  for (OutputTensor& output : entry.response.outputs) {
    const Buffer source = output.data;
    output.data = {block, block.get() + offset, source.bytes};
    if (source.bytes) std::memcpy(output.data.data, source.data, source.bytes);
    offset += source.bytes;
  }

  std::list<Entry> added;
  added.push_back(std::move(entry));
  std::lock_guard lock(mutex_);
  if (by_key_.contains(key)) return;
  while (usage_.bytes + bytes > capacity_) {
    drop(std::prev(entries_.end()));
    ++usage_.evictions;
  }
  entries_.splice(entries_.begin(), added);
  by_key_.emplace(entries_.front().key, entries_.begin());
  usage_.bytes += bytes;
  ++usage_.entries;
}

void ResponseCache::drop(std::list<Entry>::iterator entry) {
  by_key_.erase(entry->key);
  usage_.bytes -= entry->bytes;
  --usage_.entries;
  entries_.erase(entry);
}

void ResponseCache::forget_model(const std::string& model) {
  std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (entry->model == model) drop(entry);
    entry = next;
  }
}

ResponseCache::Usage ResponseCache::usage() const {
  std::lock_guard lock(mutex_);
  return usage_;
}

}  // namespace anymps::server
