// Initialisation and errors.
#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "softgpu/driver/context/context.h"
#include "softgpu/driver/process.h"

namespace {

struct ResultName {
  CUresult result;
  const char* name;
};

constexpr ResultName kResults[] = {
#define RESULT_NAME(name, value) {name, #name},
    CUDA_ABI_RESULTS(RESULT_NAME)
#undef RESULT_NAME
};

const ResultName* find_result(CUresult result) {
  const auto* end = std::end(kResults);
  const auto* found = std::find_if(std::begin(kResults), end, [&](const auto& r) { return r.result == result; });
  return found == end ? nullptr : found;
}

// The name in words: CUDA_ERROR_ILLEGAL_ADDRESS is "illegal address".
std::string words_of(const char* name) {
  std::string_view text(name);
  for (const std::string_view prefix : {"CUDA_ERROR_", "CUDA_"}) {
    if (text.starts_with(prefix)) {
      text.remove_prefix(prefix.size());
      break;
    }
  }
  std::string words(text);
  std::transform(words.begin(), words.end(), words.begin(),
                 [](unsigned char c) { return c == '_' ? ' ' : static_cast<char>(std::tolower(c)); });
  return words;
}

const char* text_of(CUresult result) {
  static const auto* texts = [] {
    auto* made = new std::vector<std::string>;
    for (const ResultName& entry : kResults) made->push_back(words_of(entry.name));
    return made;
  }();
  return (*texts)[static_cast<std::size_t>(find_result(result) - kResults)].c_str();
}

// A kernel that runs while the process exits is ended, so that the device is free for others at once.
__attribute__((destructor)) void at_exit() {
  if (softgpu::Process::get() != nullptr) softgpu::cancel_all_contexts();
}

}  // namespace

CUresult cuInit(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return softgpu::Process::initialise();
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ResultName* found = find_result(error);
  *name = found != nullptr ? found->name : nullptr;
  return found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = find_result(error) != nullptr ? text_of(error) : nullptr;
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The tables are undocumented; no program that relies on them can run here.
CUresult cuGetExportTable(const void** table, const CUuuid* id) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuProfilerStart() {
  return softgpu::Process::get() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}
CUresult cuProfilerStop() {
  return softgpu::Process::get() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}
