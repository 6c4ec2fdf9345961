#pragma once

#include <string>

namespace fairlead::cli {

std::string version_text();  // "fairlead 0.1.0", of a package "fairlead 0.1.0 (COMMIT)"

}  // namespace fairlead::cli
