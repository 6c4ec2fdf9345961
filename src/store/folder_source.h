// A folder of this machine as somebody's code: what is in it, opened through its descriptor. Names inside are never followed
// out of it, whoever swaps what meanwhile: no link, no "..", no mount point of /proc. All is opened with the rights of the user
// who named the folder.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file_identity.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "store/user_rights.h"

namespace fairlead::store {

class FolderSource {
 public:
  // kNotFound: it is no folder; kForbidden: that user may not read it.
  // Links on the way are followed with that user's rights, or refused.
  enum class Links { kFollowed, kRefused };
  static Result<FolderSource> open(const std::string& path, std::optional<std::uint32_t> uid,
                                   Links links = Links::kFollowed);

  struct Entry {
    enum class Kind { kFolder, kFile, kLink, kOther };
    std::string name;  // from the folder on: "lib/a.so"
    Kind kind = Kind::kOther;
    bool is_executable = false;
    std::string link_target;
  };
  // Of one folder in it, "" for itself.
  Result<std::vector<Entry>> list(const std::string& name) const;
  Result<UniqueFd> open_file(const std::string& name) const;  // a regular one, for reading
  // Of something in it, "" for itself: type and permissions. kNotFound: it is not there.
  Result<std::uint32_t> mode_of(const std::string& name) const;
  Result<FileIdentity> identity() const { return identity_of(folder_.get()); }

 private:
  FolderSource(std::string path, UniqueFd folder, UserRights rights)
      : path_(std::move(path)), folder_(std::move(folder)), rights_(std::move(rights)) {}
  Result<UniqueFd> open_inside(const std::string& name, int flags) const;
  Error denied(int error, const std::string& what) const;

  std::string path_;
  UniqueFd folder_;
  UserRights rights_;
};

}  // namespace fairlead::store
