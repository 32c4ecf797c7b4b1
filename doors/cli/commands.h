// SPDX-License-Identifier: Apache-2.0
// The commands: each adds itself to the program with its options, in a file named after it.
#pragma once

#include <CLI/CLI.hpp>

namespace anymps::cli {

void add_run(CLI::App& app);
void add_bench(CLI::App& app);
void add_profile(CLI::App& app);
void add_inspect(CLI::App& app);
void add_compile(CLI::App& app);
void add_convert(CLI::App& app);
void add_export_pte(CLI::App& app);
void add_serve(CLI::App& app);
void add_ops(CLI::App& app);
void add_doctor(CLI::App& app);
void add_completion(CLI::App& app);

}  // namespace anymps::cli
