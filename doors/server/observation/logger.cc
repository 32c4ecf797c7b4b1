// SPDX-License-Identifier: Apache-2.0
#include "server/observation/logger.h"

#include <fmt/format.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <optional>

#include "server/core/request.h"

namespace anymps::server {
namespace {

constexpr std::string_view kDefault = "default", kIso = "ISO8601";

bool is_iso(std::string_view format) {
  if (format != kDefault && format != kIso)
    throw Error(Code::kInvalidArgument,
                fmt::format("invalid argument for log_format, got: {}", format));
  return format == kIso;
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::string quoted_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result.append(1, '\\').append(1, c);
    else if (c == '\n')
      result += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      result += c;
  }
  return result + '"';
}

using Value = inference::LogSettingsRequest::SettingValue;

bool boolean(const std::string& name, const Value& value) {
  if (value.parameter_choice_case() != Value::kBoolParam)
    throw Error(Code::kInvalidArgument, fmt::format("expect boolean for '{}'", name));
  return value.bool_param();
}

}  // namespace

Logger::Logger(const Options& options)
    : log_error_(options.log_error),
      log_warning_(options.log_warning),
      log_info_(options.log_info),
      iso_(is_iso(options.log_format)),
      verbose_(options.log_verbose),
      file_name_(options.log_file) {
  if (file_name_.empty()) return;
  file_.open(file_name_, std::ios::app);
  if (!file_)
    throw Error(Code::kInvalidArgument,
                fmt::format("--log-file: '{}' cannot be opened for writing", file_name_));
}

inference::LogSettingsResponse Logger::settings() const {
  inference::LogSettingsResponse response;
  auto& settings = *response.mutable_settings();
  settings["log_file"].set_string_param(file_name_);
  settings["log_info"].set_bool_param(log_info_);
  settings["log_warning"].set_bool_param(log_warning_);
  settings["log_error"].set_bool_param(log_error_);
  settings["log_verbose_level"].set_uint32_param(verbose_);
  settings["log_format"].set_string_param(std::string(iso_ ? kIso : kDefault));
  return response;
}

void Logger::set(const inference::LogSettingsRequest& request) {
  std::optional<bool> error, warning, info, iso;
  std::optional<unsigned> verbose;
  for (const auto& [name, value] : request.settings()) {
    if (name == "log_file") {
      throw Error(Code::kUnsupported,
                  "log file location can not be updated through network protocol");
    } else if (name == "log_info") {
      info = boolean(name, value);
    } else if (name == "log_warning") {
      warning = boolean(name, value);
    } else if (name == "log_error") {
      error = boolean(name, value);
    } else if (name == "log_verbose_level") {
      if (value.parameter_choice_case() != Value::kUint32Param)
        throw Error(Code::kInvalidArgument, "expect int32 for 'log_verbose_level'");
      verbose = value.uint32_param();
    } else if (name == "log_format") {
      if (value.parameter_choice_case() != Value::kStringParam)
        throw Error(Code::kInvalidArgument, "expect string for 'log_format'");
      iso = is_iso(value.string_param());
    }
  }
  if (error) log_error_ = *error;
  if (warning) log_warning_ = *warning;
  if (info) log_info_ = *info;
  if (iso) iso_ = *iso;
  if (verbose) verbose_ = *verbose;
}

void Logger::write(char severity, std::string_view message, const char* file, int line,
                   bool quoted) {
  timeval now{};
  gettimeofday(&now, nullptr);
  std::tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  std::string text =
      iso_ ? fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z {}", utc.tm_year + 1900,
                         utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, severity)
           : fmt::format("{}{:02}{:02} {:02}:{:02}:{:02}.{:06}", severity, utc.tm_mon + 1,
                         utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, now.tv_usec);
  text += fmt::format(" {} {}:{}] ", getpid(), base_name(file), line);
  text += quoted ? quoted_text(message) : fmt::format("\n{}", message);
  text += '\n';
  const std::lock_guard lock(mutex_);
  if (file_.is_open())
    file_ << text << std::flush;
  else
    std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace anymps::server
