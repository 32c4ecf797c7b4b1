// SPDX-License-Identifier: Apache-2.0
#include "runtime/eager.h"

#include <bit>

#include "drivers/reference_fallback.h"
#include "runtime/measure.h"

namespace anymps {

namespace {

// A primitive of oneDNN holds some 75 KB of code and tables; our own kernels hold next to nothing.
constexpr size_t kPrimitiveWeight = 8;

template <typename Key>
void add_text(Key& key, const char* text) {
  uint64_t word = 0;
  int filled = 0;
  for (; *text; ++text) {
    word = word << 8 | static_cast<unsigned char>(*text);
    if (++filled < 8) continue;
    key.push_back(word);
    word = 0;
    filled = 0;
  }
  key.push_back(word << 8 | static_cast<uint64_t>(filled));
}

template <typename Key>
void add_desc(Key& key, const TensorDesc& desc) {
  const bool plain = desc.contiguous();
  key.push_back(1u | static_cast<uint64_t>(desc.dtype) << 8 | static_cast<uint64_t>(plain) << 16 |
                static_cast<uint64_t>(desc.shape.size()) << 32);
  for (const int64_t extent : desc.shape) key.push_back(static_cast<uint64_t>(extent));
  if (plain) return;
  for (const int64_t stride : desc.strides) key.push_back(static_cast<uint64_t>(stride));
}

template <typename Key>
void add_attr(Key& key, const EagerAttr& attr) {
  add_text(key, attr.name);
  key.push_back(static_cast<uint64_t>(attr.kind));
  switch (attr.kind) {
    case AttrKind::kFloat:
      key.push_back(std::bit_cast<uint64_t>(attr.f));
      break;
    case AttrKind::kString:
      add_text(key, attr.s);
      break;
    case AttrKind::kInts:
      key.push_back(attr.ints.size());
      for (const int64_t value : attr.ints) key.push_back(static_cast<uint64_t>(value));
      break;
    case AttrKind::kFloats:
      key.push_back(attr.floats.size());
      for (const double value : attr.floats) key.push_back(std::bit_cast<uint64_t>(value));
      break;
    default:
      key.push_back(static_cast<uint64_t>(attr.i));
  }
}

Attrs complete(const Op& op, std::span<const EagerAttr> attrs) {
  NamedAttrs given;
  for (const EagerAttr& attr : attrs) given.push_back(to_named(attr));
  return Attrs(op, given);
}

}  // namespace

NamedAttr to_named(const EagerAttr& attr) {
  switch (attr.kind) {
    case AttrKind::kFloat:
      return {attr.name, attr.f};
    case AttrKind::kString:
      return {attr.name, attr.s};
    case AttrKind::kInts:
      return {attr.name, std::vector<int64_t>(attr.ints.begin(), attr.ints.end())};
    case AttrKind::kFloats:
      return {attr.name, std::vector<double>(attr.floats.begin(), attr.floats.end())};
    default:
      return {attr.name, attr.i};
  }
}

size_t Eager::KeyHash::operator()(const Key& key) const {
  uint64_t hash = 0x9e3779b97f4a7c15u;
  for (const uint64_t word : key) {
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

Content Eager::content_of(const Tensor& tensor) {
  if (!is_list(tensor.desc)) return std::nullopt;
  return device_.integers(tensor, device_.queue());
}

void Eager::add_content(Key& key, std::span<const Tensor* const> inputs) {
  for (const Tensor* input : inputs) {
    const auto content = input ? content_of(*input) : std::nullopt;
    key.push_back(content ? content->size() + 1 : 0);
    if (!content) continue;
    for (const int64_t value : *content) key.push_back(static_cast<uint64_t>(value));
  }
}

std::shared_ptr<Eager::Entry> Eager::prepare(const Op& op, std::span<const Tensor* const> inputs,
                                             std::span<const EagerAttr> attrs, size_t outputs,
                                             bool content, const std::vector<Shape>* measured) {
  if (op.is(kStructural))
    fail(Code::kUnsupported, "[{}] is for graphs: it cannot be called by itself", op.name);
  const ThreadScope threads(device_.driver(), ThreadScope::Exactly{0});
  auto entry = std::make_shared<Entry>(PreparedCall(device_, op, complete(op, attrs), ""));
  PreparedCall& call = entry->call;
  for (const Tensor* input : inputs) {
    if (input)
      call.add_input(input->desc, content ? content_of(*input) : std::nullopt);
    else
      call.add_absent();
  }
  entry->open = call.infer(outputs, "", measured);
  if (entry->open != PreparedCall::kNothing) return entry;
  call.choose();
  if (call.choice->name.ends_with(":onednn")) entry->weight = kPrimitiveWeight;
  return entry;
}

std::vector<Shape> Eager::measure(const Op& op, std::span<const Tensor* const> inputs,
                                  std::span<const EagerAttr> attrs, size_t outputs) {
  MeasureInputs measured(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]) measured.set(i, device_, *inputs[i], device_.queue());
  return measured.measure(op, complete(op, attrs), outputs);
}

// Elements point to strings of the inputs or of the run: the output gets its own.
static StringStorePtr own_strings(Device& device, Text* elements, const TensorDesc& desc) {
  require(device.driver().traits().host_visible, "[eager] device '{}' cannot hold strings",
          device.name());
  auto store = std::make_shared<StringStore>();
  for (int64_t i = 0; i < desc.count(); ++i) elements[i] = store->add(text_of(elements[i]));
  return store;
}

void Eager::call(const Op& op, std::span<const Tensor* const> inputs,
                 std::span<const EagerAttr> attrs, std::span<Tensor> outputs) {
  Key key;
  key.push_back(reinterpret_cast<uintptr_t>(&op));
  key.push_back(inputs.size() << 32 | outputs.size());
  for (const Tensor* input : inputs) {
    if (!input) {
      key.push_back(0);
      continue;
    }
    if (input->container != Container::kTensor)
      fail(Code::kUnsupported, "[{}] lists and optionals are for graphs: give a tensor", op.name);
    add_desc(key, input->desc);
  }
  for (const EagerAttr& attr : attrs) add_attr(key, attr);
  std::shared_ptr<Entry> entry = entries_.find(key);
  if (!entry) entry = keep(key, prepare(op, inputs, attrs, outputs.size(), false, nullptr));
  bool content = false;
  if (entry->open == PreparedCall::kContents) {
    content = true;
    add_content(key, inputs);
    entry = entries_.find(key);
    if (!entry) entry = keep(key, prepare(op, inputs, attrs, outputs.size(), true, nullptr));
  }
  if (entry->open == PreparedCall::kMeasure) {
    const std::vector<Shape> shapes = measure(op, inputs, attrs, outputs.size());
    for (const Shape& shape : shapes) {
      key.push_back(shape.size() + 1);
      for (const int64_t extent : shape) key.push_back(static_cast<uint64_t>(extent));
    }
    entry = entries_.find(key);
    if (!entry) entry = keep(key, prepare(op, inputs, attrs, outputs.size(), content, &shapes));
  }

  const PreparedCall& ready = entry->call;
  const Kernel& kernel = *ready.choice->kernel;
  SmallVector<void*, 8> in, out;
  std::vector<Tensor> copies;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (ready.packed[i]) copies.push_back(device_.contiguous(*inputs[i]));
    in.push_back(ready.packed[i] ? copies.back().data() : inputs[i] ? inputs[i]->data() : nullptr);
  }
  // An output that shares memory with an input the kernel cannot overwrite, or that is strided, is
  // computed aside and copied.
  SmallVector<size_t, 4> aside;
  std::vector<Tensor> temporaries;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensor& output = outputs[i];
    const TensorDesc& desc = ready.request.outputs[i];
    const bool given = output.buffer != nullptr;
    if (!given) output = device_.empty(desc.dtype, desc.shape);
    require(output.desc.dtype == desc.dtype && output.desc.shape == desc.shape,
            "[{}] output {} must be {}, {} given", op.name, i, to_string(desc),
            to_string(output.desc));
    bool direct = output.desc.contiguous();
    for (size_t axis = 0; !direct && axis < output.desc.shape.size(); ++axis)
      require(output.desc.strides[axis] != 0 || output.desc.shape[axis] <= 1,
              "[{}] the elements of output {} share memory: {}", op.name, i,
              to_string(output.desc));
    for (size_t k = 0; given && direct && k < in.size(); ++k)
      if (inputs[k] && !ready.packed[k] && share_memory(*inputs[k], output))
        direct = in[k] == output.data() && kernel.in_place(k) &&
                 (i == 0 || inputs[k]->desc == output.desc);
    for (size_t k = 0; given && k < i; ++k)
      require(!share_memory(outputs[k], output), "[{}] outputs {} and {} share memory", op.name, k,
              i);
    if (direct) {
      out.push_back(output.data());
    } else {
      aside.push_back(i);
      temporaries.push_back(device_.empty(desc.dtype, desc.shape));
      out.push_back(temporaries.back().data());
    }
  }
  BufferRef scratch;
  if (kernel.scratch_bytes()) scratch = device_.allocator().allocate(kernel.scratch_bytes());
  StringStore strings;
  kernel.run(
      {in.data(), out.data(), scratch ? scratch->data() : nullptr, &device_.queue(), &strings});
  for (size_t i = 0; i < outputs.size(); ++i)
    if (const TensorDesc& desc = ready.request.outputs[i]; desc.dtype == DType::kString)
      outputs[i].strings = own_strings(device_, static_cast<Text*>(out[i]), desc);
  for (size_t i = 0; i < aside.size(); ++i) {
    const KernelRequest copy = copy_request(temporaries[i].desc, outputs[aside[i]].desc, "output");
    void* from = temporaries[i].data();
    void* to = outputs[aside[i]].data();
    make_fallback_kernel(device_.driver(), copy)->run({&from, &to, nullptr, &device_.queue()});
  }
}

}  // namespace anymps
