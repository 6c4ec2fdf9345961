// The shim's part in a process: started by the first hooked call, started anew in the child of a fork.
#pragma once

namespace fairlead::shim {

// Reads the environment, registers with the node and sets up the memory back end. Idempotent; a second caller waits for
// the first. Threads: any.
void start_process();

}  // namespace fairlead::shim
