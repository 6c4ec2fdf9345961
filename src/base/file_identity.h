// Which file or folder it is, whatever it is called: what tells one that was swapped under its name from the one that was meant.
//
// Example: a folder was kept as identity_of(fd); later its path is opened again and compared.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace fairlead {

struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t born_ns =
      0;  // since the epoch; file systems give the number of a deleted inode to a new one. 0: they do not say
  bool operator==(const FileIdentity&) const = default;
};

Result<FileIdentity> identity_of(int file);

// "64768:1234:1700000000000000000". kCorrupt: the text is none.
std::string to_text(const FileIdentity& identity);
Result<FileIdentity> parse_file_identity(std::string_view text);

// The folder of an absolute path, as a descriptor (O_PATH) that stays with it; no link is followed on the way. kNotFound: there is no folder;
// kConflict: a link leads there. Each names the path.
Result<UniqueFd> open_unlinked_folder(const std::string& path);

// The same, if it is still that one. kConflict: it is another.
Result<UniqueFd> open_same_folder(const std::string& path, const FileIdentity& identity);

}  // namespace fairlead
