// Which node gets a call.
//
// Idea. The function's homes in order; the first whose backlog is within the bound gets the call. Of the next `warm_search` within the bound, one
// that has an instance already is preferred to one that would have to start it: a start costs seconds, the bound keeps the wait below that.
// A function that is called so much that its first home is at the bound flows over to the next homes, and only as far as it must.
//
//   members says who takes calls ─┐
//   HomeOrders: B A C D           ├──> B is over the bound, A within and cold, C within and warm: C
//   PeerLoads says who is within ─┘
//
// Where all that take calls are at the bound, the least loaded of them gets the call; where nobody takes calls, a suspect does: while a node may
// live, no call is without a home.
//
// Source: Mirrokni, Thorup, Zadimoghaddam, "Consistent hashing with bounded loads", 2018. The bound
// relative to the mean backlog and the warm search are ours. Pure. Cost: O(homes that are passed over).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "decide/cluster/home_orders.h"
#include "decide/cluster/members.h"
#include "decide/cluster/peer_loads.h"

namespace fairlead {

enum class HomeReason {
  kHome,         // its first home
  kWarm,         // a later one that has an instance, where an earlier one has none
  kOverflow,     // those before are over the bound, or take no calls
  kLeastLoaded,  // all are over the bound
  kLastResort,   // nobody takes calls; this one is suspect
};
std::string_view home_reason_name(HomeReason reason);  // "home", "warm", "overflow", "least loaded", "last resort"

struct HomeChoice {
  NodeId node;
  HomeReason reason = HomeReason::kHome;
  std::size_t place = 0;  // in the function's order
};

struct HomeView {
  HomeOrders& orders;
  const Members& members;
  const PeerLoads& loads;
};

struct ChoiceSettings {
  std::size_t warm_search = 16;  // homes within the bound that are looked at for a warm one; 1: none but the first
};

// Nothing: the class has no node that may live.
std::optional<HomeChoice> choose_home(const HomeView& view, std::uint64_t function, const std::string& gpu_class,
                                      const ChoiceSettings& settings);

}  // namespace fairlead
