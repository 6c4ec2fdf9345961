#include "sim/shares/share_sets.h"

#include <fmt/ranges.h>

#include "base/rng.h"
#include "decide/pacing/admission.h"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;

constexpr int kRefusals = 30;

template <std::size_t N>
int one_of(Rng& rng, const int (&values)[N]) {
  return values[rng.below(N)];
}

}  // namespace

PacedShare random_share(std::string_view mix, Rng& rng) {
  if (mix == "grid") {
    const int width = one_of(rng, {6, 12, 24, 50, 60, 80, 100});
    return {.width_percent = width, .request_percent = one_of(rng, {20, 40, 60, 80, 100})};
  }
  if (mix == "small") {
    const int width = one_of(rng, {6, 12, 24});
    return {.width_percent = width, .request_percent = one_of(rng, {20, 40, 60})};
  }
  if (mix == "paper") {
    const std::uint64_t kind = rng.below(3);
    return {.width_percent = kind == 0 ? 12 : kind == 1 ? 24 : 50, .request_percent = kind == 2 ? 60 : 40};
  }
  const int width = 5 + static_cast<int>(rng.below(56));
  return {.width_percent = width, .request_percent = 5 + static_cast<int>(rng.below(56))};
}

std::vector<std::string_view> share_mixes() {
  return {"grid", "small", "paper", "continuous"};
}

Result<std::vector<ShareClient>> random_set(std::string_view mix, double reserve_percent, Duration most_kernel,
                                            std::uint64_t seed) {
  const auto mixes = share_mixes();
  if (std::find(mixes.begin(), mixes.end(), mix) == mixes.end()) {
    return fail(Errc::kInvalidArgument, "mix is \"{}\", it must be one of {}", mix, fmt::join(mixes, ", "));
  }
  Rng rng(seed);
  Admission admission({.reserve_percent = reserve_percent});
  std::vector<PacedShare> shares;
  for (int refused = 0; refused < kRefusals;) {
    shares.push_back(random_share(mix, rng));
    if (admission.ask(shares).fits()) {
      refused = 0;
    } else {
      shares.pop_back();
      ++refused;
    }
  }
  std::vector<ShareClient> clients;
  for (const PacedShare& share : shares) {
    const auto longest = Duration(
        static_cast<Duration::rep>(static_cast<double>(most_kernel.count()) * (0.125 + 0.875 * rng.uniform())));
    clients.push_back({.name = fmt::format("{}x{}", share.width_percent, share.request_percent),
                       .share = share,
                       .least_kernel = longest / 10,
                       .most_kernel = longest,
                       .intensity = rng.uniform()});
  }
  return clients;
}

std::vector<ShareClient> papers_eight(double load, Duration most_kernel) {
  struct Kind {
    const char* name;
    int count, width, request;
    // GPU time of a request alone at that width: 1 / 71 s, 1 / 12.5 s and 1 / 28.9 s are what one pod alone took on the whole device in the
    // paper's time sharing (GNMT's for BERT, for which nothing is said); host time included, so an upper bound there.
    Duration takes;
    Duration objective;
  };
  const Kind kKinds[] = {
      {"resnet", 4, 12, 40, 14ms, 69ms}, {"rnnt", 2, 24, 40, 80ms, 500ms}, {"bert", 2, 50, 60, 35ms, 400ms}};
  std::vector<ShareClient> clients;
  for (const Kind& kind : kKinds) {
    for (int i = 0; i < kind.count; ++i) {
      clients.push_back({.name = kind.name,
                         .share = {.width_percent = kind.width, .request_percent = kind.request},
                         .least_kernel = most_kernel / 10,
                         .most_kernel = most_kernel,
                         .intensity = 0.5,
                         .work = Work::kPoisson,
                         .request = kind.takes,
                         .rate_per_s = load * kind.request / 100 / to_seconds(kind.takes),
                         .objective = kind.objective});
    }
  }
  return clients;
}

}  // namespace fairlead::sim
