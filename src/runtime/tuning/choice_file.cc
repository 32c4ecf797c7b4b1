// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/choice_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/checksum.h"
#include "base/env.h"
#include "base/error.h"
#include "base/output_file.h"

namespace anymps {

namespace {

constexpr std::string_view kFirstLine = "anymps kernel choices 1";
constexpr size_t kDigits = 16;

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMostChoiceName &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("_-:/+.").find(c) != std::string_view::npos;
         });
}

std::optional<uint64_t> from_digits(std::string_view text) {
  uint64_t value = 0;
  if (text.size() != kDigits) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string to_digits(uint64_t value) { return fmt::format("{:016x}", value); }

// The next line, without its end, which must be there.
std::optional<std::string_view> take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == text.npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

std::optional<Choices> refused(std::string& why, std::string reason) {
  why = std::move(reason);
  return std::nullopt;
}

// Closes itself.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

std::string choice_folder() {
  if (std::string asked = env_string("ANYMPS_TUNE_CACHE"); !asked.empty()) return asked;
  const auto absolute = [](const char* name) {
    const char* path = std::getenv(name);
    return path && *path == '/' ? std::string(path) : std::string();
  };
  if (const std::string cache = absolute("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/anymps";
  const std::string home = absolute("HOME");
  return home.empty() ? home : home + "/.cache/anymps";
}

std::string choice_path(const std::string& folder, const std::string& identity) {
  if (folder.empty()) return folder;
  return fmt::format("{}/choices-{}.txt", folder,
                     to_digits(checksum(identity.data(), identity.size())));
}

std::string choices_to_text(const std::string& identity, const Choices& choices) {
  std::string text = fmt::format("{}\n{}\n", kFirstLine, identity);
  for (const auto& [key, name] : choices) text += to_digits(key) + " " + name + "\n";
  return text + to_digits(checksum(text.data(), text.size())) + "\n";
}

std::optional<Choices> choices_from_text(std::string_view text, const std::string& identity,
                                         std::string& why) {
  constexpr size_t kLast = kDigits + 1;  // the checksum and the end of its line
  if (text.size() > kMostChoiceBytes) return refused(why, "it is too long");
  std::string_view rest = text;
  if (take_line(rest) != kFirstLine) return refused(why, "it is no file of kernel choices");
  if (rest.size() < kLast || text.back() != '\n') return refused(why, "it is cut off");
  const std::string_view body = text.substr(0, text.size() - kLast);
  if (from_digits(text.substr(body.size(), kDigits)) != checksum(body.data(), body.size()))
    return refused(why, "it is damaged");
  if (take_line(rest) != identity) return refused(why, "it is of another machine or version");
  rest.remove_suffix(std::min(rest.size(), kLast));
  Choices choices;
  while (!rest.empty()) {
    const std::optional<std::string_view> line = take_line(rest);
    const std::optional<uint64_t> key =
        line && line->size() > kDigits ? from_digits(line->substr(0, kDigits)) : std::nullopt;
    if (!key || (*line)[kDigits] != ' ' || !is_name(line->substr(kDigits + 1)))
      return refused(why, "it is damaged");
    if (choices.size() >= kMostChoices) return refused(why, "it is too long");
    choices[*key] = line->substr(kDigits + 1);
  }
  return choices;
}

std::optional<Choices> read_choices(const std::string& path, const std::string& identity,
                                    std::string& why) {
  // A pipe that somebody has put there is not waited for.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (file.fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return Choices();
    return refused(why, std::strerror(errno));
  }
  struct stat found {};
  if (::fstat(file.fd, &found) != 0) return refused(why, std::strerror(errno));
  if (!S_ISREG(found.st_mode)) return refused(why, "it is not a regular file");
  std::string text;
  char piece[1 << 14];
  while (text.size() <= kMostChoiceBytes) {
    const ssize_t got = ::read(file.fd, piece, sizeof(piece));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refused(why, std::strerror(errno));
    if (got == 0) break;
    text.append(piece, static_cast<size_t>(got));
  }
  return choices_from_text(text, identity, why);
}

bool add_choices(const std::string& path, const std::string& identity, const Choices& choices,
                 std::string& why) {
  try {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::filesystem::create_directories(folder, error);
    if (error) {
      why = error.message();
      return false;
    }
    std::error_code unknown;
    const auto kind = std::filesystem::status(path, unknown).type();
    if (kind != std::filesystem::file_type::regular &&
        kind != std::filesystem::file_type::not_found) {
      why = "it is not a regular file";
      return false;
    }
    Choices all = choices;
    if (const auto there = read_choices(path, identity, why))
      for (const auto& choice : *there)
        if (all.size() < kMostChoices) all.insert(choice);
    while (all.size() > kMostChoices) all.erase(std::prev(all.end()));
    const std::string text = choices_to_text(identity, all);
    OutputFile file(path, "tune");
    file.write(text.data(), text.size());
    file.keep();
    return true;
  } catch (const std::exception& error) {
    why = error.what();
    return false;
  }
}

}  // namespace anymps
