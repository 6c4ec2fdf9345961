#include "decide/cluster/home_orders.h"

#include <algorithm>
#include <unordered_map>

#include "base/check.h"

namespace fairlead {
namespace {

std::uint64_t mixed(std::uint64_t z) {  // of SplitMix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t hashed(std::string_view text, std::uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

constexpr std::uint64_t kFnvOffset = 0xcbf29ce484222325u;
constexpr std::size_t kFirstKept = 16;
constexpr std::size_t kMostOrders = 100'000;  // that are kept; names are a client's to choose

}  // namespace

std::uint64_t node_key(std::string_view name) {
  return mixed(hashed(name, kFnvOffset));
}

std::uint64_t tenant_key(std::string_view tenant) {
  return node_key(tenant);
}

std::uint64_t function_key(std::string_view tenant, std::string_view function) {
  // The length first: tenant "a", function "bc" is not tenant "ab", function "c".
  return mixed(hashed(function, mixed(hashed(tenant, kFnvOffset) + tenant.size())));
}

std::uint64_t home_score(std::uint64_t function, std::uint64_t node) {
  return mixed(function ^ (node * 0x9e3779b97f4a7c15u));
}

struct HomeClass {
  struct Node {
    NodeId id;
    std::uint64_t key;
  };
  std::vector<Node> nodes;
  std::unordered_map<std::uint64_t, std::vector<NodeId>> kept;

  const std::vector<NodeId>& order(std::uint64_t function, std::size_t least) {
    if (kept.size() > kMostOrders) kept.clear();
    std::vector<NodeId>& known = kept[function];
    least = std::min(least, nodes.size());
    if (known.size() >= least) return known;
    struct Scored {
      std::uint64_t score, key;
      NodeId id;
    };
    std::vector<Scored> scored;
    scored.reserve(nodes.size());
    for (const Node& node : nodes) scored.push_back({home_score(function, node.key), node.key, node.id});
    // Four times a length at a time, so that a walk through all nodes sorts them few times.
    const std::size_t count = std::min(nodes.size(), std::max({kFirstKept, least, 4 * known.size()}));
    const auto end = scored.begin() + static_cast<std::ptrdiff_t>(count);
    std::partial_sort(scored.begin(), end, scored.end(), [](const Scored& a, const Scored& b) {
      return a.score != b.score ? a.score > b.score : a.key > b.key;
    });
    known.clear();
    for (auto one = scored.begin(); one != end; ++one) known.push_back(one->id);
    return known;
  }
};

HomeOrders::HomeOrders() = default;
HomeOrders::HomeOrders(HomeOrders&&) noexcept = default;
HomeOrders::~HomeOrders() = default;

void HomeOrders::add(NodeId node, std::uint64_t key, const std::string& gpu_class) {
  FL_CHECK(node, "node 0 is none");
  auto found = std::find_if(classes_.begin(), classes_.end(), [&](const auto& one) { return one.first == gpu_class; });
  if (found == classes_.end()) found = classes_.insert(classes_.end(), {gpu_class, std::make_unique<HomeClass>()});
  found->second->nodes.push_back({node, key});
  found->second->kept.clear();
}

void HomeOrders::remove(NodeId node) {
  for (auto& [name, of] : classes_) {
    if (std::erase_if(of->nodes, [&](const HomeClass::Node& one) { return one.id == node; }) > 0) of->kept.clear();
  }
}

std::size_t HomeOrders::size(const std::string& gpu_class) const {
  for (const auto& [name, of] : classes_) {
    if (name == gpu_class) return of->nodes.size();
  }
  return 0;
}

std::optional<HomeOrders::Walk> HomeOrders::walk(std::uint64_t function, const std::string& gpu_class) {
  for (auto& [name, of] : classes_) {
    if (name == gpu_class && !of->nodes.empty()) return Walk(*of, function);
  }
  return std::nullopt;
}

std::optional<NodeId> HomeOrders::Walk::at(std::size_t place) {
  if (place >= class_->nodes.size()) return std::nullopt;
  if (kept_ == nullptr || place >= kept_->size()) kept_ = &class_->order(function_, place + 1);
  return (*kept_)[place];
}

std::optional<NodeId> HomeOrders::at(std::uint64_t function, const std::string& gpu_class, std::size_t place) {
  auto found = walk(function, gpu_class);
  return found ? found->at(place) : std::nullopt;
}

}  // namespace fairlead
