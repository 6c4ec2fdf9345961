// How many columns of a terminal a text takes, and texts cut to so many.
//
// Example: "größe" takes 5 columns of 7 bytes, "模型" 4 of 6. Cut to 5 columns, "transformer" is "tran…".
//
// Threads: pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fairlead::cli {

// Combining marks take none, East Asian wide characters and emoji two. Control characters and bytes that are no UTF-8 count one: they are
// shown as '?'.
std::size_t display_width(std::string_view text);

// At most `columns` columns; "…" at the end of what was cut. Control characters and bytes that are no UTF-8 become '?'.
std::string cut_to(std::string_view text, std::size_t columns);

// The same, filled with blanks to exactly `columns`, behind it or (`right`) before it.
std::string fit_to(std::string_view text, std::size_t columns, bool right = false);

}  // namespace fairlead::cli
