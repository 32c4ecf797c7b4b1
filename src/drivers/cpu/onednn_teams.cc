// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/onednn_teams.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "drivers/cpu/gomp/teams.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

// The member of a team that the thread is just now.
struct Member {
  int most = 1;  // members of the next team
  int count = 1, number = 0;
};
thread_local Member member;

// A team that the thread has begun. There is at most one: members begin none of several.
struct Team {
  void (*work)(void*) = nullptr;
  void* data = nullptr;
  int count = 1;
  ThreadPool::Region* region = nullptr;
};
thread_local Team begun;

void work_for(void* context, int64_t task) {
  const Team& team = *static_cast<const Team*>(context);
  const Member before = member;
  member = {1, team.count, static_cast<int>(task) + 1};
  team.work(team.data);
  member = before;
}

void begin(void (*work)(void*), void* data, unsigned members) {
  const int count = members > 0 ? static_cast<int>(members) : member.most;
  member.count = count;
  member.number = 0;
  if (count == 1) return;
  begun = {work, data, count, nullptr};
  begun.region = ThreadPool::get().begin(count - 1, current_threads(), work_for, &begun);
}

void end() {
  if (member.count > 1) ThreadPool::get().finish(begun.region);
  member.count = 1;
}

constexpr anymps_teams kTeams{begin, end, [] { return member.most; }, [] { return member.count; },
                              [] { return member.number; }};

}  // namespace

void use_onednn_teams() { anymps_use_teams(&kTeams); }

Parts::Parts(int parts) : before_(member.most) { member.most = parts; }
Parts::~Parts() { member.most = before_; }
void Parts::become(int parts) { member.most = parts; }
int Parts::now() { return member.most; }

int parts_for(double flops) {
  constexpr double kEach = 1e6, kMost = 64;
  return static_cast<int>(std::clamp(flops / kEach, 1.0, kMost));
}

bool parts_wait(std::string_view implementation) {
  const size_t at = implementation.find("gemm");
  return at != implementation.npos && (at < 2 || implementation.substr(at - 2, 2) != "br");
}

}  // namespace anymps::cpu
