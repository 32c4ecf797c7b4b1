// SPDX-License-Identifier: Apache-2.0
// Paddle keeps custom devices by name: for each tensor of each call it asks a table of strings,
// behind a lock, which backend it is on and which device that is. The functions that do so are
// exported, so that a library that is there before Paddle's may define them (as others define
// malloc): here they answer at once for the device `mps`, whose answers never change, and hand
// everything else on to Paddle's own. Each does what Paddle 3.3.1's does; it is loaded for that
// version alone.
#include "shortcuts/shortcuts.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <paddle/phi/backends/device_manager.h>
#include <paddle/phi/core/compat/convert_utils.h>
#include <paddle/phi/core/device_context.h>

#define ANYMPS_SHORTCUT __attribute__((visibility("default")))

namespace anymps::paddle {
namespace {

constexpr int kMostDevices = 16;
ShortcutDevice device{};
thread_local int current_device = 0;
std::array<std::atomic<phi::DeviceContext*>, kMostDevices> contexts;

// The function of the same name in Paddle's libraries.
template <auto kFunction>
[[gnu::noinline]] decltype(kFunction) original() {
  static const auto found = [] {
    Dl_info about{};
    dladdr(reinterpret_cast<void*>(kFunction), &about);
    for (const char* name : {"libphi_core.so", "libpaddle.so"}) {
      void* library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
      void* function = library ? dlsym(library, about.dli_sname) : nullptr;
      if (function) return reinterpret_cast<decltype(kFunction)>(function);
    }
    std::fprintf(stderr, "paddle_anymps: Paddle has no %s\n", about.dli_sname);
    std::abort();  // not the Paddle that its version says
  }();
  return found;
}

// What is in a place, which has no function for the number of its device's name.
struct Named {
  int8_t index;
  phi::AllocationType kind;
  size_t type;
};
static_assert(sizeof(Named) == sizeof(phi::Place));

// The index of the device, if the place is one of `mps`; -1: it is another's.
int index_of(const phi::Place& place) {
  const auto named = std::bit_cast<Named>(place);
  const bool ours = named.kind == phi::AllocationType::CUSTOM && named.type == device.type;
  return ours && named.index < device.count ? named.index : -1;
}

phi::Backend backend() {
  return static_cast<phi::Backend>(static_cast<size_t>(phi::Backend::NUM_BACKENDS) + device.type);
}

}  // namespace

extern "C" ANYMPS_SHORTCUT const char* const anymps_paddle_shortcuts_version;
extern "C" const char* const anymps_paddle_shortcuts_version = ANYMPS_PADDLE_VERSION;

extern "C" ANYMPS_SHORTCUT CurrentDevice
anymps_paddle_start_shortcuts(const ShortcutDevice& known) {
  device = known;
  return [] { return &current_device; };
}

}  // namespace anymps::paddle

namespace phi {

using anymps::paddle::original;

ANYMPS_SHORTCUT Backend TransToPhiBackend(const Place& place) {
  if (anymps::paddle::index_of(place) >= 0) return anymps::paddle::backend();
  return original<&TransToPhiBackend>()(place);
}

ANYMPS_SHORTCUT void DeviceManager::SetDevice(const Place& place) {
  if (const int index = anymps::paddle::index_of(place); index >= 0)
    anymps::paddle::current_device = index;
  else
    original<static_cast<void (*)(const Place&)>(&DeviceManager::SetDevice)>()(place);
}

}  // namespace phi

namespace paddle::experimental {

ANYMPS_SHORTCUT phi::DeviceContext* GetDeviceContextByBackend(phi::Backend backend) {
  using namespace anymps::paddle;
  if (device.count == 0 || backend != anymps::paddle::backend())
    return original<&GetDeviceContextByBackend>()(backend);
  std::atomic<phi::DeviceContext*>& known = contexts[current_device];
  phi::DeviceContext* context = known.load(std::memory_order_acquire);
  if (!context) {
    context = original<&GetDeviceContextByBackend>()(backend);
    known.store(context, std::memory_order_release);
  }
  return context;
}

// Paddle forgets the contexts that it keeps for the function above, and so must we.
ANYMPS_SHORTCUT void sync_context(void* pool, const phi::Place& place) asm(
    "_ZN6paddle12experimental17DeviceContextPool17SyncDeviceContextERKN3phi5PlaceE");

void sync_context(void* pool, const phi::Place& place) {
  anymps::paddle::original<&sync_context>()(pool, place);
  if (const int index = anymps::paddle::index_of(place); index >= 0)
    anymps::paddle::contexts[index] = nullptr;
}

}  // namespace paddle::experimental

// Where gradients of a value meet, Paddle adds them in place, but for custom devices by the op
// `add`, which prepares for a gradient of the sum even if nobody asked for one.
namespace egr {
class GradTensorHolder;

namespace {
thread_local bool adds_without_gradient = false;
}

ANYMPS_SHORTCUT void add_to_holder(
    GradTensorHolder* holder, size_t slot, size_t rank, const paddle::Tensor& gradient,
    bool create_graph) asm("_ZN3egr16GradTensorHolder3addEmmRKN6paddle6TensorEb");

void add_to_holder(GradTensorHolder* holder, size_t slot, size_t rank,
                   const paddle::Tensor& gradient, bool create_graph) {
  struct Restore {
    bool before;
    ~Restore() { adds_without_gradient = before; }
  } restore{std::exchange(adds_without_gradient, !create_graph)};
  anymps::paddle::original<&add_to_holder>()(holder, slot, rank, gradient, create_graph);
}

}  // namespace egr

// Where one of them holds the rows of an embedding alone, it sums by functions that it has for CPUs
// and CUDA; with a tensor of a custom device they read past a null pointer.
namespace paddle::imperative {

namespace {
bool ours(const Tensor& tensor) {
  return anymps::paddle::device.place &&
         anymps::paddle::index_of(anymps::paddle::device.place(tensor)) >= 0;
}
}  // namespace

ANYMPS_SHORTCUT std::shared_ptr<Tensor> merge_rows(const Tensor& x, const Tensor& y) asm(
    "_ZN6paddle10imperative17SelectedRowsMergeINS_6TensorES2_EESt10shared_ptrIT_ERKT0_S8_");
ANYMPS_SHORTCUT void rows_plus(const Tensor& rows, const Tensor& tensor, Tensor* sum) asm(
    "_ZN6paddle10imperative21SelectedRowsAddTensorINS_6TensorEEEvRKT_S5_PS3_");
ANYMPS_SHORTCUT void add_rows(const Tensor& rows, Tensor* to) asm(
    "_ZN6paddle10imperative23SelectedRowsAddToTensorINS_6TensorEEEvRKT_PS3_");

std::shared_ptr<Tensor> merge_rows(const Tensor& x, const Tensor& y) {
  if (ours(x)) return anymps::paddle::device.merge_rows(x, y);
  return anymps::paddle::original<&merge_rows>()(x, y);
}

void rows_plus(const Tensor& rows, const Tensor& tensor, Tensor* sum) {
  if (ours(rows)) return anymps::paddle::device.rows_plus(rows, tensor, sum);
  anymps::paddle::original<&rows_plus>()(rows, tensor, sum);
}

void add_rows(const Tensor& rows, Tensor* to) {
  if (ours(rows)) return anymps::paddle::device.add_rows(rows, to);
  anymps::paddle::original<&add_rows>()(rows, to);
}

}  // namespace paddle::imperative

ANYMPS_SHORTCUT paddle::Tensor add_ad_func(const paddle::Tensor& x, const paddle::Tensor& y,
                                           paddle::optional<paddle::Tensor*> out);

paddle::Tensor add_ad_func(const paddle::Tensor& x, const paddle::Tensor& y,
                           paddle::optional<paddle::Tensor*> out) {
  using anymps::paddle::device;
  const auto ours = [](const paddle::Tensor& tensor) {
    return anymps::paddle::index_of(device.place(tensor)) >= 0;
  };
  if (egr::adds_without_gradient && !out && device.place && ours(x) && ours(y))
    return device.add(x, y);
  return anymps::paddle::original<&add_ad_func>()(x, y, out);
}
