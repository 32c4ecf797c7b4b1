// SPDX-License-Identifier: Apache-2.0
#include "serving/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "serving/datatype.h"
#include "serving/ragged.h"
#include "serving/strings.h"

namespace anymps::serving {
namespace {

// Tensors of one run; released at its end.
struct Handles : std::pmr::vector<amps_tensor*> {
  using std::pmr::vector<amps_tensor*>::vector;
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  ~Handles() {
    for (amps_tensor* tensor : *this) amps_tensor_release(tensor);
  }
};

struct Range {
  const char* begin;
  const char* end;
};

class Run {
 public:
  Run(const RunContext& context, Compiled& compiled, std::span<Item* const> items)
      : context_(context),
        settings_(context.settings),
        compiled_(compiled),
        items_(items),
        feeds_(context.memory),
        results_(compiled.result_count(), nullptr, context.memory),
        borrowed_(context.memory) {
    if (settings_.max_batch_size > 0) {
      rows_ = 0;
      for (const Item* item : items) rows_ += item->rows;
    }
  }

  void operator()(Times& times) {
    const uint64_t begin = now_ns();
    bool fresh = false;
    for (const Feed& feed : compiled_.feeds()) add_feed(feed);
    shapes_ = compiled_.result_shapes(ranks_, dims_, fresh);
    if (items_.size() == 1) use_memory_of_request();
    if (items_[0]->failed) return;
    const uint64_t start = now_ns();
    const amps_status status =
        amps_executable_run(compiled_.c(), feeds_.data(), feeds_.size(), results_.data(),
                            results_.size(), nullptr, context_.profiler);
    times.compute_end = now_ns();
    if (!times.compute_start) times.compute_start = start;
    amps::check(status);
    for (size_t i = 0; i < settings_.outputs.size(); ++i)
      if (!(written_ >> i & 1)) deliver(i);
    if (!fresh && settings_.max_batch_size > 0)
      compiled_.chunks().record(rows_, (now_ns() - begin) / context_.side_by_side);
  }

 private:
  void add_feed(const Feed& feed) {
    feeds_.push_back(nullptr);
    if (feed.batch_input >= 0) {
      add_batch_input(settings_.batch_inputs[feed.batch_input]);
      return;
    }
    const size_t input = feed.input;
    const TensorSettings& tensor = settings_.inputs[input];
    std::vector<int64_t> shape;
    if (tensor.ragged) {
      shape = ragged_shape(settings_, input, feed.rank, items_);
    } else {
      const std::span<const int64_t> first = items_[0]->shape(input);
      shape.assign(first.begin(), first.end());
      if (settings_.max_batch_size > 0) shape[0] = rows_;
    }
    add_shape(shape);
    feeds_.back() =
        tensor.dtype == AMPS_STRING ? strings(input, shape) : elements(input, tensor.dtype, shape);
  }

  void add_shape(std::span<const int64_t> shape) {
    ranks_.push_back(shape.size());
    dims_.insert(dims_.end(), shape.begin(), shape.end());
  }

  void add_batch_input(const BatchInputSettings& batch) {
    size_t source = 0;
    while (settings_.inputs[source].name != batch.sources[0]) ++source;
    const BatchInput made = make_batch_input(batch, source, items_);
    add_shape(made.dims);
    std::vector<float> floats(made.values.begin(), made.values.end());
    std::vector<int32_t> integers(made.values.begin(), made.values.end());
    const void* data = batch.dtype == AMPS_F32 ? static_cast<const void*>(floats.data())
                                               : static_cast<const void*>(integers.data());
    amps::check(amps_tensor_from_host(context_.device.c(), batch.dtype, made.dims.size(),
                                      made.dims.data(), nullptr, data, &feeds_.back()));
  }

  amps_tensor* strings(size_t input, const std::vector<int64_t>& shape) {
    Strings all;
    std::deque<std::string> joined;
    for (const Item* item : items_) parse_strings(item->inputs[input]->pieces, all, joined);
    if (std::ssize(all.data) != element_count(shape))
      throw Error(Code::kInternal, "the strings of input '" + settings_.inputs[input].name +
                                       "' do not fill their shape");
    all.data.push_back("");  // never empty, so never null
    all.sizes.push_back(0);
    amps_tensor* tensor = nullptr;
    amps::check(amps_tensor_from_strings(context_.device.c(), shape.size(), shape.data(),
                                         all.data.data(), all.sizes.data(), &tensor));
    return tensor;
  }

  amps_tensor* elements(size_t input, amps_dtype dtype, const std::vector<int64_t>& shape) {
    // The pieces as one range, if they follow each other in memory.
    const char* begin = nullptr;
    const char* end = nullptr;
    bool together = true;
    size_t bytes = 0;
    for (const Item* item : items_)
      for (const Piece& piece : item->inputs[input]->pieces) {
        if (piece.bytes == 0) continue;
        const auto* data = static_cast<const char*>(piece.data);
        together = together && (!begin || data == end);
        if (!begin) begin = data;
        end = data + piece.bytes;
        bytes += piece.bytes;
      }
    if (byte_count(dtype, shape) != bytes)
      throw Error(Code::kInternal,
                  fmt::format("input '{}' has {} bytes, which do not fill {}",
                              settings_.inputs[input].name, bytes, shape_text(shape)));
    amps_tensor* tensor = nullptr;
    const bool aligned = reinterpret_cast<uintptr_t>(begin) % amps_dtype_size(dtype) == 0;
    if (together && aligned && context_.shares_memory) {
      amps::check(amps_tensor_wrap(context_.device.c(), dtype, shape.size(), shape.data(), nullptr,
                                   const_cast<char*>(begin), nullptr, nullptr, &tensor));
      borrowed_.push_back({begin, end});
      return tensor;
    }
    std::pmr::vector<char> staged(context_.memory);
    char* to = nullptr;
    if (context_.shares_memory) {
      amps::check(
          amps_tensor_empty(context_.device.c(), dtype, shape.size(), shape.data(), &tensor));
      to = static_cast<char*>(amps_tensor_data(tensor));
    } else {
      staged.resize(bytes + 1);
      to = staged.data();
    }
    for (const Item* item : items_)
      for (const Piece& piece : item->inputs[input]->pieces) {
        if (piece.bytes) std::memcpy(to, piece.data, piece.bytes);
        to += piece.bytes;
      }
    if (!tensor)
      amps::check(amps_tensor_from_host(context_.device.c(), dtype, shape.size(), shape.data(),
                                        nullptr, staged.data(), &tensor));
    return tensor;
  }

  const BatchOutputSettings* cut_like(const TensorSettings& output) const {
    for (const BatchOutputSettings& batch : settings_.batch_outputs)
      if (std::find(batch.targets.begin(), batch.targets.end(), output.name) != batch.targets.end())
        return &batch;
    return nullptr;
  }

  void need_rows(const TensorSettings& output, std::span<const int64_t> shape) const {
    if (settings_.max_batch_size > 0 && (shape.empty() || shape[0] != rows_))
      throw Error(Code::kInternal,
                  fmt::format("output '{}' of model '{}' has the shape {}, but a batch of {} rows "
                              "was computed",
                              output.name, settings_.name, shape_text(shape), rows_));
  }

  // The engine writes straight into the memory that the request gives.
  void use_memory_of_request() {
    Item& item = *items_[0];
    for (size_t i = 0; i < settings_.outputs.size() && i < 64; ++i) {
      const TensorSettings& output = settings_.outputs[i];
      const size_t place = compiled_.outputs()[i];
      const ResultShapes::Result& shape = shapes_->results[place];
      if (!shape.known || output.dtype == AMPS_STRING || !context_.shares_memory ||
          results_[place] || cut_like(output) || !item.request->wants(output.name))
        continue;
      need_rows(output, shape.dims);
      const std::optional<size_t> bytes = byte_count(output.dtype, shape.dims);
      if (!bytes) throw Error(Code::kInternal, "output '" + output.name + "' is too large");
      void* to = memory_for(item, output, shape.dims, *bytes);
      if (item.failed) return;
      const bool free = std::none_of(borrowed_.begin(), borrowed_.end(), [&](const Range& range) {
        return static_cast<const char*>(to) < range.end &&
               range.begin < static_cast<const char*>(to) + *bytes;
      });
      if (!free || reinterpret_cast<uintptr_t>(to) % amps_dtype_size(output.dtype) != 0) {
        later_[i] = to;
        continue;
      }
      amps::check(amps_tensor_wrap(context_.device.c(), output.dtype, shape.dims.size(),
                                   shape.dims.data(), nullptr, to, nullptr, nullptr,
                                   &results_[place]));
      written_ |= uint64_t{1} << i;
    }
  }

  void* memory_for(Item& item, const TensorSettings& output, std::span<const int64_t> shape,
                   size_t bytes) {
    try {
      void* to = item.request->output(output.name, output.dtype,
                                      client_shape(settings_, output, shape), bytes);
      if (to || bytes == 0) return to;
      item.fail(Error(Code::kInternal, "there is no memory for output '" + output.name + "'"));
    } catch (const Error& error) {
      item.fail(error);
    } catch (const std::exception& error) {
      item.fail(Error(Code::kInternal, error.what()));
    }
    return nullptr;
  }

  void deliver(size_t index) {
    const TensorSettings& output = settings_.outputs[index];
    const amps_tensor* result = results_[compiled_.outputs()[index]];
    if (!result || amps_tensor_container(result) != AMPS_TENSOR) return;
    const std::span<const int64_t> whole(amps_tensor_dims(result), amps_tensor_rank(result));
    const BatchOutputSettings* cut = cut_like(output);
    if (!cut) need_rows(output, whole);
    size_t source = 0;
    while (cut && settings_.inputs[source].name != cut->sources[0]) ++source;
    const int64_t total = element_count(whole).value_or(0);
    int64_t first = 0;
    std::vector<int64_t> shape;
    for (Item* item : items_) {
      if (cut) {
        shape = scattered_shape(settings_, output, source, *item);
      } else {
        shape.assign(whole.begin(), whole.end());
        if (settings_.max_batch_size > 0) shape[0] = item->rows;
      }
      const int64_t count = element_count(shape).value_or(-1);
      if (count < 0 || count > total - first)
        throw Error(Code::kInternal,
                    fmt::format("output '{}' of model '{}' has the shape {}, which is too small to "
                                "be cut into parts of {}",
                                output.name, settings_.name, shape_text(whole), shape_text(shape)));
      if (!item->failed && item->request->wants(output.name))
        write(*item, index, result, shape, first, count);
      first += count;
    }
  }

  void write(Item& item, size_t index, const amps_tensor* result, const std::vector<int64_t>& shape,
             int64_t first, int64_t count) {
    const TensorSettings& output = settings_.outputs[index];
    if (output.dtype == AMPS_STRING) {
      const size_t bytes = serialized_bytes(result, first, count);
      void* to = memory_for(item, output, shape, bytes);
      if (to) serialize_strings(result, first, count, to);
      return;
    }
    const size_t size = amps_dtype_size(output.dtype);
    const size_t bytes = count * size, begin = first * size;
    const auto given = later_.find(index);
    void* to = given != later_.end() ? given->second : memory_for(item, output, shape, bytes);
    if (!to || bytes == 0) return;
    if (context_.shares_memory) {
      std::memcpy(to, static_cast<const char*>(amps_tensor_data(result)) + begin, bytes);
      return;
    }
    std::vector<char> host(amps_tensor_bytes(result));
    amps::check(amps_tensor_to_host(result, host.data(), host.size()));
    std::memcpy(to, host.data() + begin, bytes);
  }

  const RunContext& context_;
  const Settings& settings_;
  Compiled& compiled_;
  std::span<Item* const> items_;
  int64_t rows_ = 1;
  Handles feeds_, results_;
  std::vector<size_t> ranks_;
  std::vector<int64_t> dims_;
  std::pmr::vector<Range> borrowed_;  // memory of requests that the feeds use
  std::shared_ptr<const ResultShapes> shapes_;
  uint64_t written_ = 0;           // outputs that the engine wrote in place, one bit each
  std::map<size_t, void*> later_;  // memory that was asked for but must be written after the run
};

}  // namespace

bool goes_with(const Settings& settings, const Compiled& compiled, const Item& a, const Item& b) {
  if (settings.max_batch_size == 0 || a.given != b.given) return false;
  for (const Feed& feed : compiled.feeds()) {
    if (feed.input < 0) continue;
    const size_t input = feed.input;
    if (!a.inputs[input]) continue;
    if (settings.inputs[input].ragged) {
      if (!same_tail(a, b, input, feed.rank)) return false;
      continue;
    }
    if (!std::ranges::equal(a.shape(input).subspan(1), b.shape(input).subspan(1))) return false;
  }
  return true;
}

void run_batch(const RunContext& context, Compiled& compiled, std::span<Item* const> items,
               Times& times) {
  Run(context, compiled, items)(times);
}

}  // namespace anymps::serving
