// SPDX-License-Identifier: Apache-2.0
#include "server/core/flags.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace server {
namespace {

std::optional<int> parse_words(std::vector<const char*> words, Options& options) {
  words.insert(words.begin(), "anymps-server");
  return parse_flags(static_cast<int>(words.size()), words.data(), options);
}

Options parsed(std::vector<const char*> words) {
  Options options;
  words.push_back("--model-repository=r");
  EXPECT_EQ(parse_words(std::move(words), options), std::nullopt);
  return options;
}

std::string refused(std::vector<const char*> words) {
  Options options;
  words.push_back("--model-repository=r");
  testing::internal::CaptureStderr();
  EXPECT_EQ(parse_words(std::move(words), options), 2);
  return testing::internal::GetCapturedStderr();
}

TEST(Flags, Defaults) {
  const Options o = parsed({});
  EXPECT_EQ(o.model_repositories, std::vector<std::string>{"r"});
  EXPECT_EQ(o.http_address, "127.0.0.1");
  EXPECT_EQ(o.metrics_address, "127.0.0.1");
  EXPECT_EQ(o.http_port, 8000);
  EXPECT_EQ(o.model_control, ModelControl::kNone);
  EXPECT_TRUE(o.strict_readiness);
  EXPECT_FALSE(o.rate_limit);
}

TEST(Flags, ValuesComeBehindAnEqualSignOrASpace) {
  const Options o =
      parsed({"--model-store", "a", "--model-repository=b", "--http-port", "1", "--grpc-port=2",
              "--strict-readiness", "false", "--exit-on-error=0", "--allow-metrics=FALSE",
              "--disable-auto-complete-config", "--log-verbose=2", "--http-address", "0.0.0.0"});
  EXPECT_EQ(o.model_repositories, (std::vector<std::string>{"a", "b", "r"}));
  EXPECT_EQ(o.http_port, 1);
  EXPECT_EQ(o.grpc_port, 2);
  EXPECT_FALSE(o.strict_readiness);
  EXPECT_FALSE(o.exit_on_error);
  EXPECT_FALSE(o.metrics);
  EXPECT_TRUE(o.disable_auto_complete_config);
  EXPECT_EQ(o.log_verbose, 2U);
  EXPECT_EQ(o.metrics_address, "0.0.0.0");  // follows HTTP
}

TEST(Flags, Control) {
  const Options o =
      parsed({"--model-control-mode=explicit", "--load-model=a", "--load-model", "b"});
  EXPECT_EQ(o.model_control, ModelControl::kExplicit);
  EXPECT_EQ(o.load_models, (std::vector<std::string>{"a", "b"}));
  EXPECT_NE(refused({"--load-model=a"}).find("needs --model-control-mode=explicit"),
            std::string::npos);
  EXPECT_NE(refused({"--model-control-mode=explicit", "--load-model=*", "--load-model=a"})
                .find("give it alone"),
            std::string::npos);
  refused({"--model-control-mode=sometimes"});
}

TEST(Flags, Trace) {
  const Options o = parsed({"--trace-config", "triton,file=/t", "--trace-config=level=TIMESTAMPS",
                            "--trace-config=level=TENSORS", "--trace-config=rate=5",
                            "--trace-config=triton,log-frequency=9"});
  EXPECT_EQ(
      o.trace_config,
      (std::map<std::string, std::string>{
          {"file", "/t"}, {"level", "TIMESTAMPS,TENSORS"}, {"log-frequency", "9"}, {"rate", "5"}}));
  EXPECT_NE(refused({"--trace-config=mode=opentelemetry"}).find("not supported"),
            std::string::npos);
  refused({"--trace-config=level"});
  refused({"--trace-config=colour=red"});
}

TEST(Flags, CacheAndResources) {
  const Options o = parsed({"--cache-config=local,size=1048576", "--rate-limit=execution_count",
                            "--rate-limit-resource=R1:4", "--rate-limit-resource", "R2:5:0"});
  EXPECT_EQ(o.cache_config.at("local"), "size=1048576");
  EXPECT_TRUE(o.rate_limit);
  EXPECT_EQ(o.rate_limit_resources, (std::map<std::string, uint32_t>{{"R1", 4}, {"R2", 5}}));
  EXPECT_EQ(parsed({"--response-cache-byte-size=10"}).cache_config.at("local"), "size=10");
  refused({"--cache-config=redis,host=h"});
  refused({"--cache-config=local,size=big"});
  refused({"--rate-limit-resource=R1"});
  refused({"--rate-limit-resource=R1:-4"});
}

TEST(Flags, Tls) {
  const Options o = parsed({"--grpc-use-ssl-mutual=true", "--grpc-server-cert=c",
                            "--grpc-server-key=k", "--grpc-root-cert=r"});
  EXPECT_TRUE(o.grpc_tls.enabled && o.grpc_tls.mutual);
  EXPECT_FALSE(o.http_tls.enabled);
  EXPECT_NE(refused({"--http-use-ssl"}).find("needs --http-server-cert and --http-server-key"),
            std::string::npos);
}

TEST(Flags, ApiKeyComesFromTheEnvironmentToo) {
  EXPECT_EQ(parsed({"--api-key=abc"}).api_key, "abc");
  setenv("ANYMPS_API_KEY", "def", 1);
  EXPECT_EQ(parsed({}).api_key, "def");
  EXPECT_EQ(parsed({"--api-key=abc"}).api_key, "abc");
  unsetenv("ANYMPS_API_KEY");
}

TEST(Flags, WrongUsage) {
  refused({"--nothing"});
  refused({"--http-port=70000"});
  refused({"--strict-readiness=perhaps"});
  refused({"--allow-http=false", "--allow-grpc=false"});
  Options options;
  testing::internal::CaptureStderr();
  EXPECT_EQ(parse_words({}, options), 2);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("--model-repository is required"),
            std::string::npos);
  parsed({"--backend-config=python,shm-default-byte-size=1"});  // accepted
}

TEST(Flags, HelpNamesTheFlagsButNotTheKey) {
  setenv("ANYMPS_API_KEY", "secret", 1);
  Options options;
  testing::internal::CaptureStdout();
  EXPECT_EQ(parse_words({"--help"}, options), 0);
  const std::string help = testing::internal::GetCapturedStdout();
  unsetenv("ANYMPS_API_KEY");
  for (const char* flag : {"--model-repository", "--grpc-port", "--exit-timeout-secs", "--api-key"})
    EXPECT_NE(help.find(flag), std::string::npos) << flag;
  EXPECT_EQ(help.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace server
