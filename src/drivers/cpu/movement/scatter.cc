// SPDX-License-Identifier: Apache-2.0
// Scatters on the CPU. Updates that may hit the same element stay in order on one thread: lines
// of scatter_along_axis are shared out, and for the others the elements of a slice. Where the
// result is the data's own memory, only elements that are reached are touched.
#include <cstring>

#include "drivers/cpu/common/copy.h"
#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/lines.h"
#include "drivers/cpu/common/rows.h"
#include "drivers/cpu/movement/index_places.h"
#include "drivers/cpu/movement/scatter_joins.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

// What the kernels have in common: the result starts as data or zeros; then each reached element is
// joined with its updates, in a pass or, where its own value or a count matters, in several.
class Scatter : public Kernel {
 public:
  explicit Scatter(const KernelRequest& request)
      : op_(request.op->name),
        data_(request.has(2)),
        own_(data_ && request.in(2) == request.out()),
        wide_(request.in(1).dtype == DType::kI64),
        empty_(request.in(0).count() == 0),
        self_(request.attrs.b("include_self")),
        mode_(parse_scatter_mode(request.attrs.s("mode"))),
        dtype_(request.out().dtype),
        size_(static_cast<int64_t>(size_of(dtype_))),
        count_(request.out().count()),
        join_(scatter_join_of(mode_, dtype_)),
        copy_(size_of(dtype_), request.out().shape, request.out().strides,
              data_ ? request.in(2).strides : Strides(request.out().shape.size(), int64_t{0})) {}

  bool in_place(size_t i, size_t) const override { return i == 2 && own_; }
  size_t scratch_bytes() const override {
    return mode_ == ScatterMode::kMean ? static_cast<size_t>(count_) * sizeof(int64_t) : 0;
  }
  void run(const KernelArgs& args) const override {
    static constexpr std::byte kZero[16] = {};
    const void* data = data_ ? args.inputs[2] : static_cast<const void*>(kZero);
    if (data != args.outputs[0])
      copy_.run(args.outputs[0], data);
    else
      check(args.inputs[1]);  // before anything is written
    if (empty_) return;
    void* y = args.outputs[0];
    const auto* updates = static_cast<const char*>(args.inputs[0]);
    if (!self_ && mode_ != ScatterMode::kSet)
      pass({y, size_, scatter_reset_of(mode_, dtype_)}, updates, args.inputs[1]);
    pass({y, size_, join_}, updates, args.inputs[1]);
    if (mode_ != ScatterMode::kMean) return;
    auto* counts = static_cast<int64_t*>(args.scratch);
    clear(counts, scratch_bytes());
    pass({counts, sizeof(int64_t), scatter_count(), true}, updates, args.inputs[1]);
    parallel_for(0, count_, 3, [&](int64_t begin, int64_t end) {
      scatter_divide(static_cast<char*>(y) + begin * size_, counts + begin, end - begin,
                     self_ ? 1 : 0, dtype_);
    });
  }

 protected:
  // What is written to. Counts have no updates: these stay where they are.
  struct Target {
    void* to;
    int64_t size;
    ScatterJoin join;
    bool counts = false;

    void row(int64_t at, const char* from, int64_t n) const {
      join.row(static_cast<char*>(to) + at * size, counts ? to : from, n);
    }
    void line(int64_t at, const int64_t* places, const char* from, int64_t step, int64_t n) const {
      join.line(static_cast<char*>(to) + at * size, places, counts ? to : from, counts ? 0 : step,
                n);
    }
  };
  virtual void pass(const Target& target, const char* updates, const void* indices) const = 0;
  virtual void check(const void* indices) const = 0;

  void places_of(const void* indices, int64_t first, int64_t step, int64_t n,
                 const IndexedAxis& component, int64_t more, int64_t* places) const {
    if (wide_)
      look_up(op_.c_str(), static_cast<const int64_t*>(indices) + first, step, n, component, more,
              places);
    else
      look_up(op_.c_str(), static_cast<const int32_t*>(indices) + first, step, n, component, more,
              places);
  }
  int64_t place_of(const void* indices, int64_t at, const IndexedAxis& component) const {
    int64_t place = 0;
    places_of(indices, at, 0, 1, component, 0, &place);
    return place;
  }

  std::string op_;
  bool data_, own_, wide_, empty_, self_;
  ScatterMode mode_;
  DType dtype_;
  int64_t size_, count_;

 private:
  ScatterJoin join_;
  StridedCopy copy_;
};

// scatter_along_axis, and scatter, whose indices are the same beside the axis.
class ScatterAlongAxis final : public Scatter {
 public:
  ScatterAlongAxis(const KernelRequest& request, size_t axis, const Strides& index_strides)
      : Scatter(request) {
    const TensorDesc &updates = request.in(0), &y = request.out();
    component_ = {static_cast<int64_t>(axis), y.shape[axis], y.strides[axis]};
    length_ = updates.shape[axis];
    from_step_ = updates.strides[axis];
    index_step_ = index_strides[axis];
    lines_ = line_starts(updates.shape, axis, {updates.strides, index_strides, y.strides});
    Shape apart = updates.shape;
    for (size_t i = 0; i < apart.size(); ++i)
      if (index_strides[i] == 0) apart[i] = std::min<int64_t>(apart[i], 1);
    indices_ = Rows(merge_loops(apart, {index_strides}));
    // Lines lie side by side: neighbours are written together.
    if (empty_ || lines_.extents.empty() || length_ == 0) return;
    if (std::abs(lines_.strides[2].back()) >= std::abs(component_.stride)) return;
    width_ = lines_.extents.back();
    for (size_t k = 0; k < 3; ++k) column_[k] = lines_.strides[k].back();
    lines_.extents.pop_back();
    for (Strides& strides : lines_.strides) strides.pop_back();
    block_ = std::min(width_, column_[1] == 0 ? int64_t{16384} : kPlaces);
    blocks_ = (width_ + block_ - 1) / block_;
  }

 private:
  void check(const void* indices) const override {
    for (int64_t row = 0, rows = empty_ ? 0 : indices_.count(); row < rows; ++row) {
      const int64_t first = indices_.at(row)[0], step = indices_.steps[0];
      if (wide_)
        check_indices(op_.c_str(), static_cast<const int64_t*>(indices) + first, step,
                      indices_.length, component_);
      else
        check_indices(op_.c_str(), static_cast<const int32_t*>(indices) + first, step,
                      indices_.length, component_);
    }
  }
  void pass(const Target& target, const char* updates, const void* indices) const override {
    const double ns = 2.0 * static_cast<double>(length_ * block_);
    parallel_for(0, lines_.count() * blocks_, ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t line = i / blocks_, first = i % blocks_ * block_;
        Start at{lines_.offset(0, line) + first * column_[0],
                 lines_.offset(1, line) + first * column_[1],
                 lines_.offset(2, line) + first * column_[2]};
        if (width_ == 0)
          run_line(target, updates, indices, at);
        else
          run_columns(target, updates, indices, at, std::min(block_, width_ - first));
      }
    });
  }

  struct Start {
    int64_t update, index, to;
  };
  void run_line(const Target& target, const char* updates, const void* indices, Start at) const {
    int64_t places[kPlaces];
    for (int64_t first = 0; first < length_; first += kPlaces) {
      const int64_t n = std::min(kPlaces, length_ - first);
      places_of(indices, at.index + first * index_step_, index_step_, n, component_, 0, places);
      target.line(at.to, places, updates + (at.update + first * from_step_) * size_, from_step_, n);
    }
  }
  void run_columns(const Target& target, const char* updates, const void* indices, Start at,
                   int64_t n) const {
    int64_t places[kPlaces];
    const bool same = column_[1] == 0;  // one index for all of them
    for (int64_t k = 0; k < length_; ++k, at.update += from_step_, at.index += index_step_) {
      const char* from = updates + at.update * size_;
      const int64_t row = same ? place_of(indices, at.index, component_) : 0;
      if (same && column_[0] == 1 && column_[2] == 1) {
        target.row(at.to + row, from, n);
        continue;
      }
      for (int64_t first = 0; first < n; first += kPlaces) {
        const int64_t part = std::min(kPlaces, n - first);
        if (same)
          for (int64_t c = 0; c < part; ++c) places[c] = row + c * column_[2];
        else
          places_of(indices, at.index + first * column_[1], column_[1], part, component_,
                    column_[2], places);
        target.line(at.to + first * column_[2], places, from + first * column_[0] * size_,
                    column_[0], part);
      }
    }
  }

  IndexedAxis component_;
  Loops lines_;   // operands updates, indices, y
  Rows indices_;  // alone
  int64_t length_ = 0, from_step_ = 0, index_step_ = 0;
  int64_t column_[3] = {0, 0, 0};               // steps to the line beside
  int64_t width_ = 0, block_ = 1, blocks_ = 1;  // 0: lines one by one
};

// Slices: tuples of indices, each with a dense run of elements behind it.
class ScatterSlices final : public Scatter {
 public:
  explicit ScatterSlices(const KernelRequest& request) : Scatter(request) {
    const TensorDesc &updates = request.in(0), &indices = request.in(1), &y = request.out();
    const size_t batch = request.attrs.i("batch_dims");
    const size_t tuples = indices.shape.size() - 1;
    const size_t depth = indices.shape[tuples];
    Shape shape;
    Strides from, index, to;
    for (size_t i = 0; i < tuples; ++i) {
      shape.push_back(updates.shape[i]);
      from.push_back(updates.strides[i]);
      index.push_back(indices.strides[i]);
      to.push_back(i < batch ? y.strides[i] : 0);
    }
    for (size_t i = batch; i < batch + depth; ++i)
      components_.push_back({static_cast<int64_t>(i), y.shape[i], y.strides[i]});
    for (size_t i = batch + depth; i < y.shape.size(); ++i) run_ *= y.shape[i];
    component_step_ = indices.strides[tuples];
    tuples_ = merge_loops(shape, {from, index, to});
  }

 private:
  void check(const void* indices) const override {
    for (int64_t i = 0, n = empty_ ? 0 : tuples_.count(); i < n; ++i) named(indices, i);
  }
  void pass(const Target& target, const char* updates, const void* indices) const override {
    const int64_t count = tuples_.count();
    parallel_for(0, run_, 2.0 * static_cast<double>(count), [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < count; ++i)
        target.row(tuples_.offset(2, i) + named(indices, i) + begin,
                   updates + (tuples_.offset(0, i) + begin) * size_, end - begin);
    });
  }
  // How far the place that tuple i names is from the slice's first element.
  int64_t named(const void* indices, int64_t i) const {
    int64_t index = tuples_.offset(1, i), to = 0;
    for (const IndexedAxis& component : components_) {
      to += place_of(indices, index, component);
      index += component_step_;
    }
    return to;
  }

  Loops tuples_;  // operands updates, indices, y (without the named axes)
  std::vector<IndexedAxis> components_;
  int64_t component_step_ = 0, run_ = 1;
};

bool dense_from(const TensorDesc& desc, size_t first) {
  int64_t step = 1;
  for (size_t i = desc.shape.size(); i-- > first; step *= desc.shape[i])
    if (desc.shape[i] != 1 && desc.strides[i] != step) return false;
  return true;
}

// Counts are kept as if y were dense.
bool countable(const KernelRequest& request, std::string& why) {
  if (request.attrs.s("mode") != "mean" || request.out().contiguous()) return true;
  return refuse<bool>(why, "means of a y that is not contiguous");
}

KernelPtr make_along_axis(const KernelRequest& request, std::string& why) {
  const auto axis = known_axis(request, 3, request.out().rank(), why);
  if (!axis || !countable(request, why)) return nullptr;
  return std::make_shared<ScatterAlongAxis>(request, *axis, request.in(1).strides);
}

KernelPtr make_scatter(const KernelRequest& request, std::string& why) {
  if (!countable(request, why)) return nullptr;
  const size_t axis = normalize_axis(request.attrs.i("axis"), request.out().rank(), "scatter");
  Strides strides(request.out().shape.size(), int64_t{0});
  strides[axis] = request.in(1).strides[0];
  return std::make_shared<ScatterAlongAxis>(request, axis, strides);
}

KernelPtr make_nd(const KernelRequest& request, std::string& why) {
  if (!countable(request, why)) return nullptr;
  const TensorDesc& indices = request.in(1);
  const size_t tuples = indices.shape.size() - 1;
  const size_t named = request.attrs.i("batch_dims") + indices.shape[tuples];
  if (!dense_from(request.in(0), tuples) || !dense_from(request.out(), named))
    return refuse(why, "the slices are not dense");
  return std::make_shared<ScatterSlices>(request);
}

const KernelRegistrar kScatter("cpu", "scatter", "slices", 10, make_scatter);
const KernelRegistrar kScatterNd("cpu", "scatter_nd", "slices", 10, make_nd);
const KernelRegistrar kAlongAxis("cpu", "scatter_along_axis", "lines", 10, make_along_axis);

}  // namespace

}  // namespace anymps::cpu
