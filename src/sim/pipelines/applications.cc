#include "sim/pipelines/applications.h"

#include <fmt/ranges.h>

#include <cmath>

#include "base/rng.h"

namespace fairlead::sim {
namespace {

struct Kind {
  const char* name;
  double ms;      // large, on 1g
  double fixed;   // part that no slice makes shorter
  double gib[3];  // small, medium, large
};
constexpr Kind kSuperResolution{"super-resolution", 120, 0.10, {2.5, 5.5, 13}};
constexpr Kind kDeblur{"deblur", 110, 0.12, {2.8, 6, 14}};
constexpr Kind kSegmentation{"segmentation", 90, 0.20, {1.8, 4, 8.5}};
constexpr Kind kClassification{"classification", 60, 0.35, {1.2, 3, 7}};
constexpr Kind kDepth{"depth", 95, 0.20, {2.4, 5, 9}};
constexpr Kind kBackground{"background", 100, 0.20, {2, 4, 9}};

struct Variant {
  const char* name;
  double time, more_fixed;
  std::uint64_t elements;  // of a tensor between components, of 4 bytes
};
constexpr Variant kVariants[] = {
    {"small", 0.25, 0.25, 655'360}, {"medium", 0.5, 0.10, 1'310'720}, {"large", 1, 0, 2'621'440}};
constexpr int kComputes[] = {1, 2, 3, 4, 7};
constexpr const char* kLeast[4][3] = {{"1g", "2g", "3g"}, {"1g", "2g", "3g"}, {"1g", "2g", "3g"}, {"2g", "4g", ""}};

std::size_t index_of(std::string_view variant) {
  for (std::size_t i = 0; i < std::size(kVariants); ++i) {
    if (kVariants[i].name == variant) return i;
  }
  return std::size(kVariants);
}

Component component_of(const Kind& kind, std::size_t variant) {
  const Variant& one = kVariants[variant];
  Component made;
  made.name = made.task = kind.name;
  made.outputs = {{.name = "y", .type = ElementType::kF32, .shape = {one.elements}}};
  made.weights = made.peak = Bytes(static_cast<std::int64_t>(kind.gib[variant] * (1 << 30)));
  const double fixed = kind.fixed + one.more_fixed;
  for (const int compute : kComputes) {
    const double ms = kind.ms * one.time * (fixed + (1 - fixed) / compute);
    made.times.push_back(
        {.slice = std::to_string(compute) + "g", .mean = Duration(std::llround(ms * 1e6)), .deviation = {}, .seen = 0});
  }
  return made;
}

void set_objective(Application& made) {
  if (made.least.empty()) return;
  double ns = 0;
  for (const Component& one : made.dag.components) {
    for (const SliceTime& time : one.times) {
      if (time.slice == made.least) ns += static_cast<double>(time.mean.count()) * (one.when ? one.when->part : 1);
    }
  }
  made.dag.objective = Duration(std::llround(kObjectiveScale * ns));
}

Dag chain(std::vector<Component> components) {
  Dag dag;
  dag.inputs = {{.name = "image", .type = ElementType::kF32, .shape = components.front().outputs[0].shape}};
  for (std::size_t i = 0; i < components.size(); ++i) {
    TensorSource source;
    if (i > 0) source.component = i - 1;
    components[i].inputs = {{.name = "x", .sources = {source}}};
  }
  dag.outputs = {{.name = "y", .from = {components.size() - 1, 0}}};
  dag.components = std::move(components);
  return dag;
}

Application application(std::size_t which, std::size_t variant) {
  static const std::vector<std::vector<Kind>> kMadeOf = {
      {kSuperResolution, kSegmentation, kClassification},
      {kDeblur, kSuperResolution, kDepth},
      {kSuperResolution, kDeblur, kBackground},
      {kDeblur, kSuperResolution, kBackground, kSegmentation, kClassification}};
  std::vector<Component> components;
  for (const Kind& kind : kMadeOf[which]) components.push_back(component_of(kind, variant));
  Application made{.name = fmt::format("app{}-{}", which, kVariants[variant].name),
                   .dag = chain(std::move(components)),
                   .least = kLeast[which][variant]};
  if (which == 3) {  // half of the images are of low resolution
    made.dag.components[0].outputs.push_back({.name = "is_low", .type = ElementType::kU8, .shape = {1}});
    made.dag.components[1].when = {.value = {0, 1}, .is = true, .part = 0.5};
    made.dag.components[2].inputs[0].sources.push_back({0, 0});
  }
  made.dag.name = made.name;
  set_objective(made);
  return made;
}

}  // namespace

std::vector<Application> applications(std::string_view variant) {
  std::vector<Application> all;
  const std::size_t index = index_of(variant);
  for (std::size_t which = 0; which < 4 && index < std::size(kVariants); ++which)
    all.push_back(application(which, index));
  return all;
}

Result<Application> application_named(std::string_view name) {
  std::vector<std::string> known;
  for (const Variant& variant : kVariants) {
    for (Application& one : applications(variant.name)) {
      if (one.name == name) return std::move(one);
      known.push_back(one.name);
    }
  }
  return fail(Errc::kNotFound, "application is \"{}\", it must be one of {}", name, fmt::join(known, ", "));
}

Application random_chain(std::string_view variant, std::uint64_t seed) {
  constexpr double kMost[] = {9.5, 19.4, 39.2}, kEach[] = {9.5, 9.5, 19.4};  // GiB: 1g, 2g, 4g whole; 1g, 1g, 2g cut
  const std::size_t index = index_of(variant);
  Rng rng(seed);
  const std::size_t count = 2 + rng.below(4);
  std::vector<Component> components;
  double whole = 0;
  std::vector<double> parts;
  for (std::size_t i = 0; i < count; ++i) whole += parts.emplace_back(0.3 + rng.uniform());
  const double memory = kMost[index] * (index == 0 ? 0.4 + 0.6 * rng.uniform() : 0.55 + 0.45 * rng.uniform());
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = "c" + std::to_string(i);
    Kind kind{name.c_str(), 40 + 100 * rng.uniform(), 0.08 + 0.3 * rng.uniform(), {}};
    kind.gib[index] = std::min(kEach[index], memory * parts[i] / whole);
    components.push_back(component_of(kind, index));
  }
  constexpr const char* kLeastOf[] = {"1g", "2g", "3g"};
  Application made{
      .name = fmt::format("random{}-{}", seed, variant), .dag = chain(std::move(components)), .least = kLeastOf[index]};
  made.dag.name = made.name;
  set_objective(made);
  return made;
}

}  // namespace fairlead::sim
