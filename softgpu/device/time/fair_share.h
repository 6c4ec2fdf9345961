// Fair division: SMs among the kernels of MPS clients, a link's bandwidth among copies.
//
// Max-min fairness, by filling up: who asks for less than an equal part of what is left gets all of it, the others share
// the rest equally. Nobody can get more without somebody who has less losing.
//
// Example: 80 SMs, clients with shares of 40, 40 and 20. They ask for 100, so they contend: an equal part is 26.7; the
// one that asks for 20 gets 20, the others 30 each. If one of them runs a kernel of 4 blocks it gets 4, the other 40.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace softgpu {

// What each gets of `total`, at most what it demands. All of `total` is given out if the demands reach it. Ties break
// by position.
std::vector<std::uint64_t> fair_shares(std::uint64_t total, std::span<const std::uint64_t> demands);

// A client with kernels on the device.
struct SmDemand {
  std::uint64_t share = 0;    // the most SMs the client may use
  std::uint64_t wanted = 0;   // the most its kernels can use: one for each block
  bool below_normal = false;  // served from what the others leave
};

// The SMs each client computes on, in thousandths of an SM: contending clients share SMs in time.
std::vector<std::uint64_t> grant_milli_sms(std::uint64_t sm_count, std::span<const SmDemand> demands);

}  // namespace softgpu
