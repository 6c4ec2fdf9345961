#include "shim/resolve/resolver.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "abi/nvml.h"
#include "shim/driver.h"
#include "shim/gate.h"
#include "shim/hooks/hook.h"
#include "shim/resolve/hook_table.h"

extern "C" __attribute__((visibility("hidden"))) void* fairlead_dlsym(void* handle, const char* symbol);

namespace fairlead::shim {
namespace {

constexpr std::string_view kNames[] = {
#define SYMBOL(name, symbol, decision) #name,
#include "shim_symbols.inc"
#undef SYMBOL
};
constexpr std::string_view kSymbolNames[] = {
#define SYMBOL(name, symbol, decision) #symbol,
#include "shim_symbols.inc"
#undef SYMBOL
};

// The table's rows in the order of their texts, for a binary search.
using Order = std::array<std::uint16_t, kSymbols>;
constexpr Order sorted(const std::string_view* texts) {
  Order order = {};
  for (std::uint16_t i = 0; i < kSymbols; ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::uint16_t a, std::uint16_t b) { return texts[a] < texts[b]; });
  return order;
}
constexpr Order kByName = sorted(kNames);
constexpr Order kBySymbol = sorted(kSymbolNames);

struct Rows {
  const std::uint16_t* begin_;
  const std::uint16_t* end_;
  const std::uint16_t* begin() const { return begin_; }
  const std::uint16_t* end() const { return end_; }
};

Rows rows_of(const Order& order, const std::string_view* texts, std::string_view text) {
  const auto* const first = std::lower_bound(order.data(), order.data() + kSymbols, text,
                                             [&](std::uint16_t row, std::string_view t) { return texts[row] < t; });
  const auto* last = first;
  while (last != order.data() + kSymbols && texts[*last] == text) ++last;
  return {first, last};
}

// Functions that a later driver may have beside those we know.
bool allocates_or_works(std::string_view name) {
  for (const std::string_view word : {"Alloc", "Launch", "Memcpy", "Memset", "MemCreate", "Prefetch", "ArrayCreate"}) {
    if (name.find(word) != std::string_view::npos) return true;
  }
  return false;
}

void* not_recognised(std::string_view name, void* function) {
  if (allocates_or_works(name)) page().unhooked_functions.fetch_add(1, std::memory_order_relaxed);
  return function;
}

bool driver_is_loaded() {
  static constinit std::atomic<bool> loaded{false};
  if (loaded.load(std::memory_order_relaxed)) return true;
  void* const handle = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) ::dlerror();  // what the program asks for next is not our failure
  loaded.store(handle != nullptr, std::memory_order_relaxed);
  return handle != nullptr;
}

constexpr char kNvmlLibrary[] = "libnvidia-ml.so.1";
constexpr const char* kNvmlSymbols[] = {"nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2"};
void* const kNvmlHooks[] = {reinterpret_cast<void*>(nvmlDeviceGetMemoryInfo),
                            reinterpret_cast<void*>(nvmlDeviceGetMemoryInfo_v2)};

}  // namespace

void* real_nvml(NvmlSymbol symbol) {
  static constinit std::atomic<void*> known[2];
  const auto index = static_cast<std::size_t>(symbol);
  void* function = known[index].load(std::memory_order_acquire);
  if (function == nullptr) {
    function = real_symbol(kNvmlLibrary, kNvmlSymbols[index]);
    known[index].store(function, std::memory_order_release);
  }
  return function;
}

void* hook_for_name(const char* name, void* function) {
  const Rows rows = rows_of(kByName, kNames, name);
  for (const std::uint16_t row : rows) {
    if (kHookTable[row].hook == function) return function;
  }
  for (const std::uint16_t row : rows) {
    if (real_function(static_cast<Symbol>(row)) != function) continue;
    return kHookTable[row].hook != nullptr ? kHookTable[row].hook : function;
  }
  return not_recognised(name, function);
}

namespace {

void* driver_hook(const char* symbol, void* function) {
  for (const std::uint16_t row : rows_of(kBySymbol, kSymbolNames, symbol)) {
    void* const hook = kHookTable[row].hook;
    if (hook == nullptr || hook == function || !driver_is_loaded()) return function;
    return real_function(static_cast<Symbol>(row)) == function ? hook : not_recognised(symbol, function);
  }
  return function;
}

void* nvml_hook(const char* symbol, void* function) {
  for (std::size_t i = 0; i < std::size(kNvmlHooks); ++i) {
    if (std::strcmp(kNvmlSymbols[i], symbol) == 0 && real_nvml(static_cast<NvmlSymbol>(i)) == function) {
      return kNvmlHooks[i];
    }
  }
  return function;
}

bool starts_with(const char* text, const char* start) {
  return std::strncmp(text, start, std::strlen(start)) == 0;
}

}  // namespace

void* hook_for_symbol(const char* symbol, void* function) {
  if (starts_with(symbol, "cu")) return driver_hook(symbol, function);
  if (starts_with(symbol, "nvml")) return nvml_hook(symbol, function);
  // A program that looks dlsym up would go around ours.
  if (std::strcmp(symbol, "dlsym") == 0 && function == real_dlsym()) return reinterpret_cast<void*>(fairlead_dlsym);
  return function;
}

}  // namespace fairlead::shim

using namespace fairlead::shim;

// dlsym.S comes here for every handle but RTLD_DEFAULT and RTLD_NEXT, which it leaves to libc with the caller's own return
// address.
extern "C" __attribute__((visibility("hidden"))) void* fairlead_dlsym_in(void* handle, const char* symbol) {
  using Dlsym = void* (*)(void*, const char*);
  void* const function = reinterpret_cast<Dlsym>(real_dlsym())(handle, symbol);
  return function != nullptr && symbol != nullptr ? hook_for_symbol(symbol, function) : function;
}
extern "C" __attribute__((visibility("hidden"))) void* fairlead_real_dlsym() {
  return real_dlsym();
}

// count_stubs.S comes here before it goes on to the driver's function.
extern "C" __attribute__((visibility("hidden"))) void* fairlead_count_call(std::uint32_t row) {
  if (!bypassed()) {
    enter_process();
    count_passed_through();
  }
  return real_function(static_cast<Symbol>(row));
}

HOOK cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags) {
  const CUresult result = FAIRLEAD_REAL(cuGetProcAddress)(name, function, version, flags);
  if (result == CUDA_SUCCESS && *function != nullptr) *function = hook_for_name(name, *function);
  return result;
}

// `status` may be null.
HOOK cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                         CUdriverProcAddressQueryResult* status) {
  const CUresult result = FAIRLEAD_REAL(cuGetProcAddress_v2)(name, function, version, flags, status);
  if (result == CUDA_SUCCESS && *function != nullptr) *function = hook_for_name(name, *function);
  return result;
}
