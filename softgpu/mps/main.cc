// nvidia-cuda-mps-control of the software GPU: starts the control daemon, and is the front end that sends it commands.
//
//   nvidia-cuda-mps-control -d                        in the background; returns when it accepts commands
//   nvidia-cuda-mps-control -f                        in the foreground
//   echo get_server_list | nvidia-cuda-mps-control    commands, one a line; or one on the command line
//
// Directories and devices come from the environment: CUDA_MPS_PIPE_DIRECTORY, CUDA_MPS_LOG_DIRECTORY,
// CUDA_VISIBLE_DEVICES.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "softgpu/mps/daemon.h"

namespace {

using softgpu::mps::Daemon;
using softgpu::mps::PipeDirectory;

constexpr char kUsage[] =
    "usage: nvidia-cuda-mps-control [-M | -multiuser-server] -d | -f\n"
    "       nvidia-cuda-mps-control [COMMAND]      without one: commands from standard input\n"
    "commands: quit [-t SECONDS | -f], get_server_list, get_server_status PID, start_server -uid UID,\n"
    "          get_client_list PID, ps, [gs]et_default_active_thread_percentage [PERCENTAGE],\n"
    "          [gs]et_default_device_pinned_mem_limit DEVICE [LIMIT]\n";

int fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return 1;
}

// `ready`: told, by a byte, that commands are accepted; -1: nobody waits for it.
int serve(int ready) {
  auto pipe = PipeDirectory::open(true);
  if (!pipe) return fail(pipe.error());
  const auto daemon = Daemon::start(std::move(*pipe));
  if (!daemon) return fail(daemon.error());
  if (ready >= 0) {
    (void)!::write(ready, "r", 1);
    const int null = ::open("/dev/null", O_RDWR);
    for (const int stream : {0, 1, 2}) ::dup2(null, stream);
    ::close(ready);
  }
  (*daemon)->run();
  return 0;
}

int serve_in_background() {
  int ready[2];
  if (::pipe(ready) != 0) return fail("pipe failed");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ready[0]);
    ::setsid();
    if (::fork() != 0) ::_exit(0);
    std::exit(serve(ready[1]));
  }
  ::close(ready[1]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  char byte = 0;
  return ::read(ready[0], &byte, 1) == 1 ? 0 : 1;
}

int send(const std::string& command) {
  const auto pipe = PipeDirectory::open(false);
  const auto answer = pipe ? pipe->send(command) : softgpu::failure("Cannot find MPS control daemon process");
  if (!answer) return fail(answer.error());
  std::fputs(answer->c_str(), stdout);
  return 0;
}

}  // namespace

int main(int count, char** values) {
  std::vector<std::string> words(values + 1, values + count);
  // Of one user or of many: clients of this GPU compute side by side, whoever they are.
  std::erase_if(words, [](const std::string& word) { return word == "-M" || word == "-multiuser-server"; });
  if (words.size() == 1 && (words[0] == "-d" || words[0] == "--daemon")) return serve_in_background();
  if (words.size() == 1 && (words[0] == "-f" || words[0] == "--foreground")) return serve(-1);
  if (!words.empty() && words[0].starts_with("-")) {
    std::fputs(kUsage, stderr);
    return words[0] == "-h" || words[0] == "--help" ? 0 : 2;
  }
  std::string command;
  for (const std::string& word : words) command += (command.empty() ? "" : " ") + word;
  if (!command.empty()) return send(command);
  int status = 0;
  while (status == 0 && std::getline(std::cin, command)) {
    if (!command.empty()) status = send(command);
  }
  return status;
}
