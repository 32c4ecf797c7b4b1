// SPDX-License-Identifier: Apache-2.0
// Sequence batching: slots, backlog, control inputs, idle and cancelled sequences.
#include "server/scheduling/sequence_batcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "scheduling/fake_instance.h"

namespace anymps::server {
namespace {

using test::Answers;
using test::Batches;
using test::config;
using test::FakeInstance;
using test::floats;
using test::Gate;
using test::instances;
using test::Log;
using test::request;

enum Flags { kNone = 0, kStart = 1, kEnd = 2, kBoth = 3 };
// Long enough never to pass within a test.
constexpr char kPatient[] = " max_sequence_idle_microseconds: 1000000000000 ";

class SequenceBatcherTest : public ::testing::Test {
 protected:
  void make(const std::string& batching, int max_batch_size, size_t count = 1,
            FakeInstance::Run run = {}) {
    scheduler_ =
        make_scheduler(config("max_batch_size: " + std::to_string(max_batch_size) +
                              " sequence_batching {" + batching + "}"),
                       instances(count, &gate_, &log_, std::move(run)), limiter_, metrics_);
  }
  RequestPtr part(const std::string& id, SequenceId sequence, int flags, int64_t extent = 2) {
    RequestPtr one = request(answers_, id, {floats("x", {1, extent})});
    one->sequence = std::move(sequence);
    one->sequence_start = flags & kStart;
    one->sequence_end = flags & kEnd;
    return one;
  }
  void add(const std::string& id, uint64_t sequence, int flags = kNone, int64_t extent = 2) {
    scheduler_->enqueue(part(id, sequence, flags, extent));
  }
  void TearDown() override { gate_.open_for_good(); }

  RateLimiter limiter_{false, {}};
  ModelMetrics metrics_;
  Gate gate_;
  Log log_;
  Answers answers_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(SequenceBatcherTest, RequestsThatCannotBePartOfASequence) {
  make(kPatient, 4);
  scheduler_->enqueue(part("none", uint64_t{0}, kStart));
  EXPECT_EQ(answers_.error("none"),
            "inference request to model 'm' must specify a non-zero or non-empty correlation ID");
  add("unknown", 42);
  EXPECT_EQ(answers_.error("unknown"),
            "inference request for sequence 42 to model 'm' must specify the START flag on the "
            "first request of the sequence");
  scheduler_->enqueue(part("text", std::string("s"), kEnd));
  EXPECT_EQ(answers_.error("text"),
            "inference request for sequence s to model 'm' must specify the START flag on the "
            "first request of the sequence");
  RequestPtr wide = request(answers_, "wide", 2);
  wide->sequence = uint64_t{1};
  scheduler_->enqueue(std::move(wide));
  EXPECT_EQ(answers_.error("wide"),
            "inference request to model 'm' must specify batch-size 1 due to requirements of "
            "sequence batcher");
  scheduler_->enqueue(part("long", std::string(129, 's'), kStart));
  EXPECT_EQ(answers_.error("long"), "string correlation ID cannot be longer than 128 characters");
  for (const char* id : {"none", "unknown", "text", "wide", "long"})
    EXPECT_EQ(answers_[id].error->code(), Code::kInvalidArgument);
  EXPECT_EQ(metrics_.failures().at(Code::kInvalidArgument), 5u);
}

TEST_F(SequenceBatcherTest, DirectKeepsTheRowOfASequence) {
  make(kPatient, 4);
  add("a1", 1, kStart);
  gate_.wait_arrived(1);
  add("b1", 2, kStart);
  add("c1", 3, kStart);
  add("a2", 1);
  add("c2", 3, kEnd);
  gate_.open(2);
  answers_.wait(4);
  gate_.wait_arrived(3);
  add("b2", 2);
  gate_.open(2);
  answers_.wait(6);
  EXPECT_EQ(log_.batches(), (Batches{{"a1"}, {"a2", "b1", "c1"}, {"-", "-", "c2"}, {"-", "b2"}}));
  EXPECT_TRUE(answers_.each_once());
}

TEST_F(SequenceBatcherTest, DirectLeavesOtherShapesForTheNextBatch) {
  make(kPatient, 2);
  add("a1", 1, kStart);
  gate_.wait_arrived(1);
  add("b1", 2, kStart, 3);
  add("a2", 1, kNone, 2);
  gate_.open_for_good();
  answers_.wait(3);
  EXPECT_EQ(log_.batches(), (Batches{{"a1"}, {"-", "b1"}, {"a2"}}));
}

TEST_F(SequenceBatcherTest, DirectWaitsForItsUtilization) {
  make(std::string(kPatient) +
           "direct { minimum_slot_utilization: 1 max_queue_delay_microseconds: 1000000000000 }",
       3);
  gate_.open_for_good();
  add("a", 1, kStart);
  add("b", 2, kStart);
  EXPECT_EQ(answers_.size(), 0u);
  add("c", 3, kStart);
  answers_.wait(3);
  EXPECT_EQ(log_.batches(), (Batches{{"a", "b", "c"}}));
}

TEST_F(SequenceBatcherTest, DirectWaitsNoLongerThanItsDelay) {
  make(std::string(kPatient) +
           "direct { minimum_slot_utilization: 1 max_queue_delay_microseconds: 200 }",
       3);
  gate_.open_for_good();
  add("a", 1, kStart);
  answers_.wait(1);
  EXPECT_EQ(log_.batches(), (Batches{{"a"}}));
}

TEST_F(SequenceBatcherTest, SequencesSpreadOverInstancesAndStayThere) {
  make(kPatient, 2, 2);
  add("a1", 1, kStart);
  add("b1", 2, kStart);
  gate_.wait_arrived(2);  // one each
  add("a2", 1);
  EXPECT_EQ(metrics_.pending(), 1);
  gate_.open_for_good();
  answers_.wait(3);
  const Batches batches = log_.batches();
  EXPECT_EQ(std::set(batches.begin(), batches.begin() + 2),
            (std::set<std::vector<std::string>>{{"a1"}, {"b1"}}));
}

TEST_F(SequenceBatcherTest, TheBacklogWaitsForAFreeSlot) {
  make(kPatient, 0);
  add("a1", 1, kStart);
  gate_.wait_arrived(1);
  add("b1", 2, kStart);
  add("c1", 3, kBoth);
  add("b2", 2, kEnd);
  gate_.open();
  answers_.wait(1);
  EXPECT_EQ(metrics_.pending(), 3);  // sequence 1 goes on
  gate_.open_for_good();
  add("a2", 1, kEnd);
  answers_.wait(5);
  EXPECT_EQ(log_.batches(), (Batches{{"a1"}, {"a2"}, {"b1"}, {"b2"}, {"c1"}}));
}

TEST_F(SequenceBatcherTest, ASequenceWaitsInTheBacklogNoLongerThanItsTimeout) {
  make(kPatient, 0);
  add("a1", 1, kStart);
  gate_.wait_arrived(1);
  add("c1", 3, kStart);
  add("b1", 2, kStart);
  RequestPtr hurried = part("b2", uint64_t{2}, kNone);
  hurried->timeout_us = 100;
  scheduler_->enqueue(std::move(hurried));
  EXPECT_EQ(answers_.error("b1"), "timeout of the corresponding sequence has been expired");
  EXPECT_EQ(answers_.error("b2"), "timeout of the corresponding sequence has been expired");
  EXPECT_EQ(answers_["b1"].error->code(), Code::kUnavailable);
  add("b3", 2);
  EXPECT_NE(answers_.error("b3").find("START"), std::string::npos);
  EXPECT_EQ(metrics_.pending(), 1);
}

TEST_F(SequenceBatcherTest, IdleSequencesEnd) {
  make("max_sequence_idle_microseconds: 1000", 0);
  gate_.open_for_good();
  add("a1", 1, kStart);
  answers_.wait(1);
  add("b1", 2, kStart);  // gets the slot once sequence 1 has ended by itself
  answers_.wait(2);
  EXPECT_EQ(answers_.error("b1"), "");
  add("a2", 1);
  EXPECT_NE(answers_.error("a2").find("START"), std::string::npos);
}

TEST_F(SequenceBatcherTest, ASequenceIsNotIdleWhileItRuns) {
  make("max_sequence_idle_microseconds: 1", 0);
  add("a1", 1, kStart);
  gate_.wait_arrived(1);
  add("a2", 1, kEnd);
  gate_.open_for_good();
  answers_.wait(2);
  EXPECT_EQ(answers_.error("a2"), "");
}

TEST_F(SequenceBatcherTest, ACancelledRequestEndsItsSequence) {
  make(kPatient, 0);
  add("a1", 1, kStart);
  gate_.wait_arrived(1);
  RequestPtr gone = part("a2", uint64_t{1}, kNone);
  gone->cancelled = std::make_shared<std::atomic<bool>>(true);
  scheduler_->enqueue(std::move(gone));
  add("a3", 1);
  add("b1", 2, kStart);
  gate_.open_for_good();
  answers_.wait(4);
  EXPECT_EQ(answers_["a2"].error->code(), Code::kCancelled);
  EXPECT_EQ(answers_["a3"].error->code(), Code::kCancelled);
  EXPECT_EQ(answers_.error("b1"), "");
  add("a4", 1);
  EXPECT_NE(answers_.error("a4").find("START"), std::string::npos);
}

TEST_F(SequenceBatcherTest, AnIdMayBeUsedAgain) {
  make(kPatient, 0);
  gate_.open_for_good();
  for (const char* id : {"a", "b", "c"}) add(id, 7, kBoth);
  answers_.wait(3);
  EXPECT_EQ(log_.batches(), (Batches{{"a"}, {"b"}, {"c"}}));
}

TEST_F(SequenceBatcherTest, OldestTakesOneOfEachSequence) {
  make(std::string(kPatient) + "oldest { max_candidate_sequences: 3 }", 2);
  add("a1", 1, kStart);
  gate_.wait_arrived(1);
  add("a2", 1);
  add("b1", 2, kStart);
  add("b2", 2);
  add("c1", 3, kStart);
  add("d1", 4, kBoth);  // backlog: there are three candidates
  gate_.open_for_good();
  add("c2", 3, kEnd);
  answers_.wait(7);
  const Batches batches = log_.batches();
  EXPECT_EQ(batches[0], (std::vector<std::string>{"a1"}));
  // While "a1" ran, sequence 1 was not in the line.
  EXPECT_EQ(batches[1], (std::vector<std::string>{"b1", "c1"}));
  for (const auto& batch : batches) {
    std::set<char> sequences;
    for (const std::string& id : batch) EXPECT_TRUE(sequences.insert(id[0]).second);
    EXPECT_LE(batch.size(), 2u);
  }
  EXPECT_TRUE(answers_.each_once());
}

TEST_F(SequenceBatcherTest, OldestWaitsForAPreferredSize) {
  make(std::string(kPatient) +
           "oldest { max_candidate_sequences: 4 preferred_batch_size: 3 "
           "max_queue_delay_microseconds: 1000000000000 }",
       4);
  gate_.open_for_good();
  add("a", 1, kStart);
  add("b", 2, kStart);
  EXPECT_EQ(answers_.size(), 0u);
  add("c", 3, kStart);
  answers_.wait(3);
  EXPECT_EQ(log_.batches(), (Batches{{"a", "b", "c"}}));
}

// Writes the control inputs of a request as text.
std::string controls(const Request& request) {
  std::string text;
  for (const InputTensor& input : request.inputs) {
    if (input.name == "x") continue;
    EXPECT_EQ(input.shape, (std::vector<int64_t>{1, 1})) << input.name;
    const std::byte* data = input.buffers[0].data;
    const size_t bytes = input.buffers[0].bytes;
    text += input.name + "=";
    if (input.dtype == AMPS_F32) {
      float value;
      std::memcpy(&value, data, 4);
      text += std::to_string(value).substr(0, 3);
    } else if (input.dtype == AMPS_STRING) {
      uint32_t length;
      std::memcpy(&length, data, 4);
      EXPECT_EQ(bytes, 4 + length);
      text += std::string(reinterpret_cast<const char*>(data) + 4, length);
    } else {
      int64_t value = 0;
      std::memcpy(&value, data, bytes);
      text += std::to_string(value) + "/" + std::to_string(bytes);
    }
    text += " ";
  }
  return text;
}

TEST_F(SequenceBatcherTest, ControlInputsTellTheModel) {
  std::mutex mutex;
  std::vector<std::string> seen;
  make(std::string(kPatient) +
           "control_input { name: 'start' control { kind: CONTROL_SEQUENCE_START "
           "int32_false_true: [0, 1] } } "
           "control_input { name: 'ready' control { kind: CONTROL_SEQUENCE_READY "
           "fp32_false_true: [0, 1] } } "
           "control_input { name: 'end' control { kind: CONTROL_SEQUENCE_END "
           "bool_false_true: [false, true] } } "
           "control_input { name: 'id' control { kind: CONTROL_SEQUENCE_CORRID "
           "data_type: TYPE_UINT32 } }",
       2, 1, [&](Request& one) {
         std::lock_guard lock(mutex);
         seen.push_back((one.filler ? "filler" : one.id) + ": " + controls(one));
         return Response{};
       });
  gate_.open_for_good();
  add("a", 5, kStart);
  answers_.wait(1);
  add("b", (uint64_t{1} << 32) + 6, kBoth);
  answers_.wait(2);
  EXPECT_EQ(seen, (std::vector<std::string>{"a: start=1/4 ready=1.0 end=0/1 id=5/4 ",
                                            "filler: start=0/4 ready=0.0 end=0/1 id=0/4 ",
                                            "b: start=1/4 ready=1.0 end=1/1 id=6/4 "}));
  scheduler_->enqueue(part("text", std::string("s"), kStart));
  EXPECT_EQ(answers_.error("text"),
            "inference request for sequence s to model 'm' must specify a correlation ID of type "
            "UINT32");
}

TEST_F(SequenceBatcherTest, IdsMayBeText) {
  std::vector<std::string> seen;
  make(std::string(kPatient) +
           "control_input { name: 'id' control { kind: CONTROL_SEQUENCE_CORRID "
           "data_type: TYPE_STRING } }",
       1, 1, [&](Request& one) {
         seen.push_back(controls(one));
         return Response{};
       });
  gate_.open_for_good();
  scheduler_->enqueue(part("a", std::string("first"), kBoth));
  answers_.wait(1);
  scheduler_.reset();
  EXPECT_EQ(seen, (std::vector<std::string>{"id=first "}));
}

TEST_F(SequenceBatcherTest, ConfigurationsAreChecked) {
  const auto error = [&](const std::string& batching) -> std::string {
    try {
      make(batching, 4);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(error("direct { minimum_slot_utilization: 1.5 }"),
            "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m");
  EXPECT_EQ(error("oldest { preferred_batch_size: 5 }"),
            "sequence batching preferred batch size must be <= max batch size for m");
  EXPECT_EQ(error("control_input { control { kind: CONTROL_SEQUENCE_START } }"),
            "sequence batching control tensor must have a name for m");
  EXPECT_EQ(error("control_input { name: 's' control { kind: CONTROL_SEQUENCE_START } }"),
            "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or "
            "'bool_false_true' for CONTROL_SEQUENCE_START for m");
  EXPECT_EQ(error("control_input { name: 's' control { kind: CONTROL_SEQUENCE_END "
                  "int32_false_true: 1 } }"),
            "sequence batching control 'int32_false_true' must have exactly 2 entries for "
            "CONTROL_SEQUENCE_END for m");
  EXPECT_EQ(error("control_input { name: 's' control { kind: CONTROL_SEQUENCE_READY "
                  "fp32_false_true: [0, 1] } } control_input { name: 't' control { kind: "
                  "CONTROL_SEQUENCE_READY fp32_false_true: [0, 1] } }"),
            "sequence batching specifies multiple CONTROL_SEQUENCE_READY tensors for m");
  EXPECT_NE(error("control_input { name: 's' control { kind: CONTROL_SEQUENCE_CORRID "
                  "data_type: TYPE_FP32 } }"),
            "");
  EXPECT_NE(error("iterative_sequence: true"), "");
}

TEST_F(SequenceBatcherTest, WhatIsStillQueuedAtTheEndIsAnswered) {
  make(kPatient, 0);
  add("a1", 1, kStart);
  gate_.wait_arrived(1);
  add("a2", 1);
  add("b1", 2, kStart);
  std::thread ending([&] { scheduler_.reset(); });
  answers_.wait(2);
  EXPECT_EQ(answers_["a2"].error->code(), Code::kUnavailable);
  EXPECT_EQ(answers_["b1"].error->code(), Code::kUnavailable);
  gate_.open_for_good();
  ending.join();
  EXPECT_EQ(answers_.error("a1"), "");
  EXPECT_EQ(answers_.size(), 3u);
}

TEST_F(SequenceBatcherTest, TheLastAnswerMayEndTheScheduler) {
  gate_.open_for_good();
  make(kPatient, 4, 2);
  RequestPtr last = part("last", uint64_t{1}, kStart);
  last->respond = [this](Response&& response) {
    scheduler_.reset();
    answers_.add(std::move(response));
  };
  scheduler_->enqueue(std::move(last));
  answers_.wait(1);
  EXPECT_EQ(answers_.error("last"), "");
}

// Many clients, each with sequences of its own: within a sequence answers come in order, and every
// request is answered exactly once.
TEST_F(SequenceBatcherTest, EveryRequestIsAnsweredExactlyOnce) {
  gate_.open_for_good();
  for (int round = 0; round < 4; ++round) {
    Answers answers;
    std::atomic<int> wrong{0}, enqueued{0};
    make(round % 2 ? "max_sequence_idle_microseconds: 200 oldest { max_candidate_sequences: 3 "
                     "preferred_batch_size: 2 max_queue_delay_microseconds: 30 "
                     "preserve_ordering: true }"
                   : "max_sequence_idle_microseconds: 200 direct { minimum_slot_utilization: 0.6 "
                     "max_queue_delay_microseconds: 30 }",
         4, 2);
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
      threads.emplace_back([&, t] {
        for (int s = 0; s < 25; ++s) {
          auto next = std::make_shared<std::atomic<int>>(0);
          for (int i = 0; i < 6; ++i) {
            const std::string id = std::to_string((t * 25 + s) * 6 + i);
            RequestPtr one = request(answers, id, {floats("x", {1, 1 + s % 2})});
            one->sequence = static_cast<uint64_t>(1 + t * 100 + s % 3);
            one->sequence_start = i == 0;
            one->sequence_end = i == 5 && s % 4 != 0;  // some are left to the idle timeout
            if (s % 5 == 0) one->timeout_us = 50;
            if (i == 3 && s % 6 == 0) one->cancelled = std::make_shared<std::atomic<bool>>(true);
            one->respond = [&answers, &wrong, next, i](Response&& response) {
              if (!response.error && next->exchange(i + 1) > i) ++wrong;
              answers.add(std::move(response));
            };
            scheduler_->enqueue(std::move(one));
            ++enqueued;
          }
        }
      });
    for (std::thread& thread : threads) thread.join();
    scheduler_.reset();
    EXPECT_EQ(answers.size(), static_cast<size_t>(enqueued));
    EXPECT_TRUE(answers.each_once());
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(metrics_.pending(), 0);
  }
}

}  // namespace
}  // namespace anymps::server
