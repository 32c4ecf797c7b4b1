// SPDX-License-Identifier: Apache-2.0
#include "strict.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <unordered_set>

#include <c10/util/Exception.h>

namespace anymps::aten {

namespace {

// Base names with a kernel for MPS in PyTorch 2.15.
constexpr const char* kOnAMac[] = {
#include "mac_kernels.inc"
};

// Those of them that came after 2.13.
constexpr std::string_view kAfter213[] = {
    "_compute_linear_combination",
    "_ctc_loss",
    "_ctc_loss_backward",
    "_grouped_mm",
    "_int_mm",
    "_linalg_eigh",
    "_linalg_svd",
    "_scaled_mm_v2",
    "_upsample_bicubic2d_aa_backward",
    "_upsample_bilinear2d_aa_backward",
    "binomial",
    "frexp",
    "geqrf",
    "heaviside",
    "linalg_lstsq",
    "linalg_lu_solve",
    "linalg_matrix_exp",
    "linalg_polar",
    "logspace",
    "poisson",
    "put_",
    "record_stream",
    "special_laguerre_polynomial_l",
    "take",
};

std::string_view asked_for() {
  const char* text = std::getenv("ANYMPS_STRICT_MPS");
  return text ? text : "";
}

std::atomic<bool>& mode() {
  static std::atomic<bool> on = !asked_for().empty() && asked_for() != "0";
  return on;
}

}  // namespace

bool strict() { return mode().load(std::memory_order_relaxed); }
void set_strict(bool on) { mode() = on; }

void check_allowed_on_a_mac(c10::ScalarType type) {
  if (!strict()) return;
  TORCH_CHECK_TYPE(type != c10::ScalarType::Double && type != c10::ScalarType::ComplexDouble,
                   "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't "
                   "support float64. Please use "
                   "float32 instead.");
}

bool has_kernel_on_a_mac(std::string_view name) {
  static const auto& names =
      *new std::unordered_set<std::string_view>(std::begin(kOnAMac), std::end(kOnAMac));
  static const bool early = asked_for() == "2.13";
  const auto known = [&](std::string_view base) {
    return names.contains(base) &&
           !(early && std::ranges::find(kAfter213, base) != std::end(kAfter213));
  };
  const std::string_view base = name.substr(0, name.find('.'));
  // What PyTorch calls for a convolution on a device that it has no name for; a Mac's has one.
  if (base.ends_with("_overrideable")) return true;
  return known(base) || (base.ends_with('_') && known(base.substr(0, base.size() - 1)));
}

}  // namespace anymps::aten
