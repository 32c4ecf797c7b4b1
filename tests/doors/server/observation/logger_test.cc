// SPDX-License-Identifier: Apache-2.0
#include "server/observation/logger.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <regex>
#include <sstream>

#include "server/core/request.h"

namespace anymps::server {
namespace {

class LoggerTest : public testing::Test {
 protected:
  LoggerTest() {
    options_.log_file = (std::filesystem::temp_directory_path() /
                         ("anymps_logger_test_" + std::to_string(getpid())))
                            .string();
  }
  ~LoggerTest() override { std::filesystem::remove(options_.log_file); }
  std::string written() const {
    std::stringstream text;
    text << std::ifstream(options_.log_file).rdbuf();
    return text.str();
  }
  using Value = inference::LogSettingsRequest::SettingValue;
  static inference::LogSettingsRequest change(const std::string& name, const Value& value) {
    inference::LogSettingsRequest request;
    (*request.mutable_settings())[name] = value;
    return request;
  }
  static Value boolean(bool value) {
    Value v;
    v.set_bool_param(value);
    return v;
  }
  static Value text(const std::string& value) {
    Value v;
    v.set_string_param(value);
    return v;
  }
  Options options_;
};

TEST_F(LoggerTest, LinesLookAsTritons) {
  Logger logger(options_);
  logger.info("a \"word\"\nand a \\ line");
  EXPECT_TRUE(std::regex_match(
      written(), std::regex(R"(I\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ logger_test\.cc:\d+\] )"
                            R"("a \\"word\\"\\nand a \\\\ line"\n)")))
      << written();
}

TEST_F(LoggerTest, IsoTimes) {
  options_.log_format = "ISO8601";
  Logger logger(options_);
  logger.error("x");
  EXPECT_TRUE(std::regex_match(
      written(),
      std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ E \d+ logger_test\.cc:\d+\] "x"\n)")))
      << written();
}

TEST_F(LoggerTest, BlocksAreNotQuoted) {
  Logger logger(options_);
  logger.block("+--+\n|\"a\"|\n");
  EXPECT_NE(written().find("] \n+--+\n|\"a\"|\n"), std::string::npos) << written();
}

TEST_F(LoggerTest, SeveritiesAreSwitchedWhileItRuns) {
  Logger logger(options_);
  logger.verbose(1, "no");
  logger.set(change("log_info", boolean(false)));
  logger.set(change("log_warning", boolean(false)));
  logger.info("no");
  logger.warning("no");
  EXPECT_EQ(written(), "");
  Value level;
  level.set_uint32_param(2);
  logger.set(change("log_verbose_level", level));
  logger.verbose(2, "yes");
  logger.verbose(3, "no");
  logger.error("yes");
  EXPECT_EQ(written().find("no\""), std::string::npos) << written();
  EXPECT_FALSE(logger.settings().settings().at("log_info").bool_param());
  EXPECT_EQ(logger.settings().settings().at("log_verbose_level").uint32_param(), 2U);
}

TEST_F(LoggerTest, WrongSettingsChangeNothing) {
  Logger logger(options_);
  const auto error = [&](inference::LogSettingsRequest request) -> std::string {
    (*request.mutable_settings())["log_error"].set_bool_param(false);
    try {
      logger.set(request);
    } catch (const Error& e) {
      EXPECT_TRUE(logger.settings().settings().at("log_error").bool_param());
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(error(change("log_info", text("x"))), "expect boolean for 'log_info'");
  EXPECT_EQ(error(change("log_verbose_level", boolean(true))),
            "expect int32 for 'log_verbose_level'");
  EXPECT_EQ(error(change("log_format", boolean(true))), "expect string for 'log_format'");
  EXPECT_EQ(error(change("log_format", text("x"))), "invalid argument for log_format, got: x");
  EXPECT_EQ(error(change("log_file", text("x"))),
            "log file location can not be updated through network protocol");
  EXPECT_EQ(error(change("something", text("x"))), "");
}

TEST_F(LoggerTest, AFileThatCannotBeOpenedIsAnError) {
  options_.log_file = "/nothing/here";
  EXPECT_THROW(Logger{options_}, Error);
}

}  // namespace
}  // namespace anymps::server
