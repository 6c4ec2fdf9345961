// The device memory cap of an instance, shared by its processes: each may hold what it holds now and an equal part of
// what is left. Shares always add up to the cap, so that the instance cannot pass it; they are made again whenever a
// process comes or goes, and after every answer.
//
//   cap 100, held {A: 10, B: 50}  ->  40 are left  ->  shares {A: 30, B: 70}
//
// Pure. Threads: free function.
#pragma once

#include <cstdint>
#include <vector>

namespace fairlead {

// Bytes, in the order of `held`; a share is at least 1, because 0 means "no cap" in the shared page.
std::vector<std::uint64_t> cap_shares(std::uint64_t cap, const std::vector<std::uint64_t>& held);

}  // namespace fairlead
