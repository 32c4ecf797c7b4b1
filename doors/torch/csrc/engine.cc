// SPDX-License-Identifier: Apache-2.0
#include "engine.h"

#include <algorithm>
#include <string_view>

#include <c10/util/Exception.h>
#include "lowering/engine.h"

namespace anymps::aten {

const amps_api& engine() {
  static const amps_api& api = []() -> const amps_api& {
    try {
      return lowering::load_engine(reinterpret_cast<const void*>(&engine));
    } catch (const lowering::EngineError& error) {
      raise(error);
    }
  }();
  return api;
}

amps_device* device() {
  static amps_device* const found = [] {
    try {
      return lowering::find_device(engine(), 0);
    } catch (const lowering::EngineError& error) {
      raise(error);
    }
  }();
  return found;
}

bool says(const lowering::EngineError& error, std::initializer_list<std::string_view> texts) {
  const std::string_view what = error.what();
  return std::any_of(texts.begin(), texts.end(), [&](std::string_view text) {
    return what.find(text) != std::string_view::npos;
  });
}

bool unsupported(const lowering::EngineError& error) {
  return error.status == AMPS_UNSUPPORTED ||
         says(error, {"must be one of {", "is not defined for"});
}

void raise(const lowering::EngineError& error) {
  TORCH_CHECK_WITH(
      OutOfMemoryError, error.status != AMPS_OUT_OF_MEMORY,
      "MPS backend out of memory: ", error.what(),
      ". Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations.");
  TORCH_CHECK_NOT_IMPLEMENTED(!unsupported(error), error.what());
  // PyTorch has an exception of its own for places that there are none of.
  const bool place =
      says(error, {"is out of range for axis", "is out of range for rank", "Dimension out of range",
                   "has no element to give", "[nll_loss] label"});
  const bool along = says(error, {"[gather_along_axis]", "[scatter_along_axis]"});  // but for these
  TORCH_CHECK_INDEX(!place || along, error.what());
  TORCH_CHECK(false, error.what());
}

void check(amps_status status) {
  if (status != AMPS_OK) raise({status, engine().last_error()});
}

}  // namespace anymps::aten
