// The modules of a device server's sessions: those that are loaded (kernel_cache.h), and, where several tenants are served, what
// each was rewritten to (fenced_modules.h). A module's key says whose code it is: with several tenants the same code of two of them
// is two modules.
//
// What takes memory is tried once more without the modules that nobody uses.
//
// Threads: the device server's loop.
#pragma once

#include <string>

#include "runtime/device_server/device_objects.h"
#include "runtime/device_server/fenced_modules.h"
#include "runtime/device_server/kernel_cache.h"

namespace fairlead {

class TaskModules {
 public:
  using RangeIndex = DeviceObjects::RangeIndex;

  TaskModules(CudaContext& cuda, DeviceObjects& objects, AddressSpaces spaces, ModuleLimits limits)
      : spaces_(spaces), loaded_(cuda, limits), fenced_(cuda, objects) {}

  bool are_fenced() const { return spaces_ == AddressSpaces::kPerTenant; }
  std::string key(RangeIndex range, const std::string& sha256) const;
  KernelCache::Lease find(const std::string& key) { return loaded_.find(key); }  // of none: it is not loaded
  std::size_t size() const { return loaded_.size(); }

  // All of it in this process: rewritten where modules are, then loaded. REQUIRES: it is not loaded.
  Result<KernelCache::Lease> load_image(RangeIndex range, const std::string& key, std::string image);
  // The driver's part only: what accept() gave, or an image that is not rewritten. REQUIRES: it is not loaded.
  Result<KernelCache::Lease> load(const std::string& key, const std::string& code);

  // The steps of rewriting in another process, as FencedModules has them.
  fence::FenceOptions options_of(RangeIndex range) const { return fenced_.options_of(range); }
  Result<CUdeviceptr> place(RangeIndex range, const std::string& key, std::uint64_t variable_bytes);
  Result<std::string> accept(const std::string& key, FencedCode code) { return fenced_.accept(key, std::move(code)); }
  const std::vector<KernelSignature>& signatures(const std::string& key) const { return fenced_.signatures(key); }

  // What was rewritten and is not loaded is not known any more: the room of its variables is for others.
  void forget_unless_loaded(const std::string& key);
  void trim(bool device_is_busy) { forget(loaded_.trim(device_is_busy)); }

 private:
  template <typename Attempt>
  auto with_room(Attempt attempt);
  void forget(const std::vector<std::string>& keys);

  const AddressSpaces spaces_;
  KernelCache loaded_;
  FencedModules fenced_;
};

}  // namespace fairlead
