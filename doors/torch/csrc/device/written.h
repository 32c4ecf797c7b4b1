// SPDX-License-Identifier: Apache-2.0
// Which storages are written to, for whoever keeps something that was made of their elements.
// PyTorch's own counter of versions does not tell: `x.data` has another one.
#pragma once

#include <atomic>
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace anymps::aten {

// A storage whose writes are counted from now on. Its address is not given to another one as long
// as this is there; its memory may be.
class Watched {
 public:
  explicit Watched(const c10::Storage& storage);
  ~Watched();
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  bool is_of(const at::Tensor& tensor) const {
    return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() == storage_;
  }
  // How often it was written to. Where too many are watched it may always have been.
  uint64_t writes() const;

 private:
  c10::weak_intrusive_ptr<c10::StorageImpl> held_;
  const c10::StorageImpl* storage_;
  int slot_;  // -1: there was no room
};

extern std::atomic<int> watched_storages;
void note_write_of_watched(const c10::StorageImpl* storage);

// To be called before elements of a tensor are written.
inline void note_write(const at::Tensor& tensor) {
  if (watched_storages.load(std::memory_order_relaxed) > 0)
    note_write_of_watched(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
}

}  // namespace anymps::aten
