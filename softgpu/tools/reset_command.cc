// softgpu reset: forgets the machine.
#include <filesystem>

#include "softgpu/device/machine.h"
#include "softgpu/tools/command.h"

namespace softgpu::tools {
// Removes only what this library writes: a wrong $SOFTGPU_HOME must not cost anybody else's files.
int reset(Arguments arguments) {
  const auto line = parse_command_line(arguments, {}, {"force"});
  if (!line) return fail(line.error());
  const std::string home = machine_home();
  std::error_code error;
  if (!std::filesystem::is_directory(home, error)) return 0;
  Machine machine;
  machine.home = home;
  const bool in_use = has_clients(machine);  // damaged state counts as unused: it is what reset is for
  if (!line->has("force") && in_use) {
    return fail(home + " is used by processes (softgpu smi); end them or add --force");
  }
  for (const auto& entry : std::filesystem::directory_iterator(home, error)) {
    const std::string name = entry.path().filename();
    const bool ours = name.starts_with("machine") || name.starts_with("clients") || name.starts_with("slots") ||
                      name.starts_with("shares") || name == "share_locks" || name.starts_with("events") ||
                      name == "mps" || name.starts_with("mps.") ||
                      (name.starts_with("device") && name.find('.') != std::string::npos);
    if (ours) std::filesystem::remove(entry.path(), error);
  }
  if (!std::filesystem::remove(home, error) && error) return fail("cannot remove " + home + ": " + error.message());
  return 0;
}

}  // namespace softgpu::tools
