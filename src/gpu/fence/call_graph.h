// Who calls whom among a module's functions, and how much of a thread's local memory the deepest chain of calls takes.
//
//   entry (16) -> a (32) -> b (0) -> b      depth 48: b calls itself, but takes nothing
//
// In time linear in functions and calls. Pure. Threads: none of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace fairlead::fence {

class CallGraph {
 public:
  // A function whose frame has so many bytes; returns its number, from 0.
  std::size_t add(std::uint64_t frame_bytes);
  // REQUIRES: both numbers are of functions that were added.
  void add_call(std::size_t caller, std::size_t callee);

  struct Depth {
    std::uint64_t bytes = 0;               // of the deepest chain of calls
    std::optional<std::size_t> unbounded;  // a function with a frame that may call itself; `bytes` says nothing then
  };
  Depth depth() const;

 private:
  struct Node {
    std::uint64_t bytes = 0;
    std::vector<std::size_t> callees;
  };
  class Search;

  std::vector<Node> nodes_;
};

}  // namespace fairlead::fence
