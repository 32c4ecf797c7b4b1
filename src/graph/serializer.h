// SPDX-License-Identifier: Apache-2.0
// .mps files: a graph with its constants, versioned and checksummed. Constants are aligned, so that
// a loaded graph uses them where they lie in the mapped file.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace anymps {

using Metadata = std::map<std::string, std::string>;
inline constexpr const char* kCompiledFor = "compiled_for";  // the driver whose passes have run

bool is_mps(std::string_view bytes);  // by its magic
void save_mps(const Graph& graph, const std::string& path, const Metadata& metadata = {});
// `owner` keeps `bytes` alive; `mapped`: they are pages of a file. `name` is for messages.
std::unique_ptr<Graph> load_mps(std::string_view bytes, std::shared_ptr<const void> owner,
                                bool mapped, const std::string& name, Metadata* metadata = nullptr);

}  // namespace anymps
