// SPDX-License-Identifier: Apache-2.0
// Shape ops that could not be views: each is a few strided copies, planned at preparation.
#include "drivers/cpu/common/copy.h"
#include "drivers/kernel.h"

namespace anymps::cpu {

namespace {

struct Piece {
  size_t input = 0, output = 0;
  int64_t from = 0, to = 0;  // bytes from the tensors' first elements
  StridedCopy copy;
};

class Copies final : public Kernel {
 public:
  explicit Copies(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}
  void run(const KernelArgs& args) const override {
    for (const Piece& piece : pieces_)
      piece.copy.run(static_cast<char*>(args.outputs[piece.output]) + piece.to,
                     static_cast<const char*>(args.inputs[piece.input]) + piece.from);
  }

 private:
  std::vector<Piece> pieces_;
};

// reshape and its kin: the elements keep their order.
KernelPtr make_in_order(const KernelRequest& request, std::string& why) {
  const TensorDesc& x = request.in(0);
  const std::string& op = request.op->name;
  if (op != "reshape" && op != "flatten" && op != "squeeze" && op != "unsqueeze")
    return refuse(why, "its view is not known");
  if (!request.out().contiguous()) return refuse(why, "y is not contiguous");
  return std::make_shared<Copies>(std::vector<Piece>{
      {0, 0, 0, 0,
       StridedCopy(size_of(x.dtype), x.shape, contiguous_strides(x.shape), x.strides)}});
}

// What the op's view would be, copied.
KernelPtr make_view(const KernelRequest& request, std::string& why) {
  const TensorDesc& x = request.in(0);
  const int64_t size = static_cast<int64_t>(size_of(x.dtype));
  auto contents = request.contents;
  contents.resize(request.inputs.size());
  for (size_t i = 1; i < request.inputs.size(); ++i) {
    if (!request.has(i)) contents[i].emplace();  // an absent input's elements are none
    if (!contents[i]) return refuse(why, fmt::format("input {} is not known", i));
  }
  std::vector<Piece> pieces;
  for (size_t k = 0; k < request.outputs.size(); ++k) {
    ViewContext view{request.attrs,        x,  contents, k,
                     request.out(k).shape, {}, 0,        request.outputs.size()};
    if (!request.op->view(view)) return make_in_order(request, why);
    pieces.push_back({0, k, view.offset * size, 0,
                      StridedCopy(size_of(x.dtype), request.out(k).shape, request.out(k).strides,
                                  view.strides)});
  }
  return std::make_shared<Copies>(std::move(pieces));
}

KernelPtr make_concat(const KernelRequest& request, std::string&) {
  const TensorDesc& y = request.out();
  const auto axis = static_cast<size_t>(
      normalize_axis(request.attrs.i("axis"), y.rank(), request.op->name.c_str()));
  const bool stack = request.op->name == "stack";
  const int64_t size = static_cast<int64_t>(size_of(y.dtype));
  std::vector<Piece> pieces;
  int64_t first = 0;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    TensorDesc x = request.in(i);
    if (stack) {
      x.shape.insert(axis, 1);
      x.strides.insert(axis, 0);
    }
    pieces.push_back({i, 0, 0, first * y.strides[axis] * size,
                      StridedCopy(size_of(y.dtype), x.shape, y.strides, x.strides)});
    first += x.shape[axis];
  }
  return std::make_shared<Copies>(std::move(pieces));
}

KernelPtr make_reinterpret(const KernelRequest& request, std::string& why) {
  const TensorDesc &x = request.in(0), &y = request.out();
  if (size_of(x.dtype) != size_of(y.dtype)) return refuse(why, "the sizes differ");
  return std::make_shared<Copies>(std::vector<Piece>{
      {0, 0, 0, 0, StridedCopy(size_of(y.dtype), y.shape, y.strides, x.strides)}});
}

// Each axis becomes two: which repetition, and where in it.
KernelPtr make_tile(const KernelRequest& request, std::string&) {
  const TensorDesc &x = request.in(0), &y = request.out();
  Shape shape;
  Strides to, from;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    shape.push_back(x.shape[i] == 0 ? 0 : y.shape[i] / x.shape[i]);
    shape.push_back(x.shape[i]);
    to.push_back(y.strides[i] * x.shape[i]);
    to.push_back(y.strides[i]);
    from.push_back(0);
    from.push_back(x.strides[i]);
  }
  return std::make_shared<Copies>(
      std::vector<Piece>{{0, 0, 0, 0, StridedCopy(size_of(x.dtype), shape, to, from)}});
}

struct Register {
  Register() {
    for (const char* op : {"reshape", "transpose", "squeeze", "unsqueeze", "flatten", "expand",
                           "slice", "split", "reverse"})
      KernelRegistrar("cpu", op, "copy", 10, make_view);
    KernelRegistrar("cpu", "concat", "copy", 10, make_concat);
    KernelRegistrar("cpu", "stack", "copy", 10, make_concat);
    KernelRegistrar("cpu", "reinterpret", "copy", 10, make_reinterpret);
    KernelRegistrar("cpu", "tile", "copy", 10, make_tile);
  }
};
const Register kRegister;

}  // namespace

}  // namespace anymps::cpu
