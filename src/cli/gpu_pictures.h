// Pictures of GPUs whose time and SMs are promised: rectangles, and what was promised over time.
//
// Idea. A GPU is a rectangle, SMs by time. By the exact admission test (pacing/concurrent_sets.h) an instance has no corner of it: it is in some
// sets of instances that run side by side, each set for a part of the time. So the picture is the schedule that the test found: sets one above
// the other, as high as they run long, and in a set its instances side by side, as wide as their SMs. An instance of several sets is several
// rectangles. What is left is free.
//
// Example. (50 %, 60 %) twice and (12 %, 40 %) four times: one row of two for 60 % of the time, above it one of four for 40 %.
//
// Pure. SVG with text, no script; whatever others named is escaped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fairlead::cli {

// Seats of one function on one GPU.
struct SeatGroup {
  std::string function;
  int width_percent = 100, quota_percent = 0;  // of each seat
  std::size_t seats = 0;
  double area_percent() const;  // of the GPU, of all of them
  bool operator==(const SeatGroup&) const = default;
};

// A part of a picture, in per cent of the SMs and of the time.
struct PlacedRectangle {
  std::size_t group = 0;  // index into the groups
  double x = 0, y = 0, width = 0, height = 0;
};
// Where each seat runs in the schedule; sets from the longest to the shortest. Groups of no seat or no quota have none.
std::vector<PlacedRectangle> laid_out(const std::vector<SeatGroup>& groups);

// The colour of each function, by its name's place in a sorted list.
class Colours {
 public:
  explicit Colours(std::vector<std::string> functions);
  std::string of(const std::string& function) const;
  const std::vector<std::string>& functions() const { return functions_; }

 private:
  std::vector<std::string> functions_;
};

// `side`: of the square in pixels; `caption` stands below it.
std::string gpu_picture(const std::string& caption, const std::vector<SeatGroup>& groups, const Colours& colours,
                        double side);

// Who has what on one GPU from a moment on.
struct GpuMoment {
  std::int64_t at_ms = 0;
  std::vector<SeatGroup> groups;
};
// Of SMs x time, what is promised to whom, from `from_ms` to `to_ms`: areas, one on the other, changing in steps.
std::string promised_chart(const std::string& title, const std::vector<GpuMoment>& moments, std::int64_t from_ms,
                           std::int64_t to_ms, const Colours& colours);
// Some of them, at most `most`, in order: where most is promised, the first and last with anything, and those that lasted longest.
std::vector<std::size_t> telling_moments(const std::vector<GpuMoment>& moments, std::int64_t to_ms, std::size_t most);

}  // namespace fairlead::cli
