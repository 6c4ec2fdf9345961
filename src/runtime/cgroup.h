// One control group per sandbox or jail for host memory, the number of processes and, where the machine has that controller
// too, CPU time. Version 2 where the machine has the memory and pids controllers there, else version 1 (one directory per
// controller), else none, and rlimits have to do.
// Groups lie below the node's own group, in fairlead/<pid of the spawner>/<name>, so that they never escape its limits;
// what a killed spawner left is removed by the next one.
//
// Threads: not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"

namespace fairlead {

enum class CgroupVersion { kNone, kV1, kV2 };
std::string_view cgroup_version_name(CgroupVersion version);  // "none", "v1", "v2"

// How much of the processors a group gets. A share counts only while others want them too.
struct CpuShare {
  std::uint64_t weight = 0;     // 1 to 10000, as version 2 has it, where everybody's is 100; 0: is not set
  std::uint64_t millicpus = 0;  // at most so many thousandths of a processor; 0: no limit
  bool operator==(const CpuShare&) const = default;
};

class Cgroup {
 public:
  // `cpu_dir`: "" where the machine has no controller for it. In version 2 all three are one directory, `memory_dir`.
  Cgroup(CgroupVersion version, std::string memory_dir, std::string pids_dir, std::string cpu_dir = "")
      : version_(version),
        memory_dir_(std::move(memory_dir)),
        pids_dir_(std::move(pids_dir)),
        cpu_dir_(std::move(cpu_dir)) {}
  ~Cgroup() { remove(); }  // REQUIRES: no process is left in it
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  Status create();
  // 0: no limit.
  Status set_limits(Bytes memory, std::uint64_t processes);
  // Does nothing on a machine without the controller.
  Status set_cpu(const CpuShare& share);
  // Moves the calling process into it. On an idle machine 5 to 16 ms: the kernel waits for an RCU grace period.
  Status join() const;
  UniqueFd open_memory_peak() const;  // its text is a number of bytes; empty on a kernel without it
  bool out_of_memory_killed() const;

 private:
  void remove();

  CgroupVersion version_;
  std::string memory_dir_;
  std::string pids_dir_;  // version 1 only
  std::string cpu_dir_;   // "": none; in version 2 memory_dir_
};

class CgroupTree {
 public:
  CgroupTree() = default;
  ~CgroupTree();
  CgroupTree(CgroupTree&& other) noexcept { *this = std::move(other); }
  CgroupTree& operator=(CgroupTree&& other) noexcept;

  // Finds what the machine has and removes leftovers of killed spawners; waits at most three seconds for all that are busy. Never fails: the worst is kNone, and why() says why.
  static CgroupTree open(int spawner_pid);

  CgroupVersion version() const { return version_; }
  const std::string& why() const { return why_; }
  bool has_cpu() const { return !cpu_dir_.empty(); }
  Result<std::unique_ptr<Cgroup>> make(std::string_view name) const;

 private:
  // `waits`: how often it is still waited for leftovers.
  bool open_v1(const std::string& owner, int& waits);
  bool open_v2(const std::string& owner, int& waits);

  CgroupVersion version_ = CgroupVersion::kNone;
  std::string why_;
  std::string memory_dir_;
  std::string pids_dir_;
  std::string cpu_dir_;  // "": CPU time is not limited; in version 2 memory_dir_
};

}  // namespace fairlead
