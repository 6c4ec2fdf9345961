#include "decide/cluster/home_choice.h"

namespace fairlead {
namespace {

bool takes_calls(const HomeView& view, NodeId node) {
  return view.members.takes_calls(node) && view.loads.knows(node);
}

}  // namespace

std::string_view home_reason_name(HomeReason reason) {
  switch (reason) {
    case HomeReason::kHome: return "home";
    case HomeReason::kWarm: return "warm";
    case HomeReason::kOverflow: return "overflow";
    case HomeReason::kLeastLoaded: return "least loaded";
    case HomeReason::kLastResort: return "last resort";
  }
  return "";
}

std::optional<HomeChoice> choose_home(const HomeView& view, std::uint64_t function, const std::string& gpu_class,
                                      const ChoiceSettings& settings) {
  auto order = view.orders.walk(function, gpu_class);
  if (!order) return std::nullopt;
  std::optional<HomeChoice> first, least, last_resort;
  double least_load = 0;
  std::size_t within = 0;
  for (std::size_t place = 0;; ++place) {
    const std::optional<NodeId> node = order->at(place);
    if (!node) break;
    if (!takes_calls(view, *node)) {
      if (!last_resort && view.members.may_live(*node)) last_resort = HomeChoice{*node, HomeReason::kLastResort, place};
      continue;
    }
    if (!view.loads.is_within_bound(*node)) {
      const double load = view.loads.load_per_token(*node);
      if (!least || load < least_load) {
        least = HomeChoice{*node, HomeReason::kLeastLoaded, place};
        least_load = load;
      }
      continue;
    }
    const HomeReason reason = place == 0 ? HomeReason::kHome : HomeReason::kOverflow;
    if (view.loads.is_warm(*node, function)) return HomeChoice{*node, first ? HomeReason::kWarm : reason, place};
    if (!first) first = HomeChoice{*node, reason, place};
    if (++within >= settings.warm_search) break;
  }
  if (first) return first;
  return least ? least : last_resort;
}

}  // namespace fairlead
