// Identifiers that cannot be mixed up: FlowId(3) is not InstanceId(3). Ordered, hashable, never reused within one node's
// life. 0 is "none".
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace fairlead {

template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::uint64_t value) : value_(value) {}

  constexpr std::uint64_t value() const { return value_; }
  constexpr explicit operator bool() const { return value_ != 0; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  std::uint64_t value_ = 0;
};

using FlowId = Id<struct FlowTag>;              // one flow per function
using InvocationId = Id<struct InvocationTag>;  // one per accepted invocation
using InstanceId = Id<struct InstanceTag>;      // one per started sandbox
using TenantId = Id<struct TenantTag>;          // who pays; 0: everybody who names none
using GpuId = Id<struct GpuTag>;                // a GPU or a MIG slice; 1-based: GpuId(1) is the first device

}  // namespace fairlead

template <typename Tag>
struct std::hash<fairlead::Id<Tag>> {
  std::size_t operator()(fairlead::Id<Tag> id) const noexcept { return std::hash<std::uint64_t>()(id.value()); }
};
