// What `fairlead serve` can be told. Plain values with the defaults that an operator gets; checked by the command line.
#pragma once

#include <string>
#include <vector>

namespace fairlead {

struct ServeOptions {
  std::string state_dir;                              // REQUIRES: not empty
  std::vector<std::string> listen{"127.0.0.1:9001"};  // HOST:PORT or unix:/PATH
  std::string policy = "mqfq-sticky";
  double over_run_seconds = 10;  // T
  double ttl_factor = 2;         // alpha
  int tokens_per_gpu = 2;        // D
  int instances_per_gpu = 32;    // warm pool
  int queue_limit = 10'000;      // queued invocations on the node
  double drain_seconds = 30;     // how long a graceful stop waits for running invocations
  std::string gpu_library_dir;   // where libcuda.so.1 and libnvidia-ml.so.1 are; "": the system's
  bool software_gpu = false;     // what gpu_library_dir holds is the software GPU
  std::string log_level = "info";
};

}  // namespace fairlead
