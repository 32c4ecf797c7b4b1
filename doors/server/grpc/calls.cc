// SPDX-License-Identifier: Apache-2.0
#include "server/grpc/calls.h"

#include <iterator>

namespace anymps::server {
namespace {

constexpr size_t kMostCalls = 4096;  // of inference and Watch, over all connections

}  // namespace

grpc::Status to_status(const Error& error) {
  using grpc::StatusCode;
  static constexpr StatusCode kCodes[] = {StatusCode::UNKNOWN,        StatusCode::INTERNAL,
                                          StatusCode::NOT_FOUND,      StatusCode::INVALID_ARGUMENT,
                                          StatusCode::UNAVAILABLE,    StatusCode::UNIMPLEMENTED,
                                          StatusCode::ALREADY_EXISTS, StatusCode::CANCELLED};
  static_assert(std::size(kCodes) == static_cast<size_t>(Code::kCancelled) + 1);
  return {kCodes[static_cast<size_t>(error.code())], error.what()};
}

grpc::ByteBuffer to_bytes(Wire&& wire) {
  std::vector<grpc::Slice> slices;
  slices.reserve(wire.parts.size());
  for (Wire::Part& part : wire.parts) {
    if (!part.bytes.empty()) {
      slices.emplace_back(part.bytes);
      continue;
    }
    auto* owner = new std::shared_ptr<void>(std::move(part.tensor.owner));
    slices.emplace_back(
        part.tensor.data, part.tensor.bytes,
        [](void* held) { delete static_cast<std::shared_ptr<void>*>(held); }, owner);
  }
  return {slices.data(), slices.size()};
}

void Calls::began() {
  const std::lock_guard lock(mutex_);
  ++alive_;
}

void Calls::ended() {
  const std::lock_guard lock(mutex_);
  if (--alive_ == 0) none_.notify_all();
}

grpc::Status Calls::check_room() const {
  if (alive() <= kMostCalls) return grpc::Status::OK;
  return {grpc::StatusCode::UNAVAILABLE, "the server has as many calls as it may: try again"};
}

void Calls::add(std::shared_ptr<LongCall> call) {
  const std::lock_guard lock(mutex_);
  LongCall* key = call.get();
  long_calls_.emplace(key, std::move(call));
}

void Calls::remove(LongCall* call) {
  const std::lock_guard lock(mutex_);
  long_calls_.erase(call);
}

bool Calls::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

void Calls::drain() {
  std::vector<std::shared_ptr<LongCall>> calls;
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
    for (const auto& [key, call] : long_calls_) calls.push_back(call);
  }
  for (const auto& call : calls) call->drain();
}

void Calls::wait_for_none() {
  std::unique_lock lock(mutex_);
  none_.wait(lock, [&] { return alive_ == 0; });
}

}  // namespace anymps::server
