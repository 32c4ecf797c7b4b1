// SPDX-License-Identifier: Apache-2.0
#include "kernels/table.h"

#include <map>
#include <string>

#include "engine.h"

namespace anymps::paddle {

namespace {

struct Registered {
  lowering::Row row;
  TypeSet types;
};

std::map<std::string, Registered>& registered() {
  static auto& all = *new std::map<std::string, Registered>;
  return all;
}

void no_special_arguments(const phi::KernelKey&, phi::Kernel*) {}

}  // namespace

void register_kernels(const std::vector<Entry>& entries, phi::DataLayout layout) {
  for (const Entry& entry : entries) {
    registered().insert_or_assign(entry.row.name, Registered{entry.row, entry.types});
    for (int type = 0; type < 32; ++type) {
      if (!(entry.types >> type & 1)) continue;
      phi::KernelRegistrar(phi::RegType::OUTER, entry.row.name, "mps", layout,
                           to_paddle(static_cast<amps_dtype>(type)), entry.parse,
                           no_special_arguments, entry.boxed, entry.unboxed);
    }
  }
}

// The page docs/generated/paddle_kernels.md.
extern "C" __attribute__((visibility("default"))) const char* anymps_paddle_kernels() {
  static const std::string text = [] {
    std::string page =
        "# Kernels of the Paddle door\n\n`python -m paddle_anymps kernels` prints this page: every "
        "kernel that the device `mps` has, the types it takes, its arguments and how it is "
        "computed.\n\n| kernel | types | arguments | in the engine's ops |\n|---|---|---|---|\n";
    for (const auto& [name, entry] : registered()) {
      std::string types;
      for (int type = 0; type < 32; ++type)
        if (entry.types >> type & 1)
          types += (types.empty() ? "" : ", ") +
                   std::string(engine().dtype_name(static_cast<amps_dtype>(type)));
      page += "| `" + name + "` | " + types + " | " + entry.row.arguments + " | `" +
              entry.row.body + "` |\n";
    }
    page += "\n" + std::to_string(registered().size()) + " kernels.\n";
    return page;
  }();
  return text.c_str();
}

}  // namespace anymps::paddle
