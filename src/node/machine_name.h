// What a node is called that nobody has named.
#pragma once

#include <string>

namespace fairlead {

// The machine's name, as a node may be called: what is in it and may not be is a '-'.
std::string machine_name();

}  // namespace fairlead
