// The ways through a function's body: statements that run one after the other are one node, and edges lead to the nodes
// that may follow. A name that is jumped to is a node, too, without statements: a label, or a table of branches, whose edges
// lead to its targets. So there are no more edges than words in the text, however many branches use one table.
//
// What cannot be resolved has more edges rather than fewer: a label of two scopes is both. Pure. Threads: none of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/fence/dominators.h"
#include "gpu/fence/ptx.h"

namespace fairlead::fence {

struct FlowGraph {
  struct Block {
    std::size_t begin = 0, end = 0;  // of the function's items
  };
  std::vector<Block> blocks;  // by node; node 0 has no statement and nothing leads to it
  Edges next;                 // by node
};

FlowGraph flow_of(const Function& function);

}  // namespace fairlead::fence
