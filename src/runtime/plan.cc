// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan.h"

#include <pthread.h>

#include "base/thread_pool.h"

namespace anymps {

// Each run in flight has its own arena and pointer table; they are kept for the next run.
std::unique_ptr<Plan::Context> Plan::take_context() {
  {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      auto context = std::move(free_.back());
      free_.pop_back();
      return context;
    }
  }
  auto context = std::make_unique<Context>();
  context->table = table_;
  if (arena_bytes_ > 0) {
    context->arena = device_->allocator().allocate(arena_bytes_);
    char* base = static_cast<char*>(context->arena->data());
    for (const auto& [place, offset] : arena_places_) context->table[place] = base + offset;
  }
  // Tensors without elements and packed constants keep a pointer that is valid but never read.
  return context;
}

void Plan::give_back(std::unique_ptr<Context> context) {
  if (!keeps_contexts()) return;
  std::lock_guard lock(mutex_);
  free_.push_back(std::move(context));
}

void Plan::run(void* const* feeds, void* const* results, Queue& queue, Profiler* profiler,
               bool check) {
  // Given back on every way out, errors included.
  struct Taken {
    Plan& plan;
    std::unique_ptr<Context> context = plan.take_context();
    ~Taken() { plan.give_back(std::move(context)); }
  } taken{*this};
  run(*taken.context, feeds, results, queue, profiler, check);
}

void Plan::run(Context& context, void* const* feeds, void* const* results, Queue& queue,
               Profiler* profiler, bool check) {
  void** table = context.table.data();
  for (const Patch& patch : feed_patches_)
    table[patch.place] = static_cast<char*>(feeds[patch.index]) + patch.offset;
  for (const Patch& patch : result_patches_)
    table[patch.place] = static_cast<char*>(results[patch.index]) + patch.offset;
  const ThreadScope threads(device_->driver(), threads_);
  const DenormalScope mode(denormals_);
  std::optional<ThreadPool::Awake> awake;
  if (keeps_awake_) awake.emplace();
  const int64_t run_start = profiler ? profiler->now() : 0;
  for (const Step& step : steps_) {
    const KernelArgs args{table + step.first_input, table + step.first_output,
                          step.scratch ? table[step.scratch] : nullptr, &queue};
    const DenormalScope own_mode(step.denormals);
    const int64_t start = profiler ? profiler->now() : 0;
    try {
      step.choice.kernel->run(args);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{} (node \"{}\")", error.what(), step.name));
    }
    if (profiler) {
      ProfileEvent event{step.name, step.op, step.choice.name, step.choice.kernel->detail(), ""};
      for (const auto& input : step.request.inputs)
        if (input) event.shapes += (event.shapes.empty() ? "" : " x ") + to_string(*input);
      event.start_ns = start;
      event.duration_ns = profiler->now() - start;
      event.bytes = step.bytes;
      event.flops = step.flops;
      event.thread = static_cast<uint64_t>(pthread_self());
      profiler->add(std::move(event));
    }
    if (check)
      check_with_oracle(device_->driver(), step.choice, step.request, args.inputs, args.outputs);
  }
  if (profiler) profiler->add_run(run_start, profiler->now() - run_start);
}

}  // namespace anymps
