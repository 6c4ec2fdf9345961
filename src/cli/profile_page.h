// A profile as a page of HTML: a heat map of throughput by rectangle, with the trials in it, and the table of trials.
//
// Pure.
#pragma once

#include <string>

#include "model/function_profile.h"

namespace fairlead::cli {

// In per cent; quota 0: none was chosen.
struct ChosenRectangle {
  int width_percent = 0, quota_percent = 0;
};
// Cells are what the model says, dots are trials, a frame is the rectangle that was chosen. By itself a drawing: SVG with text, no script.
std::string heat_map(const FunctionProfile& profile, ChosenRectangle chosen = {});
// One file, nothing else is loaded. Whatever others wrote is escaped.
std::string profile_page(const FunctionProfile& profile);

}  // namespace fairlead::cli
