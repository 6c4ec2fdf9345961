#include "base/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "base/clock.h"
#include "base/unique_fd.h"

extern char** environ;

namespace fairlead {
namespace {

constexpr std::size_t kMaxOutput = 1 << 20;
constexpr std::size_t kMaxErrors = 16 << 10;
constexpr std::chrono::milliseconds kStopCheck{100};
constexpr int kNoExec = 127;

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& own, bool inherits) {
  std::vector<std::string> variables;
  for (char** entry = environ; inherits && *entry != nullptr; ++entry) {
    const std::string variable(*entry);
    if (!own.contains(variable.substr(0, variable.find('=')))) variables.push_back(variable);
  }
  for (const auto& [name, value] : own) variables.push_back(name + "=" + value);
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// An unnamed file with the input: it needs no writer that could block.
Result<UniqueFd> input_file(const std::string& text) {
  UniqueFd file(static_cast<int>(::syscall(SYS_memfd_create, "input", 1U /* MFD_CLOEXEC */)));
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::lseek(file.get(), 0, SEEK_SET) != 0) {
    return fail(errno_error(errno, "hold a command's input"));
  }
  return file;
}

struct Pipe {
  UniqueFd read_end, write_end;
};

Result<Pipe> open_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(errno_error(errno, "pipe"));
  Pipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return fail(errno_error(errno, "pipe"));
  return pipe;
}

// After a fork of a process with threads: nothing here may allocate or take a lock.
[[noreturn]] void become(const char* program, char* const* arguments, char* const* environment,
                         const std::array<int, 3>& streams, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kNoExec);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int stream = 0; stream < 3; ++stream) {
    if (::dup2(streams[static_cast<std::size_t>(stream)], stream) < 0) ::_exit(kNoExec);
  }
  ::syscall(SYS_close_range, 3U, ~0U, 0U);
  ::execve(program, arguments, environment);
  ::_exit(kNoExec);
}

struct Child {
  pid_t pid = -1;
  UniqueFd process;  // readable once it has ended
  UniqueFd output, errors;
};

Result<Child> start(const Command& command) {
  const std::string& name = command.arguments.front();
  const std::string program = name.find('/') == std::string::npos ? find_program(name) : name;
  if (program.empty() || ::access(program.c_str(), X_OK) != 0) {
    return fail(Errc::kNotFound, "{} is not installed", name);
  }
  Result<UniqueFd> input = input_file(command.input);
  if (!input) return fail(input.error());
  Result<Pipe> output = open_pipe();
  if (!output) return fail(output.error());
  Result<Pipe> errors = open_pipe();
  if (!errors) return fail(errors.error());

  std::vector<std::string> words = command.arguments;
  std::vector<std::string> variables = merged_environment(command.environment, command.inherits_environment);
  const std::vector<char*> arguments = pointers(words);
  const std::vector<char*> environment = pointers(variables);
  const pid_t parent = ::getpid();
  Child child;
  child.pid = ::fork();
  if (child.pid < 0) return fail(errno_error(errno, "fork " + name));
  if (child.pid == 0) {
    become(program.c_str(), arguments.data(), environment.data(),
           {input->get(), output->write_end.get(), errors->write_end.get()}, parent);
  }
  child.process.reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  child.output = std::move(output->read_end);
  child.errors = std::move(errors->read_end);
  return child;
}

// Appends what is there to read, and keeps the first or the last `most` bytes. One read, so that a program that prints
// without end is still held to its time. Closed at the end of the stream.
void take(UniqueFd& stream, std::string& text, std::size_t most, bool keep_last) {
  std::array<char, 64 << 10> buffer{};
  const ssize_t size = ::read(stream.get(), buffer.data(), buffer.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) return stream.reset();
  text.append(buffer.data(), static_cast<std::size_t>(size));
  if (text.size() <= most) return;
  if (keep_last) {
    text.erase(0, text.size() - most);
  } else {
    text.resize(most);
  }
}

Status may_go_on(const Command& command, Instant deadline) {
  if (command.stop != nullptr && command.stop->load()) {
    return fail(Errc::kUnavailable, "{} was ended: the node is shutting down", command.arguments.front());
  }
  if (monotonic_now() < deadline) return {};
  return fail(Errc::kDeadlineExceeded, "{} did not end within {:.0f} s and was killed", command.arguments.front(),
              to_seconds(command.timeout));
}

// Until the program has ended and what it printed is read.
Status follow(const Command& command, Child& child, CommandResult& result) {
  const Instant deadline = monotonic_now() + command.timeout;
  while (true) {
    if (Status status = may_go_on(command, deadline); !status) return status;
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - monotonic_now());
    if (command.stop != nullptr) left = std::min(left, kStopCheck);
    std::array<pollfd, 3> events{pollfd{child.process.get(), POLLIN, 0}, pollfd{child.output.get(), POLLIN, 0},
                                 pollfd{child.errors.get(), POLLIN, 0}};
    if (::poll(events.data(), events.size(), static_cast<int>(std::max<std::int64_t>(left.count(), 0))) <= 0) continue;
    if (events[1].revents != 0) take(child.output, result.output, kMaxOutput, false);
    if (events[2].revents != 0) take(child.errors, result.errors, kMaxErrors, true);
    if (events[0].revents != 0 && ((events[1].revents | events[2].revents) & POLLIN) == 0) return {};
  }
}

int reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string program = folder + "/" + name;
    if (!folder.empty() && ::access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

Result<CommandResult> run_command(const Command& command) {
  Result<Child> child = start(command);
  if (!child) return fail(child.error());
  CommandResult result;
  const Status followed = follow(command, *child, result);
  if (!followed) ::kill(child->pid, command.kill_signal);
  result.exit_status = reap(child->pid);
  if (!followed) return fail(followed.error());
  return result;
}

}  // namespace fairlead
