// SPDX-License-Identifier: Apache-2.0
#include "runtime/eager/window.h"

#include <cstring>

namespace anymps {

namespace {

constexpr int kNoPlace = -1;
// A pass has a value for each place that it reads and up to two for each call.
constexpr int kMostValues = 48;
const char kWindowKey = 0;  // its address: keys of windows are not those of ops

// Not std::equal: for one or two axes the call of memcmp costs more than all the rest.
bool equal(std::span<const int64_t> known, const int64_t* given) {
  for (size_t i = 0; i < known.size(); ++i)
    if (known[i] != given[i]) return false;
  return true;
}

bool describes(const TensorDesc& desc, const TensorView& view) {
  if (view.dtype != desc.dtype || view.rank != desc.rank()) return false;
  if (!equal(desc.shape, view.dims)) return false;
  return view.strides ? equal(desc.strides, view.strides) : desc.contiguous();
}

bool same(const TensorDesc* a, const TensorDesc* b) {
  return a == b || (a->dtype == b->dtype && a->rank() == b->rank() &&
                    equal(a->shape, b->shape.data()) && equal(a->strides, b->strides.data()));
}

}  // namespace

int CallWindow::add_place(const Place& place) {
  if (count_ == kMostPlaces) return kNoPlace;
  places_[count_] = place;
  return count_++;
}

// The place in memory, there already or new; kNoPlace where it shares memory with another one that
// is, or would be, written.
int CallWindow::find(const Place& wanted, bool writes) {
  int found = kNoPlace;
  for (int i = 0; i < count_; ++i) {
    const Place& place = places_[i];
    if (place.end <= wanted.begin || wanted.end <= place.begin) continue;
    if (place.data == wanted.data && same(place.desc, wanted.desc))
      found = i;
    else if (writes || place.written)
      return kNoPlace;
  }
  return found != kNoPlace ? found : add_place(wanted);
}

int CallWindow::find(const EagerEntry& entry, size_t i, const TensorView& input) {
  const TensorDesc* desc = &*entry.call.request.inputs[i];
  const ByteRange& reach = entry.input_reach[i];
  char* data = static_cast<char*>(input.data);
  Place wanted{desc, data, data + reach.begin, data + reach.end};
  const size_t size = size_of(desc->dtype);
  if (reach.end - reach.begin != static_cast<int64_t>(size)) {
    const int place = find(wanted, false);
    if (place != kNoPlace && !places_[place].written) places_[place].read = true;
    return place;
  }
  // One element is read at the call, so that a number may come from anywhere, even the stack;
  // unless a call in the window makes it.
  int known = kNoPlace;
  for (int k = 0; k < count_; ++k) {
    const Place& place = places_[k];
    if (place.origin == data && same(place.desc, desc) &&
        std::memcmp(elements_[k].bytes, data, size) == 0)
      known = k;
    if (place.end <= wanted.begin || wanted.end <= place.begin || !place.written) continue;
    return place.data == data && same(place.desc, desc) ? k : kNoPlace;
  }
  if (known != kNoPlace) return known;
  if (count_ == kMostPlaces) return kNoPlace;
  std::byte* element = elements_[count_].bytes;
  std::memcpy(element, data, size);
  wanted.data = reinterpret_cast<char*>(element);
  wanted.begin = wanted.end = nullptr;
  wanted.origin = data;
  wanted.read = true;
  return add_place(wanted);
}

const std::shared_ptr<EagerEntry>* CallWindow::expected(const BoundOp& op,
                                                        std::span<const TensorView> inputs,
                                                        std::span<const TensorView> outputs) const {
  if (size_ == kMostCalls || calls_[size_].op != op.id) return nullptr;
  const EagerEntry& entry = *calls_[size_].entry;
  const auto& known = entry.call.request.inputs;
  if (entry.fixed || inputs.size() != known.size() || outputs.size() != 1) return nullptr;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (known[i] ? !describes(*known[i], inputs[i]) : !inputs[i].absent()) return nullptr;
  return describes(entry.written[0], outputs[0]) ? &calls_[size_].entry : nullptr;
}

bool CallWindow::add(const std::shared_ptr<EagerEntry>& entry, const BoundOp& op,
                     std::span<const TensorView> inputs, const TensorView& output,
                     std::span<const double> parameters) {
  const TensorDesc& result = entry->written[0];
  if (size_ > 0 && result.shape != calls_[0].entry->written[0].shape) return false;
  const size_t numbers = entry->fixed ? 0 : parameters.size();
  if (size_ == kMostCalls || count_ + 2 * size_ > kMostValues ||
      parameter_count_ + numbers > kMostParameters)
    return false;
  Call& call = calls_[size_];
  const int before = count_;
  uint64_t wiring = 0;
  int place = 0;
  for (size_t i = 0; i < inputs.size() && place != kNoPlace; ++i) {
    call.inputs[i] = kAbsent;
    if (!inputs[i].absent()) {
      place = find(*entry, i, inputs[i]);
      call.inputs[i] = static_cast<uint8_t>(place);
    }
    wiring = wiring << 8 | call.inputs[i];
  }
  if (place != kNoPlace) {
    char* data = static_cast<char*>(output.data);
    const ByteRange& reach = entry->output_reach[0];
    place = find(Place{&result, data, data + reach.begin, data + reach.end}, true);
  }
  if (place == kNoPlace) {  // an older place that was only marked as read was read before
    count_ = before;
    return false;
  }
  places_[place].written = true;
  call.output = static_cast<uint8_t>(place);
  call.op = op.id;
  if (call.entry != entry) call.entry = entry;
  call.parameters = static_cast<uint16_t>(parameter_count_);
  for (size_t i = 0; i < numbers; ++i) parameters_[parameter_count_++] = parameters[i];
  if (size_ == 0) key_.add(reinterpret_cast<uintptr_t>(&kWindowKey));
  key_.add(entry->id);
  key_.add(wiring << 8 | call.output);
  ++size_;
  return true;
}

void CallWindow::clear() {
  for (int i = 0; i < buffer_count_; ++i) buffers_[i].reset();
  size_ = count_ = parameter_count_ = buffer_count_ = 0;
  key_.clear();
}

bool CallWindow::drop(const void* memory, size_t bytes) {
  const char* begin = static_cast<const char*>(memory);
  const char* end = begin + bytes;
  bool needed = false;
  for (int i = 0; i < count_; ++i) {
    Place& place = places_[i];
    if (place.end <= begin || end <= place.begin) continue;
    needed = needed || place.read;
    if (begin <= place.begin && place.end <= end) {
      place.dropped = true;
      place.begin = place.end = nullptr;  // what is there from now on is something else
    } else {
      needed = needed || place.written;  // the rest of it may be seen
    }
  }
  return needed;
}

bool CallWindow::keep(const BufferRef& buffer) {
  for (int i = 0; i < buffer_count_; ++i)
    if (buffers_[i] == buffer) return true;
  if (buffer_count_ == kMostBuffers) return false;
  buffers_[buffer_count_++] = buffer;
  return true;
}

void CallWindow::drop_unseen() {
  for (int i = 0; i < buffer_count_; ++i)
    if (buffers_[i].use_count() == 1) drop(buffers_[i]->data(), buffers_[i]->size());
}

bool CallWindow::stores() const {
  for (int i = 0; i < count_; ++i)
    if (stored(places_[i])) return true;
  return false;
}

const EagerKey& CallWindow::finish_key() {
  uint64_t mask = 0;
  for (int i = 0; i < count_; ++i) mask |= uint64_t{stored(places_[i])} << i;
  key_.add(mask);
  return key_;
}

}  // namespace anymps
