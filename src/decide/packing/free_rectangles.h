// The free part of one device, as a list of maximal rectangles: time is the width, SMs are the height, both in per cent.
//
// Idea (FaST-GShare, Algorithm 2; Jylänki 2010). The list holds rectangles that are free, as large as they can be; they may overlap. A new
// instance takes the bottom-left corner of the one with the least area left over. Every free rectangle that it cuts is subdivided into the up
// to four that remain of it, and a rectangle within another is removed. A rectangle that is given back joins the list as it is, so free
// rectangles side by side do not grow together. When the list is longer than a threshold, it is made anew from the whole device and what
// stands on it.
//
// The paper prints the test of fit the wrong way round (free <= wanted), and never removes the rectangle that was cut. Both are mended here.
//
// Example: (60, 50) is placed on an empty device. (40, 100) to its right and (100, 50) above it are free, and (40, 50) is in both.
//
// Pure. Determinism: of rectangles with as much left over, the lowest, then the leftmost, then the first of the list.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace fairlead {

struct Rectangle {
  int left = 0, bottom = 0;   // per cent of the time, of the SMs
  int width = 0, height = 0;  // the same
  int area() const { return width * height; }
  bool holds(const Rectangle& other) const {
    return left <= other.left && bottom <= other.bottom && other.left + other.width <= left + width &&
           other.bottom + other.height <= bottom + height;
  }
  bool cuts(const Rectangle& other) const {
    return left < other.left + other.width && other.left < left + width && bottom < other.bottom + other.height &&
           other.bottom < bottom + height;
  }
  bool operator==(const Rectangle&) const = default;
};

class FreeRectangles {
 public:
  // time_percent: what of the device's time is given out, 1-100. most: of the list, before it is made anew; 0: at every release.
  FreeRectangles(int time_percent, std::size_t most);

  // Area that the best free rectangle has left over; nothing where none holds width x height.
  std::optional<int> left_over(int width, int height) const;
  // Nothing where none holds it.
  std::optional<Rectangle> place(int width, int height);
  // REQUIRES: place() returned it, and it was not released since.
  void release(const Rectangle& rectangle);

  const std::vector<Rectangle>& free() const { return free_; }
  const std::vector<Rectangle>& placed() const { return placed_; }

 private:
  const Rectangle* best_for(int width, int height) const;
  void cut_out(const Rectangle& taken);
  void remove_contained();
  void make_anew();

  const Rectangle whole_;
  const std::size_t most_;
  std::vector<Rectangle> free_;
  std::vector<Rectangle> placed_;
};

}  // namespace fairlead
