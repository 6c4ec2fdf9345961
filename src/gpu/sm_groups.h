// The SMs of a device in equal groups, and green contexts: what is launched into a stream of one is on the SMs of its groups alone. Modules, memory
// and events are those of the device's primary context, whichever stream they are used with (CUDA 12.4 and later).
//
// Example: an H100 of 132 SMs has 16 groups of 8; 4 SMs are in none. Half of it is 8 groups, 49 % of its SMs.
//
// Groups are kept apart from each other, not from what is launched into ordinary streams, which may be on any SM.
//
// Threads: one at a time; that of the CudaContext, which outlives it.
#pragma once

#include <bitset>
#include <memory>
#include <span>
#include <vector>

#include "abi/cuda.h"
#include "gpu/context.h"

namespace fairlead {

class SmGroups {
 public:
  static constexpr std::uint32_t kMost = 64;
  using Set = std::bitset<kMost>;

  // kUnavailable: the driver is older than CUDA 12.5, or refuses to divide this device.
  static Result<std::unique_ptr<SmGroups>> create(const CudaContext& cuda);

  std::uint32_t count() const { return static_cast<std::uint32_t>(groups_.size()); }
  // So many as fit into this part of the device, at least one.
  std::uint32_t within(int percent) const;
  // What part of the device they are, rounded up; how many SMs.
  int percent_of(std::uint32_t groups) const;
  std::uint64_t sms_of(std::uint32_t groups) const { return sms_of_each_ * groups; }

  // A context of these groups, until destroy(). REQUIRES: the set is not empty, and has no others than there are.
  Result<CUgreenCtx> make(const Set& groups) const;
  Result<CUstream> make_stream(CUgreenCtx context) const;
  // REQUIRES: no kernel runs on its streams, which are all that make_stream() gave and are left of them.
  void destroy(CUgreenCtx context, std::span<const CUstream> streams) const;
  void destroy_streams(std::span<const CUstream> streams) const;

 private:
  struct Calls {
    decltype(cuDeviceGetDevResource)* resource = nullptr;
    decltype(cuDevSmResourceSplitByCount)* split = nullptr;
    decltype(cuDevResourceGenerateDesc)* describe = nullptr;
    decltype(cuGreenCtxCreate)* create = nullptr;
    decltype(cuGreenCtxDestroy)* destroy = nullptr;
    decltype(cuGreenCtxStreamCreate)* make_stream = nullptr;
    decltype(cuStreamDestroy_v2)* destroy_stream = nullptr;
  };
  explicit SmGroups(const CudaContext& cuda) : cuda_(cuda) {}
  Status bind();
  Status divide();

  const CudaContext& cuda_;
  Calls calls_;
  std::uint64_t sms_ = 0, sms_of_each_ = 0;  // of the device, and of a group
  std::vector<CUdevResource> groups_;        // of one split, which contexts of several need
};

}  // namespace fairlead
