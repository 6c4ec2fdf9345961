// Where things lie on this machine.
#pragma once

#include <string>

#include "base/result.h"

namespace fairlead::cli {

// $XDG_STATE_HOME/fairlead, else ~/.local/state/fairlead, else /var/lib/fairlead.
std::string default_state_dir();

// The software GPU shipped with this program: ../lib/softgpu beside its folder. kNotFound says where it was looked for.
Result<std::string> software_gpu_dir();

// What is preloaded into functions: ../lib/libfairlead-shim.so beside this program's folder. kNotFound says where it was
// looked for.
Result<std::string> shim_library();

// The folder with the Python package that belongs to this program: ../share/fairlead/python of an installation, python of the sources
// that a build lies in. "": neither is there, and python3 may have the package of a wheel.
std::string python_package_dir();

}  // namespace fairlead::cli
