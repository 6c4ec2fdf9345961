// What somebody probably meant who wrote a word that there is none of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fairlead {

// The candidate that the fewest letters put in, left out or replaced make of `word`, at most two of them; of equally near ones
// the first. Empty: none is near.
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

// "; did you mean 'status'?", or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace fairlead
