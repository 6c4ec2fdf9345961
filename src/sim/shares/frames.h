// Frames of a device as a picture: which client had its place open when, and when its kernels ran.
//
// Example: two clients of 50 % and 25 %, 10 ms:   a  |====|  kernel kernel |====| kernel
//                                                  b       |==| kernel          |==|
#pragma once

#include <string>
#include <vector>

#include "sim/shares/simulation.h"

namespace fairlead::sim {

// Two rows a client: its places, and below them its kernels.
std::string frames_svg(const std::vector<ShareClient>& clients, const SharesResult& result);
// The same in the trace event format, which ui.perfetto.dev opens: a process of places and one of kernels, a thread a client.
std::string frames_trace(const std::vector<ShareClient>& clients, const SharesResult& result);

}  // namespace fairlead::sim
