// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/trial.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/plan.h"

namespace anymps {

namespace {

constexpr int64_t kTellingElements = 64;  // fewer may be the same bits by accident
constexpr DTypeSet kMadeUp = kFloat | kComplex | kBoolean | bit(DType::kI8) | bit(DType::kU8);

// The same numbers each time. Neither their order nor their quality matters.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}
  double next() {  // in 0..1
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) * 0x1p-24;
  }

 private:
  uint64_t state_;
};

template <typename T>
T element(double value) {
  if constexpr (kIsComplexType<T>)
    return T(static_cast<typename T::value_type>(value), 0);
  else
    return static_cast<T>(static_cast<Compute<T>>(value));
}

Domain domain_of(const Op& op, size_t input) {
  const std::string& name = op.inputs[std::min(input, op.inputs.size() - 1)].name;
  for (const auto& [of, domain] : op.test.input_domains)
    if (of == name) return domain;
  return op.test.domain;
}

size_t touch(std::span<const char> bytes) {
  size_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 64) sum += static_cast<unsigned char>(bytes[i]);
  return sum;
}

void keep([[maybe_unused]] size_t sum) { asm volatile("" : : "r"(sum)); }

}  // namespace

bool Trial::possible(const KernelRequest& request) {
  for (size_t i = 0; i < request.inputs.size(); ++i)
    if (request.has(i) && !request.constant(i) && !contains(kMadeUp, request.in(i).dtype))
      return false;
  return std::all_of(request.outputs.begin(), request.outputs.end(), [](const TensorDesc& desc) {
    return contains(kAny, desc.dtype) && desc.contiguous() && desc.count() > 0;
  });
}

Trial::Trial(Device& device, const KernelRequest& request, const BufferRef& other, int threads)
    : device_(device), request_(request), other_(other), threads_(threads) {
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    inputs_.push_back(nullptr);
    if (!request.has(i)) continue;
    if (const Constant* constant = request.constant(i)) {
      auto bytes = constant->data();
      inputs_[i] = const_cast<std::byte*>(bytes.get());
      held_.push_back(std::move(bytes));
      continue;
    }
    BufferRef buffer;
    inputs_[i] = place(request.in(i), buffer);
    fill(i, buffer->data());
  }
  for (const TensorDesc& desc : request.outputs)
    for (std::vector<void*>* results : {&results_, &expected_}) {
      BufferRef buffer;
      results->push_back(place(desc, buffer));
      std::memset(buffer->data(), 0, desc.bytes());  // kernels need not be the first to touch it
    }
}

// Memory for a tensor; returns where its element [0, …, 0] is.
void* Trial::place(const TensorDesc& desc, BufferRef& buffer) {
  const Span span = span_of(desc);
  const auto size = static_cast<int64_t>(size_of(desc.dtype));
  const int64_t low = span.high < span.low ? 0 : span.low;
  const int64_t count = span.high < span.low ? 0 : span.high - span.low + 1;
  buffer = device_.allocator().allocate(static_cast<size_t>(count * size));
  held_.push_back(buffer);
  return static_cast<char*>(buffer->data()) - low * size;
}

void Trial::fill(size_t input, void* data) {
  const TensorDesc& desc = request_.in(input);
  const Span span = span_of(desc);
  const int64_t count = std::max<int64_t>(span.high - span.low + 1, 0);
  const Domain domain = domain_of(*request_.op, input);
  Numbers numbers(input + 1);
  dispatch<kMadeUp>(desc.dtype, [&]<typename T>() {
    for (int64_t i = 0; i < count; ++i) {
      const double number = numbers.next();
      static_cast<T*>(data)[i] =
          sizeof(T) == 1
              ? element<T>(static_cast<int>(number * (dtype_of<T> == DType::kBool ? 2 : 128)))
              : element<T>(domain.low + number * (domain.high - domain.low));
    }
  });
  made_.emplace_back(static_cast<const char*>(data),
                     static_cast<size_t>(count) * size_of(desc.dtype));
}

// Each thread reads a part, so that its core's own cache is another one's afterwards.
void Trial::read_other() const {
  if (!other_) return;
  const std::span<const char> all(static_cast<const char*>(other_->data()), other_->size());
  const auto parts = static_cast<size_t>(threads_);
  device_.driver().parallel(parts, threads_, [&](size_t part) {
    keep(touch(all.subspan(part * (all.size() / parts), all.size() / parts)));
  });
}

// A node's inputs are what the node before has just written.
void Trial::read_inputs() const {
  for (const std::span<const char> bytes : made_) keep(touch(bytes));
}

double Trial::run(const Kernel& kernel, int times) {
  using Clock = std::chrono::steady_clock;
  if (kernel.scratch_bytes() > (scratch_ ? scratch_->size() : 0))
    scratch_ = device_.allocator().allocate(kernel.scratch_bytes());
  const KernelArgs args{inputs_.data(), results_.data(), scratch_ ? scratch_->data() : nullptr,
                        &device_.queue()};
  read_other();
  read_inputs();
  const auto start = Clock::now();
  for (int i = 0; i < times; ++i) kernel.run(args);
  return std::chrono::duration<double>(Clock::now() - start).count() / times;
}

void Trial::expect() { std::swap(results_, expected_); }

Trial::Agreement Trial::agreement() const {
  Agreement found{{}, true};
  for (size_t i = 0; i < results_.size() && found.difference.empty(); ++i) {
    const TensorDesc& desc = request_.outputs[i];
    const bool same = std::memcmp(results_[i], expected_[i], desc.bytes()) == 0;
    found.same_bits = found.same_bits && same && desc.count() >= kTellingElements;
    if (!same)
      found.difference = result_difference(request_, i, inputs_.data(), results_[i], expected_[i]);
  }
  return found;
}

}  // namespace anymps
