// Stockham's radix-2 fast Fourier transform: log2(n) passes over the whole batch, each from one array to another, with
// the result in natural order and no bit reversal.
//
// In the pass with stride s, thread i = p * s + q combines x[i] and x[i + n/2] into y[2ps + q] and y[(2p+1)s + q]; the
// factor is exp(-2 pi i p s / n). n = 8: strides 1, 2, 4; in the first pass thread 1 writes y[2] and y[3].
#include "fairlead/device.h"
#include "fairlead/random.h"

struct Complex {
  float re, im;
};

extern "C" __global__ void generate_signal(Complex* signal, int count, unsigned seed) {
  const int i = global_thread();
  if (i < count) signal[i] = {random_uniform(seed, 2 * i), random_uniform(seed, 2 * i + 1)};
}

// One pass; blockIdx.y is the transform within the batch. `twiddles[k]` is exp(-2 pi i k twiddle_step / n).
extern "C" __global__ void fft_pass(const Complex* in, Complex* out, const Complex* twiddles, int twiddle_step, int n,
                                    int log2_stride) {
  const int i = global_thread();
  if (i >= n / 2) return;
  const int stride = 1 << log2_stride;
  const int q = i & (stride - 1);
  const int ps = i - q;  // p * stride
  const Complex* x = in + blockIdx.y * n;
  Complex* y = out + blockIdx.y * n + 2 * ps + q;

  const Complex a = x[i];
  const Complex b = x[i + n / 2];
  const Complex w = twiddles[ps * twiddle_step];
  const Complex d = {a.re - b.re, a.im - b.im};
  y[0] = {a.re + b.re, a.im + b.im};
  y[stride] = {d.re * w.re - d.im * w.im, d.re * w.im + d.im * w.re};
}
