#include "runtime/container_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <vector>

#include "base/read_file.h"
#include "runtime/sandbox_root.h"

namespace fairlead {
namespace {

// Mount points, crun's state and config.json.
constexpr const char* kTmpfsOptions = "mode=755,size=16m,nr_inodes=4096";
constexpr const char* kName = "function";

std::string path_of(std::string_view name) {
  return fmt::format("{}/{}", kContainerDir, name);
}

Status failed(const std::string& what) {
  return fail(errno_error(errno, what));
}

std::string read_text(const std::string& path) {
  return read_whole_file(path).value_or("");
}

Status mount_root() {
  if (::mount("tmpfs", kContainerDir, "tmpfs", MS_NOSUID | MS_NODEV, kTmpfsOptions) != 0) {
    return failed(std::string("mount tmpfs on ") + kContainerDir);
  }
  for (const char* name : {"root", "upper", "work", "crun", "bundle"}) {
    if (::mkdir(path_of(name).c_str(), 0755) != 0) return failed("mkdir " + path_of(name));
  }
  // The upper folder's owner and mode are the overlay's: they must be the image's, or crun, the image's root but not the
  // host's, could add nothing.
  struct stat image {};
  if (::stat(kImageDir, &image) != 0) return failed(std::string("stat ") + kImageDir);
  if (::chown(path_of("upper").c_str(), image.st_uid, image.st_gid) != 0 ||
      ::chmod(path_of("upper").c_str(), image.st_mode & 07777) != 0) {
    return failed("chown " + path_of("upper"));
  }
  const std::string options =
      fmt::format("lowerdir={},upperdir={},workdir={}", kImageDir, path_of("upper"), path_of("work"));
  if (::mount("overlay", path_of("root").c_str(), "overlay", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    return failed("mount the image's overlay (" + options + ")");
  }
  return {};
}

Result<pid_t> spawn_crun() {
  std::string log = "--log=file:" + path_of("crun.log"), state = "--root=" + path_of("crun");
  std::string bundle = "--bundle=" + path_of("bundle"), pid_file = "--pid-file=" + path_of("pid");
  std::string words[] = {"crun", log, state, "--cgroup-manager=disabled", "run", "--detach", bundle, pid_file, kName};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  char* no_environment[] = {nullptr};

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, "crun", nullptr, &attributes, arguments.data(), no_environment);
  posix_spawnattr_destroy(&attributes);
  if (error == ENOENT) {
    return fail(Errc::kUnavailable, "crun is not installed; functions that are images need it (apt-get install crun)");
  }
  if (error != 0) return fail(errno_error(error, "start crun"));
  return pid;
}

std::string reason_in_log() {
  std::string text = read_text(path_of("crun.log"));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

Result<pid_t> start_container(const std::string& config_json) {
  if (auto status = mount_root(); !status) return fail(status.error());
  std::ofstream config(path_of("bundle/config.json"), std::ios::binary);
  config << config_json;
  config.close();
  if (!config) return fail(Errc::kIo, "cannot write {}", path_of("bundle/config.json"));
  Result<pid_t> crun = spawn_crun();
  if (!crun) return crun;
  int status = 0;
  while (::waitpid(*crun, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return fail(Errc::kInvalidArgument, "crun: {}", reason_in_log());
  }
  const std::string text = read_text(path_of("pid"));
  pid_t pid = -1;
  std::from_chars(text.data(), text.data() + text.size(), pid);
  if (pid <= 0) return fail(Errc::kInternal, "crun wrote no pid but '{}'", text);
  return pid;
}

}  // namespace fairlead
