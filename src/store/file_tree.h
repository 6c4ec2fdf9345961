// A folder being filled with files whose names come from outside: every write stays below its root, whatever the names
// say, and what comes out has normal modes (0755 or 0644), no owner of its own and no special files.
//
// How: names are checked (check_entry_name), files are created with O_EXCL in folders made here, and symbolic links are
// created last, so that no write can pass through one. A link may only start with ".." as often as it lies deep, and
// name folders after that: each link then resolves below the root, and so does any chain of them.
//
// Threads: one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fairlead::store {

inline constexpr std::size_t kMaxBundleEntries = 20'000;
inline constexpr std::size_t kMaxEntryNameLength = 1024;
inline constexpr std::size_t kMaxLinkTargetLength = 1024;

// Relative, no "." or ".." or empty component, no NUL, no backslash, no control character, at most kMaxEntryNameLength
// bytes (255 per component). Errors quote the name. A trailing slash is the caller's to strip.
Status check_entry_name(std::string_view name);

// REQUIRES: check_entry_name(name).
Status check_link_target(std::string_view name, std::string_view target);

class FileTree {
 public:
  // `root` exists, is empty and belongs to the caller alone. Limits are kMaxBundleEntries and kMaxUnzippedCodeBytes.
  explicit FileTree(std::string root) : root_(std::move(root)) {}

  Status add_folder(std::string_view name);

  // Writes `name` piece by piece. kTooLarge as soon as the tree exceeds its limit.
  class File {
   public:
    File(File&& other) noexcept;
    File& operator=(File&&) = delete;
    ~File();
    Status write(std::string_view bytes);
    Status close();

   private:
    friend class FileTree;
    File(FileTree& tree, std::string name, int fd) : tree_(tree), name_(std::move(name)), fd_(fd) {}
    FileTree& tree_;
    std::string name_;
    int fd_;
  };
  Result<File> add_file(std::string_view name, bool executable);

  Status add_link(std::string_view name, std::string_view target);  // created by finish()

  // Creates the links. The tree is complete afterwards.
  Status finish();

  const std::string& root() const { return root_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Link {
    std::string name;
    std::string target;
  };
  Status count_entry();
  Status make_parents(std::string_view name);

  std::string root_;
  std::size_t entries_ = 0;
  std::int64_t bytes_ = 0;
  std::vector<Link> links_;
};

}  // namespace fairlead::store
