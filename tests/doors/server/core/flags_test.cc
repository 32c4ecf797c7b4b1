// SPDX-License-Identifier: Apache-2.0
#include "server/core/flags.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace anymps::server {
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

TEST(Flags, BackendOptionsWorkOrAreRefused) {
  const Options o = parsed({"--backend-config=metal_mps,threads=2", "--backend-config",
                            "default-max-batch-size=8", "--backend-config=onnxruntime,profile=true",
                            "--op-library-directory=/tmp"});
  EXPECT_EQ(o.models.parameters,
            (std::map<std::string, std::string>{{"threads", "2"}, {"profile", "true"}}));
  EXPECT_EQ(o.models.default_max_batch_size, 8);
  EXPECT_EQ(o.models.op_libraries, serving::Folders{"/tmp"});
  const std::pair<const char*, const char*> wrong[] = {
      {"--backend-config=metal_mps,thread=2", "optimization_level, threads, profile, cache_dir"},
      {"--backend-config=metal_mps,threads=many",
       "parameter 'threads' must be a number in 0..1024"},
      {"--backend-config=python,shm-default-byte-size=1", "the backend metal_mps"},
      {"--backend-config=metal_mps", "[BACKEND,]KEY=VALUE"},
      {"--op-library-directory=/nowhere", "a folder"}};
  for (const auto& [flag, expected] : wrong)
    EXPECT_NE(refused({flag}).find(expected), std::string::npos) << flag;
}

TEST(Flags, RestrictedApis) {
  const Options o = parsed({"--http-restricted-api=model-repository,logging:Admin-Key=a=b:c",
                            "--http-restricted-api=trace:t=u",
                            "--grpc-restricted-protocol=model-repository:Admin-Key=secret"});
  ASSERT_EQ(o.http_restricted.size(), 2u);
  EXPECT_EQ(o.http_restricted[0].apis, Apis{kModelRepositoryApi | kLoggingApi});
  EXPECT_EQ(o.http_restricted[0].header, "admin-key");
  EXPECT_EQ(o.http_restricted[0].value, "a=b:c");
  EXPECT_EQ(o.grpc_restricted[0].header, "triton-grpc-protocol-admin-key");
  for (const char* value :
       {"health", "health:k", "health:=v", "health:k=", "nothing:k=v", ":k=v", "health,k=v"})
    EXPECT_NE(refused({"--http-restricted-api", value}), "") << value;
  EXPECT_NE(refused({"--http-restricted-api=trace:k=v", "--http-restricted-api=trace:l=v"})
                .find("each name in one group only"),
            std::string::npos);
}

TEST(Flags, OriginsAndSharedMemory) {
  const Options o = parsed({"--http-allow-origin=https://a.example:1", "--http-allow-origin", "*",
                            "--http-allow-host=b.example", "--allow-client-shm"});
  EXPECT_EQ(o.http_allow_origins, (std::vector<std::string>{"https://a.example:1", "*"}));
  EXPECT_EQ(o.http_allow_hosts, std::vector<std::string>{"b.example"});
  EXPECT_TRUE(o.allow_client_shm);
  EXPECT_FALSE(parsed({}).allow_client_shm);
  for (const char* value : {"a.example", "://a", "https://", "https://a.example/"})
    refused({"--http-allow-origin", value});
}

TEST(Flags, MetricsFollowTheRequests) {
  const Options o = parsed({"--http-use-ssl", "--http-server-cert=c", "--http-server-key=k"});
  EXPECT_TRUE(o.metrics_tls.enabled);
  EXPECT_EQ(o.metrics_tls.certificate, "c");
  EXPECT_FALSE(parsed({}).metrics_tls.enabled);
  EXPECT_FALSE(parsed({"--http-use-ssl", "--http-server-cert=c", "--http-server-key=k",
                       "--metrics-use-ssl=false"})
                   .metrics_tls.enabled);
  const Options own =
      parsed({"--metrics-use-ssl", "--metrics-server-cert=c", "--metrics-server-key=k"});
  EXPECT_TRUE(own.metrics_tls.enabled);
  EXPECT_FALSE(own.http_tls.enabled);
  const Options rest =
      parsed({"--allow-http=false", "--grpc-use-ssl-mutual", "--grpc-server-cert=c",
              "--grpc-server-key=k", "--grpc-root-cert=r"});
  EXPECT_TRUE(rest.metrics_tls.mutual);
  EXPECT_NE(refused({"--metrics-use-ssl"}).find("needs --metrics-server-cert"), std::string::npos);
}

TEST(Flags, WarnsOfAServerForEveryone) {
  EXPECT_TRUE(warnings(parsed({})).empty());
  EXPECT_TRUE(warnings(parsed({"--http-address=localhost", "--grpc-address=::1"})).empty());
  const std::vector<std::string> both =
      warnings(parsed({"--http-address=0.0.0.0", "--grpc-address=10.1.2.3"}));
  ASSERT_EQ(both.size(), 2u);
  EXPECT_NE(both[0].find("--http-address 0.0.0.0 lets in everyone"), std::string::npos);
  EXPECT_TRUE(warnings(parsed({"--http-address=0.0.0.0", "--api-key=k"})).empty());
}

}  // namespace
}  // namespace anymps::server
