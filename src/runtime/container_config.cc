#include "runtime/container_config.h"

#include <fmt/format.h>
#include <sodium.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/image_ids.h"
#include "runtime/sandbox_process.h"
#include "runtime/sandbox_root.h"

namespace fairlead {
namespace {

using nlohmann::json;

constexpr std::string_view kMountsDir = "/run/fairlead/mounts/";
constexpr std::string_view kDeviceDir = "/dev/";
constexpr std::string_view kPlatformDir = "/run/fairlead/";
// crun's way to take a filter as it is, instead of a list of names: the one that all sandboxes have.
constexpr const char* kSeccompAnnotation = "run.oci.seccomp_bpf_data";

json bind_mount(const std::string& source, const std::string& target, json options) {
  return {{"destination", target}, {"source", source}, {"type", "bind"}, {"options", std::move(options)}};
}

// A container may not drop flags of the mounts it gets from outside its user namespace, so each is said again. Never
// "rbind": with a user namespace crun 1.8 binds without what is mounted below, so that each mount is named.
json bind_options(bool writable) {
  json options{"bind", "nosuid", "nodev"};
  if (!writable) options.push_back("ro");
  return options;
}

json bind_device(const std::string& path) {
  return bind_mount(path, path, {"bind", "nosuid"});
}

json fixed_mounts() {
  json mounts = json::array();
  mounts.push_back(
      {{"destination", "/proc"}, {"source", "proc"}, {"type", "proc"}, {"options", {"nosuid", "nodev", "noexec"}}});
  mounts.push_back(bind_device("/dev"));
  for (const std::string name : kSandboxDevices) mounts.push_back(bind_device("/dev/" + name));
  for (const char* folder : {"/dev/shm", "/tmp"}) mounts.push_back(bind_mount(folder, folder, bind_options(true)));
  return mounts;
}

json id_map(std::uint32_t program_id) {
  // Without root there is one id, and the container's root is it.
  const std::vector<IdRange> ranges =
      ::geteuid() == 0 ? image_id_map(program_id, kSandboxUid) : std::vector<IdRange>{{0, 0, 1}};
  json map = json::array();
  for (const IdRange& range : ranges) {
    map.push_back({{"containerID", range.inside}, {"hostID", range.outside}, {"size", range.count}});
  }
  return map;
}

json process(const InstanceSpec::Container& container, const StartOrder& plain) {
  rlimit machine{};
  ::getrlimit(RLIMIT_NPROC, &machine);
  const std::uint64_t processes = std::min<std::uint64_t>(plain.max_processes, machine.rlim_max);
  json capabilities;
  for (const char* set : {"bounding", "effective", "inheritable", "permitted", "ambient"}) {
    capabilities[set] = json::array();
  }
  return {{"args", container.arguments},
          {"env", plain.environment},
          {"cwd", container.working_directory.empty() ? "/" : container.working_directory},
          {"user", {{"uid", container.uid}, {"gid", container.gid}}},
          {"noNewPrivileges", true},
          {"capabilities", std::move(capabilities)},
          {"rlimits", {{{"type", "RLIMIT_NPROC"}, {"soft", processes}, {"hard", processes}}}}};
}

json linux_part(const InstanceSpec::Container& container) {
  json namespaces = json::array();
  for (const char* type : {"pid", "mount", "ipc", "user"}) namespaces.push_back({{"type", type}});
  return {{"namespaces", std::move(namespaces)},
          {"uidMappings", id_map(container.uid)},
          {"gidMappings", id_map(container.gid)},
          {"maskedPaths",
           {"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
            "/proc/timer_list", "/proc/timer_stats"}},
          {"readonlyPaths", {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}}};
}

std::string base64(const std::vector<sock_filter>& program) {
  const std::size_t bytes = program.size() * sizeof(sock_filter);
  std::string text(sodium_base64_encoded_len(bytes, sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(program.data()), bytes,
                    sodium_base64_VARIANT_ORIGINAL);
  text.pop_back();  // its NUL
  return text;
}

}  // namespace

StartOrder container_order(StartOrder plain, const InstanceSpec::Container& container, const SeccompPrograms& seccomp) {
  StartOrder order = plain;
  order.environment.clear();  // in the config
  order.binds = {{container.rootfs, kImageDir, false}};
  json mounts = fixed_mounts();
  for (const MountBind& wanted : plain.binds) {
    if (wanted.target == kTaskDir) continue;
    MountBind bind = wanted;
    const bool is_device = wanted.target.starts_with(kDeviceDir);
    if (!is_device && !wanted.target.starts_with(kPlatformDir)) {
      bind.target = fmt::format("{}{}", kMountsDir, order.binds.size());
    }
    mounts.push_back(is_device ? bind_device(wanted.target)
                               : bind_mount(bind.target, wanted.target, bind_options(wanted.writable)));
    order.binds.push_back(std::move(bind));
  }
  if (!order.secrets.empty()) {
    for (const char* target : {kSecretsDir, kOpenfaasSecretsDir}) {
      mounts.push_back(bind_mount(kSecretsDir, target, {"bind", "nosuid", "nodev", "noexec", "ro"}));
    }
  }
  const json config{{"ociVersion", "1.0.0"},
                    {"root", {{"path", std::string(kContainerDir) + "/root"}, {"readonly", true}}},
                    {"process", process(container, plain)},
                    {"mounts", std::move(mounts)},
                    {"linux", linux_part(container)},
                    {"annotations", {{kSeccompAnnotation, base64(joined(seccomp))}}}};
  // Texts of an image are UTF-8 already, those of the author come from JSON.
  order.container = config.dump(-1, ' ', false, json::error_handler_t::replace);
  order.http_port = container.http_port.value_or(0);
  order.http_health = container.http_health;
  return order;
}

}  // namespace fairlead
