#include "softgpu/conformance/runner.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <sstream>

#include "softgpu/conformance/test.h"

extern char** environ;

namespace softgpu::conformance {
namespace {

constexpr int kResultFd = 3;  // in the started process
constexpr unsigned kProcessLimitSeconds = 60;
constexpr char kSeparator = '\x1f';

CaseResult failure(const std::string& why) {
  CaseResult result;
  result.status = Status::kFail;
  result.detail = why;
  return result;
}

CaseResult run_here(const Case& one) {
  const auto start = std::chrono::steady_clock::now();
  if (const CUresult result = use_first_device(); result != CUDA_SUCCESS)
    return failure("no context: " + name_of(result));
  CaseResult result;
  {
    Test test(one);
    if (one.kernels != nullptr) test.load();
    if (test.ok()) one.run(test);
    result = test.take_result();
  }
  result.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

std::string pack(const CaseResult& result) {
  std::ostringstream out;
  out.precision(17);
  out << static_cast<int>(result.status) << kSeparator << result.detail << kSeparator << result.max_error << kSeparator
      << result.digest << kSeparator << result.milliseconds << kSeparator;
  for (const auto& [what, value] : result.observed) out << what << kSeparator << value << kSeparator;
  return out.str();
}

CaseResult unpack(const std::string& text) {
  std::istringstream in(text);
  const auto next = [&in] {
    std::string word;
    std::getline(in, word, kSeparator);
    return word;
  };
  CaseResult result;
  result.status = static_cast<Status>(std::atoi(next().c_str()));
  result.detail = next();
  result.max_error = std::atof(next().c_str());
  result.digest = std::strtoull(next().c_str(), nullptr, 10);
  result.milliseconds = std::atof(next().c_str());
  for (std::string what = next(); !what.empty(); what = next()) result.observed.emplace_back(what, next());
  return result;
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t count = 0; (count = ::read(fd, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

CaseResult run_alone(const std::string& library, const std::string& name) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failure("no pipe");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], kResultFd);
  const std::string arguments[] = {"conformance", "--library", library, "--alone", name};
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  const std::string text = failed == 0 ? read_all(ends[0]) : "";
  ::close(ends[0]);
  int status = 0;
  if (failed != 0 || ::waitpid(pid, &status, 0) != pid) return failure("no process");
  if (WIFSIGNALED(status)) return failure("the process ended by signal " + std::to_string(WTERMSIG(status)));
  return text.empty() ? failure("the process gave no result") : unpack(text);
}

}  // namespace

CUresult use_first_device() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (const CUresult result = driver().cuDeviceGet(&device, 0); result != CUDA_SUCCESS) return result;
  if (const CUresult result = driver().cuDevicePrimaryCtxRetain(&context, device); result != CUDA_SUCCESS)
    return result;
  return driver().cuCtxSetCurrent(context);
}

CaseResult Runner::run(const std::string& name, const Case& one) {
  if (one.isolated || isolate_) return run_alone(library_, name);
  CaseResult result = run_here(one);
  isolate_ = driver().cuCtxSynchronize() != CUDA_SUCCESS;
  return result;
}

void Runner::run_for_parent(const Case& one, int result_fd) {
  ::alarm(kProcessLimitSeconds);
  const std::string text = pack(run_here(one));
  if (::write(result_fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) ::_exit(1);
}

}  // namespace softgpu::conformance
