// SPDX-License-Identifier: Apache-2.0
// The server's log, with the settings that the logging extension reads and changes at run time.
#pragma once

#include <atomic>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>

#include "grpc_service.pb.h"
#include "server/core/options.h"

namespace server {

class Logger {
 public:
  explicit Logger(const Options& options);

  void error(std::string_view message) { write('E', log_error_, message); }
  void warning(std::string_view message) { write('W', log_warning_, message); }
  void info(std::string_view message) { write('I', log_info_, message); }
  void verbose(unsigned level, std::string_view message) { write('I', verbose_ >= level, message); }
  bool is_verbose(unsigned level) const { return verbose_ >= level; }

  inference::LogSettingsResponse settings() const;
  // kInvalidArgument for unknown names and wrong types; then nothing is changed.
  void set(const inference::LogSettingsRequest& request);

 private:
  void write(char level, bool enabled, std::string_view message);
  std::atomic<bool> log_error_, log_warning_, log_info_;
  std::atomic<unsigned> verbose_;
  mutable std::mutex mutex_;
  std::string format_, file_name_;
  std::ofstream file_;
};

}  // namespace server
