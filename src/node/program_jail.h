// What a component of a pipeline that needs no GPU is started with: the bundle of its function, read-only, and what the function's
// configuration says of memory and environment; and the jail that it is started in (runtime/jail/jail_spec.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/units.h"
#include "runtime/pipeline/program_process.h"
#include "runtime/uid_pool.h"

namespace fairlead {

struct ProgramJail {
  std::string code_path;  // where pipeline.json is
  std::string component;
  Bytes memory{0};  // of all processes that it makes
  std::map<std::string, std::string>
      environment;  // as its author set it: for the program alone, never for what starts it
};
using ProgramLauncher = std::function<ProgramLaunch(const ProgramJail&)>;

// Each in a jail with a user of its own, from `uids`, or that of all functions; also in a node whose device servers have none: these are
// strangers' programs. `root_dir`: an empty folder of the node's own. `millicpus`: 0: no limit.
ProgramLauncher program_launcher(const std::string& root_dir, std::uint64_t millicpus, std::shared_ptr<UidPool> uids);

}  // namespace fairlead
