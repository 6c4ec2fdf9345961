// Where a function is at home: rendezvous order of the nodes of a GPU class.
//
// Idea. Each (function, node) has a score, a hash of both; the nodes in falling order of their scores are the function's homes, first choice
// first. Every gateway that knows the same nodes finds the same order and asks nobody. A node that comes or goes changes no order among
// the others: of N nodes, one that goes takes 1/N of the functions with it, and these spread over all that are left.
//
// Example. Nodes A, B, C; f's scores are 7, 9, 4, so its order is B A C. B goes: A C. D comes with a score of 8: D A C, and before B went
// B D A C.
//
// The first sixteen of an order are kept, more only of functions that needed more: 10,000 functions on 1,250 nodes take 320 kB, not 25 MB.
//
// Source: Thaler and Ravishankar, "A name-based mapping scheme for rendezvous", 1998. Pure. Not thread-safe: at() fills what is kept.
// Determinism: of names alone, in whatever order nodes were added.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "decide/cluster/node_id.h"

namespace fairlead {

std::uint64_t home_score(std::uint64_t function, std::uint64_t node);

struct HomeClass;

class HomeOrders {
 public:
  HomeOrders();
  HomeOrders(HomeOrders&&) noexcept;
  ~HomeOrders();

  // `key`: node_key() of its name. Which GPUs it has is its class; functions are at home within one. REQUIRES: an id that is not in it.
  void add(NodeId node, std::uint64_t key, const std::string& gpu_class);
  void remove(NodeId node);  // no effect when it is not there

  std::size_t size(const std::string& gpu_class) const;
  // The place-th home of the function, from 0; nothing: there are no more nodes.
  std::optional<NodeId> at(std::uint64_t function, const std::string& gpu_class, std::size_t place);

  // The same where an order is walked: the class is looked up once. Valid until nodes change.
  class Walk {
   public:
    std::optional<NodeId> at(std::size_t place);

   private:
    friend class HomeOrders;
    Walk(HomeClass& of, std::uint64_t function) : class_(&of), function_(function) {}
    HomeClass* class_;
    std::uint64_t function_;
    const std::vector<NodeId>* kept_ = nullptr;
  };
  std::optional<Walk> walk(std::uint64_t function, const std::string& gpu_class);  // nothing: no node has the class

 private:
  std::vector<std::pair<std::string, std::unique_ptr<HomeClass>>> classes_;  // few
};

}  // namespace fairlead
