// The library itself: initialisation, versions, errors.
#include <algorithm>
#include <cctype>
#include <fstream>
#include <string>
#include <vector>

#include "softgpu/nvml/nvml_state.h"

using softgpu::NvmlState;
using softgpu::write_text;

namespace {

constexpr char kDriverVersion[] = "580.00";
constexpr int kCudaVersion = 13000;

struct ResultName {
  nvmlReturn_t result;
  const char* name;
};

constexpr ResultName kResults[] = {
#define RESULT_NAME(name, value) {name, #name},
    NVML_ABI_RESULTS(RESULT_NAME)
#undef RESULT_NAME
};

// The name in words: NVML_ERROR_NOT_FOUND is "not found".
std::string words_of(std::string name) {
  name = name.substr(name.starts_with("NVML_ERROR_") ? 11 : 5);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return c == '_' ? ' ' : static_cast<char>(std::tolower(c)); });
  return name;
}

}  // namespace

nvmlReturn_t nvmlInit() {
  return NvmlState::retain();
}
nvmlReturn_t nvmlInit_v2() {
  return NvmlState::retain();
}
nvmlReturn_t nvmlInitWithFlags(unsigned) {
  return NvmlState::retain();
}
nvmlReturn_t nvmlShutdown() {
  return NvmlState::release();
}

const char* nvmlErrorString(nvmlReturn_t result) {
  static const auto* texts = [] {
    auto* made = new std::vector<std::string>;
    for (const ResultName& entry : kResults) made->push_back(words_of(entry.name));
    return made;
  }();
  for (std::size_t i = 0; i < texts->size(); ++i) {
    if (kResults[i].result == result) return (*texts)[i].c_str();
  }
  return "unknown error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned length) {
  if (NvmlState::get() == nullptr) return NVML_ERROR_UNINITIALIZED;
  return write_text(kDriverVersion, version, length);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return write_text(std::string("13.") + kDriverVersion, version, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* version) {
  if (version == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *version = kCudaVersion;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return nvmlSystemGetCudaDriverVersion(version);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  if (NvmlState::get() == nullptr) return NVML_ERROR_UNINITIALIZED;
  std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
  std::string command;
  if (!file || !std::getline(file, command, '\0')) return NVML_ERROR_NOT_FOUND;
  if (name == nullptr || length == 0) return NVML_ERROR_INVALID_ARGUMENT;
  return write_text(command.substr(0, length - 1), name, length);  // cut to size, as NVML does
}
