// FaST-GShare's figures 8 to 11 on the modelled device: what sections 5.2 to 5.4 set up, with functions of the shapes of function_shapes.h.
//
//   profile     (figure 8) one instance in a closed loop, every width and quota of the paper's grid: requests/s
//   disturbed   (figure 9) ResNet (request 50, limit 80) alone and beside RNNT (50, 50), both as wide as the device, and 24 % each
//   pods        (figure 10) 1 to 8 instances of a function and 16 users: "racing" (whole device, in turns), 12 % and 24 % of the SMs
//   packed      (figure 11) the paper's eight, nobody above its quota, on four devices in turns and on one device side by side
//
// What is put in and so is no result: how long a request of each function takes on 12 % and on 100 % of the SMs, and where it saturates
// (function_shapes.h). What comes out: what quotas, neighbours, queues and turns make of that.
//
// Assumptions. The part of a request that SMs do not shorten is time on the host, for which the device is free: one RNNT then keeps 41 % of the
// device's time busy (the paper: below 40 %). "Racing" is the scheduler `one`, turns of 2 ms between processes. An instance serves one request
// at a time. Kernels ask for half of the bandwidth that their SMs could (client_model.h). The SMs that kernels have blocks for stand for "SM
// occupancy", which counts warps; only ratios compare.
//
// One row for each seed: the number "seed" says which. Pure. Determinism: of the options.
#pragma once

#include <vector>

#include "sim/shares/experiments.h"

namespace fairlead::sim {

std::vector<SharesRow> profile_figure(const SharesOptions& options);
std::vector<SharesRow> disturbed_figure(const SharesOptions& options);
std::vector<SharesRow> pods_figure(const SharesOptions& options);
std::vector<SharesRow> packed_figure(const SharesOptions& options);

}  // namespace fairlead::sim
