// Where the Python package lies that belongs to this program: ../share/fairlead/python of an installation, python of the sources that a
// build lies in. "": neither is there, and python3 may have the package of a wheel.
//
// Threads: any.
#pragma once

#include <string>

namespace fairlead {

std::string python_package_dir();

}  // namespace fairlead
