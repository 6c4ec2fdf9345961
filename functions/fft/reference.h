// Host reference: recursive Cooley-Tukey in double precision.
#pragma once

#include <complex>
#include <vector>

namespace fairlead::sample::fft {

// The signal the kernel generates for transform `index` of a batch.
std::vector<std::complex<double>> signal(unsigned seed, int n, int index);

// The discrete Fourier transform. REQUIRES: the size is a power of two.
std::vector<std::complex<double>> transform(const std::vector<std::complex<double>>& input);

}  // namespace fairlead::sample::fft
