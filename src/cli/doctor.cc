#include "cli/doctor.h"

#include <algorithm>
#include <ostream>

#include "cli/commands.h"
#include "cli/places.h"
#include "cli/table.h"

namespace fairlead::cli {
namespace {

struct Options {
  std::string state_dir = default_state_dir();
  std::string gpu_library_dir;
  bool software_gpu = false;
};

std::string level_name(Check::Level level) {
  switch (level) {
    case Check::Level::kOk: return "ok";
    case Check::Level::kWarn: return "warn";
    case Check::Level::kMissing: return "missing";
  }
  return "?";
}

Json to_json(const std::vector<Check>& checks) {
  Json list = Json::array();
  for (const Check& check : checks) {
    list.push_back({{"level", level_name(check.level)},
                    {"subject", check.subject},
                    {"finding", check.finding},
                    {"advice", check.advice}});
  }
  return list;
}

int run_doctor(Cli& cli, Options options) {
  if (options.software_gpu) {
    Result<std::string> folder = software_gpu_dir();
    if (!folder) return cli.report(folder.error());
    options.gpu_library_dir = *folder;
  }
  std::vector<Check> checks = check_gpu(options.gpu_library_dir);
  for (const std::vector<Check>& more : {check_host(options.state_dir), check_device_memory(), check_tools()}) {
    checks.insert(checks.end(), more.begin(), more.end());
  }
  cli.out() << (cli.json() ? to_json(checks).dump(2) + "\n" : doctor_report(checks));
  bool missing = std::any_of(checks.begin(), checks.end(),
                             [](const Check& check) { return check.level == Check::Level::kMissing; });
  return missing ? 1 : 0;
}

}  // namespace

std::string doctor_report(const std::vector<Check>& checks) {
  std::size_t width = 0;
  for (const Check& check : checks) width = std::max(width, check.subject.size());
  std::string text;
  for (const Check& check : checks) {
    text += fmt::format("{:<8} {:<{}}  {}\n", level_name(check.level), check.subject, width, check.finding);
    if (!check.advice.empty()) text += fmt::format("{:<8} {:<{}}  -> {}\n", "", "", width, check.advice);
  }
  return text;
}

void add_doctor(Cli& cli) {
  auto options = std::make_shared<Options>();
  CLI::App& command = cli.add_command("doctor", "Say what this machine has and lacks for running a node",
                                      [&cli, options] { return run_doctor(cli, *options); });
  command.add_option("--state", options->state_dir, "State folder of the node")->capture_default_str();
  CLI::Option* software =
      command.add_flag("--softgpu", options->software_gpu, "Look at the software GPU instead of the system's driver");
  command.add_option("--gpu-library-dir", options->gpu_library_dir, "Folder with libcuda.so.1 and libnvidia-ml.so.1")
      ->check(CLI::ExistingDirectory)
      ->excludes(software);
  command.footer("Exit status: 0 nothing is missing, 1 something is.");
}

}  // namespace fairlead::cli
