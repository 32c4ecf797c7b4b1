// SPDX-License-Identifier: Apache-2.0
// Matrix products with oneDNN. Transposes are strides, constant matrices are packed once, and
// scale, bias, residual and activation are applied before the result is stored.
#include <mutex>
#include <unordered_map>

#include "base/fork.h"
#include "drivers/cpu/linear/gemm.h"
#include "drivers/cpu/linear/matmul_tensors.h"
#include "drivers/cpu/onednn.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

using dnnl::memory;

// Writes a float tensor that is broadcast along some axes (stride 0) densely.
template <typename T>
void expand(const TensorDesc& desc, const T* from, T* to) {
  Shape index(desc.shape.size(), 0);
  const size_t last = index.size() - 1;
  for (;;) {
    int64_t at = 0;
    for (size_t i = 0; i < last; ++i) at += index[i] * desc.strides[i];
    for (int64_t j = 0; j < desc.shape[last]; ++j) *to++ = from[at + j * desc.strides[last]];
    size_t axis = last;
    while (axis > 0 && ++index[axis - 1] == desc.shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

struct Made {
  dnnl::matmul::primitive_desc pd;  // empty: there is no implementation
  dnnl::matmul primitive;
  int parts;
};

// What oneDNN makes for a shape is large and takes long; layers of one shape share it.
template <typename Make>
Made same_shape(const std::string& key, Parts& parts, Make make) {
  constexpr size_t kMost = 32;
  static auto& mutex = *new ForkMutex;
  static auto& known = *new std::unordered_map<std::string, Made>;  // even while the process exits
  {
    std::lock_guard lock(mutex);
    if (auto found = known.find(key); found != known.end()) {
      parts.become(found->second.parts);
      return found->second;
    }
  }
  Made made{choose_implementation(parts, make), {}, Parts::now()};
  if (!made.pd || std::string_view(made.pd.impl_info_str()).starts_with("ref")) return made;
  made.primitive = dnnl::matmul(made.pd);
  std::lock_guard lock(mutex);
  if (known.size() >= kMost) known.clear();
  known.emplace(key, made);
  return made;
}

class Product {
 public:
  Product(const KernelRequest& request, ProductTensors tensors)
      : request_(request),
        tensors_(std::move(tensors.tensors)),
        summands_(std::move(tensors.summands)) {}

  KernelPtr make(std::string& why) {
    KernelPtr kernel = build(why);
    if (kernel || summands_.empty()) return kernel;
    // oneDNN broadcasts rows and scalars; what lies otherwise is written out at each run.
    expand_ = true;
    return build(why);
  }

  // Two dimensions, constant or few weights, summands that gemm.h knows.
  KernelPtr make_packed(std::string& why) const {
    const TensorDesc &a = tensors_[kA], &b = tensors_[kB], &y = tensors_[kY];
    if (batch_rank() != 0 || request_.attrs.f("alpha") != 1) return refuse(why, "batches or alpha");
    if (a.strides[1] != 1 || a.strides[0] < 0 || y.strides[1] != 1) return refuse(why, "strides");
    Gemm gemm;
    gemm.rows = y.shape[0];
    gemm.depth = a.shape[1];
    gemm.columns = y.shape[1];
    gemm.x_row = a.strides[0];
    gemm.y_row = y.strides[0];
    gemm.w_depth = b.strides[0];
    gemm.w_column = b.strides[1];
    for (size_t s = 0; s < summands_.size(); ++s) {
      const TensorDesc& summand = tensors_[kY + 1 + s];
      if (!gemm.bias && summand.strides[0] == 0 && summand.strides[1] == 1)
        gemm.bias = summands_[s];
      else if (!gemm.residual && summand.shape == y.shape && summand.strides == y.strides)
        gemm.residual = summands_[s];
      else
        return refuse(why, fmt::format("input {} is broadcast", summands_[s]));
    }
    gemm.activation = tile_activation(request_.attrs, "act_alpha", "act_beta");
    gemm.packs_at_run = true;
    return make_gemm(request_, gemm, why);
  }

 private:
  static constexpr size_t kA = ProductTensors::kA, kB = ProductTensors::kB, kY = ProductTensors::kY;

  size_t batch_rank() const { return tensors_[kY].shape.size() - 2; }

  // Broadcast axes get the extent 1, as oneDNN wants them.
  TensorDesc for_onednn(size_t i) const {
    TensorDesc desc = tensors_[i];
    for (size_t axis = 0; axis < desc.shape.size(); ++axis) {
      const bool is_batch = axis < batch_rank();
      if ((is_batch || i > kY) && desc.strides[axis] == 0) desc.shape[axis] = 1;
    }
    // With three axes oneDNN knows only dense layouts, with four also those of attention heads.
    if (batch_rank() == 1 && !dense_) {
      desc.shape.insert(0, 1);
      desc.strides.insert(0, desc.strides[0] * desc.shape[1]);
    }
    return desc;
  }

  Place expanded(OneDnnBuilder& builder, size_t i) const {
    TensorDesc desc = tensors_[i];
    desc.shape = tensors_[kY].shape;
    const Place from{Place::kInput, summands_[i - kY - 1], nullptr};
    const Place to = builder.scratch(desc.bytes());
    builder.step([desc, from, to](const KernelArgs& args) {
      dispatch<bit(DType::kF32) | bit(DType::kF16) | bit(DType::kBF16)>(
          desc.dtype, [&]<typename T>() {
            expand(desc, static_cast<const T*>(from.resolve(args)),
                   static_cast<T*>(to.resolve(args)));
          });
    });
    return to;
  }

  // Tensors as oneDNN sees them, and where they lie: a, b, y, then the summands.
  struct Piece {
    std::vector<TensorDesc> descs;
    std::vector<Place> places;
    size_t rank() const { return descs[kY].shape.size(); }

    // Some rows, columns or batches of y, and what they are computed from.
    Piece part(size_t axis, int64_t begin, int64_t count) const {
      Piece result = *this;
      for (size_t i = 0; i < descs.size(); ++i) {
        if ((i == kB && axis == rank() - 2) || (i == kA && axis == rank() - 1)) continue;
        TensorDesc& desc = result.descs[i];
        if (desc.shape[axis] == 1) continue;  // broadcast
        desc.shape[axis] = count;
        const auto bytes = static_cast<size_t>(begin * desc.strides[axis]) * size_of(desc.dtype);
        result.places[i] = places[i].at(bytes);
      }
      return result;
    }
  };

  // Cut into up to `most` pieces, by the shapes alone.
  static std::vector<Piece> cut(const Piece& whole, int64_t most) {
    const Shape& y = whole.descs[kY].shape;
    size_t axis = 0;
    int64_t pieces = 1;
    for (size_t i = 0; i < y.size(); ++i) {
      const int64_t least = i + 2 < y.size() ? 1 : i + 2 == y.size() ? 16 : 64;
      const int64_t possible = std::min(most, y[i] / least);
      if (possible > pieces) axis = i, pieces = possible;
    }
    std::vector<Piece> result;
    for (int64_t i = 0; i < pieces; ++i) {
      const int64_t begin = y[axis] * i / pieces, end = y[axis] * (i + 1) / pieces;
      result.push_back(whole.part(axis, begin, end - begin));
    }
    return result;
  }

  // In many parts oneDNN reads weights again and again: 64 take an eighth longer than one on one
  // thread. Sums of f32 are the same in any number of parts, of halves they are not.
  static int most_parts_of_f32() {
    const int threads = current_threads();
    return threads == 1 ? 1 : 4 * threads;
  }

  // Nothing where oneDNN has no fast implementation.
  std::optional<OneDnnBuilder::Call> call_for(const Piece& piece, Parts& parts,
                                              OneDnnBuilder& builder, std::string& detail) const {
    const std::vector<TensorDesc>& descs = piece.descs;
    const auto scale = static_cast<float>(request_.attrs.f("alpha"));
    dnnl::post_ops ops;
    if (scale != 1) ops.append_eltwise(dnnl::algorithm::eltwise_linear, scale, 0);
    std::vector<PrimitiveArg> extra;
    memory::desc bias;
    for (size_t i = kY + 1; i < descs.size(); ++i) {
      const memory::desc md = onednn_desc(descs[i]);
      const bool is_row = descs[i].shape.back() == descs[kY].shape.back() &&
                          descs[i].count() == descs[i].shape.back() && descs[i].strides.back() <= 1;
      if (is_row && scale == 1 && !bias) {
        bias = md;
        extra.push_back({DNNL_ARG_BIAS, md, piece.places[i]});
        continue;
      }
      extra.push_back(
          {DNNL_ARG_ATTR_MULTIPLE_POST_OP(ops.len()) | DNNL_ARG_SRC_1, md, piece.places[i]});
      ops.append_binary(dnnl::algorithm::binary_add, md);
    }
    append_activation(ops, request_.attrs, "act_alpha", "act_beta");
    const dnnl::primitive_attr attr = onednn_attr(ops);
    const bool packs = request_.constant(1) && request_.packed && piece.rank() == 2 &&
                       descs[kB].shape == for_onednn(kB).shape;
    const memory::desc a = onednn_desc(descs[kA]), y = onednn_desc(descs[kY]);
    const memory::desc b =
        packs ? memory::desc(onednn_dims(descs[kB].shape), *onednn_type(descs[kB].dtype),
                             memory::format_tag::any)
              : onednn_desc(descs[kB]);
    std::string key = fmt::format("{} {} {} {} {}", layout_key(a), layout_key(b), layout_key(y),
                                  bias ? layout_key(bias) : "", scale);
    for (const PrimitiveArg& arg : extra)
      key += fmt::format(" {} {}", arg.id, layout_key(arg.desc));
    key += fmt::format(" {} {} {} {}", request_.attrs.s("activation"),
                       request_.attrs.f("act_alpha"), request_.attrs.f("act_beta"), Parts::now());
    const Made made = same_shape(key, parts, [&] {
      return bias ? dnnl::matmul::primitive_desc(onednn_engine(), a, b, bias, y, attr, true)
                  : dnnl::matmul::primitive_desc(onednn_engine(), a, b, y, attr, true);
    });
    if (!made.primitive) return std::nullopt;
    detail = made.pd.impl_info_str();
    const memory::desc weights = made.pd.weights_desc();
    std::vector<PrimitiveArg> args{
        {DNNL_ARG_SRC, a, piece.places[kA]},
        {DNNL_ARG_WEIGHTS, weights,
         packs ? builder.read_weights(1, descs[kB], weights) : piece.places[kB]},
        {DNNL_ARG_DST, y, piece.places[kY]}};
    args.insert(args.end(), extra.begin(), extra.end());
    return OneDnnBuilder::Call{made.primitive, made.pd.scratchpad_desc(), std::move(args)};
  }

  KernelPtr build(std::string& why) {
    if (batch_rank() > DNNL_MAX_NDIMS - 3)
      return refuse(why, fmt::format("{} batch axes that cannot be merged", batch_rank()));
    dense_ = true;
    for (size_t i = kA; i <= kY; ++i) {
      TensorDesc& t = tensors_[i];
      if (batch_rank() == 1 && t.shape[0] > 1 && t.strides[0] != 0 &&
          t.strides[0] != t.shape[1] * t.shape[2])
        dense_ = false;
    }
    OneDnnBuilder builder(request_);
    Piece whole;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      TensorDesc& desc = whole.descs.emplace_back(for_onednn(i));
      if (has_odd_strides(desc))
        return refuse(why, fmt::format("strides of {} are not positive", to_string(desc)));
      whole.places.push_back(i == kY  ? Place{Place::kOutput, 0, nullptr}
                             : i < kY ? Place{Place::kInput, i, nullptr}
                                      : Place{Place::kInput, summands_[i - kY - 1], nullptr});
    }
    TensorDesc& a = whole.descs[kA];
    // Of a transposed a oneDNN may share out the sums among its parts. It would copy it anyway.
    if (a.strides.back() != 1 && a.shape.back() > 1) {
      const TensorDesc dense(a.dtype, a.shape);
      whole.places[kA] = builder.read(0, a, onednn_desc(dense));
      a = dense;
    }
    for (size_t i = kY + 1; expand_ && i < whole.descs.size(); ++i) {
      if (whole.descs[i].shape == whole.descs[kY].shape) continue;
      whole.places[i] = expanded(builder, i);
      whole.descs[i] = TensorDesc(whole.descs[i].dtype, whole.descs[kY].shape);
    }
    const int most = parts_for(2 * static_cast<double>(whole.descs[kY].count()) *
                               static_cast<double>(a.shape.back()));
    Parts parts(cut_ ? 1 : a.dtype == DType::kF32 ? std::min(most, most_parts_of_f32()) : most);
    std::string detail;
    std::vector<OneDnnBuilder::Call> calls;
    for (const Piece& piece : cut(whole, cut_ ? most : 1)) {
      std::optional<OneDnnBuilder::Call> call = call_for(piece, parts, builder, detail);
      if (!call) return refuse(why, "oneDNN has no fast implementation");
      calls.push_back(std::move(*call));
    }
    if (most > 1 && parts_wait(detail) && !cut_) {
      // Its parts would wait for each other: separate products instead.
      cut_ = true;
      return build(why);
    }
    builder.calls(std::move(calls));
    return builder.finish(detail);
  }

  const KernelRequest& request_;
  std::vector<TensorDesc> tensors_;  // a, b, y, then the summands
  std::vector<size_t> summands_;     // their input numbers
  bool dense_ = true, expand_ = false, cut_ = false;
};

KernelPtr make_packed(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (request.in(0).count() == 0) return refuse(why, "nothing to sum over");
  std::optional<ProductTensors> tensors = product_tensors(request, why);
  return tensors ? Product(request, std::move(*tensors)).make_packed(why) : nullptr;
}

KernelPtr make_matmul(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (!onednn_type(request.in(0).dtype))
    return refuse(why, fmt::format("dtype {}", name(request.in(0).dtype)));
  for (const size_t i : {0u, 1u})
    if (request.in(i).count() == 0) return refuse(why, "nothing to sum over");
  std::optional<ProductTensors> tensors = product_tensors(request, why);
  return tensors ? Product(request, std::move(*tensors)).make(why) : nullptr;
}

const KernelRegistrar kPacked("cpu", "matmul", "gemm", 5, make_packed);
const KernelRegistrar kMatmul("cpu", "matmul", "onednn", 10, onednn_factory(make_matmul));

}  // namespace

}  // namespace anymps::cpu
