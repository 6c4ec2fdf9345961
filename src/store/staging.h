// Folders being filled beside the place where they will be renamed to. A crash leaves them behind; the next start
// removes them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace fairlead::store {

class Staging {
 public:
  // A new empty folder below `parent`, which is created too. Its name holds this process's id, so that clearing up never
  // takes what this process is filling.
  static Result<Staging> create(const std::string& parent);
  Staging(Staging&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Staging& operator=(Staging&&) = delete;
  ~Staging();  // removes what was not renamed away

  const std::string& path() const { return path_; }

 private:
  explicit Staging(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Syncs everything below `folder` to disk, then renames it to `final_path`, in one step and durably. When that exists
// already, with the same content by its name, `folder` stays for its owner to remove.
Status install_folder(const std::string& folder, const std::string& final_path);

// Removes every folder below `parent` but those in `used` and this process's staging folders. `kind` is for the log.
void remove_unused_folders(const std::string& parent, const std::vector<std::string>& used, std::string_view kind);

}  // namespace fairlead::store
