// Which groups of a device's SMs a call gets: those that the fewest calls are on, and of those the first.
//
//   groups   0  1  2  3  4  5  6  7
//   calls    1  1  1  0  0  0  1  1     three are wanted: 3 4 5, beside all that run
//
// A pacer lets calls in whose groups are no more than there are, so as a rule there are enough that nobody is on; which ones differs from call to
// call. A session that kept its groups would meet another one on them while others are idle: of 10 groups A has 0 to 3, B 4 to 7, and C, of four
// as well, would have 8, 9 and two of A's, whoever runs. Where nobody paces them calls may outnumber the groups, and share them evenly.
//
// The same calls in the same order get the same groups, so few different sets are in use (green contexts are made once and kept).
//
// Pure. Threads: free functions, any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace fairlead {

// In order. calls[g]: on group g now. REQUIRES: wanted <= calls.size().
std::vector<std::uint32_t> least_used_groups(const std::vector<std::uint32_t>& calls, std::uint32_t wanted);

}  // namespace fairlead
