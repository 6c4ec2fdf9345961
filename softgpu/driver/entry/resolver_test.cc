// cuGetProcAddress: every name, version and stream mode against a plain reading of the table, and the look-ups that CUDA
// 13's runtime library makes.
#include <dlfcn.h>

#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "softgpu/driver/driver_testing.h"

namespace {

struct Line {
  std::string suffix;
  int since = 0;
  std::string symbol;
};

std::vector<std::vector<std::string>> read_table(const char* path) {
  std::ifstream table(path);
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::vector<std::string> row;
    for (std::string field; std::getline(fields, field, '\t');) row.push_back(field);
    rows.push_back(row);
  }
  return rows;
}

// The table by base name.
std::map<std::string, std::vector<Line>> symbols() {
  std::map<std::string, std::vector<Line>> by_name;
  for (const auto& row : read_table(SOFTGPU_SYMBOLS)) by_name[row[0]].push_back({row[1], std::stoi(row[2]), row[3]});
  return by_name;
}

// What must be answered: the newest form that is old enough, a per-thread one when asked for and there is any.
std::string expected_symbol(const std::vector<Line>& lines, int version, bool per_thread) {
  for (const bool with_suffix : {true, false}) {
    if (with_suffix && !per_thread) continue;
    const Line* best = nullptr;
    for (const Line& line : lines) {
      if (line.suffix.empty() == with_suffix || line.since > version) continue;
      if (best == nullptr || line.since > best->since) best = &line;
    }
    if (best != nullptr) return best->symbol;
  }
  return "";
}

void expect_answer(const std::string& name, const std::vector<Line>& lines, int version, cuuint64_t flags) {
  const std::string wanted = expected_symbol(lines, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  void* function = &function;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult result = cuGetProcAddress_v2(name.c_str(), &function, version, flags, &status);
  void* const address = wanted.empty() ? nullptr : ::dlsym(RTLD_DEFAULT, wanted.c_str());
  ASSERT_EQ(wanted.empty(), address == nullptr) << wanted;
  ASSERT_EQ(function, address) << name << " " << version << " " << flags << ": not " << wanted;
  ASSERT_EQ(result, wanted.empty() ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS) << name;
  ASSERT_EQ(status, !wanted.empty() ? CU_GET_PROC_ADDRESS_SUCCESS
                    : lines.empty() ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
                                    : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT)
      << name << " " << version;
}

TEST(Resolver, EveryNameVersionAndStreamModeAnswersTheRightSymbol) {
  const auto table = symbols();
  std::set<int> versions = {0, 1000, std::numeric_limits<int>::max()};
  std::size_t lines = 0;
  for (const auto& [name, forms] : table) {
    lines += forms.size();
    for (const Line& line : forms) versions.insert({line.since - 1, line.since, line.since + 1});
  }
  EXPECT_EQ(lines, 636U);
  for (const auto& [name, forms] : table) {
    for (const int version : versions) {
      for (const cuuint64_t flags : {0, 1, 2}) ASSERT_NO_FATAL_FAILURE(expect_answer(name, forms, version, flags));
    }
  }
}

TEST(Resolver, EverySymbolIsReachedAndNoTwoAreTheSame) {
  std::set<void*> addresses;
  for (const auto& [name, forms] : symbols()) {
    for (const Line& line : forms) {
      void* function = nullptr;
      const auto flags =
          line.suffix.empty() ? CU_GET_PROC_ADDRESS_LEGACY_STREAM : CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
      EXPECT_EQ(cuGetProcAddress_v2(name.c_str(), &function, line.since, flags, nullptr), CUDA_SUCCESS) << name;
      EXPECT_EQ(function, ::dlsym(RTLD_DEFAULT, line.symbol.c_str())) << line.symbol;
      addresses.insert(function);
    }
  }
  EXPECT_EQ(addresses.size(), 636U);
}

// testdata/runtime_lookups.tsv is what libcudart 13.0 asks, in its order, when a program makes its first call.
TEST(Resolver, TheRuntimesLookUpsAreAnswered) {
  const auto table = symbols();
  std::set<std::string> names;
  std::map<int, int> by_flags;
  int missed = 0;
  for (const auto& row : read_table(SOFTGPU_RUNTIME_LOOKUPS)) {
    const auto found = table.find(row[0]);
    const auto flags = static_cast<cuuint64_t>(std::stoi(row[2]));
    const std::vector<Line>& lines = found != table.end() ? found->second : std::vector<Line>();
    ASSERT_NO_FATAL_FAILURE(expect_answer(row[0], lines, std::stoi(row[1]), flags));
    void* function = nullptr;  // as the runtime asks: without a status
    missed += cuGetProcAddress_v2(row[0].c_str(), &function, std::stoi(row[1]), flags, nullptr) != CUDA_SUCCESS ? 1 : 0;
    names.insert(row[0]);
    ++by_flags[std::stoi(row[2])];
  }
  EXPECT_EQ(names.size(), 346U);
  EXPECT_EQ(by_flags[0], 366);
  EXPECT_EQ(by_flags[2], 74);
  EXPECT_EQ(missed, 31);  // the empty name, OpenGL, EGL, VDPAU, cuProfilerInitialize: the runtime does without
}

TEST(Resolver, TheFirstVersionTakesFourArguments) {
  void* function = nullptr;
  ASSERT_EQ(cuGetProcAddress_v2("cuGetProcAddress", &function, 11030, 0, nullptr), CUDA_SUCCESS);
  const auto resolve = reinterpret_cast<CUresult (*)(const char*, void**, int, cuuint64_t)>(function);
  EXPECT_EQ(resolve("cuMemAlloc", &function, 3020, 0), CUDA_SUCCESS);
  EXPECT_EQ(function, ::dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
  EXPECT_EQ(resolve("", &function, 0, 0), CUDA_ERROR_NOT_FOUND);
}

TEST(Resolver, PicksTheNewestVersionThatIsOldEnough) {
  void* function = nullptr;
  const auto resolves_to = [&](const char* base, int version, int flags, const char* symbol) {
    const CUresult result = cuGetProcAddress_v2(base, &function, version, static_cast<cuuint64_t>(flags), nullptr);
    EXPECT_EQ(result, CUDA_SUCCESS) << base;
    EXPECT_EQ(function, ::dlsym(RTLD_DEFAULT, symbol)) << base << " " << version;
  };
  resolves_to("cuMemAlloc", 13000, 0, "cuMemAlloc_v2");
  resolves_to("cuMemAlloc", 2000, 0, "cuMemAlloc");
  resolves_to("cuCtxCreate", 12040, 0, "cuCtxCreate_v3");
  resolves_to("cuCtxSynchronize", 13000, 0, "cuCtxSynchronize_v2");
  resolves_to("cuCtxSynchronize", 12080, 0, "cuCtxSynchronize");
  resolves_to("cuGetProcAddress", 11030, 0, "cuGetProcAddress");
  resolves_to("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
  resolves_to("cuMemcpyHtoD", 7000, 2, "cuMemcpyHtoD_v2_ptds");
  resolves_to("cuMemcpyHtoD", 3020, 2, "cuMemcpyHtoD_v2");
  resolves_to("cuInit", 13000, 2, "cuInit");
}

TEST(Resolver, RefusesWhatDoesNotExist) {
  void* function = &function;
  CUdriverProcAddressQueryResult status;
  EXPECT_EQ(cuGetProcAddress_v2("", &function, 0, 0, nullptr), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(cuGetProcAddress_v2("cuNonsense", &function, 13000, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(cuGetProcAddress_v2("cuGetProcAddress", &function, 11000, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_EQ(cuGetProcAddress_v2("cuInit", &function, 13000, 3, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGetProcAddress_v2(nullptr, &function, 13000, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  const void* table = &function;
  const CUuuid id = {};
  EXPECT_EQ(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
}

TEST(Resolver, WhatIsNotImplementedSaysSo) {
  void* function = nullptr;
  ASSERT_EQ(cuGetProcAddress_v2("cuCoredumpGetAttribute", &function, 13000, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(reinterpret_cast<CUresult (*)(int, void*)>(function)(0, nullptr), CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace
