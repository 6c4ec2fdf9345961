// Which tensors of a pipeline go through rings in host memory, and which process has to have which ring mapped. A tensor stays on the device
// where kernel tasks of one stage hand it to one another; all others leave it.
//
// Example: a, b kernel tasks of one stage, c a program of the same, d of another stage; a -> b -> c -> d. a's output stays; b's and c's are
// in rings. The stage's server maps b's ring, c's process those of b and c, d's server that of c.
//
// Pure. Threads: any.
#pragma once

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "decide/pipeline/dag.h"

namespace fairlead {

class TensorPlaces {
 public:
  using Tensor = std::pair<std::size_t, std::size_t>;  // component and port of its outputs
  using Tensors = std::set<Tensor>;

  // REQUIRES: check_dag(dag) finds nothing; `stages` have each component once. `dag` outlives this.
  TensorPlaces(const Dag& dag, const std::vector<std::vector<std::size_t>>& stages);

  std::size_t stage_of(std::size_t component) const { return stage_of_[component]; }
  // REQUIRES: `reader` reads of `writer`.
  bool leaves_device(std::size_t writer, std::size_t reader) const;
  // Of all stages.
  const Tensors& in_rings() const { return in_rings_; }
  // That a process of these components, all of one stage, writes or reads.
  Tensors rings_of(const std::vector<std::size_t>& components) const;

 private:
  bool decides(const Tensor& tensor) const;
  void find();

  const Dag& dag_;
  std::vector<std::size_t> stage_of_;  // by component
  Tensors in_rings_;
};

}  // namespace fairlead
