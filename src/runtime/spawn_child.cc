#include "runtime/spawn_child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>

#include <cerrno>

#include "base/unique_fd.h"

namespace fairlead {

Result<pid_t> spawn_with_socket(std::vector<std::string> words, const std::map<std::string, std::string>& environment,
                                int socket) {
  UniqueFd moved;
  if (socket == kSocketInChild) {  // dup2() to itself would leave it close-on-exec
    moved.reset(::fcntl(socket, F_DUPFD_CLOEXEC, kSocketInChild + 1));
    if (!moved) return fail(errno_error(errno, "duplicate a socket"));
    socket = moved.get();
  }
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  const auto pointers = [](std::vector<std::string>& strings) {
    std::vector<char*> list;
    for (std::string& text : strings) list.push_back(text.data());
    list.push_back(nullptr);
    return list;
  };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, socket, kSocketInChild);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const std::string file = words.front();
  const int error =
      ::posix_spawn(&pid, file.c_str(), &actions, &attributes, pointers(words).data(), pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail(errno_error(error, "start " + file + (words.size() > 1 ? " " + words[1] : "")));
  return pid;
}

}  // namespace fairlead
