// SPDX-License-Identifier: Apache-2.0
#include "graph/serializer.h"

namespace anymps {

bool is_mps(std::string_view) { return false; }
void save_mps(const Graph&, const std::string& path, const Metadata&) {
  fail(Code::kUnsupported, "[mps] {}: cannot be written yet", path);
}
std::unique_ptr<Graph> load_mps(std::string_view, std::shared_ptr<const void>, bool,
                                const std::string& name, Metadata*) {
  fail(Code::kUnsupported, "[mps] {}: cannot be read yet", name);
}

}  // namespace anymps
