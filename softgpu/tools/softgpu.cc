// softgpu: looks at and changes the software GPU of this machine.
#include <cstdio>

#include "softgpu/tools/command.h"

namespace {

using softgpu::tools::Arguments;

struct Command {
  const char* name;
  const char* usage;
  int (*run)(Arguments);
};

constexpr Command kCommands[] = {
    {"smi", "smi [--json]                  devices, their use and their processes", softgpu::tools::smi},
    {"profiles", "profiles                      the devices that can be modelled", softgpu::tools::profiles},
    {"time", "time                          the modelled time that each process has used", softgpu::tools::time},
    {"mps", "mps start | stop | status     whether processes compute side by side, in shares of the SMs",
     softgpu::tools::mps},
    {"fault",
     "fault KIND [--gpu N]          for tests: xid NUMBER, hang, lost, alloc [--count N] [--after N],\n"
     "                                        slow-link --factor F; clear ends them",
     softgpu::tools::fault},
    {"add-gpu", "add-gpu --profile NAME        one more device, for processes that start from now on",
     softgpu::tools::add_gpu},
    {"set-profile", "set-profile NAME [--gpu N]    makes a device another one", softgpu::tools::set_profile},
    {"mig", "mig COMMAND [--gpu N]         enable, disable, list, list-profiles, create, destroy", softgpu::tools::mig},
    {"reset", "reset [--force]               removes the state folder, with --force even while processes use it",
     softgpu::tools::reset},
};

}  // namespace

int main(int count, char** values) {
  const std::vector<std::string> words(values + 1, values + count);
  for (const Command& command : kCommands) {
    if (!words.empty() && words.front() == command.name) return command.run(Arguments(words).subspan(1));
  }
  std::fputs("usage:\n", stderr);
  for (const Command& command : kCommands) std::fprintf(stderr, "  softgpu %s\n", command.usage);
  return 2;
}
