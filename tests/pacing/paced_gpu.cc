#include "tests/pacing/paced_gpu.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace fairlead::pacing_tests {
namespace {

constexpr int kProgressDescriptor = 3;

[[noreturn]] void become(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment,
                         int input, int progress) {
  ::dup2(input, STDIN_FILENO);
  const int kept = ::fcntl(progress, F_DUPFD, 10);
  ::dup2(kept, kProgressDescriptor);
  ::close(kept);
  ::clearenv();
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

}  // namespace

Client::~Client() {
  kill();
  ::close(input_);
  ::munmap(static_cast<void*>(progress_), sizeof *progress_);
}

void Client::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

void Client::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

bool Client::lives() const {
  return pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == 0;
}

Duration Client::gpu_time() const {
  Duration sum{0};
  for (const auto& connection : connections) {
    sum += Duration(static_cast<Duration::rep>(connection->page().gpu_time_ns.load()));
  }
  return sum;
}

PacedGpu::PacedGpu(const Paths& paths, std::map<std::string, std::string> environment)
    : paths_(paths), environment_(std::move(environment)) {
  char folder[] = "/tmp/fairlead-paced-XXXXXX";
  folder_ = ::mkdtemp(folder);
  socket_ = folder_ + "/node";
  node_ = std::make_unique<shim::testing::Node>(socket_);
}

PacedGpu::~PacedGpu() {
  node_.reset();
  std::filesystem::remove_all(folder_);
}

std::unique_ptr<Client> PacedGpu::start(const std::vector<std::string>& words, std::size_t processes,
                                        const std::map<std::string, std::string>& extra) {
  const int shared = ::memfd_create("progress", MFD_CLOEXEC);
  int input[2];
  if (shared < 0 || ::ftruncate(shared, sizeof(Progress)) != 0 || ::pipe2(input, O_CLOEXEC) != 0) std::abort();
  void* const memory = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
  if (memory == MAP_FAILED) std::abort();
  std::map<std::string, std::string> environment = {
      {"LD_PRELOAD", paths_.shim}, {"FAIRLEAD_SHIM_SOCKET", socket_}, {"FAIRLEAD_SHIM_TOKEN", "1"}};
  if (!paths_.softgpu_libraries.empty()) {
    environment.insert({{"LD_LIBRARY_PATH", paths_.softgpu_libraries},
                        {"SOFTGPU_HOME", machine()},
                        {"SOFTGPU_MODE", "charge"},
                        {"SOFTGPU_MEMORY_SCALE", "64"}});
  }
  for (const auto& [name, value] : environment_) environment[name] = value;
  for (const auto& [name, value] : extra) environment[name] = value;
  std::vector<std::string> command = {paths_.program};
  command.insert(command.end(), words.begin(), words.end());
  const pid_t pid = ::fork();
  if (pid == 0) become(command, environment, input[0], shared);
  ::close(input[0]);
  ::close(shared);
  auto client = std::make_unique<Client>(pid, input[1], static_cast<Progress*>(memory));
  while (client->connections.size() < processes) {
    std::shared_ptr<shim::testing::Connection> connection = node_->accept(wire::MemoryBackend::kNone, 60'000);
    if (connection == nullptr) return nullptr;
    client->connections.push_back(std::move(connection));
  }
  return client;
}

Status PacedGpu::pace(PaceDriver& driver, InstanceId id, const PacedShare& share, Client& client) {
  if (Status set = driver.set_share(id, share); !set) return set;
  ProcessPage number = id.value() * 100;
  for (const auto& connection : client.connections) {
    const PaceDriver::Page page(connection, &connection->page());  // mapped for as long as the driver has it
    if (Status added = driver.add_page(id, number++, page); !added) return added;
  }
  return {};
}

}  // namespace fairlead::pacing_tests
