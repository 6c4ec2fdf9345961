#include "base/python_package.h"

#include <filesystem>

namespace fairlead {

std::string python_package_dir() {
  std::error_code error;
  const std::filesystem::path home = std::filesystem::read_symlink("/proc/self/exe", error).parent_path().parent_path();
  if (error) return "";
  for (const std::filesystem::path& folder : {home / "share/fairlead/python", home.parent_path() / "python"}) {
    if (std::filesystem::exists(folder / "fairlead/author/__main__.py", error)) return folder.string();
  }
  return "";
}

}  // namespace fairlead
