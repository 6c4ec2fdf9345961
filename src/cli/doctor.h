// What a machine needs to run a node, looked at without changing anything.
#pragma once

#include <string>
#include <vector>

namespace fairlead::cli {

struct Check {
  // kMissing: a node cannot run, or not run functions, without it. kWarn: something is lost without it.
  enum class Level { kOk, kWarn, kMissing };
  Level level = Level::kOk;
  std::string subject;
  std::string finding;
  std::string advice;  // what to do; empty when ok
};

// library_dir: where the GPU libraries are; "": the system's.
std::vector<Check> check_gpu(const std::string& library_dir);
std::vector<Check> check_host(const std::string& state_dir);
std::vector<Check> check_device_memory();
Check check_writable_volumes();
std::vector<Check> check_tools();

std::string doctor_report(const std::vector<Check>& checks);

}  // namespace fairlead::cli
