#include "node/program_jail.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/python_package.h"
#include "node/jails.h"
#include "runtime/jail/jail_spec.h"
#include "runtime/sandbox_process.h"
#include "runtime/sandbox_root.h"

namespace fairlead {
namespace {

constexpr const char* kThisProgram = "/proc/self/exe";
constexpr const char* kPythonPackage = "/opt/fairlead/python";  // inside
constexpr std::uint64_t kThreads = 256;

std::string python() {
  std::error_code error;
  for (const char* path : {"/usr/bin/python3", "/usr/local/bin/python3"}) {
    if (std::filesystem::exists(path, error)) return path;
  }
  return "/usr/bin/python3";  // that it is not there stands in the reason why the pipeline does not start
}

}  // namespace

// The author's environment goes in one variable, which the program's own end unpacks: what starts it runs with the node's rights, and
// LD_PRELOAD would run there.
ProgramLauncher program_launcher(const std::string& root_dir, std::uint64_t millicpus, std::shared_ptr<UidPool> uids) {
  return [=, package = python_package_dir()](const ProgramJail& program) {
    JailSpec spec{.root_dir = root_dir,
                  .uid = kSandboxUid,
                  .gid = kSandboxUid,
                  .binds = {{program.code_path, kTaskDir, false}},
                  .memory = program.memory,
                  .processes = kThreads,
                  .cpu = {.millicpus = millicpus}};
    if (!package.empty()) spec.binds.push_back({package, kPythonPackage, false});
    std::shared_ptr<void> user = take_user(uids, spec.uid);
    const auto line =
        nlohmann::json(program.environment).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return ProgramLaunch{
        .words = jail_command(kThisProgram, spec,
                              {python(), "-s", "-m", "fairlead.pipeline", "stage", kTaskDir, program.component}),
        .environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                        {"HOME", "/tmp"},
                        {"LANG", "C.UTF-8"},
                        {"PYTHONDONTWRITEBYTECODE", "1"},
                        {"PYTHONPATH", package.empty() ? "" : kPythonPackage},
                        {"FAIRLEAD_PROGRAM_ENVIRONMENT", line}},
        .held = std::move(user)};
  };
}

}  // namespace fairlead
