// SPDX-License-Identifier: Apache-2.0
// Tensors: made from anything with the buffer protocol without a copy, from strings and from lists;
// read through the buffer protocol, which keeps the memory alive as long as a view of it.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <string_view>

#include "core.h"

namespace anymps::python {

namespace {

// The struct module's letter of a dtype, or null: as bytes or words somebody would take the
// elements for integers.
const char* format_of(amps_dtype dtype) {
  switch (dtype) {
    case AMPS_F32:
      return "f";
    case AMPS_F16:
      return "e";
    case AMPS_F64:
      return "d";
    case AMPS_I8:
      return "b";
    case AMPS_I16:
      return "h";
    case AMPS_I32:
      return "i";
    case AMPS_I64:
      return "q";
    case AMPS_U8:
      return "B";
    case AMPS_U16:
      return "H";
    case AMPS_U32:
      return "I";
    case AMPS_U64:
      return "Q";
    case AMPS_BOOL:
      return "?";
    case AMPS_C64:
      return "Zf";
    case AMPS_C128:
      return "Zd";
    default:
      return nullptr;
  }
}

struct Release {
  void (*fn)(void*);
  void* context;
};

// Held while a thread that Python may not know asks for the interpreter's lock, and while a process
// forks. CPython adds such a thread to its list of threads under a lock of its own, which a child
// finds held (3.11 waits for it in os.fork). Taken before the interpreter's lock, never under it.
std::mutex& entering() {
  static auto& mutex = *new std::mutex;  // streams may outlive the module
  return mutex;
}

PyGILState_STATE take_gil() {
  if (PyGILState_Check()) return PyGILState_Ensure();
  const std::lock_guard lock(entering());
  return PyGILState_Ensure();
}

void release_with_gil(void* context) {
  std::unique_ptr<Release> held(static_cast<Release*>(context));
  // The interpreter is gone, and with it the memory; or it ends, and lets no other thread in.
  if (!Py_IsInitialized() || !may_take_gil()) return;
  const PyGILState_STATE state = take_gil();
  held->fn(held->context);
  PyGILState_Release(state);
}

void release_buffer(void* context) {
  auto* view = static_cast<Py_buffer*>(context);
  PyBuffer_Release(view);
  delete view;
}

// The dtype with this letter and size in the struct module, if the engine has it.
std::optional<amps_dtype> dtype_of_format(const char* format, Py_ssize_t size) {
  const std::string_view text = format ? format : "";
  if (text == "Zf") return AMPS_C64;
  if (text == "Zd") return AMPS_C128;
  if (text.size() != 1) return std::nullopt;
  char letter = text[0];
  if (letter == 'l' && size == 8) letter = 'q';  // C's long
  if (letter == 'L' && size == 8) letter = 'Q';
  for (const amps_dtype dtype : {AMPS_F32, AMPS_F16, AMPS_F64, AMPS_I8, AMPS_I16, AMPS_I32,
                                 AMPS_I64, AMPS_U8, AMPS_U16, AMPS_U32, AMPS_U64, AMPS_BOOL})
    if (*format_of(dtype) == letter && static_cast<Py_ssize_t>(amps_dtype_size(dtype)) == size)
      return dtype;
  return std::nullopt;
}

// Null: the buffer's memory cannot be addressed in elements.
amps_tensor* over_buffer(std::unique_ptr<Py_buffer>& view, amps_dtype dtype, amps_device* device) {
  constexpr int kMostAxes = 64;  // of numpy
  const Py_ssize_t size = view->itemsize;
  int64_t dims[kMostAxes], strides[kMostAxes];
  if (view->ndim > kMostAxes) return nullptr;
  for (int i = 0; i < view->ndim; ++i) {
    if (view->strides[i] % size != 0) return nullptr;
    dims[i] = view->shape[i];
    strides[i] = view->strides[i] / size;
  }
  auto held = std::make_unique<Release>(Release{release_buffer, view.get()});
  amps_tensor* made = nullptr;
  amps::check(amps_tensor_wrap(device, dtype, static_cast<size_t>(view->ndim), dims, strides,
                               view->buf, release_with_gil, held.get(), &made));
  (void)held.release();
  (void)view.release();
  return made;
}

struct PutBack {
  std::unique_ptr<Py_buffer>& view;
  ~PutBack() {
    if (view) PyBuffer_Release(view.get());
  }
};

Tensor from_buffer(nb::handle object, const std::string& dtype_name, amps_device* device) {
  const amps_dtype dtype = dtype_of(dtype_name);
  if (dtype == AMPS_STRING) invalid("[tensor] strings have no buffer: use from_strings");
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object.ptr(), view.get(), PyBUF_STRIDES) != 0) throw nb::python_error();
  const PutBack put_back{view};
  const auto size = static_cast<Py_ssize_t>(amps_dtype_size(dtype));
  if (view->itemsize != size)
    invalid("[tensor] " + dtype_name + " has " + std::to_string(size) +
            " bytes an element, the buffer has " + std::to_string(view->itemsize));
  const bool readonly = view->readonly != 0;
  amps_tensor* made = over_buffer(view, dtype, device);
  if (!made) invalid("[tensor] the buffer's strides are no multiple of an element");
  return {amps::Tensor(made), device, readonly};
}

Tensor from_strings(const std::vector<nb::bytes>& strings, const std::vector<int64_t>& dims,
                    amps_device* device) {
  const StringList list(strings, dims);
  amps_tensor* made = nullptr;
  amps::check(amps_tensor_from_strings(device, dims.size(), dims.data(), list.data.data(),
                                       list.sizes.data(), &made));
  return {amps::Tensor(made), device, true};
}

nb::list strings_of(const Tensor& tensor) {
  if (!tensor.plain() || amps_tensor_dtype(tensor.c()) != AMPS_STRING)
    invalid("[tensor] the tensor does not hold strings");
  int64_t count = 1;
  for (size_t i = 0; i < amps_tensor_rank(tensor.c()); ++i)
    count *= amps_tensor_dims(tensor.c())[i];
  nb::list list;
  for (int64_t i = 0; i < count; ++i) {
    const char* data = nullptr;
    size_t bytes = 0;
    amps::check(amps_tensor_string(tensor.c(), i, &data, &bytes));
    list.append(nb::bytes(data, bytes));
  }
  return list;
}

Tensor make_list(const std::vector<const Tensor*>& items, int container, const std::string& dtype,
                 amps_device* device) {
  std::vector<amps_tensor*> handles;
  for (const Tensor* item : items) handles.push_back(item->c());
  amps_tensor* made = nullptr;
  amps::check(amps_tensor_list(device, static_cast<amps_container>(container), dtype_of(dtype),
                               handles.data(), handles.size(), &made));
  return {amps::Tensor(made), device, true};
}

Tensor make_nothing(int container, const std::string& dtype, amps_device* device) {
  amps_tensor* made = nullptr;
  amps::check(
      amps_tensor_nothing(device, static_cast<amps_container>(container), dtype_of(dtype), &made));
  return {amps::Tensor(made), device, true};
}

nb::object items_of(const Tensor& tensor) {
  const int64_t count = amps_tensor_item_count(tensor.c());
  if (count < 0) return nb::none();
  nb::list list;
  for (int64_t i = 0; i < count; ++i) {
    amps_tensor* item = nullptr;
    amps::check(amps_tensor_item(tensor.c(), i, &item));
    list.append(nb::cast(Tensor{amps::Tensor(item), tensor.device, tensor.readonly}));
  }
  return list;
}

nb::tuple tuple_of(const int64_t* numbers, size_t count) {
  nb::list list;
  for (size_t i = 0; i < count; ++i) list.append(numbers[i]);
  return nb::tuple(list);
}

// The same memory as integers of the elements' size, for types without a buffer format.
Tensor carrier_of(nb::handle object) {
  const Tensor& tensor = nb::cast<const Tensor&>(object);
  need_host_memory(tensor);
  amps_tensor* c = tensor.c();
  const size_t rank = amps_tensor_rank(c);
  const int64_t *dims = amps_tensor_dims(c), *strides = amps_tensor_strides(c);
  const nb::object owner = nb::borrow(object);
  Tensor carrier = wrap(
      tensor.device, amps_dtype_size(amps_tensor_dtype(c)) == 2 ? AMPS_U16 : AMPS_U8,
      {dims, dims + rank}, {strides, strides + rank}, amps_tensor_data(c), tensor.readonly,
      [](void* held) { Py_DECREF(static_cast<PyObject*>(held)); }, object.ptr());
  Py_INCREF(object.ptr());
  return carrier;
}

// What a view needs besides the memory: numbers in bytes, kept as long as the view.
struct Exported {
  std::vector<Py_ssize_t> shape, strides;
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  try {
    const auto& tensor = *nb::inst_ptr<Tensor>(self);
    if (!tensor.plain() || amps_tensor_dtype(tensor.c()) == AMPS_STRING) {
      PyErr_SetString(PyExc_BufferError, "[tensor] strings and lists have no buffer");
      return -1;
    }
    need_host_memory(tensor);
    const char* format = format_of(amps_tensor_dtype(tensor.c()));
    if (!format) {  // numpy asks __array__ then
      PyErr_SetString(PyExc_BufferError, "[tensor] the element type has no buffer");
      return -1;
    }
    if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE && tensor.readonly) {
      PyErr_SetString(PyExc_BufferError, "[tensor] the tensor's memory is read-only");
      return -1;
    }
    amps_tensor* c = tensor.c();
    const amps_dtype dtype = amps_tensor_dtype(c);
    const auto size = static_cast<Py_ssize_t>(amps_dtype_size(dtype));
    const size_t rank = amps_tensor_rank(c);
    auto exported = std::make_unique<Exported>();
    exported->shape.resize(rank);
    exported->strides.resize(rank);
    Py_ssize_t packed = size;
    bool contiguous = true;
    for (size_t i = rank; i-- > 0;) {
      const auto extent = static_cast<Py_ssize_t>(amps_tensor_dims(c)[i]);
      const auto stride = static_cast<Py_ssize_t>(amps_tensor_strides(c)[i]) * size;
      contiguous = contiguous && (extent <= 1 || stride == packed);
      packed *= extent;
      exported->shape[i] = extent;
      exported->strides[i] = stride;
    }
    if (!contiguous && (flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
      PyErr_SetString(PyExc_BufferError, "[tensor] the tensor is not contiguous");
      return -1;
    }
    view->buf = amps_tensor_data(c);
    view->len = static_cast<Py_ssize_t>(amps_tensor_bytes(c));
    view->itemsize = size;
    view->readonly = tensor.readonly;
    view->ndim = static_cast<int>(exported->shape.size());
    view->format = (flags & PyBUF_FORMAT) ? const_cast<char*>(format) : nullptr;
    view->shape = (flags & PyBUF_ND) ? exported->shape.data() : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? exported->strides.data() : nullptr;
    view->suboffsets = nullptr;
    view->internal = exported.release();
    view->obj = Py_NewRef(self);
    return 0;
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
    return -1;
  }
}

void release_view(PyObject*, Py_buffer* view) noexcept {
  delete static_cast<Exported*>(view->internal);
}

PyType_Slot kTensorSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                              {Py_bf_releasebuffer, reinterpret_cast<void*>(release_view)},
                              {0, nullptr}};

}  // namespace

bool has_buffer(amps_dtype dtype) { return format_of(dtype) != nullptr; }

amps_tensor* plain_feed(PyObject* array, amps_dtype dtype, amps_device* device) {
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(array, view.get(), PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return nullptr;
  }
  const PutBack put_back{view};
  if (dtype_of_format(view->format, view->itemsize) != dtype) return nullptr;
  if (reinterpret_cast<uintptr_t>(view->buf) % static_cast<size_t>(view->itemsize) != 0)
    return nullptr;
  return over_buffer(view, dtype, device);
}

void before_fork() {
  const nb::gil_scoped_release unlocked;
  entering().lock();
}

void after_fork() { entering().unlock(); }

StringList::StringList(const std::vector<nb::bytes>& strings, const std::vector<int64_t>& dims) {
  uint64_t count = 1;
  for (const int64_t extent : dims)
    if (extent < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(extent), &count))
      invalid("[tensor] the shape is not one of strings");
  if (count != strings.size()) invalid("[tensor] the shape does not fit the strings");
  for (const nb::bytes& text : strings) {
    data.push_back(text.c_str());
    sizes.push_back(text.size());
  }
}

Tensor wrap(amps_device* device, amps_dtype dtype, const std::vector<int64_t>& dims,
            const std::vector<int64_t>& strides, void* data, bool readonly,
            void (*release)(void* context), void* context) {
  auto held = std::make_unique<Release>(Release{release, context});
  amps_tensor* made = nullptr;
  amps::check(amps_tensor_wrap(device, dtype, dims.size(), dims.data(), strides.data(), data,
                               release_with_gil, held.get(), &made));
  (void)held.release();
  return {amps::Tensor(made), device, readonly};
}

void need_host_memory(const Tensor& tensor) {
  if (!tensor.plain() || amps_tensor_dtype(tensor.c()) == AMPS_STRING)
    invalid("[tensor] strings and lists have no memory that can be shared");
  // Guarded by the GIL. Devices live for ever, and there are few.
  static auto& known = *new std::vector<amps_device*>;
  if (std::find(known.begin(), known.end(), tensor.device) != known.end()) return;
  // A device that shares the host's memory takes memory of the host; there is no other way to ask.
  amps_tensor* probe = nullptr;
  const int64_t none = 0;
  amps::check(amps_tensor_wrap(tensor.device, AMPS_U8, 1, &none, nullptr, nullptr, nullptr, nullptr,
                               &probe));
  amps_tensor_release(probe);
  known.push_back(tensor.device);
}

void bind_tensor(nb::module_& m) {
  nb::class_<Tensor> tensor(m, "Tensor", nb::type_slots(kTensorSlots));
  tensor
      .def_prop_ro(
          "dtype", [](const Tensor& t) { return amps_dtype_name(amps_tensor_dtype(t.c())); },
          "The element type's short name: 'f32'.")
      .def_prop_ro("shape",
                   [](const Tensor& t) {
                     return tuple_of(amps_tensor_dims(t.c()), amps_tensor_rank(t.c()));
                   })
      .def_prop_ro(
          "strides",
          [](const Tensor& t) {
            return tuple_of(amps_tensor_strides(t.c()), amps_tensor_rank(t.c()));
          },
          "In elements.")
      .def_prop_ro(
          "nbytes", [](const Tensor& t) { return amps_tensor_bytes(t.c()); },
          "Bytes of the elements, packed.")
      .def_prop_ro("device",
                   [](const Tensor& t) { return amps::Device::get(amps_device_name(t.device)); })
      .def_prop_ro("readonly", [](const Tensor& t) { return t.readonly; })
      .def_prop_ro("_container",
                   [](const Tensor& t) { return static_cast<int>(amps_tensor_container(t.c())); })
      .def("_items", items_of)
      .def("_strings", strings_of)
      .def("_carrier", carrier_of)
      .def("_view", [](const Tensor& t, const std::vector<int64_t>& dims,
                       const std::vector<int64_t>& strides, int64_t offset) {
        need_host_memory(t);
        if (dims.size() != strides.size()) invalid("[tensor] as many strides as extents");
        amps_tensor* view = nullptr;
        amps::check(
            amps_tensor_view(t.c(), dims.size(), dims.data(), strides.data(), offset, &view));
        return Tensor{amps::Tensor(view), t.device, t.readonly};
      });
  bind_dlpack(tensor);
  m.def("from_buffer", [](nb::handle object, const std::string& dtype, const amps::Device& device) {
    return from_buffer(object, dtype, device.c());
  });
  m.def("from_strings",
        [](const std::vector<nb::bytes>& strings, const std::vector<int64_t>& dims,
           const amps::Device& device) { return from_strings(strings, dims, device.c()); });
  m.def("make_list",
        [](const std::vector<const Tensor*>& items, int container, const std::string& dtype,
           const amps::Device& device) { return make_list(items, container, dtype, device.c()); });
  m.def("make_nothing", [](int container, const std::string& dtype, const amps::Device& device) {
    return make_nothing(container, dtype, device.c());
  });
  m.def("empty", [](const std::vector<int64_t>& dims, const std::string& dtype,
                    const amps::Device& device) {
    amps_tensor* made = nullptr;
    amps::check(amps_tensor_empty(device.c(), dtype_of(dtype), dims.size(), dims.data(), &made));
    return Tensor{amps::Tensor(made), device.c()};
  });
}

}  // namespace anymps::python
