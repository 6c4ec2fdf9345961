// Memory that graphs allocate when they run. The driver keeps it in a pool of its own per device, so it is counted by
// what that pool has reserved, read after every launch of a graph once a program has made a memory node.
#pragma once

namespace fairlead::shim {

// Brings the accounting up to date for the current device. Cheap where no graph has a memory node. Threads: any.
void count_graph_memory();

// A graph has a memory node from now on.
void expect_graph_memory();

}  // namespace fairlead::shim
