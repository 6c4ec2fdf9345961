#include "decide/pipeline/mig_geometry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace fairlead {
namespace {

struct Row {
  const char* type;
  int compute, memory_slices;
  std::vector<int> starts;
};

// The seven compute slices of A100, H100 and H200.
const std::vector<Row>& seven_slices() {
  static const std::vector<Row> rows = {{"1g", 1, 1, {0, 1, 2, 3, 4, 5, 6}},
                                        {"1g2x", 1, 2, {0, 2, 4, 6}},
                                        {"2g", 2, 2, {0, 2, 4}},
                                        {"3g", 3, 4, {0, 4}},
                                        {"4g", 4, 4, {0}},
                                        {"7g", 7, 8, {0}}};
  return rows;
}

MigGeometry geometry(std::string gpu, const std::vector<Row>& rows, const std::vector<std::int64_t>& memory_mib,
                     const std::vector<const char*>& names, int compute_slices, int memory_slices) {
  MigGeometry made{
      .gpu = std::move(gpu), .compute_slices = compute_slices, .memory_slices = memory_slices, .profiles = {}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    made.profiles.push_back({.type = {.name = rows[i].type,
                                      .compute = rows[i].compute,
                                      .memory = mib(memory_mib[i]),
                                      .times = std::string_view(rows[i].type) == "1g2x" ? "1g" : ""},
                             .memory_slices = rows[i].memory_slices,
                             .starts = rows[i].starts,
                             .name = names[i]});
  }
  return made;
}

bool overlap(const MigGeometry& geometry, const MigPlacement& a, const MigPlacement& b) {
  return a.start < b.start + geometry.profiles[b.profile].memory_slices &&
         b.start < a.start + geometry.profiles[a.profile].memory_slices;
}

bool fits_beside(const MigGeometry& geometry, const std::vector<MigPlacement>& set, const MigPlacement& one) {
  int compute = geometry.profiles[one.profile].type.compute;
  for (const MigPlacement& other : set) {
    if (overlap(geometry, other, one)) return false;
    compute += geometry.profiles[other.profile].type.compute;
  }
  return compute <= geometry.compute_slices;
}

// From left to right: at each memory slice something begins, or nothing does.
void extend(const MigGeometry& geometry, const std::vector<MigPlacement>& candidates, std::size_t from,
            std::vector<MigPlacement>& set, std::vector<std::vector<MigPlacement>>& all) {
  const bool is_maximal = std::none_of(candidates.begin(), candidates.end(),
                                       [&](const MigPlacement& one) { return fits_beside(geometry, set, one); });
  if (is_maximal) {
    all.push_back(set);
    return;
  }
  for (std::size_t i = from; i < candidates.size(); ++i) {
    if (!fits_beside(geometry, set, candidates[i])) continue;
    set.push_back(candidates[i]);
    extend(geometry, candidates, i + 1, set, all);
    set.pop_back();
  }
}

}  // namespace

std::vector<SliceType> MigGeometry::types() const {
  std::vector<SliceType> all;
  for (const MigProfile& one : profiles) all.push_back(one.type);
  return all;
}

std::optional<std::size_t> MigGeometry::find(std::string_view type) const {
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    if (profiles[i].type.name == type || profiles[i].name == type) return i;
  }
  return std::nullopt;
}

const std::vector<MigGeometry>& mig_geometries() {
  static const std::vector<MigGeometry> all = {
      geometry("a100-40", seven_slices(), {4864, 9856, 9856, 19968, 19968, 40192},
               {"1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}, 7, 8),
      geometry("a100-80", seven_slices(), {9856, 19968, 19968, 40192, 40192, 80384},
               {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}, 7, 8),
      geometry("h100-80", seven_slices(), {9984, 20090, 20090, 40448, 40448, 81152},
               {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}, 7, 8),
      geometry("h200-141", seven_slices(), {17920, 35840, 35840, 71475, 71475, 143771},
               {"1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"}, 7, 8),
      geometry("a30-24", {{"1g", 1, 1, {0, 1, 2, 3}}, {"2g", 2, 2, {0, 2}}, {"4g", 4, 4, {0}}}, {5952, 12032, 24064},
               {"1g.6gb", "2g.12gb", "4g.24gb"}, 4, 4)};
  return all;
}

Result<const MigGeometry*> mig_geometry(std::string_view gpu) {
  std::vector<std::string_view> known;
  for (const MigGeometry& one : mig_geometries()) {
    if (one.gpu == gpu) return &one;
    known.push_back(one.gpu);
  }
  return fail(Errc::kInvalidArgument, "gpu is \"{}\", it must be one of {}", gpu, fmt::join(known, ", "));
}

std::vector<std::vector<MigPlacement>> maximal_placements(const MigGeometry& geometry,
                                                          const std::vector<MigPlacement>& fixed,
                                                          const std::function<bool(const MigProfile&)>& may) {
  std::vector<MigPlacement> candidates;
  for (int start = 0; start < geometry.memory_slices; ++start) {
    for (std::size_t i = 0; i < geometry.profiles.size(); ++i) {
      const MigProfile& one = geometry.profiles[i];
      if (may(one) && std::find(one.starts.begin(), one.starts.end(), start) != one.starts.end())
        candidates.push_back({i, start});
    }
  }
  std::vector<std::vector<MigPlacement>> all;
  std::vector<MigPlacement> set = fixed;
  extend(geometry, candidates, 0, set, all);
  for (auto& one : all) {
    std::sort(one.begin(), one.end(), [](const MigPlacement& a, const MigPlacement& b) { return a.start < b.start; });
  }
  return all;
}

Result<std::vector<int>> slices_from_text(const MigGeometry& geometry, std::string_view text) {
  constexpr int kMost = 10'000;
  std::vector<int> counts(geometry.profiles.size());
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    std::string_view one = text.substr(at, comma - at);
    at = comma + 1;
    int times = 1;
    if (const std::size_t cross = one.find('x'); cross > 0 && one.find_first_not_of("0123456789") == cross) {
      const auto read = std::from_chars(one.data(), one.data() + cross, times);
      if (read.ec != std::errc()) times = 0;
      one.remove_prefix(cross + 1);
    }
    const auto type = geometry.find(one);
    if (!type || times < 1 || times > kMost) {
      return fail(
          Errc::kInvalidArgument, "slices are \"{}\"; \"{}\" is no slice of {}, which has {}, 1 to {} of each", text,
          one, geometry.gpu,
          [&] {
            std::string names;
            for (const MigProfile& known : geometry.profiles) names += (names.empty() ? "" : ", ") + known.type.name;
            return names;
          }(),
          kMost);
    }
    counts[*type] = std::min(kMost, counts[*type] + times);
  }
  return counts;
}

std::optional<std::vector<MigPlacement>> reslice(const MigGeometry& geometry, const std::vector<MigSlice>& slices,
                                                 const std::function<double(const std::vector<int>&)>& rate_of,
                                                 const ResliceTerms& terms) {
  std::vector<MigPlacement> busy, now;
  std::vector<int> idle(geometry.profiles.size());
  for (const MigSlice& one : slices) {
    if (!one.is_idle) busy.push_back(one.placement);
    if (one.is_idle) ++idle[one.placement.profile];
    now.push_back(one.placement);
  }
  std::sort(now.begin(), now.end(), [](const MigPlacement& a, const MigPlacement& b) { return a.start < b.start; });
  const double before = rate_of(idle);
  const auto kept_of = [&](const std::vector<MigPlacement>& set) {
    return std::count_if(now.begin(), now.end(),
                         [&](const MigPlacement& one) { return std::find(set.begin(), set.end(), one) != set.end(); });
  };
  double best = before * terms.least_gain;
  std::ptrdiff_t most_kept = 0;
  std::optional<std::vector<MigPlacement>> found;
  for (auto& set : maximal_placements(geometry, busy, [](const MigProfile&) { return true; })) {
    if (set == now) continue;
    std::vector<int> counts(geometry.profiles.size());
    for (const MigPlacement& one : set) ++counts[one.profile];
    for (const MigPlacement& one : busy) --counts[one.profile];
    const double rate = rate_of(counts);
    const double lost = to_seconds(terms.takes) * rate, gained = (rate - before) * to_seconds(terms.horizon);
    const std::ptrdiff_t kept = kept_of(set);
    const bool is_better = rate > best || (found && rate == best && kept > most_kept);
    if (!is_better || gained <= lost) continue;
    best = rate;
    most_kept = kept;
    found = std::move(set);
  }
  return found;
}

}  // namespace fairlead
