// Files of the state folder: created once by whichever process comes first, complete from the moment they have a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "softgpu/device/result.h"

namespace softgpu {

// 64 random bits from the system.
std::uint64_t random_number();

// Makes `path` hold `content`, unless it already exists; either way the file is complete afterwards. Written under a
// temporary name and linked, so that a process killed half-way leaves nothing behind that another could read.
Status create_file_once(const std::string& path, std::string_view content);

// Makes `path` hold `content`, whatever it held: readers see the old file or the new one, never a part.
Status replace_file(const std::string& path, std::string_view content);

// Excludes other processes that change files of `folder` for as long as it lives. Does nothing when the folder cannot
// be opened.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int folder_;
};

// The whole of a text file.
Result<std::string> read_file(const std::string& path);

// An open descriptor, close-on-exec, read and write, created when absent. The caller owns it.
Result<int> open_file(const std::string& path);

// Maps a table of `bytes` bytes that begins with `header`, creating it when absent, behind the header all zero; shared,
// for as long as the process lives. Error: the file is of another version or damaged; says what to do.
Result<void*> map_table(const std::string& path, std::string_view header, std::size_t bytes);
// A header of one number.
Result<void*> map_table(const std::string& path, std::uint64_t magic, std::size_t bytes);

}  // namespace softgpu
