// Physics, finance, random numbers, fractals.
#include <algorithm>

#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

void nbody(Test& test) {
  const int n = 150;
  const auto bodies = uniform(4 * n, 1);
  struct alignas(16) Body {
    float x, y, z, mass;
  };
  std::vector<Body> in(n), want(n);
  std::memcpy(in.data(), bodies.data(), n * sizeof(Body));
  const auto out = test.zeros<Body>(n);
  test.launch("nbody", {3, 64}, n, test.upload(in), out);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      const float dx = in[j].x - in[i].x, dy = in[j].y - in[i].y, dz = in[j].z - in[i].z;
      const float square = std::fma(dx, dx, std::fma(dy, dy, std::fma(dz, dz, 0.01f)));
      const float inverse = 1.0f / std::sqrt(square);
      const float pull = in[j].mass * (inverse * inverse * inverse);
      want[i] = {std::fma(pull, dx, want[i].x), std::fma(pull, dy, want[i].y), std::fma(pull, dz, want[i].z), 0};
    }
  }
  test.equal("accelerations", test.download(out), want);
}

float pair_energy(const float* a, const float* b) {
  const float dx = a[0] - b[0], dy = a[1] - b[1], dz = a[2] - b[2];
  const float square = dx * dx + dy * dy + dz * dz;
  if (square > 1.0f) return 0;
  const float inverse = 0.04f / std::max(square, 0.01f), sixth = inverse * inverse * inverse;
  return 4.0f * sixth * (sixth - 1.0f);
}

void cell_forces(Test& test) {
  const int side = 3, per_cell = 20, n = side * side * side * per_cell;
  auto positions = uniform(3 * n, 2, 0, 1);
  for (int i = 0; i < n; ++i) {
    const int cell = i / per_cell, x = cell % side, y = cell / side % side, z = cell / (side * side);
    positions[3 * i] += static_cast<float>(x);
    positions[3 * i + 1] += static_cast<float>(y);
    positions[3 * i + 2] += static_cast<float>(z);
  }
  const auto energies = test.zeros<float>(n);
  test.launch("cell_forces", {side * side * side, per_cell}, side, per_cell, test.upload(positions), energies);
  std::vector<float> want(n);
  for (int i = 0; i < n; ++i) {
    const int cell = i / per_cell, x = cell % side, y = cell / side % side, z = cell / (side * side);
    for (int neighbour = 0; neighbour < 27; ++neighbour) {
      const int nx = x + neighbour % 3 - 1, ny = y + neighbour / 3 % 3 - 1, nz = z + neighbour / 9 - 1;
      if (std::min({nx, ny, nz}) < 0 || std::max({nx, ny, nz}) >= side) continue;
      for (int j = 0; j < per_cell; ++j) {
        const int other = ((nz * side + ny) * side + nx) * per_cell + j;
        if (other != i) want[i] += pair_energy(&positions[3 * i], &positions[3 * other]);
      }
    }
  }
  test.equal("energies", test.download(energies), want);
}

void monte_carlo_pi(Test& test) {
  const int threads = 256, samples = 20;
  const unsigned long long seed = 42;
  const auto inside = test.zeros<unsigned long long>(1);
  test.launch("monte_carlo_pi", {2, threads / 2}, samples, seed, inside);
  unsigned long long want = 0;
  for (unsigned thread = 0; thread < threads; ++thread) {
    for (unsigned i = 0; i < samples; i += 2) {
      const Philox random = philox(thread * 20ull + i, seed);
      for (int pair = 0; pair < 2; ++pair) {
        const float x = unit_float(random.word[2 * pair]), y = unit_float(random.word[2 * pair + 1]);
        want += std::fma(x, x, y * y) < 1.0f;
      }
    }
  }
  const Philox known = philox(0, 0);
  test.expect(known.word[0] == 0x6627e8d5 && known.word[3] == 0x9b00dbd8, "the generator's known answer");
  test.equal("inside", test.download(inside), {want});
}

void congruential(Test& test) {
  const int threads = 96, draws = 15;
  const unsigned long long seed = 0x123456789abcdefull;
  const auto out = test.zeros<unsigned>(threads * draws);
  test.launch("congruential", {3, 32}, draws, seed, out);
  std::vector<unsigned> want;
  unsigned long long state = seed;
  for (int i = 0; i < threads * draws; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    want.push_back(static_cast<unsigned>(state >> 32));
  }
  test.equal("draws", test.download(out), want);
}

void black_scholes(Test& test) {
  const int n = 1000;
  const float rate = 0.02f, volatility = 0.3f;
  const auto prices = uniform(n, 3, 5, 30), strikes = uniform(n, 4, 1, 100), years = uniform(n, 5, 0.25f, 10);
  const auto calls = test.zeros<float>(n), puts = test.zeros<float>(n);
  test.launch("black_scholes", {8, 128}, n, rate, volatility, test.upload(prices), test.upload(strikes),
              test.upload(years), calls, puts);
  const auto normal = [](double d) { return 0.5 * std::erfc(-d / std::sqrt(2.0)); };
  std::vector<float> want_calls, want_puts;
  for (int i = 0; i < n; ++i) {
    const double s = prices[i], k = strikes[i], t = years[i], v = volatility;
    const double d1 = (std::log(s / k) + (rate + 0.5 * v * v) * t) / (v * std::sqrt(t)), d2 = d1 - v * std::sqrt(t);
    const double discounted = k * std::exp(-rate * t);
    want_calls.push_back(static_cast<float>(s * normal(d1) - discounted * normal(d2)));
    want_puts.push_back(static_cast<float>(discounted * normal(-d2) - s * normal(-d1)));
  }
  test.near("calls", test.download(calls), want_calls, 2e-5);
  test.near("puts", test.download(puts), want_puts, 2e-5);
}

void mandelbrot(Test& test) {
  const int width = 64, height = 40, limit = 100;
  const double x0 = -2.1, y0 = -1.2, step = 0.05;
  const auto out = test.zeros<int>(width * height);
  test.launch("mandelbrot", {{2, 5}, {32, 8}}, width, height, limit, x0, y0, step, out);
  std::vector<int> want;
  for (int at = 0; at < width * height; ++at) {
    const double cx = std::fma(at % width, step, x0), cy = std::fma(at / width, step, y0);
    double x = 0, y = 0;
    int i = 0;
    for (; i < limit && std::fma(x, x, y * y) <= 4; ++i) {
      const double next = std::fma(x, x, -(y * y)) + cx;
      y = std::fma(2 * x, y, cy);
      x = next;
    }
    want.push_back(i);
  }
  test.equal("rounds", test.download(out), want);
}

void particle_filter(Test& test) {
  const int n = 256;
  const float measured = 0.3f, offset = 0.5f;
  const auto particles = uniform(n, 6);
  const auto weights = test.zeros<float>(n), resampled = test.zeros<float>(n);
  test.launch("particle_filter", {1, n}, measured, offset, test.upload(particles), weights, resampled);
  std::vector<double> likelihoods;
  double total = 0;
  for (const float particle : particles) {
    likelihoods.push_back(std::exp(-8.0 * (particle - measured) * (particle - measured)));
    total += likelihoods.back();
  }
  std::vector<float> want;
  for (const double likelihood : likelihoods) want.push_back(static_cast<float>(likelihood / total));
  test.near("weights", test.download(weights), want, 1e-5);
  // Systematic resampling: a particle of weight w is drawn n w times, rounded down or up.
  const auto drawn = test.download(resampled);
  for (int i = 0; i < n && test.ok(); ++i) {
    const auto copies = static_cast<double>(std::count(drawn.begin(), drawn.end(), particles[i]));
    test.expect(std::fabs(copies - n * likelihoods[i] / total) < 1.001, "a particle is drawn as its weight says");
  }
}

struct Flow {
  float density, x_momentum, y_momentum, energy;
};

float pressure(const Flow& u) {
  return 0.4f * (u.energy - 0.5f * (u.x_momentum * u.x_momentum + u.y_momentum * u.y_momentum) / u.density);
}

Flow flux(const Flow& a, const Flow& b) {
  const float pa = pressure(a), pb = pressure(b), va = a.x_momentum / a.density, vb = b.x_momentum / b.density;
  const float fastest =
      std::max(std::fabs(va) + std::sqrt(1.4f * pa / a.density), std::fabs(vb) + std::sqrt(1.4f * pb / b.density));
  return {0.5f * (a.x_momentum + b.x_momentum - fastest * (b.density - a.density)),
          0.5f * (a.x_momentum * va + pa + b.x_momentum * vb + pb - fastest * (b.x_momentum - a.x_momentum)),
          0.5f * (a.y_momentum * va + b.y_momentum * vb - fastest * (b.y_momentum - a.y_momentum)),
          0.5f * ((a.energy + pa) * va + (b.energy + pb) * vb - fastest * (b.energy - a.energy))};
}

Flow turned(const Flow& u) {
  return {u.density, u.y_momentum, u.x_momentum, u.energy};
}

std::vector<Flow> euler_step(int n, float ratio, const std::vector<Flow>& from) {
  std::vector<Flow> to(from.size());
  for (int y = 0; y < n; ++y) {
    for (int x = 0; x < n; ++x) {
      const Flow& here = from[y * n + x];
      const Flow west = flux(from[y * n + (x + n - 1) % n], here), east = flux(here, from[y * n + (x + 1) % n]);
      const Flow south = turned(flux(turned(from[(y + n - 1) % n * n + x]), turned(here)));
      const Flow north = turned(flux(turned(here), turned(from[(y + 1) % n * n + x])));
      const auto next = [&](float Flow::*part) {
        return here.*part - ratio * (east.*part - west.*part + (north.*part - south.*part));
      };
      to[y * n + x] = {next(&Flow::density), next(&Flow::x_momentum), next(&Flow::y_momentum), next(&Flow::energy)};
    }
  }
  return to;
}

void euler(Test& test) {
  const int n = 24;
  const float ratio = 0.1f;
  std::vector<Flow> flow(n * n);
  for (int i = 0; i < n * n; ++i) {
    const bool inside = std::abs(i % n - 12) < 5 && std::abs(i / n - 12) < 5;
    flow[i] = {inside ? 1.0f : 0.125f, 0.05f * unit_float(random_word(7, i)), 0, inside ? 2.5f : 0.25f};
  }
  auto a = test.upload(flow), b = test.zeros<Flow>(n * n);
  for (int step = 0; step < 4; ++step) {
    test.launch("euler_step", {{2, 3}, {16, 8}}, n, ratio, a, b);
    std::swap(a, b);
    flow = euler_step(n, ratio, flow);
  }
  test.equal("flow", test.download(a), flow);
}

void ising(Test& test) {
  const int n = 32;
  const auto start = words(n * n, 8, 2);
  std::vector<signed char> spins(n * n);
  for (int i = 0; i < n * n; ++i) spins[i] = start[i] != 0 ? 1 : -1;
  const std::vector<unsigned> thresholds{~0u, ~0u, ~0u, 727626413u, 123273216u};  // exp(-2 gain / 2.25) of 2^32
  const auto device = test.upload(spins);
  const auto device_thresholds = test.upload(thresholds);
  for (int sweep = 0; sweep < 12; ++sweep) {
    const int colour = sweep % 2;
    test.launch("ising", {{1, n}, n / 2}, n, colour, sweep, device_thresholds, device);
    std::vector<signed char> next = spins;
    for (int i = 0; i < n * n; ++i) {
      const int x = i % n, y = i / n;
      if (((x + y) & 1) != colour) continue;
      const int around = spins[y * n + (x + 1) % n] + spins[y * n + (x + n - 1) % n] + spins[(y + 1) % n * n + x] +
                         spins[(y + n - 1) % n * n + x];
      if (philox(static_cast<unsigned>(i), static_cast<unsigned>(sweep)).word[0] <=
          thresholds[around * spins[i] / 2 + 2]) {
        next[i] = static_cast<signed char>(-spins[i]);
      }
    }
    spins = next;
  }
  test.equal("spins", test.download(device), spins);
}

std::vector<float> boltzmann_step(int n, float relaxation, const std::vector<float>& from) {
  const int vx[] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, vy[] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
  std::vector<float> to(from.size());
  for (int at = 0; at < n * n; ++at) {
    const int x = at % n, y = at / n;
    float f[9], density = 0, ux = 0, uy = 0;
    for (int i = 0; i < 9; ++i) {
      f[i] = from[i * n * n + (y - vy[i] + n) % n * n + (x - vx[i] + n) % n];
      density += f[i];
      ux = std::fma(static_cast<float>(vx[i]), f[i], ux);
      uy = std::fma(static_cast<float>(vy[i]), f[i], uy);
    }
    ux /= density;
    uy /= density;
    const float still = 1.0f - 1.5f * (ux * ux + uy * uy);
    for (int i = 0; i < 9; ++i) {
      const float weight = i == 0 ? 4.0f / 9 : i < 5 ? 1.0f / 9 : 1.0f / 36;
      const float along = static_cast<float>(vx[i]) * ux + static_cast<float>(vy[i]) * uy;
      const float equilibrium = weight * density * (still + 3.0f * along + 4.5f * along * along);
      to[i * n * n + at] = f[i] + relaxation * (equilibrium - f[i]);
    }
  }
  return to;
}

void lattice_boltzmann(Test& test) {
  const int n = 20;
  const float relaxation = 0.8f;
  auto flow = uniform(9 * n * n, 9, 0.05f, 0.2f);
  auto a = test.upload(flow), b = test.zeros<float>(flow.size());
  for (int step = 0; step < 5; ++step) {
    test.launch("lattice_boltzmann", {{1, n}, 32}, n, relaxation, a, b);
    std::swap(a, b);
    flow = boltzmann_step(n, relaxation, flow);
  }
  test.equal("flow", test.download(a), flow);
}

constexpr Case kCases[] = {
    {"nbody", "simulation", nbody},
    {"cell_forces", "simulation", cell_forces},
    {"monte_carlo_pi", "simulation", monte_carlo_pi},
    {"congruential", "simulation", congruential},
    {"black_scholes", "simulation", black_scholes, Bits::kFree},
    {"mandelbrot", "simulation", mandelbrot},
    {"particle_filter", "simulation", particle_filter, Bits::kFree},
    {"euler", "simulation", euler},
    {"ising", "simulation", ising},
    {"lattice_boltzmann", "simulation", lattice_boltzmann},
};

}  // namespace

const Field kSimulation{"simulation", kCases};

}  // namespace softgpu::conformance
