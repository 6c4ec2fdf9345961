// A spawner as a new process of a program, for a node that has threads: only what is safe between a fork and an exec happens there
// (posix_spawn).
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <charconv>

#include "runtime/fd_socket.h"
#include "runtime/spawner.h"

namespace fairlead {
namespace {

constexpr int kSocketInSpawner = 3;
constexpr std::string_view kCgroups = "cgroups", kNoCgroups = "no-cgroups";
constexpr std::string_view kWayOut = "way-out", kNoWayOut = "no-way-out";

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

Result<pid_t> spawn(const std::string& program, std::vector<std::string> words, int socket) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, socket, kSocketInSpawner);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);  // Ctrl-C is the node's to handle
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, program.c_str(), &actions, &attributes, pointers(words).data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail(errno_error(error, "start " + program + " " + kSpawnerCommand));
  return pid;
}

}  // namespace

std::vector<std::string> spawner_arguments(const SpawnerOptions& options) {
  return {options.template_dir,
          std::string(options.use_cgroups ? kCgroups : kNoCgroups),
          std::to_string(options.blanks),
          std::to_string(options.cpu.weight),
          std::to_string(options.cpu.millicpus),
          std::string(options.way_out ? kWayOut : kNoWayOut)};
}

Result<SpawnerOptions> spawner_options_of(const std::vector<std::string>& arguments) {
  const auto wrong = [] { return fail(Errc::kInvalidArgument, "only a node starts a spawner"); };
  if (arguments.size() != 6) return wrong();
  SpawnerOptions options{.template_dir = arguments[0], .use_cgroups = arguments[1] == kCgroups};
  if (!options.use_cgroups && arguments[1] != kNoCgroups) return wrong();
  options.way_out = arguments[5] == kWayOut;
  if (!options.way_out && arguments[5] != kNoWayOut) return wrong();
  const auto read = [](const std::string& text, auto& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
  };
  if (!read(arguments[2], options.blanks) || !read(arguments[3], options.cpu.weight) ||
      !read(arguments[4], options.cpu.millicpus)) {
    return wrong();
  }
  return options;
}

Result<SpawnerProcess> launch_spawner(const std::string& program, const SpawnerOptions& options) {
  Result<SocketPair> pair = make_seqpacket_pair();
  if (!pair) return fail(pair.error());
  if (pair->second.get() == kSocketInSpawner) {  // dup2() to itself would leave it close-on-exec
    pair->second.reset(::fcntl(pair->second.get(), F_DUPFD_CLOEXEC, kSocketInSpawner + 1));
  }
  std::vector<std::string> words{program, kSpawnerCommand};
  for (std::string& word : spawner_arguments(options)) words.push_back(std::move(word));
  const Result<pid_t> pid = spawn(program, std::move(words), pair->second.get());
  if (!pid) return fail(pid.error());
  return SpawnerProcess{*pid, std::move(pair->first)};
}

}  // namespace fairlead
