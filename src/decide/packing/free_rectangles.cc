#include "decide/packing/free_rectangles.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "decide/pacing/paced_share.h"

namespace fairlead {

FreeRectangles::FreeRectangles(int time_percent, std::size_t most)
    : whole_{.width = time_percent, .height = kWholeDevice}, most_(most), free_{whole_} {}

const Rectangle* FreeRectangles::best_for(int width, int height) const {
  const auto rank = [](const Rectangle& one) { return std::tuple(one.area(), one.bottom, one.left); };
  const Rectangle* best = nullptr;
  for (const Rectangle& one : free_) {
    if (one.width < width || one.height < height) continue;
    if (best == nullptr || rank(one) < rank(*best)) best = &one;
  }
  return best;
}

std::optional<int> FreeRectangles::left_over(int width, int height) const {
  const Rectangle* best = best_for(width, height);
  if (best == nullptr) return std::nullopt;
  return best->area() - width * height;
}

std::optional<Rectangle> FreeRectangles::place(int width, int height) {
  const Rectangle* best = best_for(width, height);
  if (best == nullptr) return std::nullopt;
  const Rectangle taken{.left = best->left, .bottom = best->bottom, .width = width, .height = height};
  placed_.push_back(taken);
  cut_out(taken);
  remove_contained();
  return taken;
}

void FreeRectangles::release(const Rectangle& rectangle) {
  const auto found = std::find(placed_.begin(), placed_.end(), rectangle);
  FL_CHECK(found != placed_.end(), "a rectangle of {} x {} is released and was not placed", rectangle.width,
           rectangle.height);
  placed_.erase(found);
  free_.push_back(rectangle);
  remove_contained();
  if (placed_.empty() || free_.size() > most_) make_anew();
}

void FreeRectangles::cut_out(const Rectangle& taken) {
  std::vector<Rectangle> left;
  for (const Rectangle& one : free_) {
    if (!one.cuts(taken)) {
      left.push_back(one);
      continue;
    }
    const int right = one.left + one.width, top = one.bottom + one.height;
    const int taken_right = taken.left + taken.width, taken_top = taken.bottom + taken.height;
    if (taken.left > one.left) left.push_back({one.left, one.bottom, taken.left - one.left, one.height});
    if (taken_right < right) left.push_back({taken_right, one.bottom, right - taken_right, one.height});
    if (taken.bottom > one.bottom) left.push_back({one.left, one.bottom, one.width, taken.bottom - one.bottom});
    if (taken_top < top) left.push_back({one.left, taken_top, one.width, top - taken_top});
  }
  free_ = std::move(left);
}

void FreeRectangles::remove_contained() {
  std::vector<Rectangle> kept;
  for (std::size_t i = 0; i < free_.size(); ++i) {
    bool within = false;
    for (std::size_t k = 0; k < free_.size() && !within; ++k) {
      // Of two that are the same, the first stays.
      within = k != i && free_[k].holds(free_[i]) && (free_[k] != free_[i] || k < i);
    }
    if (!within) kept.push_back(free_[i]);
  }
  free_ = std::move(kept);
}

void FreeRectangles::make_anew() {
  free_ = {whole_};
  for (const Rectangle& one : placed_) {
    cut_out(one);
    remove_contained();
  }
}

}  // namespace fairlead
