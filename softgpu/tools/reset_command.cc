// softgpu reset: forgets the machine.
#include <filesystem>

#include "softgpu/device/machine.h"
#include "softgpu/device/state_folder.h"
#include "softgpu/tools/command.h"

namespace softgpu::tools {
int reset(Arguments arguments) {
  const auto line = parse_command_line(arguments, {}, {"force"});
  if (!line) return fail(line.error());
  const std::string home = machine_home();
  std::error_code error;
  if (!std::filesystem::is_directory(home, error)) return 0;
  if (!line->has("force") && state_in_use(home)) {
    return fail(home + " is used by processes (softgpu smi); end them or add --force");
  }
  clear_state(home);
  if (!std::filesystem::remove(home, error) && error) return fail("cannot remove " + home + ": " + error.message());
  return 0;
}

}  // namespace softgpu::tools
