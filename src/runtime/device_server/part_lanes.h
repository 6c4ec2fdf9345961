// The lanes of calls that are kept to a part of the device's SMs: each is on a green context (gpu/sm_groups.h) of the groups that the fewest others
// are on when the call begins (decide/residency/least_used_groups.h).
//
// Example: a call of 40 % of a V100 begins while one of 60 % is on groups 0 to 23 of 40. It gets the lane of groups 24 to 39, which is made if there is
// none, and kept.
//
// Green contexts are made while a call waits, so lanes are used again where none that could be made is better: whichever groups it has, nobody else
// may be on them, or no more than on the best there are. Calls of one width find theirs once as many as run together are made; of calls of many
// widths some have one made.
//
// Threads: the device server's loop.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "gpu/sm_groups.h"
#include "runtime/device_server/kernel_session.h"

namespace fairlead {

class PartLanes {
 public:
  static constexpr std::size_t kMost = 32;  // beyond, one goes that was idle longest; those that calls are on stay

  explicit PartLanes(CudaContext& cuda) : cuda_(cuda) {}
  ~PartLanes();
  PartLanes(const PartLanes&) = delete;
  PartLanes& operator=(const PartLanes&) = delete;

  // kUnavailable: the driver has none. It is asked once.
  Result<const SmGroups*> groups();

  // Each lane, and those to come, have so many events. kUnavailable, or the driver's words.
  Status need_events(std::uint32_t count);
  // Of so many groups. Where the driver makes no more contexts, on groups that others may be on. Errors: the driver's words, where there is no
  // idle lane of that size either. REQUIRES: 0 < count <= groups()'s count.
  Result<LaunchLane*> take(std::uint32_t count);
  bool give_back(const LaunchLane& lane);  // false: it is none of these

 private:
  struct Lane {
    SmGroups::Set groups;
    CUgreenCtx context = nullptr;
    std::unique_ptr<LaunchLane> streams;
    bool is_taken = false;
  };
  using Lanes = std::list<Lane>;

  std::vector<std::uint32_t> users() const;
  Lanes::iterator idle_of(std::uint32_t count, const std::vector<std::uint32_t>& users, std::uint64_t most_users);
  Status make(const SmGroups::Set& groups);
  Result<LaunchLane::Streams> make_streams(CUgreenCtx context) const;
  bool end_oldest(std::uint32_t spared);
  void end(const Lane& lane);

  CudaContext& cuda_;
  std::uint32_t events_ = 0;                                             // of each
  Result<std::unique_ptr<SmGroups>> sms_ = std::unique_ptr<SmGroups>();  // null: not asked for
  Lanes lanes_;                                                          // that was taken last at the end
  bool is_said_ = false;
};

}  // namespace fairlead
