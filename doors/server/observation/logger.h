// SPDX-License-Identifier: Apache-2.0
// The server's log, with the settings that the logging extension reads and changes at run time.
// Lines look as Triton's: severity, time, process, place, the message in quotes.
#pragma once

#include <atomic>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>

#include "grpc_service.pb.h"
#include "server/core/options.h"

namespace anymps::server {

class Logger {
 public:
  // Error(kInvalidArgument) if the file cannot be opened or the format is not known.
  explicit Logger(const Options& options);

  void error(std::string_view message, const char* file = __builtin_FILE(),
             int line = __builtin_LINE()) {
    if (log_error_) write('E', message, file, line, true);
  }
  void warning(std::string_view message, const char* file = __builtin_FILE(),
               int line = __builtin_LINE()) {
    if (log_warning_) write('W', message, file, line, true);
  }
  void info(std::string_view message, const char* file = __builtin_FILE(),
            int line = __builtin_LINE()) {
    if (log_info_) write('I', message, file, line, true);
  }
  void verbose(unsigned level, std::string_view message, const char* file = __builtin_FILE(),
               int line = __builtin_LINE()) {
    if (is_verbose(level)) write('I', message, file, line, true);
  }
  // Text of several lines, as it is: tables.
  void block(std::string_view text, const char* file = __builtin_FILE(),
             int line = __builtin_LINE()) {
    if (log_info_) write('I', text, file, line, false);
  }
  bool is_verbose(unsigned level) const { return verbose_ >= level; }

  inference::LogSettingsResponse settings() const;
  // kInvalidArgument for values of the wrong type, kUnsupported for the file; then nothing is
  // changed. Names that are not known are passed over, as Triton does.
  void set(const inference::LogSettingsRequest& request);

 private:
  void write(char severity, std::string_view message, const char* file, int line, bool quoted);

  std::atomic<bool> log_error_, log_warning_, log_info_, iso_;
  std::atomic<unsigned> verbose_;
  const std::string file_name_;
  std::mutex mutex_;
  std::ofstream file_;
};

}  // namespace anymps::server
