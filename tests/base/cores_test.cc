// SPDX-License-Identifier: Apache-2.0
// Machines and containers as trees of files: what the kernel shows there, and what follows from it.
#include "base/cores.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

namespace anymps {
namespace {

namespace fs = std::filesystem;

using Files =
    std::map<std::string, std::string>;  // path: content; a path that ends in / is a folder

class Tree {
 public:
  Tree(const Tree&) = delete;
  explicit Tree(const Files& files)
      : root_((fs::temp_directory_path() / fmt::format("cores_test_{}", ::getpid())).string()) {
    fs::remove_all(root_);
    fs::create_directories(root_);
    for (const auto& [path, content] : files) {
      const fs::path whole = root_ + path;
      fs::create_directories(whole.parent_path());
      if (!path.ends_with('/')) std::ofstream(whole, std::ios::binary) << content;
    }
  }
  ~Tree() { fs::remove_all(root_); }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

const std::string kOwn = "/proc/self/cgroup", kMounts = "/proc/self/mountinfo";

std::string mount_v2(const std::string& top, const std::string& point) {
  return fmt::format(
      "30 23 0:26 {} {} rw,nosuid shared:9 master:1 - cgroup2 cgroup rw,nsdelegate\n", top, point);
}
std::string mount_v1(const std::string& controllers, const std::string& top,
                     const std::string& point) {
  return fmt::format("33 32 0:30 {} {} rw,relatime - cgroup cgroup rw,{}\n", top, point,
                     controllers);
}
// What a group of version 1 has.
Files v1(const std::string& folder, const std::string& quota, const std::string& period) {
  return {{folder + "/cpu.cfs_quota_us", quota}, {folder + "/cpu.cfs_period_us", period}};
}
Files operator+(Files files, const Files& more) {
  files.insert(more.begin(), more.end());
  return files;
}

struct QuotaCase {
  const char* what;
  Files files;
  double quota;
  int usable;  // of eight CPUs
};

TEST(Cores, QuotaOfTheGroupAndThoseAroundIt) {
  const std::string unified = mount_v2("/", "/sys/fs/cgroup");
  const std::string cpu = mount_v1("cpu,cpuacct", "/", "/sys/fs/cgroup/cpu,cpuacct");
  const std::string v1_folder = "/sys/fs/cgroup/cpu,cpuacct";
  const std::vector<QuotaCase> cases = {
      {"no files", {}, 0, 8},
      {"v2, no bound",
       {{kOwn, "0::/a\n"}, {kMounts, unified}, {"/sys/fs/cgroup/a/cpu.max", "max 100000\n"}},
       0,
       8},
      {"v2, own group",
       {{kOwn, "0::/a/b\n"}, {kMounts, unified}, {"/sys/fs/cgroup/a/b/cpu.max", "250000 100000\n"}},
       2.5,
       3},
      {"v2, nested: the smallest counts, here the outer one",
       {{kOwn, "0::/a/b/c\n"},
        {kMounts, unified},
        {"/sys/fs/cgroup/a/cpu.max", "150000 100000\n"},
        {"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"},
        {"/sys/fs/cgroup/a/b/c/cpu.max", "400000 100000\n"}},
       1.5,
       2},
      {"v2, nested: the inner one, with another period",
       {{kOwn, "0::/a/b\n"},
        {kMounts, unified},
        {"/sys/fs/cgroup/a/cpu.max", "600000 100000\n"},
        {"/sys/fs/cgroup/a/b/cpu.max", "20000 10000\n"}},
       2,
       2},
      {"v2, a group beside the own one",
       {{kOwn, "0::/a/b\n"}, {kMounts, unified}, {"/sys/fs/cgroup/a/x/cpu.max", "1000 100000\n"}},
       0,
       8},
      {"v2, container with a namespace of its own: the mount is the group",
       {{kOwn, "0::/\n"}, {kMounts, unified}, {"/sys/fs/cgroup/cpu.max", "300000 100000\n"}},
       3,
       3},
      {"v2, container without one: the mount shows the group at its own path",
       {{kOwn, "0::/docker/abc/inner\n"},
        {kMounts, mount_v2("/docker/abc", "/sys/fs/cgroup")},
        {"/sys/fs/cgroup/cpu.max", "700000 100000\n"},
        {"/sys/fs/cgroup/inner/cpu.max", "500000 100000\n"},
        {"/sys/fs/cgroup/docker/abc/cpu.max", "100000 100000\n"}},
       5,
       5},
      {"v2, mounted from outside the namespace: only the mount is known to be around",
       {{kOwn, "0::/\n"},
        {kMounts, mount_v2("/../..", "/sys/fs/cgroup")},
        {"/sys/fs/cgroup/cpu.max", "600000 100000\n"},
        {"/sys/fs/cpu.max", "100000 100000\n"}},
       6,
       6},
      {"v2, moved out of the namespace, whose outside is mounted",
       {{kOwn, "0::/../x\n"},
        {kMounts, mount_v2("/..", "/sys/fs/cgroup")},
        {"/sys/fs/cgroup/x/cpu.max", "100000 100000\n"},
        {"/sys/fs/cgroup/cpu.max", "400000 100000\n"}},
       1,
       1},
      {"v2, moved out of the namespace, which alone is mounted",
       {{kOwn, "0::/../x\n"},
        {kMounts, unified},
        {"/sys/fs/cgroup/cpu.max", "100000 100000\n"},
        {"/sys/fs/x/cpu.max", "100000 100000\n"}},
       0,
       8},
      {"v2, a mount that shows other groups",
       {{kOwn, "0::/a\n"},
        {kMounts, mount_v2("/ab", "/other") + mount_v2("/../a", "/more") + mount_v2("/a/b", "/in")},
        {"/other/cpu.max", "100000 100000\n"},
        {"/more/cpu.max", "100000 100000\n"},
        {"/in/cpu.max", "100000 100000\n"}},
       0,
       8},
      {"v2, two mounts of it",
       {{kOwn, "0::/a/b\n"},
        {kMounts, mount_v2("/a/b", "/sys/fs/cgroup") + mount_v2("/", "/host/cgroup")},
        {"/sys/fs/cgroup/cpu.max", "max 100000\n"},
        {"/host/cgroup/a/cpu.max", "200000 100000\n"}},
       2,
       2},
      {"v2, blanks, backslashes and colons in names",
       {{kOwn, "0::/my group:1\\x\n"},
        {kMounts, mount_v2("/my\\040group:1\\134x", "/sys/fs/c\\040g\\011\\012")},
        {"/sys/fs/c g\t\n/cpu.max", "200000 100000\n"}},
       2,
       2},
      {"v2, a group that was removed: those around it still bound",
       {{kOwn, "0::/a/b (deleted)\n"},
        {kMounts, unified},
        {"/sys/fs/cgroup/a/cpu.max", "200000 100000\n"}},
       2,
       2},
      {"v2, less than one CPU",
       {{kOwn, "0::/\n"}, {kMounts, unified}, {"/sys/fs/cgroup/cpu.max", "10000 100000\n"}},
       0.1,
       1},
      {"v2, more than the CPUs",
       {{kOwn, "0::/\n"}, {kMounts, unified}, {"/sys/fs/cgroup/cpu.max", "9223372036854775807 1"}},
       9223372036854775807.0,
       8},
      {"v1, no bound",
       Files{{kOwn, "4:cpu,cpuacct:/a\n"}, {kMounts, cpu}} +
           v1(v1_folder + "/a", "-1\n", "100000\n"),
       0, 8},
      {"v1, nested",
       Files{{kOwn, "9:memory:/m\n4:cpuacct,cpu:/a/b\n"}, {kMounts, cpu}} +
           v1(v1_folder + "/a/b", "-1\n", "100000\n") + v1(v1_folder + "/a", "75000\n", "50000\n") +
           v1(v1_folder, "-1\n", "100000\n"),
       1.5, 2},
      {"v1, container: the mount shows the group",
       Files{{kOwn, "4:cpu:/docker/abc\n"}, {kMounts, mount_v1("cpu", "/docker/abc", "/cg/cpu")}} +
           v1("/cg/cpu", "350000\n", "100000\n"),
       3.5, 4},
      {"v1, another controller's mount and group",
       Files{{kOwn, "5:cpuset:/a\n4:cpuacct:/a\n"},
             {kMounts, mount_v1("cpuset", "/", "/cg") + mount_v1("cpu", "/", "/cg")}} +
           v1("/cg/a", "100000\n", "100000\n"),
       0, 8},
      {"v1, no period",
       {{kOwn, "4:cpu,cpuacct:/\n"}, {kMounts, cpu}, {v1_folder + "/cpu.cfs_quota_us", "100000\n"}},
       0,
       8},
      {"hybrid: version 1 has the controller",
       Files{{kOwn, "4:cpu,cpuacct:/a\n1:name=systemd:/a\n0::/a\n"},
             {kMounts, cpu + mount_v2("/", "/sys/fs/cgroup/unified")},
             {"/sys/fs/cgroup/unified/a/", ""}} +
           v1(v1_folder + "/a", "200000\n", "100000\n"),
       2, 2},
      {"hybrid: version 2 has it",
       {{kOwn, "1:name=systemd:/a\n0::/a\n"},
        {kMounts, mount_v1("name=systemd", "/", "/cg/systemd") + mount_v2("/", "/cg/unified")},
        {"/cg/unified/a/cpu.max", "200000 100000\n"}},
       2,
       2},
      {"broken: cpu.max is a folder",
       {{kOwn, "0::/\n"}, {kMounts, unified}, {"/sys/fs/cgroup/cpu.max/", ""}},
       0,
       8},
      {"broken: /proc/self/cgroup is a folder",
       {{kOwn + "/", ""}, {kMounts, unified}, {"/sys/fs/cgroup/cpu.max", "100000 100000\n"}},
       0,
       8},
      {"broken: lines without colons, a path without a slash",
       {{kOwn, "\n:\n0\n0:\n::\nx:cpu\n0::a\n"},
        {kMounts, unified},
        {"/sys/fs/cgroup/a/cpu.max", "100000 100000\n"}},
       1,
       1},
      {"broken: mountinfo with lines that are cut off",
       {{kOwn, "0::/\n"},
        {kMounts,
         "\n30\n30 23 0:26 / /x rw - cgroup2\n30 23 0:26 / /x rw cgroup2 cgroup rw a b\n"
         "30 23 0:26 / /x rw a b c - cgroup2 cgroup\n- - - - - - - - - -\n"},
        {"/x/cpu.max", "100000 100000\n"}},
       0,
       8},
      {"broken: an escape that is cut off",
       {{kOwn, "0::/\n"}, {kMounts, mount_v2("/", "/x\\04")}, {"/x\\04/cpu.max", "100000 100000"}},
       1,
       1},
  };
  const std::vector<int> cpus = {0, 1, 2, 3, 4, 5, 6, 7};
  for (const QuotaCase& c : cases) {
    const Tree tree(c.files);
    const Cores cores = find_cores(tree.root(), cpus);
    EXPECT_EQ(cores.quota, c.quota) << c.what;
    EXPECT_EQ(cores.usable, c.usable) << c.what;
    EXPECT_EQ(cores.affinity, 8) << c.what;
  }
}

TEST(Cores, ContentThatIsNoQuotaBoundsNothing) {
  for (const std::string& text :
       {std::string(""), std::string("\n"), std::string("max"), std::string("100000"),
        std::string("0 100000"), std::string("100000 0"), std::string("-1 100000"),
        std::string("100000 -1"), std::string("1e5 100000"), std::string("100000 100000 100000"),
        std::string("99999999999999999999 100000"), std::string("0x10 16"),
        std::string("100000\0 100000", 14), std::string("\xff\xfe")}) {
    const Tree tree(Files{{kOwn, "0::/\n1:cpu:/\n"},
                          {kMounts, mount_v2("/", "/cg") + mount_v1("cpu", "/", "/old")},
                          {"/cg/cpu.max", text},
                          {"/old/cpu.cfs_quota_us", text.substr(0, text.find(' ')) + "x"},
                          {"/old/cpu.cfs_period_us", "100000"}});
    EXPECT_EQ(find_cores(tree.root(), {0, 1}).quota, 0) << text;
  }
}

struct MachineCase {
  const char* what;
  Files files;
  std::vector<int> cpus;
  int machine, affinity, physical;
};

TEST(Cores, MachineAffinityAndPhysicalCores) {
  const std::string system = "/sys/devices/system/cpu/";
  const auto siblings = [&](const std::vector<std::string>& lists) {
    Files files;
    for (size_t i = 0; i < lists.size(); ++i)
      files[fmt::format("{}cpu{}/topology/thread_siblings_list", system, i)] = lists[i];
    return files;
  };
  const Files two_by_two = siblings({"0,2\n", "1,3\n", "0,2\n", "1,3\n"});
  std::vector<int> many;
  for (int cpu = 0; cpu < 3000; ++cpu) many.push_back(cpu);
  const std::vector<MachineCase> cases = {
      {"hyper-threads", Files{{system + "online", "0-3\n"}} + two_by_two, {0, 1, 2, 3}, 4, 4, 2},
      {"two of one core", Files{{system + "online", "0-3\n"}} + two_by_two, {1, 3}, 4, 2, 1},
      {"one of each core", Files{{system + "online", "0-3\n"}} + two_by_two, {0, 1}, 4, 2, 2},
      {"no topology", {{system + "online", "0-1,4,8-9\n"}}, {0, 1, 4, 8, 9}, 5, 5, 5},
      {"topology of some",
       Files{{system + "online", "0-1\n"}} + siblings({"0\n"}),
       {0, 1},
       2,
       2,
       2},
      {"affinity is not known", {{system + "online", "0-5\n"}}, {}, 6, 6, 6},
      {"nothing is known", {}, {}, 1, 1, 1},
      {"/proc/stat tells",
       {{"/proc/stat", "cpu 9 9 9 9\ncpu0 1 2 3 4\ncpu1 1 2 3 4\nintr 5\n"}},
       {1},
       2,
       1,
       1},
      {"broken list", {{system + "online", "0-\n"}}, {0, 1, 2}, 3, 3, 3},
      {"endless list", {{system + "online", "0-999999999999\n"}}, {0}, 1, 1, 1},
      {"list that goes back", {{system + "online", "3-1\n"}}, {0}, 1, 1, 1},
      {"more than 1024", {{system + "online", "0-4095\n"}}, many, 4096, 3000, 3000},
  };
  for (const MachineCase& c : cases) {
    const Tree tree(c.files);
    const Cores cores = find_cores(tree.root(), c.cpus);
    EXPECT_EQ(cores.machine, c.machine) << c.what;
    EXPECT_EQ(cores.affinity, c.affinity) << c.what;
    EXPECT_EQ(cores.physical, c.physical) << c.what;
    EXPECT_EQ(cores.usable, c.affinity) << c.what;
  }
}

TEST(Cores, AffinityIsThatOfTheCallingThread) {
  const std::vector<int> all = allowed_cpus();
  ASSERT_FALSE(all.empty());
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  std::vector<int> one;
  Cores cores;
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(all.back(), &set);
    if (sched_setaffinity(0, sizeof set, &set) == 0) one = allowed_cpus();
    cores = find_cores();
  }).join();
  EXPECT_EQ(one, std::vector<int>{all.back()});
  EXPECT_EQ(cores.affinity, 1);
  EXPECT_EQ(cores.usable, 1);
  EXPECT_EQ(allowed_cpus(), all);
  EXPECT_GE(find_cores().machine, static_cast<int>(all.size()));
}

TEST(Cores, BusyTimeOfTheCpusOfTheList) {
  const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  //                   user nice system idle iowait irq softirq steal guest guest_nice
  const Tree tree(Files{{"/proc/stat",
                         "cpu  0 0 0 0 0 0 0 0 0 0\n"
                         "cpu0 1 2 4 100 1000 8 16 32 1 2\n"
                         "cpu1 64 0 0 10 0 0 0 0 0 0\n"
                         "cpu2 7 7 7 7\n"
                         "cpu12 5 0 0 0\n"
                         "cpux 5 5 5 5\nintr 5 5 5 5 5\n"}});
  const CpuTime both = cpu_time(tree.root(), {0, 1});
  EXPECT_EQ(both.cpus, 2);
  EXPECT_NEAR(both.busy, (63 + 64) * tick, 1e-9);
  EXPECT_NEAR(both.all, (1163 + 74) * tick, 1e-9);
  const CpuTime old = cpu_time(tree.root(), {2});
  EXPECT_NEAR(old.busy, 21 * tick, 1e-9);
  EXPECT_NEAR(old.all, 28 * tick, 1e-9);
  EXPECT_EQ(cpu_time(tree.root(), {}).cpus, 4);
  EXPECT_EQ(cpu_time(tree.root() + "/none", {0}).cpus, 0);
}

TEST(Cores, OthersAreWhatTheProcessItselfDidNotUse) {
  const CpuTime from{.busy = 10, .all = 100, .own = 3, .cpus = 4};
  const auto after = [&](double busy, double all, double own, int cpus = 4) {
    return busy_elsewhere(
        from,
        {.busy = from.busy + busy, .all = from.all + all, .own = from.own + own, .cpus = cpus});
  };
  EXPECT_DOUBLE_EQ(after(0, 8, 0), 0);  // 8 of 4 CPUs: two seconds
  EXPECT_DOUBLE_EQ(after(3, 8, 0), 1.5);
  EXPECT_DOUBLE_EQ(after(3, 8, 2), 0.5);
  EXPECT_DOUBLE_EQ(after(1, 8, 2), 0);  // ticks are coarse, the own time is not
  EXPECT_DOUBLE_EQ(after(99, 8, 0), 4);
  EXPECT_DOUBLE_EQ(after(0, 0, 0), -1);     // the clock stands still
  EXPECT_DOUBLE_EQ(after(3, 8, 0, 3), -1);  // a CPU came or went
  EXPECT_DOUBLE_EQ(busy_elsewhere(CpuTime{}, CpuTime{}), -1);
}

}  // namespace
}  // namespace anymps
