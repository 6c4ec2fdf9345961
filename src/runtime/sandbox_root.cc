#include "runtime/sandbox_root.h"
#include "base/read_file.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

namespace fairlead {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSystemDirs[] = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"};
constexpr const char* kEtcDirs[] = {"alternatives", "ssl/certs", "pki", "fonts", "OpenCL"};
constexpr const char* kEtcFiles[] = {"ld.so.cache", "localtime",  "services",
                                     "protocols",   "mime.types", "ssl/openssl.cnf"};
// Empty files cost kernel memory that no quota in bytes bounds.
constexpr int kMaxTmpInodes = 65536;

struct EtcText {
  const char* name;
  const char* text;
};
// Mounted over those of /etc in a sandbox with a way out. Every address is the name server's; some programs want one named.
constexpr const char* kNameServerDir = "/run/fairlead/names";
constexpr EtcText kNameServerTexts[] = {{"nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"},
                                        {"resolv.conf", "nameserver 127.0.0.1\n"}};
constexpr EtcText kEtcTexts[] = {
    {"passwd",
     "root:x:0:0:root:/:/usr/sbin/nologin\nfunction:x:1000:1000:function:/tmp:/bin/sh\n"
     "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"},
    {"group", "root:x:0:\nfunction:x:1000:\nnogroup:x:65534:\n"},
    {"hosts", "127.0.0.1 localhost\n::1 localhost\n"},
    {"hostname", "sandbox\n"},
    {"nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
    {"resolv.conf", ""},
};

Status failed(const std::string& what) {
  return fail(errno_error(errno, what));
}

bool exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

Status make_dirs(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return fail(errno_error(error.value(), "mkdir " + path));
  return {};
}

Status make_file(const std::string& path, std::string_view text) {
  if (auto status = make_dirs(fs::path(path).parent_path()); !status) return status;
  std::ofstream out(path, std::ios::trunc);
  out << text;
  out.close();
  if (!out) return fail(Errc::kIo, "cannot write {}", path);
  return {};
}

Result<UniqueFd> clone_tree(const std::string& source) {
  UniqueFd tree(static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, source.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE)));
  if (!tree) return fail(errno_error(errno, "open_tree " + source));
  return tree;
}

// Of the very folder that was looked at, whatever its name leads to meanwhile: an author's own, or one that is written to as its owner.
Result<UniqueFd> clone_unlinked_tree(const std::string& source, const std::optional<FileIdentity>& identity) {
  const Result<UniqueFd> folder = identity ? open_same_folder(source, *identity) : open_unlinked_folder(source);
  if (!folder) {
    return fail(Errc::kUnavailable, "{}; put it back{}", folder.error().message,
                identity ? ", or deploy the function again" : "");
  }
  UniqueFd tree(static_cast<int>(
      ::syscall(SYS_open_tree, folder->get(), "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH)));
  if (!tree) return fail(errno_error(errno, "open_tree " + source));
  return tree;
}

Status set_attributes(int tree, std::uint64_t attributes, const std::string& what) {
  mount_attr attr{};
  attr.attr_set = attributes;
  attr.propagation = MS_PRIVATE;
  if (::syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) != 0) {
    return failed("mount_setattr " + what);
  }
  return {};
}

Status attach(int tree, const std::string& target) {
  if (::syscall(SYS_move_mount, tree, "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return failed("move_mount to " + target);
  }
  return {};
}

Status bind_mount(const std::string& source, const std::string& target, std::uint64_t attributes) {
  Result<UniqueFd> tree = clone_tree(source);
  if (!tree) return fail(tree.error());
  if (auto status = set_attributes(tree->get(), attributes, source); !status) return status;
  return attach(tree->get(), target);
}

constexpr std::uint64_t kReadOnly = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
constexpr std::uint64_t kDevice = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;

Status bind_system_dirs(const std::string& root) {
  for (const std::string name : kSystemDirs) {
    const std::string host = "/" + name;
    const std::string target = root + "/" + name;
    std::error_code error;
    if (fs::is_symlink(host, error)) {
      if (::symlink(fs::read_symlink(host, error).c_str(), target.c_str()) != 0) return failed("symlink " + target);
    } else if (fs::is_directory(host, error)) {
      if (auto status = make_dirs(target); !status) return status;
      if (auto status = bind_mount(host, target, kReadOnly); !status) return status;
    }
  }
  return {};
}

Status fill_etc(const std::string& root) {
  for (const EtcText& file : kEtcTexts) {
    if (auto status = make_file(root + "/etc/" + file.name, file.text); !status) return status;
  }
  for (const std::string name : kEtcFiles) {
    const auto text = read_whole_file("/etc/" + name);
    if (!text) continue;
    if (auto status = make_file(root + "/etc/" + name, *text); !status) return status;
  }
  for (const std::string name : kEtcDirs) {
    if (!exists("/etc/" + name)) continue;
    if (auto status = make_dirs(root + "/etc/" + name); !status) return status;
    if (auto status = bind_mount("/etc/" + name, root + "/etc/" + name, kReadOnly); !status) return status;
  }
  return {};
}

Status fill_dev(const std::string& root) {
  if (auto status = make_dirs(root + "/dev/shm"); !status) return status;
  for (const std::string name : kSandboxDevices) {
    const std::string target = root + "/dev/" + name;
    if (auto status = make_file(target, ""); !status) return status;
    if (auto status = bind_mount("/dev/" + name, target, kDevice); !status) return status;
  }
  constexpr std::pair<const char*, const char*> kLinks[] = {{"/proc/self/fd", "fd"},
                                                            {"/proc/self/fd/0", "stdin"},
                                                            {"/proc/self/fd/1", "stdout"},
                                                            {"/proc/self/fd/2", "stderr"}};
  for (const auto& [to, name] : kLinks) {
    if (::symlink(to, (root + "/dev/" + name).c_str()) != 0) return failed(std::string("symlink /dev/") + name);
  }
  return {};
}

bool is_device(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode));
}

// A mount point stays in the template, which all sandboxes have. Its folders cannot be listed, so that nobody reads there what
// another function has. What every function has, devices and sockets, may be listed.
void hide_names(const std::string& target) {
  if (target.starts_with("/dev/") || target.starts_with("/run/")) return;
  for (fs::path folder = fs::path(target).parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    struct stat root {
    }, info{};
    if (::stat("/", &root) != 0 || ::lstat(folder.c_str(), &info) != 0) return;
    if (info.st_dev == root.st_dev && S_ISDIR(info.st_mode)) ::chmod(folder.c_str(), 0711);
  }
}

Status make_target(int tree, const std::string& target) {
  hide_names(target);
  if (exists(target)) return {};
  struct stat info {};
  if (::fstat(tree, &info) != 0) return failed("stat of the source of " + target);
  Status made = S_ISDIR(info.st_mode) ? make_dirs(target) : make_file(target, "");
  hide_names(target);
  return made;
}

Status mount_tmpfs(const char* target, Bytes size, unsigned long flags) {
  const std::string options =
      fmt::format("mode=1777,size={},nr_inodes={}", std::max<std::int64_t>(size.count(), 4096), kMaxTmpInodes);
  if (::mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV | flags, options.c_str()) != 0) {
    return failed(fmt::format("mount tmpfs on {} with {}", target, options));
  }
  return {};
}

// In memory, of this sandbox alone: neither the host nor another sandbox has the mount. Where the kernel can, it is never swapped out.
Status mount_secrets(const std::vector<SecretFile>& secrets) {
  if (secrets.empty()) return {};
  std::size_t pages = 1;
  for (const SecretFile& secret : secrets) pages += secret.value.size() / 4096 + 1;
  const std::string options = fmt::format("mode=755,size={}k,nr_inodes={}", pages * 4, secrets.size() + 1);
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (::mount("tmpfs", kSecretsDir, "tmpfs", kFlags, (options + ",noswap").c_str()) != 0 &&
      ::mount("tmpfs", kSecretsDir, "tmpfs", kFlags, options.c_str()) != 0) {
    return failed(std::string("mount tmpfs on ") + kSecretsDir);
  }
  for (const SecretFile& secret : secrets) {
    if (Status valid = validate_secret_name(secret.name); !valid) return valid;
    const std::string path = fmt::format("{}/{}", kSecretsDir, secret.name);
    if (auto status = make_file(path, secret.value); !status) return status;
    if (::chmod(path.c_str(), 0444) != 0) return failed("chmod " + path);
  }
  if (::mount("", kSecretsDir, "", MS_REMOUNT | MS_BIND | MS_RDONLY | kFlags, nullptr) != 0) {
    return failed(std::string("make ") + kSecretsDir + " read-only");
  }
  return {};
}

}  // namespace

Status build_template(const std::string& dir) {
  if (auto status = make_dirs(dir); !status) return status;
  if (::mount("tmpfs", dir.c_str(), "tmpfs", MS_NOSUID, "mode=755,size=4m") != 0)
    return failed("mount tmpfs on " + dir);
  for (const char* name : {"/proc", "/tmp", "/var/task", "/var/runtime", "/run/fairlead/container", "/opt", "/sys",
                           "/sys/fs/cgroup"}) {  // crun looks at it, even when told to leave cgroups alone
    if (auto status = make_dirs(dir + name); !status) return status;
  }
  if (::symlink("/tmp", (dir + "/var/tmp").c_str()) != 0) return failed("symlink /var/tmp");
  if (auto status = make_dirs(dir + kSecretsDir); !status) return status;
  if (auto status = make_dirs(dir + fs::path(kOpenfaasSecretsDir).parent_path().string()); !status) return status;
  if (::symlink(kSecretsDir, (dir + kOpenfaasSecretsDir).c_str()) != 0) return failed("symlink for OpenFaaS's secrets");
  for (const EtcText& file : kNameServerTexts) {
    if (auto status = make_file(fmt::format("{}{}/{}", dir, kNameServerDir, file.name), file.text); !status)
      return status;
  }
  for (const auto step : {&bind_system_dirs, &fill_etc, &fill_dev}) {
    if (auto status = step(dir); !status) return status;
  }
  return make_file(dir + kRuntimeSocketPath, "");
}

Result<UniqueFd> detach_bind(const MountBind& bind, const std::optional<MappedUser>& user) {
  const bool is_itself = bind.identity || bind.as_owner;
  Result<UniqueFd> tree = is_itself ? clone_unlinked_tree(bind.source, bind.identity) : clone_tree(bind.source);
  if (!tree) return tree;
  std::uint64_t attributes = MOUNT_ATTR_NOSUID;
  if (!bind.writable) attributes |= MOUNT_ATTR_RDONLY;
  if (!is_device(bind.source)) attributes |= MOUNT_ATTR_NODEV;
  if (auto status = set_attributes(tree->get(), attributes, bind.source); !status) return fail(status.error());
  if (bind.as_owner && user) {
    if (auto status = map_owner(tree->get(), bind.source, *user); !status) return fail(status.error());
  }
  return tree;
}

Status enter_template(const std::string& dir) {
  if (::chdir(dir.c_str()) != 0) return failed("chdir " + dir);
  if (::mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) return failed("mount /proc");
  for (const char* target : {"tmp", "dev/shm"}) {
    if (auto status = mount_tmpfs(target, Bytes(0), 0); !status) return status;
  }
  // The old root ends up stacked on the new one, at the same place, and is detached from there.
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return failed("pivot_root");
  if (::umount2(".", MNT_DETACH) != 0) return failed("detach the host's file tree");
  if (::chdir("/") != 0) return failed("chdir /");
  return {};
}

Status use_name_server() {
  for (const EtcText& file : kNameServerTexts) {
    const std::string source = fmt::format("{}/{}", kNameServerDir, file.name);
    if (auto status = bind_mount(source, std::string("/etc/") + file.name, kReadOnly); !status) return status;
  }
  return {};
}

Status enter_resolver_root(const std::string& dir) {
  std::error_code ignored;
  std::vector<std::string> folders{"/etc"};
  // "/run/systemd/resolve/stub-resolv.conf" and the like.
  const fs::path target = fs::canonical("/etc/resolv.conf", ignored);
  if (!ignored && !target.string().starts_with("/etc/")) folders.push_back(target.parent_path());
  std::vector<UniqueFd> trees;
  for (const std::string& folder : folders) {
    Result<UniqueFd> tree = clone_tree(folder);
    if (!tree) return fail(tree.error());
    if (auto status = set_attributes(tree->get(), kReadOnly | MOUNT_ATTR_NOEXEC, folder); !status) return status;
    trees.push_back(*std::move(tree));
  }
  if (::mount("tmpfs", dir.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755,size=64k") != 0) {
    return failed("mount tmpfs on " + dir);
  }
  for (std::size_t i = 0; i < trees.size(); ++i) {
    if (auto status = make_dirs(dir + folders[i]); !status) return status;
    if (auto status = attach(trees[i].get(), dir + folders[i]); !status) return status;
  }
  if (::chdir(dir.c_str()) != 0 || ::syscall(SYS_pivot_root, ".", ".") != 0 || ::umount2(".", MNT_DETACH) != 0 ||
      ::chdir("/") != 0) {
    return failed("make a root for looking names up");
  }
  mount_attr attr{};
  attr.attr_set = MOUNT_ATTR_RDONLY;
  if (::syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attr, sizeof attr) != 0) return failed("make / read-only");
  return {};
}

Status mount_order(const StartOrder& order, const std::vector<UniqueFd>& bind_mounts, std::size_t first_mount) {
  for (const char* target : {"/tmp", "/dev/shm"}) {
    if (auto status = mount_tmpfs(target, order.tmp_limit, MS_REMOUNT); !status) return status;
  }
  for (std::size_t i = 0; i < order.binds.size(); ++i) {
    const int tree = bind_mounts[first_mount + i].get();
    const std::string& target = order.binds[i].target;
    if (auto status = make_target(tree, target); !status) return status;
    if (auto status = attach(tree, target); !status) return status;
  }
  if (auto status = mount_secrets(order.secrets); !status) return status;
  mount_attr attr{};
  attr.attr_set = MOUNT_ATTR_RDONLY;
  if (::syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attr, sizeof attr) != 0) return failed("make / read-only");
  return {};
}

}  // namespace fairlead
