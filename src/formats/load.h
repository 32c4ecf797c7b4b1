// SPDX-License-Identifier: Apache-2.0
// A model file of any known format -> Graph. The content decides, not the file's name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/default_inputs.h"
#include "graph/graph.h"

namespace anymps {

// `compiled_for` receives the driver whose passes have run over an .mps file, "" otherwise.
// `defaults`: see there; null for none wanted.
std::unique_ptr<Graph> load_graph(const std::string& path, std::string* compiled_for = nullptr,
                                  DefaultInputs* defaults = nullptr);
std::unique_ptr<Graph> load_graph(std::vector<std::byte> bytes, const std::string& name,
                                  DefaultInputs* defaults = nullptr,
                                  std::string* compiled_for = nullptr);

}  // namespace anymps
