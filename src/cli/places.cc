#include "cli/places.h"

#include <cstdlib>
#include <filesystem>

#include "base/python_package.h"

namespace fairlead::cli {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Beside the folder of this program.
std::filesystem::path library_folder(std::error_code& error) {
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().parent_path() / "lib";
}

}  // namespace

std::string default_state_dir() {
  if (std::string base = variable("XDG_STATE_HOME"); !base.empty()) return base + "/fairlead";
  if (std::string home = variable("HOME"); !home.empty()) return home + "/.local/state/fairlead";
  return "/var/lib/fairlead";
}

Result<std::string> software_gpu_dir() {
  std::error_code error;
  const std::filesystem::path folder = library_folder(error) / "softgpu";
  if (error || !std::filesystem::exists(folder / "libcuda.so.1", error)) {
    return fail(Errc::kNotFound,
                "the software GPU is not at {}: reinstall fairlead, or name its folder with "
                "--gpu-library-dir",
                folder.string());
  }
  return folder.string();
}

Result<std::string> shim_library() {
  std::error_code error;
  const std::filesystem::path library = library_folder(error) / "libfairlead-shim.so";
  if (error || !std::filesystem::exists(library, error)) {
    return fail(Errc::kNotFound, "the shim is not at {}: reinstall fairlead", library.string());
  }
  return library.string();
}

std::string python_package_dir() {
  return fairlead::python_package_dir();
}

}  // namespace fairlead::cli
