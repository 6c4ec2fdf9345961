#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "cli/doctor.h"
#include "runtime/writable_folder.h"

namespace fairlead::cli {

// Tried where volumes mostly are; leaves nothing.
Check check_writable_volumes() {
  using Level = Check::Level;
  constexpr const char* kName = "Writable volumes";
  if (geteuid() != 0) return {Level::kOk, kName, "of this user's own folders", ""};
  std::filesystem::path folder = "/srv";
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) folder = "/var/lib";
  const Status mapped = try_mapped_mount(folder);
  if (mapped) return {Level::kOk, kName, fmt::format("idmapped mounts work in {}", folder.string()), ""};
  return {Level::kWarn, kName, mapped.error().message,
          "only functions that write to volumes need it: offer folders of another file system"};
}

}  // namespace fairlead::cli
