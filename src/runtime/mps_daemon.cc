#include "runtime/mps_daemon.h"

#include <fmt/ranges.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "base/command.h"
#include "base/read_file.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "nvidia-cuda-mps-control";
constexpr const char* kManyUsers = "-multiuser-server";  // for GPUs since Volta; the daemon must be root's
constexpr const char* kUsualDirs[] = {"/usr/local/nvidia/bin", "/usr/bin"};
constexpr std::string_view kProcessName = "nvidia-cuda-mps";  // as the kernel cuts it: control daemon and servers
constexpr std::size_t kMaxSocketPath = 107;  // of a Unix socket, which the daemon makes in the directory
constexpr Duration kQuitTime = std::chrono::seconds(3);
constexpr Duration kPause = std::chrono::milliseconds(10);

// Of a process that may end meanwhile.
std::string read_all(const fs::path& path) {
  return read_whole_file(path).value_or("");
}

// A process of the daemon in `pipe_dir`: by name, and by the variable it was started with.
bool belongs(const fs::path& process, const std::string& pipe_dir) {
  if (!std::string_view(read_all(process / "comm")).starts_with(kProcessName)) return false;
  const std::string environment = '\0' + read_all(process / "environ");
  return environment.find(std::string("\0CUDA_MPS_PIPE_DIRECTORY=", 25) + pipe_dir + '\0') != std::string::npos;
}

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

Result<std::string> find_mps_control(const std::string& library_dir) {
  std::vector<std::string> folders;
  if (!library_dir.empty()) folders.push_back(library_dir);
  if (const char* path = std::getenv("PATH")) {
    std::istringstream stream(path);
    for (std::string folder; std::getline(stream, folder, ':');) folders.push_back(folder);
  }
  folders.insert(folders.end(), std::begin(kUsualDirs), std::end(kUsualDirs));
  for (const std::string& folder : folders) {
    std::string program = folder + "/" + kProgram;
    if (!folder.empty() && ::access(program.c_str(), X_OK) == 0) return program;
  }
  return fail(
      Errc::kUnavailable,
      "{} is neither in {}$PATH nor in {} or {}: install it (Debian: nvidia-cuda-mps), or share the GPU without it "
      "(--sharing none)",
      kProgram, library_dir.empty() ? "" : library_dir + ", ", kUsualDirs[0], kUsualDirs[1]);
}

MpsDaemon::MpsDaemon(std::string program, std::string dir, std::string device)
    : program_(std::move(program)),
      dir_(std::move(dir)),
      pipe_dir_(dir_ + "/pipe"),
      log_dir_(dir_ + "/log"),
      device_(std::move(device)) {}

Status MpsDaemon::start() {
  if ((pipe_dir_ + "/control_privileged").size() > kMaxSocketPath) {
    return fail(Errc::kInvalidArgument,
                "the MPS pipe directory {} is longer than {} characters: choose a shorter --state", pipe_dir_,
                kMaxSocketPath - std::string_view("/control_privileged").size());
  }
  stop();
  std::error_code error;
  fs::remove_all(pipe_dir_, error);
  for (const std::string& dir : {pipe_dir_, log_dir_}) {
    fs::create_directories(dir, error);
    if (error) return fail(errno_error(error.value(), "create " + dir));
  }
  ::chmod(dir_.c_str(), 0711);  // functions, of another user, reach the pipe directory in it
  // Functions are another user than the node, and its model servers are root. By default a daemon serves one user at a time,
  // by a server that is that user's and could not write into these folders; others wait until the last process of that one has ended.
  std::vector<std::string> command = {program_, "-d"};
  if (::geteuid() == 0) command.emplace_back(kManyUsers);
  const auto started = run_command({.arguments = command,
                                    .environment = {{"CUDA_MPS_PIPE_DIRECTORY", pipe_dir_},
                                                    {"CUDA_MPS_LOG_DIRECTORY", log_dir_},
                                                    {"CUDA_VISIBLE_DEVICES", device_}}});
  if (!started) return fail(started.error());
  if (started->exit_status != 0) {
    return fail(Errc::kUnavailable, "{} ended with status {}: {}", fmt::join(command, " "), started->exit_status,
                started->output + started->errors);
  }
  servers_.clear();
  if (const auto answer = send("get_server_list\n"); !answer) {
    return fail(Errc::kUnavailable, "{}; see {}/control.log", answer.error().message, log_dir_);
  }
  return {};
}

// Servers come with their first client; the status of those listed last time is asked with the same command.
MpsDaemon::State MpsDaemon::state() {
  std::string commands = "get_server_list\n";
  for (const std::string& server : servers_) commands += "get_server_status " + server + "\n";
  const auto answer = send(commands);
  if (!answer) return State::kGone;
  servers_.clear();
  bool fault = false;
  std::istringstream lines(*answer);
  for (std::string line; std::getline(lines, line);) {
    if (is_number(line)) servers_.push_back(line);
    fault = fault || line.find("FAULT") != std::string::npos;
  }
  return fault ? State::kFault : State::kActive;
}

void MpsDaemon::stop() {
  if (processes().empty()) return;
  const bool asked = !program_.empty() && send("quit -t 1\n").has_value();
  const Instant deadline = monotonic_now() + (asked ? kQuitTime : Duration(0));
  while (!processes().empty() && monotonic_now() < deadline) std::this_thread::sleep_for(kPause);
  for (const int pid : processes()) ::kill(pid, SIGKILL);
}

Result<std::string> MpsDaemon::send(const std::string& commands) const {
  const auto done = run_command({.arguments = {program_},
                                 .environment = {{"CUDA_MPS_PIPE_DIRECTORY", pipe_dir_}},
                                 .input = commands,
                                 .timeout = std::chrono::seconds(5)});
  if (!done) return fail(done.error());
  std::string answer = done->output + done->errors;
  if (done->exit_status != 0) return fail(Errc::kUnavailable, "the MPS daemon in {}: {}", pipe_dir_, answer);
  return answer;
}

std::vector<int> MpsDaemon::processes() const {
  std::vector<int> pids;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (is_number(name) && belongs(entry.path(), pipe_dir_)) pids.push_back(std::stoi(name));
  }
  return pids;
}

}  // namespace fairlead
