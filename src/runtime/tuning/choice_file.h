// SPDX-License-Identifier: Apache-2.0
// The file that keeps what ANYMPS_TUNE has measured: for each node, by the checksum of what its
// times depend on, the name of the kernel to take. The file is for one machine, one version of the
// engine and one number of threads, which its first lines name. It is foreign input: all of it is
// checked, and nothing in it is more than a name that is looked up among the kernels there are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace anymps {

using Choices = std::map<uint64_t, std::string>;

inline constexpr size_t kMostChoices = 4096;         // in a file
inline constexpr size_t kMostChoiceName = 64;        // characters
inline constexpr size_t kMostChoiceBytes = 1 << 19;  // of a file that is read

// $ANYMPS_TUNE_CACHE, $XDG_CACHE_HOME/anymps or $HOME/.cache/anymps; "": nowhere.
std::string choice_folder();
// The path of the file for what `identity` tells; "" where there is no folder.
std::string choice_path(const std::string& folder, const std::string& identity);

std::string choices_to_text(const std::string& identity, const Choices& choices);
// Nothing, with the reason, where the text is not all that it should be.
std::optional<Choices> choices_from_text(std::string_view text, const std::string& identity,
                                         std::string& why);

// A file that is not there holds no choices. Nothing, with the reason, where it cannot be used.
std::optional<Choices> read_choices(const std::string& path, const std::string& identity,
                                    std::string& why);
// Adds choices to those of the file, of which each wins over an older one. Another process may do
// the same: the file is always whole, and at worst lacks what the other one knew. False, with the
// reason, where it cannot be written.
bool add_choices(const std::string& path, const std::string& identity, const Choices& choices,
                 std::string& why);

}  // namespace anymps
