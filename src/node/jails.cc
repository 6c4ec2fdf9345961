#include "node/jails.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "model/image.h"
#include "model/image_ids.h"
#include "runtime/cgroup.h"
#include "runtime/jail/jail_spec.h"
#include "runtime/sandbox_process.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

constexpr const char* kThisProgram = "/proc/self/exe";
constexpr const char* kMpsPipes = "CUDA_MPS_PIPE_DIRECTORY";
// The driver's and the compiler's own, beside what the settings say.
constexpr std::uint64_t kServerBytes = std::uint64_t{8} << 30, kTrialBytes = std::uint64_t{10} << 30;
constexpr std::uint64_t kToolBytes = std::uint64_t{2} << 30;
constexpr std::uint64_t kServerThreads = 2048, kToolThreads = 256;  // the kernel counts threads
constexpr CpuShare kTrialCpu{.weight = 20, .millicpus = 2000}, kToolCpu{.weight = 20, .millicpus = 2000};

Bytes at_most_of_machine(std::uint64_t bytes, std::uint64_t numerator, std::uint64_t denominator) {
  const std::uint64_t machine = share_of_memory(1, ~std::uint64_t{0});
  return Bytes(static_cast<std::int64_t>(std::min(bytes, machine / denominator * numerator)));
}

void bind_same(const std::string& path, bool writable, std::vector<MountBind>& binds) {
  if (!path.empty()) binds.push_back({path, path, writable});
}

// The library and those of its name beside it, which it loads (libcublasLt). Not their folder: that may be anybody's home, or hold
// what is bound already.
void bind_cublas(const fs::path& library, std::vector<MountBind>& binds) {
  std::error_code error;
  const fs::path whole = fs::absolute(library, error);
  bind_same(whole, false, binds);
  for (const fs::directory_entry& entry : fs::directory_iterator(whole.parent_path(), error)) {
    const bool is_its = entry.path().filename().string().starts_with("libcublas");
    if (is_its && entry.path() != whole && entry.is_regular_file(error)) bind_same(entry.path(), false, binds);
  }
}

JailSpec server_jail(const ServeOptions& options, const GpuAccess& gpu, const std::string& root_dir) {
  JailSpec spec{.root_dir = root_dir,
                .uid = kSandboxUid - 1,
                .gid = kSandboxUid,
                .reserves_memory = true,
                .processes = kServerThreads};
  for (const InstanceSpec::Bind& bind : gpu.binds) spec.binds.push_back({bind.source, bind.target, bind.writable});
  std::error_code error;
  if (!options.driver_dir.empty()) bind_same(fs::absolute(options.driver_dir, error), false, spec.binds);
  if (options.cublas != "auto" && options.cublas != "off") {
    bind_cublas(options.cublas, spec.binds);
  }
  // What a server writes first is counted as its own: its tier, outputs, and the memory of the software GPU.
  const std::uint64_t own =
      options.software_gpu ? ~std::uint64_t{0} : kServerBytes + options.task_host_bytes + options.object_memory_bytes;
  spec.memory = at_most_of_machine(own, 3, 4);
  return spec;
}

Launcher launcher_of(JailSpec spec, std::shared_ptr<UidPool> uids) {
  return [spec = std::move(spec), uids = std::move(uids)](const std::map<std::string, std::string>& environment) {
    JailSpec own = spec;
    if (const auto pipes = environment.find(kMpsPipes); pipes != environment.end()) {
      bind_same(pipes->second, false, own.binds);
    }
    std::shared_ptr<void> user = take_user(uids, own.uid);
    return Launch{.words = jail_command(kThisProgram, own, {}), .held = std::move(user)};
  };
}

// Where skopeo looks for credentials and for how to reach registries; they are the operator's and mostly his alone to read.
std::vector<std::string> registry_files() {
  std::vector<std::string> files{"/etc/containers", "/etc/docker/certs.d"};
  if (const char* home = std::getenv("HOME")) {
    files.push_back(std::string(home) + "/.config/containers");
    files.push_back(std::string(home) + "/.docker/config.json");  // the folder has keys of docker daemons, too
  }
  if (const char* config = std::getenv("XDG_CONFIG_HOME")) files.push_back(std::string(config) + "/containers");
  if (const char* run = std::getenv("XDG_RUNTIME_DIR")) files.push_back(std::string(run) + "/containers/auth.json");
  if (const char* named = std::getenv("REGISTRY_AUTH_FILE")) files.emplace_back(named);
  return files;
}

}  // namespace

std::shared_ptr<void> take_user(const std::shared_ptr<UidPool>& uids, std::uint32_t& uid) {
  const auto own = uids ? uids->take() : std::nullopt;
  if (!own) return nullptr;
  uid = *own;
  return {nullptr, [uids, taken = *own](void*) { uids->give_back(taken); }};
}

void jail_device_servers(const ServeOptions& options, const GpuAccess& gpu, const std::string& root_dir,
                         std::shared_ptr<UidPool> uids, DeviceServersOptions& servers) {
  JailSpec server = server_jail(options, gpu, root_dir);
  JailSpec trial = server;
  trial.uid = kSandboxUid - 2;
  trial.memory = std::min(trial.memory, at_most_of_machine(kTrialBytes, 1, 2));
  trial.cpu = kTrialCpu;
  servers.program = kThisProgram;  // inside too, without a name: what runs there is what runs here
  servers.launcher = launcher_of(std::move(server), uids);
  servers.trial_launcher = launcher_of(std::move(trial), std::move(uids));
}

Launcher model_server_launcher(const ServeOptions& options, const GpuAccess& gpu, const std::string& root_dir,
                               std::shared_ptr<UidPool> uids) {
  JailSpec spec = server_jail(options, gpu, root_dir);
  spec.uid = kSandboxUid - 3;
  return launcher_of(std::move(spec), std::move(uids));
}

ImageStoreOptions::Launcher image_tool_launcher(const std::string& root_dir,
                                                const std::vector<std::string>& registries) {
  return [=](const ImageTool& tool) {
    JailSpec spec{.root_dir = root_dir,
                  .uid = kImageIdBase,
                  .gid = kImageIdBase,
                  .ids = tool.owns_files ? kImageIds : 1,
                  .reads_all = tool.reads_all,
                  .memory = at_most_of_machine(kToolBytes, 1, 2),
                  .written = Bytes(kMaxImageBytes),
                  .processes = kToolThreads,
                  .cpu = kToolCpu};
    for (const std::string& folder : tool.reads) bind_same(folder, false, spec.binds);
    for (const std::string& folder : tool.writes) bind_same(folder, true, spec.binds);
    if (tool.has_network) {
      spec.has_network = true;
      spec.registries = registries;
      spec.registry = tool.local_registry;
    }
    if (tool.reads_configuration) spec.copies = registry_files();
    return jail_command(kThisProgram, spec, tool.arguments);
  };
}

std::vector<std::string> what_jails_lack(bool no_jail) {
  std::vector<std::string> lacks;
  if (no_jail)
    lacks.emplace_back("--no-jail: device servers, model servers and image tools have the rights of this node");
  if (::geteuid() != 0) {
    lacks.emplace_back(
        "run by an ordinary user: functions, device servers, model servers and image tools are this user's processes "
        "in namespaces of "
        "their own; who breaks out of one has what this user has. Run by root each has a user of its own");
  }
  if (const CgroupTree groups = CgroupTree::open(::getpid()); groups.version() == CgroupVersion::kNone) {
    lacks.push_back(
        "without control groups the memory of a function's processes is limited one by one, that of device "
        "servers is not, and processors are shared by all: " +
        groups.why());
  } else if (!groups.has_cpu()) {
    lacks.emplace_back("there is no cpu controller: processors are shared by all processes alike");
  }
  return lacks;
}

}  // namespace fairlead
