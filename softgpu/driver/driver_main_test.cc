// The test program: all tests, or one scenario (driver_testing.h).
#include <fcntl.h>
#include <spawn.h>

#include <map>

#include "softgpu/driver/driver_testing.h"

extern char** environ;

namespace softgpu::testing {
namespace {

std::map<std::string, void (*)()>& scenarios() {
  static std::map<std::string, void (*)()> all;
  return all;
}

constexpr char kScenarioFlag[] = "--scenario";

int scenario_main(const char* name) {
  scenarios().at(name)();
  const bool failed = ::testing::Test::HasFailure();
  if (::write(kReportFile, failed ? "f" : "p", 1) != 1 || failed) return 1;
  while (true) ::pause();
}

}  // namespace

Scenario::Scenario(const char* name, void (*body)()) {
  scenarios()[name] = body;
}

Fresh::Fresh(const std::string& scenario) {
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) std::abort();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, report[1], kReportFile);
  std::string program = "/proc/self/exe";
  std::string flag = kScenarioFlag;
  std::string name = scenario;
  char* arguments[] = {program.data(), flag.data(), name.data(), nullptr};
  if (::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ) != 0) std::abort();
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(report[1]);
  char verdict = 0;
  ran_ = ::read(report[0], &verdict, 1) == 1 && verdict == 'p';
  ::close(report[0]);
}

Fresh::~Fresh() {
  kill();
}

void Fresh::kill() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

int Fresh::wait() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = 0;
  return status;
}

}  // namespace softgpu::testing

int main(int count, char** arguments) {
  if (count == 3 && std::string(arguments[1]) == softgpu::testing::kScenarioFlag) {
    ::testing::InitGoogleTest();
    return softgpu::testing::scenario_main(arguments[2]);
  }
  ::testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
