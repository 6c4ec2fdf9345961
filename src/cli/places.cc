#include "cli/places.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace fairlead::cli {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string default_state_dir() {
  if (std::string base = variable("XDG_STATE_HOME"); !base.empty()) return base + "/fairlead";
  if (std::string home = variable("HOME"); !home.empty()) return home + "/.local/state/fairlead";
  return "/var/lib/fairlead";
}

Result<std::string> software_gpu_dir() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = program.parent_path().parent_path() / "lib" / "softgpu";
  if (error || !std::filesystem::exists(folder / "libcuda.so.1", error)) {
    return fail(Errc::kNotFound,
                "the software GPU is not at {}: reinstall fairlead, or name its folder with "
                "--gpu-library-dir",
                folder.string());
  }
  return folder.string();
}

std::string find_program(const std::string& name) {
  std::istringstream folders(variable("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string path = folder + "/" + name;
    if (!folder.empty() && access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

}  // namespace fairlead::cli
