#include "runtime/cgroup.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace fairlead {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolder = "fairlead";
constexpr std::string_view kNodeLeaf = "fairlead-node";  // where the node itself is, in version 2
constexpr std::uint64_t kCpuPeriodUs = 100'000;
// Version 1 counts shares of 1024 where version 2 has weights of 100.
constexpr std::uint64_t kSharesPerWeight1024 = 1024, kPlainWeight = 100;
constexpr std::uint64_t kLeastShares = 2;
// Together three seconds: on a busy machine the sandboxes of a killed spawner take longer than one to end.
constexpr int kWaits = 600;
constexpr useconds_t kWaitUs = 5'000;

Status write_file(const std::string& path, std::string_view text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), text.data(), text.size()) < 0) {
    return fail(errno_error(errno, fmt::format("write \"{}\" to {}", text, path)));
  }
  return {};
}

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const auto edge = [&](std::size_t i) {
      return i >= text.size() || std::string_view(" ,\n").find(text[i]) != std::string_view::npos;
    };
    if ((at == 0 || edge(at - 1)) && edge(at + word.size())) return true;
  }
  return false;
}

// Mount point of the version 1 hierarchy with this controller, or with an empty name, of version 2.
std::optional<std::string> mount_point(std::string_view controller) {
  std::ifstream mounts("/proc/self/mounts");
  std::string device, path, type, options, rest;
  while (mounts >> device >> path >> type >> options && std::getline(mounts, rest)) {
    if (controller.empty() ? type == "cgroup2" : type == "cgroup" && has_word(options, controller)) return path;
  }
  return std::nullopt;
}

// The node's own group in that hierarchy: lines are "4:memory:/path", "0::/path" for version 2.
std::string own_group(std::string_view controller) {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view names = std::string_view(line).substr(first + 1, second - first - 1);
    if (controller.empty() ? names.empty() : has_word(names, controller)) return line.substr(second + 1);
  }
  return "/";
}

// In a container the path may be that of the host, which does not exist here: then the root it sees is its own group.
std::string own_directory(const std::string& mount, std::string_view controller) {
  std::string path = own_group(controller);
  while (!path.empty() && path.back() == '/') path.pop_back();
  // Who was moved into the leaf, or was started from there, shares the folder beside it.
  const std::string leaf = fmt::format("/{}", kNodeLeaf);
  if (path.ends_with(leaf)) path.resize(path.size() - leaf.size());
  std::error_code ignored;
  return fs::is_directory(mount + path, ignored) ? mount + path : mount;
}

bool process_exists(const std::string& pid_text) {
  int pid = 0;
  const auto [end, error] = std::from_chars(pid_text.data(), pid_text.data() + pid_text.size(), pid);
  if (error != std::errc() || *end != '\0' || pid <= 0) return true;
  return ::kill(pid, 0) == 0 || errno != ESRCH;
}

void remove_groups(const std::string& dir) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, ignored)) {
    if (entry.is_directory(ignored)) ::rmdir(entry.path().c_str());
  }
  ::rmdir(dir.c_str());
}

// Of a spawner that was killed a moment ago, whose sandboxes may still be ending: their groups are busy until then.
void remove_leftovers(const std::string& folder, int& waits) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (!entry.is_directory(ignored) || process_exists(entry.path().filename())) continue;
    remove_groups(entry.path());
    for (; waits > 0 && fs::exists(entry.path(), ignored); --waits) {
      ::usleep(kWaitUs);
      remove_groups(entry.path());
    }
  }
}

// <parent>/fairlead/<owner>, or empty.
std::string make_owned(const std::string& parent, const std::string& owner, int& waits) {
  const std::string folder = fmt::format("{}/{}", parent, kFolder);
  ::mkdir(folder.c_str(), 0755);
  remove_leftovers(folder, waits);
  std::string owned = folder + "/" + owner;
  if (::mkdir(owned.c_str(), 0755) != 0 && errno != EEXIST) return {};
  return owned;
}

// Version 2 lets only groups without processes of their own have children with controllers. When all of the group's
// processes are the node's (a delegated service), they move into a leaf.
bool enable_controllers(const std::string& dir) {
  constexpr std::string_view kControllers = "+memory +pids";
  const std::string control = dir + "/cgroup.subtree_control";
  if (write_file(control, kControllers)) {
    (void)write_file(control, "+cpu");  // not on every machine
    return true;
  }
  std::istringstream processes(read_file(dir + "/cgroup.procs"));
  for (std::string pid; processes >> pid;) {
    if (pid != std::to_string(::getpid()) && pid != std::to_string(::getppid())) return false;
  }
  const std::string leaf = fmt::format("{}/{}", dir, kNodeLeaf);
  if (::mkdir(leaf.c_str(), 0755) != 0 && errno != EEXIST) return false;
  for (const int pid : {::getpid(), ::getppid()}) {
    if (!write_file(leaf + "/cgroup.procs", std::to_string(pid))) return false;
  }
  if (!write_file(control, kControllers)) return false;
  (void)write_file(control, "+cpu");
  return true;
}

}  // namespace

std::string_view cgroup_version_name(CgroupVersion version) {
  switch (version) {
    case CgroupVersion::kV1: return "v1";
    case CgroupVersion::kV2: return "v2";
    case CgroupVersion::kNone: break;
  }
  return "none";
}

Status Cgroup::create() {
  for (const std::string& dir : {memory_dir_, pids_dir_, cpu_dir_}) {
    if (dir.empty()) continue;
    if (::mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) return fail(errno_error(errno, "mkdir " + dir));
  }
  return {};
}

void Cgroup::remove() {
  ::rmdir(memory_dir_.c_str());
  if (!pids_dir_.empty()) ::rmdir(pids_dir_.c_str());
  if (!cpu_dir_.empty()) ::rmdir(cpu_dir_.c_str());
}

Status Cgroup::set_limits(Bytes memory, std::uint64_t processes) {
  const bool v2 = version_ == CgroupVersion::kV2;
  const std::string& pids_dir = v2 ? memory_dir_ : pids_dir_;
  if (processes > 0) {
    if (auto status = write_file(pids_dir + "/pids.max", std::to_string(processes)); !status) return status;
  }
  if (memory.count() == 0) return {};
  const std::string limit = std::to_string(memory.count());
  if (!v2) return write_file(memory_dir_ + "/memory.limit_in_bytes", limit);
  // Absent without swap accounting, which is no reason to refuse the function.
  (void)write_file(memory_dir_ + "/memory.swap.max", "0");
  return write_file(memory_dir_ + "/memory.max", limit);
}

Status Cgroup::set_cpu(const CpuShare& share) {
  if (cpu_dir_.empty()) return {};
  const bool v2 = version_ == CgroupVersion::kV2;
  if (share.weight > 0) {
    const std::uint64_t shares = std::max(kLeastShares, share.weight * kSharesPerWeight1024 / kPlainWeight);
    auto status = v2 ? write_file(cpu_dir_ + "/cpu.weight", std::to_string(share.weight))
                     : write_file(cpu_dir_ + "/cpu.shares", std::to_string(shares));
    if (!status) return status;
  }
  if (share.millicpus == 0) return {};
  const std::uint64_t quota_us = share.millicpus * kCpuPeriodUs / 1000;
  if (v2) return write_file(cpu_dir_ + "/cpu.max", fmt::format("{} {}", quota_us, kCpuPeriodUs));
  if (auto status = write_file(cpu_dir_ + "/cpu.cfs_period_us", std::to_string(kCpuPeriodUs)); !status) return status;
  return write_file(cpu_dir_ + "/cpu.cfs_quota_us", std::to_string(quota_us));
}

Status Cgroup::join() const {
  for (const std::string& dir : {memory_dir_, pids_dir_, version_ == CgroupVersion::kV1 ? cpu_dir_ : ""}) {
    if (dir.empty()) continue;
    if (auto status = write_file(dir + "/cgroup.procs", "0"); !status) return status;
  }
  return {};
}

UniqueFd Cgroup::open_memory_peak() const {
  const char* name = version_ == CgroupVersion::kV2 ? "/memory.peak" : "/memory.max_usage_in_bytes";
  return UniqueFd(::open((memory_dir_ + name).c_str(), O_RDONLY | O_CLOEXEC));
}

bool Cgroup::out_of_memory_killed() const {
  const char* name = version_ == CgroupVersion::kV2 ? "/memory.events" : "/memory.oom_control";
  std::istringstream lines(read_file(memory_dir_ + name));
  for (std::string key, value; lines >> key >> value;) {
    if (key == "oom_kill") return value != "0";
  }
  return false;
}

CgroupTree& CgroupTree::operator=(CgroupTree&& other) noexcept {
  std::swap(version_, other.version_);
  std::swap(why_, other.why_);
  std::swap(memory_dir_, other.memory_dir_);
  std::swap(pids_dir_, other.pids_dir_);
  std::swap(cpu_dir_, other.cpu_dir_);
  return *this;
}

CgroupTree::~CgroupTree() {
  if (!memory_dir_.empty()) remove_groups(memory_dir_);
  if (!pids_dir_.empty()) remove_groups(pids_dir_);
  if (!cpu_dir_.empty()) remove_groups(cpu_dir_);
}

bool CgroupTree::open_v2(const std::string& owner, int& waits) {
  const auto mount = mount_point("");
  if (!mount) return false;
  const std::string controllers = read_file(*mount + "/cgroup.controllers");
  if (!has_word(controllers, "memory") || !has_word(controllers, "pids")) return false;
  const std::string own = own_directory(*mount, "");
  for (const std::string& parent : {own, *mount}) {
    if (!enable_controllers(parent)) continue;
    const std::string folder = fmt::format("{}/{}", parent, kFolder);
    memory_dir_ = make_owned(parent, owner, waits);
    if (!memory_dir_.empty() && enable_controllers(folder) && enable_controllers(memory_dir_)) {
      version_ = CgroupVersion::kV2;
      if (has_word(read_file(memory_dir_ + "/cgroup.subtree_control"), "cpu")) cpu_dir_ = memory_dir_;
      return true;
    }
  }
  memory_dir_.clear();
  why_ = fmt::format("cgroup v2: memory and pids are not delegated at {}", own);
  return false;
}

bool CgroupTree::open_v1(const std::string& owner, int& waits) {
  const auto memory = mount_point("memory");
  const auto pids = mount_point("pids");
  if (!memory || !pids) return false;
  memory_dir_ = make_owned(own_directory(*memory, "memory"), owner, waits);
  pids_dir_ = make_owned(own_directory(*pids, "pids"), owner, waits);
  if (memory_dir_.empty() || pids_dir_.empty()) {
    memory_dir_.clear();
    pids_dir_.clear();
    why_ = "cgroup v1: memory or pids is not writable";
    return false;
  }
  version_ = CgroupVersion::kV1;
  if (const auto cpu = mount_point("cpu")) cpu_dir_ = make_owned(own_directory(*cpu, "cpu"), owner, waits);
  return true;
}

CgroupTree CgroupTree::open(int spawner_pid) {
  CgroupTree tree;
  const std::string owner = std::to_string(spawner_pid);
  int waits = kWaits;
  if (tree.open_v2(owner, waits) || tree.open_v1(owner, waits)) {
    tree.why_.clear();
  } else if (tree.why_.empty()) {
    tree.why_ = "no cgroup hierarchy with the memory and pids controllers is mounted";
  }
  return tree;
}

Result<std::unique_ptr<Cgroup>> CgroupTree::make(std::string_view name) const {
  const auto below = [name](const std::string& dir) { return dir.empty() ? "" : fmt::format("{}/{}", dir, name); };
  auto group = std::make_unique<Cgroup>(version_, below(memory_dir_), below(pids_dir_), below(cpu_dir_));
  if (auto status = group->create(); !status) return fail(status.error());
  return group;
}

}  // namespace fairlead
