// Which nodes of a flow graph lie on every way to a node: `d` dominates `n` if no way from the first node to `n` avoids
// `d`. The nearest such node other than `n` is its immediate dominator, so that the dominators of `n` are a path of a tree.
//
// Lengauer and Tarjan's algorithm with path compression alone (TOPLAS 1, 1979): O(e log n). Pure. Threads: none of its own.
#pragma once

#include <cstdint>
#include <vector>

namespace fairlead::fence {

using Edges = std::vector<std::vector<std::uint32_t>>;  // by node: those that may follow it

constexpr std::uint32_t kUnreached = ~std::uint32_t{0};

// By node its immediate dominator; of node 0, where all ways begin, 0; of a node that none leads to, kUnreached.
std::vector<std::uint32_t> immediate_dominators(const Edges& next);

}  // namespace fairlead::fence
