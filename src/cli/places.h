// Where things lie on this machine.
#pragma once

#include <string>

#include "base/result.h"

namespace fairlead::cli {

// $XDG_STATE_HOME/fairlead, else ~/.local/state/fairlead, else /var/lib/fairlead.
std::string default_state_dir();

// The software GPU shipped with this program: ../lib/softgpu beside its folder. kNotFound says where it was looked for.
Result<std::string> software_gpu_dir();

// The first executable of that name in $PATH; "" when there is none.
std::string find_program(const std::string& name);

}  // namespace fairlead::cli
