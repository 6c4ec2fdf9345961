// The modules that a device server has loaded, by a key that names their code, such as the digest of the image: what two
// sessions share is loaded once, and stays for those to come as far as module_order.h says.
//
// Threads: the device server's loop.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gpu/context.h"
#include "runtime/device_server/module_order.h"

namespace fairlead {

class KernelCache {
  struct Module {
    CUmodule handle = nullptr;
    bool is_binary = false;
  };

 public:
  // A module stays as long as somebody holds one of it. Must not outlive the cache.
  class Lease {
   public:
    Lease() = default;  // of none
    Lease(KernelCache& cache, std::string key, const Module& module)
        : cache_(&cache), key_(std::move(key)), module_(module) {}
    Lease(Lease&& other) noexcept { *this = std::move(other); }
    Lease& operator=(Lease&& other) noexcept {
      std::swap(cache_, other.cache_);
      std::swap(key_, other.key_);
      std::swap(module_, other.module_);
      return *this;
    }
    ~Lease() {
      if (cache_ != nullptr) cache_->order_.leave(key_);
    }
    CUmodule module() const { return module_.handle; }
    bool is_binary() const { return module_.is_binary; }  // as gpu/kernel_image.h has it
    explicit operator bool() const { return cache_ != nullptr; }

   private:
    KernelCache* cache_ = nullptr;
    std::string key_;
    Module module_;
  };

  KernelCache(CudaContext& cuda, ModuleLimits limits) : cuda_(cuda), order_(limits) {}
  Lease find(const std::string& key);                                    // of none: it is not loaded
  Result<Lease> load(const std::string& key, const std::string& image);  // REQUIRES: it is not

  // Unloads what may not stay and says what it was. The driver waits for the device at that: so while the device is busy
  // they may become twice as many first.
  std::vector<std::string> trim(bool device_is_busy);
  std::vector<std::string> unload_unused();  // all that nobody holds
  std::size_t size() const { return modules_.size(); }

 private:
  std::vector<std::string> unload(std::vector<std::string> keys);

  CudaContext& cuda_;
  ModuleOrder order_;
  std::map<std::string, Module> modules_;
};

}  // namespace fairlead
