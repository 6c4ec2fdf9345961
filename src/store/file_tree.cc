#include "store/file_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "model/function.h"

namespace fairlead::store {
namespace {

constexpr std::size_t kMaxComponentLength = 255;  // NAME_MAX of every usual file system

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> components;
  while (true) {
    std::size_t slash = path.find('/');
    components.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return components;
    path.remove_prefix(slash + 1);
  }
}

// Names come from outside: keep error messages printable and short.
std::string shown(std::string_view name) {
  std::string text = "'";
  for (char c : name.substr(0, 200)) {
    bool plain = static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
    text += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text + (name.size() > 200 ? "...'" : "'");
}

bool has_control_character(std::string_view name) {
  return std::any_of(name.begin(), name.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

Status check_entry_name(std::string_view name) {
  auto refuse = [&](std::string_view why) {
    return fail(Errc::kInvalidArgument, "entry {} in the code bundle {}", shown(name), why);
  };
  if (name.empty()) return refuse("has an empty name");
  if (name.size() > kMaxEntryNameLength) return refuse(fmt::format("has more than {} bytes", kMaxEntryNameLength));
  if (name.front() == '/') return refuse("has an absolute path: use paths relative to the function's folder");
  if (name.find('\\') != std::string_view::npos) return refuse("contains a backslash: use '/' between folders");
  if (has_control_character(name)) return refuse("contains a control character");
  for (std::string_view component : split(name)) {
    if (component == "..") return refuse("leaves the folder with '..'");
    if (component.empty() || component == ".") return refuse("has an empty or '.' component");
    if (component.size() > kMaxComponentLength) {
      return refuse(fmt::format("has a component of more than {} bytes", kMaxComponentLength));
    }
  }
  return {};
}

Status check_link_target(std::string_view name, std::string_view target) {
  auto refuse = [&](std::string_view why) {
    return fail(Errc::kInvalidArgument, "symbolic link {} in the code bundle {} (target {})", shown(name), why,
                shown(target));
  };
  if (target.empty() || target.size() > kMaxLinkTargetLength) {
    return refuse(fmt::format("must have a target of 1 to {} bytes", kMaxLinkTargetLength));
  }
  if (target.front() == '/') return refuse("has an absolute target: use a relative one");
  if (has_control_character(target)) return refuse("has a control character in its target");
  std::ptrdiff_t depth = std::count(name.begin(), name.end(), '/');
  bool descended = false;
  for (std::string_view component : split(target)) {
    if (component.empty() || component == ".") continue;
    if (component != "..") {
      descended = true;
      continue;
    }
    if (descended) return refuse("has '..' after a folder in its target: only leading '..' are allowed");
    if (--depth < 0) return refuse("points outside the folder");
  }
  return {};
}

Status FileTree::count_entry() {
  if (++entries_ > kMaxBundleEntries) {
    return fail(Errc::kTooLarge, "the code bundle has more than {} entries", kMaxBundleEntries);
  }
  return {};
}

Status FileTree::make_parents(std::string_view name) {
  for (std::size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1)) {
    const std::string path = root_ + "/" + std::string(name.substr(0, slash));
    if (mkdir(path.c_str(), 0755) == 0) {
      if (Status status = count_entry(); !status) return status;
      continue;
    }
    struct stat existing;
    if (errno != EEXIST || lstat(path.c_str(), &existing) != 0) return fail(errno_error(errno, "mkdir " + path));
    if (!S_ISDIR(existing.st_mode)) {
      return fail(Errc::kInvalidArgument, "entry {} in the code bundle lies below an entry that is a file",
                  shown(name));
    }
  }
  return {};
}

Status FileTree::add_folder(std::string_view name) {
  if (Status status = check_entry_name(name); !status) return status;
  return make_parents(std::string(name) + "/");
}

Result<FileTree::File> FileTree::add_file(std::string_view name, bool executable) {
  if (Status status = check_entry_name(name); !status) return fail(status.error());
  if (Status status = count_entry(); !status) return fail(status.error());
  if (Status status = make_parents(name); !status) return fail(status.error());
  const std::string path = root_ + "/" + std::string(name);
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0 && errno == EEXIST) {
    return fail(Errc::kInvalidArgument, "entry {} is in the code bundle twice", shown(name));
  }
  if (fd < 0) return fail(errno_error(errno, "create " + path));
  File file(*this, std::string(name), fd);
  if (fchmod(fd, executable ? 0755 : 0644) != 0) return fail(errno_error(errno, "chmod " + path));
  return file;
}

Status FileTree::add_link(std::string_view name, std::string_view target) {
  if (Status status = check_entry_name(name); !status) return status;
  if (Status status = count_entry(); !status) return status;
  if (Status status = check_link_target(name, target); !status) return status;
  links_.push_back({std::string(name), std::string(target)});
  return make_parents(name);
}

Status FileTree::finish() {
  for (const Link& link : links_) {
    const std::string path = root_ + "/" + link.name;
    if (symlink(link.target.c_str(), path.c_str()) == 0) continue;
    if (errno == EEXIST) return fail(Errc::kInvalidArgument, "entry {} is in the code bundle twice", shown(link.name));
    return fail(errno_error(errno, "symlink " + path));
  }
  links_.clear();
  return {};
}

FileTree::File::File(File&& other) noexcept
    : tree_(other.tree_), name_(std::move(other.name_)), fd_(std::exchange(other.fd_, -1)) {}

FileTree::File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

Status FileTree::File::write(std::string_view bytes) {
  tree_.bytes_ += static_cast<std::int64_t>(bytes.size());
  if (tree_.bytes_ > static_cast<std::int64_t>(kMaxUnzippedCodeBytes)) {
    return fail(Errc::kTooLarge, "the code bundle is larger than {} bytes unpacked (at entry {})",
                kMaxUnzippedCodeBytes, shown(name_));
  }
  while (!bytes.empty()) {
    ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(errno_error(errno, "write " + tree_.root_ + "/" + name_));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Status FileTree::File::close() {
  int result = ::close(std::exchange(fd_, -1));
  if (result != 0) return fail(errno_error(errno, "close " + tree_.root_ + "/" + name_));
  return {};
}

}  // namespace fairlead::store
