#include "shim/settings.h"

#include <sys/un.h>

#include <cstdio>
#include <cstring>

namespace fairlead::shim {
namespace {

constexpr char kCapVariable[] = "FAIRLEAD_SHIM_MEMORY_CAP";
constexpr char kBackendVariable[] = "FAIRLEAD_SHIM_BACKEND";
constexpr char kUvmVariable[] = "FAIRLEAD_SHIM_UVM";
constexpr std::size_t kMostPathBytes = sizeof(sockaddr_un::sun_path) - 1;

struct Reader {
  const char* (*get)(const char* name);
  void (*complain)(const char* line);

  const char* text(const char* name) const {
    const char* const value = get(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
  }

  void refuse(const char* name, const char* value, const char* allowed) const {
    char line[512];
    std::snprintf(line, sizeof line, "fairlead-shim: %s is \"%.100s\", must be %s; ignored\n", name, value, allowed);
    complain(line);
  }

  void number(const char* name, std::uint64_t* result) const {
    const char* const value = text(name);
    if (value == nullptr) return;
    std::uint64_t sum = 0;
    for (const char* digit = value; *digit != '\0'; ++digit) {
      const auto next = static_cast<std::uint64_t>(*digit - '0');
      if (*digit < '0' || *digit > '9' || sum > (UINT64_MAX - next) / 10) {
        return refuse(name, value, "a whole number from 0 to 18446744073709551615");
      }
      sum = sum * 10 + next;
    }
    *result = sum;
  }

  // The index of the value in `words`, which ends with null.
  void word(const char* name, const char* const* words, const char* allowed, std::uint32_t* result) const {
    const char* const value = text(name);
    if (value == nullptr) return;
    for (std::uint32_t i = 0; words[i] != nullptr; ++i) {
      if (std::strcmp(value, words[i]) == 0) {
        *result = i;
        return;
      }
    }
    refuse(name, value, allowed);
  }
};

constexpr const char* kBackends[] = {"none", "vmm", "uvm", nullptr};
constexpr const char* kUvmModes[] = {"plain", "advise", "prefetch", "prefetch-swap", nullptr};

}  // namespace

Settings read_settings(const char* (*get)(const char* name), void (*complain)(const char* line)) {
  const Reader reader = {get, complain};
  Settings settings;
  settings.socket = reader.text(wire::kShimSocketVariable);
  if (settings.socket != nullptr && std::strlen(settings.socket) > kMostPathBytes) {
    reader.refuse(wire::kShimSocketVariable, settings.socket, "a path of at most 107 bytes");
    settings.socket = nullptr;
  }
  reader.number(wire::kShimTokenVariable, &settings.token);
  reader.number(kCapVariable, &settings.memory_cap);
  auto backend = static_cast<std::uint32_t>(settings.backend);
  auto uvm = static_cast<std::uint32_t>(settings.uvm);
  reader.word(kBackendVariable, kBackends, "none, vmm or uvm", &backend);
  reader.word(kUvmVariable, kUvmModes, "plain, advise, prefetch or prefetch-swap", &uvm);
  settings.backend = static_cast<wire::MemoryBackend>(backend);
  settings.uvm = static_cast<wire::UvmMode>(uvm);
  return settings;
}

}  // namespace fairlead::shim
