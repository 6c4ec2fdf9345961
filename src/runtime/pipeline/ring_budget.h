// The host memory that rings of pipelines may take: of a node, and of each function. Rings are pinned and taken at once, so what is beyond a
// bound is refused before anything is allocated, and a machine is not filled by who deploys most.
//
// A hold is counted until it is dropped, and a ring drops its own when nobody reads the ring any more: also one of a pipeline that went,
// whose tensors the next one still reads.
//
// Example: 3 GiB for the node, 2 GiB for a function. "a" takes 2 GiB; "a" may take nothing more, "b" 1 GiB.
//
// Threads: not thread-safe; the loop's.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace fairlead {

class RingBudget {
 public:
  struct Bounds {
    Bytes node{std::int64_t{16} << 30};     // the setting pipeline-memory
    Bytes function{std::int64_t{2} << 30};  // pipeline-function-memory
  };
  explicit RingBudget(Bounds bounds) : state_(std::make_shared<State>()), bounds_(bounds) {}

  // kTooLarge: the function's own bound; kResourceExhausted: the node's. Both name the setting, its bound, what is held and what is
  // wanted. The hold may outlive this.
  Result<std::shared_ptr<void>> take(const std::string& function, Bytes bytes);

  Bytes held() const { return state_->all; }
  Bytes held(const std::string& function) const;
  const Bounds& bounds() const { return bounds_; }

 private:
  struct State {  // shared with the holds
    Bytes all{0};
    std::map<std::string, Bytes> by_function;
  };
  const std::shared_ptr<State> state_;
  const Bounds bounds_;
};

}  // namespace fairlead
