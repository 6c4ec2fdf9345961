// Sets of instances to try schedulers on.
//
//   grid         widths 6 12 24 50 60 80 100, requests 20 40 60 80 100: the profiler's points
//   small        widths 6 12 24, requests 20 40 60
//   paper        the paper's kinds: (12, 40), (24, 40), (50, 60)
//   continuous   widths 5 to 60, requests 5 to 60: any whole number
//
// A random set grows until 30 instances in a row did not fit (pacing/admission.h), so it fills the device as well as chance can.
//
// Pure. Determinism: of the seed.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "sim/shares/client_model.h"

namespace fairlead::sim {

std::vector<std::string_view> share_mixes();

// One of the mix. REQUIRES: the mix is known; another name is `continuous`.
PacedShare random_share(std::string_view mix, Rng& rng);

// All always busy. Each has kernels of its own: uniform between a tenth of a longest one and that, the longest between an eighth of
// `most_kernel` and `most_kernel`. kInvalidArgument lists the mixes.
Result<std::vector<ShareClient>> random_set(std::string_view mix, double reserve_percent, Duration most_kernel,
                                            std::uint64_t seed);

// FaST-GShare section 5.3: four ResNet (12, 40), two RNNT (24, 40), two BERT (50, 60), Poisson at `load` of the request, objectives 69, 500
// and 400 ms. The paper does not say what a request takes; see the source.
std::vector<ShareClient> papers_eight(double load, Duration most_kernel);

}  // namespace fairlead::sim
