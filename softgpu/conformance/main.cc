// softgpu-conformance: checks a CUDA driver by what it computes. See docs/reference/conformance.md.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>

#include "softgpu/conformance/child.h"
#include "softgpu/conformance/report.h"
#include "softgpu/conformance/runner.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

constexpr int kFailed = 1, kUsage = 2, kNoDevice = 3;
constexpr int kParentFd = 3;  // of a process that another one started

constexpr char kHelp[] = R"(softgpu-conformance [OPTION...]: checks the machine's CUDA driver by what it computes.
  --filter TEXT    only cases whose name, field.case, contains TEXT
  --list           names only
  --json FILE      the results for tools
  --library FILE   the driver to check (libcuda.so.1)
  --expected-failures FILE   cases, a name per line, that must not pass; all others must
  --isolate        each case in a process of its own, which a crash or a hang does not outlive
Exit status: 0 all passed, 1 some did not, 3 no driver or no device.
)";

struct Options {
  std::string filter, json, expected_failures, alone, role;
  std::string library = "libcuda.so.1";
  bool list = false, isolate = false;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (bool* flag = name == "--list"      ? &options.list
                     : name == "--isolate" ? &options.isolate
                                           : nullptr;
        flag != nullptr) {
      *flag = true;
      continue;
    }
    std::string* value = name == "--filter"              ? &options.filter
                         : name == "--json"              ? &options.json
                         : name == "--expected-failures" ? &options.expected_failures
                         : name == "--library"           ? &options.library
                         : name == "--alone"             ? &options.alone
                         : name == "--role"              ? &options.role
                                                         : nullptr;
    if (value == nullptr || ++i == argc) return false;
    *value = argv[i];
  }
  return true;
}

struct Named {
  std::string name;
  const Case* one;
};

std::vector<Named> select(const std::string& filter) {
  std::vector<Named> selected;
  for (const Field& field : all_fields()) {
    for (const Case& one : field.cases) {
      std::string name = std::string(field.name) + "." + one.name;
      if (name.find(filter) != std::string::npos) selected.push_back({std::move(name), &one});
    }
  }
  return selected;
}

// Lines of a file without comments (#).
std::set<std::string> read_names(const std::string& path) {
  std::set<std::string> names;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    line = line.substr(0, line.find('#'));
    line.erase(line.find_last_not_of(" \t") + 1);
    if (!line.empty()) names.insert(line);
  }
  return names;
}

bool open_device(const std::string& library, DeviceFacts& facts, std::string& error) {
  if (!open_driver(library.c_str(), error)) return false;
  CUdevice device = 0;
  CUresult result = driver().cuInit(0);
  if (result == CUDA_SUCCESS) result = driver().cuDeviceGet(&device, 0);
  if (result != CUDA_SUCCESS) {
    error = name_of(result);
    return false;
  }
  char name[128] = "";
  int major = 0, minor = 0;
  driver().cuDeviceGetName(name, sizeof name, device);
  driver().cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  driver().cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  driver().cuDriverGetVersion(&facts.driver_version);
  driver().cuDeviceGetCount(&facts.devices);
  facts.name = name;
  facts.capability = 10 * major + minor;
  return true;
}

// Whether the result is what the run asks for.
bool as_expected(const Entry& entry, const std::set<std::string>& failures) {
  const Status status = entry.result.status;
  return status == Status::kSkipped || (status == Status::kPass) != (failures.count(entry.name) != 0);
}

int run_all(const Options& options, const DeviceFacts& device) {
  std::printf("%s, sm_%d, driver %d.%d\n", device.name.c_str(), device.capability, device.driver_version / 1000,
              device.driver_version % 1000 / 10);
  const std::set<std::string> failures = read_names(options.expected_failures);
  Runner runner(options.library, options.isolate);
  std::vector<Entry> entries;
  int counts[4] = {}, unexpected = 0;
  for (const Named& named : select(options.filter)) {
    entries.push_back({named.name, named.one->bits, runner.run(named.name, *named.one)});
    const Entry& entry = entries.back();
    ++counts[static_cast<int>(entry.result.status)];
    const bool expected = as_expected(entry, failures);
    unexpected += !expected;
    std::printf("%s\n", table_line(entry).c_str());
    if (!expected && entry.result.status == Status::kPass) {
      std::printf("         works now: strike it off %s\n", options.expected_failures.c_str());
    }
    std::fflush(stdout);
  }
  std::printf("%d passed, %d failed, %d refused, %d skipped\n", counts[0], counts[1], counts[2], counts[3]);
  if (!options.json.empty() && !write_json(options.json, device, entries)) {
    std::fprintf(stderr, "conformance: cannot write %s\n", options.json.c_str());
    return kUsage;
  }
  return unexpected == 0 && !entries.empty() ? 0 : kFailed;
}

int run(const Options& options) {
  if (options.list) {
    for (const Named& named : select(options.filter)) std::printf("%s\n", named.name.c_str());
    return 0;
  }
  DeviceFacts device;
  std::string error;
  if (!open_device(options.library, device, error)) {
    std::fprintf(stderr, "conformance: no CUDA device: %s\n", error.c_str());
    return kNoDevice;
  }
  if (!options.role.empty()) return run_as_child(options.role, kParentFd);
  if (options.alone.empty()) return run_all(options, device);
  for (const Named& named : select(options.alone)) {
    if (named.name == options.alone) Runner::run_for_parent(*named.one, kParentFd);
  }
  return 0;
}

}  // namespace
}  // namespace softgpu::conformance

int main(int argc, char** argv) {
  softgpu::conformance::Options options;
  if (!softgpu::conformance::parse(argc, argv, options)) {
    std::fputs(softgpu::conformance::kHelp, stderr);
    return softgpu::conformance::kUsage;
  }
  return softgpu::conformance::run(options);
}
