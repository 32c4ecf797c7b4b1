// SPDX-License-Identifier: Apache-2.0
#include "server/observation/trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace anymps::server {
namespace {

class TraceTest : public testing::Test {
 protected:
  TraceTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("anymps_trace_test_" + std::to_string(getpid()))) {
    std::filesystem::create_directory(folder_);
    options_.trace_config = {
        {"file", (folder_ / "t").string()}, {"level", "TIMESTAMPS"}, {"rate", "1"}};
  }
  ~TraceTest() override { std::filesystem::remove_all(folder_); }

  // How many of `count` requests are sampled; each is finished.
  static int run(Tracer& tracer, int count, const std::string& model = "m") {
    int sampled = 0;
    for (int i = 0; i < count; ++i) {
      Request request;
      request.model = model;
      request.id = "q";
      request.times.received = 10;
      request.times.queued = 20;
      request.times.answered = 30;
      tracer.sample(request);
      sampled += request.trace != nullptr;
      tracer.finish(request, "3");
    }
    return sampled;
  }
  nlohmann::json read(const std::string& name) const {
    return nlohmann::json::parse(std::ifstream(folder_ / name));
  }
  static inference::TraceSettingRequest change(const std::string& model, const std::string& name,
                                               const std::vector<std::string>& values) {
    inference::TraceSettingRequest request;
    request.set_model_name(model);
    auto& setting = (*request.mutable_settings())[name];
    for (const std::string& value : values) setting.add_value(value);
    return request;
  }
  static std::string error_of(Tracer& tracer, const inference::TraceSettingRequest& request) {
    try {
      tracer.set(request);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  std::filesystem::path folder_;
  Options options_;
};

TEST_F(TraceTest, FilesAreTritonsJson) {
  {
    Tracer tracer(options_);
    EXPECT_EQ(run(tracer, 1), 1);
  }
  EXPECT_EQ(read("t").dump(),
            R"([{"id":1,"model_name":"m","model_version":3,"request_id":"q"},)"
            R"({"id":1,"timestamps":[{"name":"REQUEST_START","ns":10}]},)"
            R"({"id":1,"timestamps":[{"name":"QUEUE_START","ns":20}]},)"
            R"({"id":1,"timestamps":[{"name":"INFER_RESPONSE_COMPLETE","ns":30}]},)"
            R"({"id":1,"timestamps":[{"name":"REQUEST_END","ns":30}]}])");
}

TEST_F(TraceTest, TensorsAreWrittenAtTheirLevel) {
  options_.trace_config["level"] = "TENSORS";
  {
    Tracer tracer(options_);
    Request request;
    request.model = "m";
    float x[] = {0, 1.5F};
    request.inputs.push_back(
        {"x", AMPS_F32, {1, 2}, {{nullptr, reinterpret_cast<std::byte*>(x), sizeof x}}});
    Response response;
    char text[] = "\x02\0\0\0hi";
    response.outputs.push_back(
        {"y", AMPS_STRING, {1}, {nullptr, reinterpret_cast<std::byte*>(text), 6}});
    tracer.sample(request);
    tracer.finish(request, "1", &response);
  }
  const nlohmann::json trace = read("t");
  EXPECT_EQ(trace[1]["activity"], "TENSOR_QUEUE_INPUT");
  EXPECT_EQ(trace[1]["tensor"].dump(),
            R"({"data":"0,1.5","dtype":"FP32","name":"x","shape":"1,2"})");
  EXPECT_EQ(trace[2]["tensor"]["data"], "\"hi\"");
}

TEST_F(TraceTest, RateAndCount) {
  options_.trace_config["rate"] = "3";
  options_.trace_config["count"] = "2";
  Tracer tracer(options_);
  EXPECT_EQ(run(tracer, 8), 2);
  EXPECT_EQ(run(tracer, 100), 0);
  tracer.set(change("", "trace_count", {"-1"}));
  EXPECT_EQ(run(tracer, 30), 10);
}

TEST_F(TraceTest, OffByDefault) {
  Tracer tracer{Options{}};
  EXPECT_EQ(run(tracer, 5000), 0);
  EXPECT_EQ(tracer.settings("").settings().at("trace_level").value(0), "OFF");
  EXPECT_EQ(tracer.settings("").settings().at("trace_rate").value(0), "1000");
  // There is nowhere to write to.
  for (const char* model : {"", "a"})
    EXPECT_EQ(error_of(tracer, change(model, "trace_level", {"TIMESTAMPS"})),
              "Attempting to set invalid trace setting :trace file name is not given");
  tracer.set(change("", "trace_level", {"OFF"}));
  EXPECT_EQ(run(tracer, 5000), 0);
}

TEST_F(TraceTest, NumberedFiles) {
  options_.trace_config["log-frequency"] = "2";
  {
    Tracer tracer(options_);
    run(tracer, 5);
    EXPECT_TRUE(std::filesystem::exists(folder_ / "t.1"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "t.2"));
  }
  EXPECT_EQ(read("t.0").size(), 10U);
  EXPECT_EQ(read("t.2").size(), 5U);
}

TEST_F(TraceTest, AModelMayHaveItsOwnSettings) {
  options_.trace_config["level"] = "OFF";
  Tracer tracer(options_);
  tracer.set(change("a", "trace_level", {"TIMESTAMPS"}));
  EXPECT_EQ(run(tracer, 3, "a"), 3);
  EXPECT_EQ(run(tracer, 3, "b"), 0);
  tracer.set(change("", "trace_rate", {"3"}));
  EXPECT_EQ(run(tracer, 6, "a"), 2);
  tracer.set(change("a", "trace_rate", {"1"}));
  EXPECT_EQ(tracer.settings("a").settings().at("trace_rate").value(0), "1");
  tracer.set(change("a", "trace_rate", {}));  // back to the global one
  EXPECT_EQ(tracer.settings("a").settings().at("trace_rate").value(0), "3");
  tracer.set(change("", "trace_rate", {}));  // back to the command line's
  EXPECT_EQ(tracer.settings("a").settings().at("trace_rate").value(0), "1");
}

TEST_F(TraceTest, WrongSettings) {
  Tracer tracer(options_);
  EXPECT_EQ(error_of(tracer, change("", "trace_rate", {"x"})),
            "Unable to parse 'trace_rate', got: x");
  EXPECT_EQ(error_of(tracer, change("", "trace_rate", {"99999999999999999999"})),
            "Unable to parse 'trace_rate', value is out of range [ 0, 4294967295 ], got: "
            "99999999999999999999");
  EXPECT_EQ(error_of(tracer, change("", "trace_rate", {"1", "2"})),
            "expect only 1 value for 'trace_rate'");
  EXPECT_EQ(error_of(tracer, change("", "trace_count", {"-5"})),
            "Unable to parse 'trace_count'. Expecting value >= -1, got:-5");
  EXPECT_EQ(error_of(tracer, change("", "trace_level", {"TIMESTAMPS", "OFF"})),
            "Expect only one trace level 'OFF' is specified");
  EXPECT_EQ(error_of(tracer, change("", "trace_file", {"x"})),
            "trace file location can not be updated through network protocol");
  EXPECT_EQ(run(tracer, 2), 2);
  options_.trace_config["level"] = "x";
  EXPECT_THROW(Tracer{options_}, Error);
}

}  // namespace
}  // namespace anymps::server
