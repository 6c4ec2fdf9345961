// NVIDIA's MPS control daemon of one GPU: starts it, asks how its servers are, stops it. Also of the software GPU, which
// brings a program of the same name and commands.
//
// The daemon belongs to its pipe directory: every process of it has CUDA_MPS_PIPE_DIRECTORY set to it, which is how one
// that a crashed node left behind is found and ended. The directory is the node's own, so nobody else's daemon is there.
//
// Threads: none of its own; calls block (a start up to seconds), so not on the core thread once the node serves.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace fairlead {

// nvidia-cuda-mps-control: beside the GPU's libraries (`library_dir`, may be empty), in $PATH, or where containers and
// distributions put it. kUnavailable says where it was looked for and what to do.
Result<std::string> find_mps_control(const std::string& library_dir);

class MpsDaemon {
 public:
  enum class State { kActive, kFault, kGone };

  // program: find_mps_control(); "": it can only be stopped. dir: for the pipe and the logs; is made. device: "GPU-..." or "MIG-...".
  MpsDaemon(std::string program, std::string dir, std::string device);

  // Ends what is left of an earlier daemon, and starts one. kUnavailable quotes what it said.
  Status start();
  // kFault: a client's fault has hit the others and the server takes no more. kGone: no daemon answers.
  State state();
  // Asks it to end, and kills what has not after a few seconds. No effect when nothing runs.
  void stop();

  const std::string& pipe_directory() const { return pipe_dir_; }

 private:
  Result<std::string> send(const std::string& commands) const;
  std::vector<int> processes() const;

  std::string program_;
  std::string dir_;
  std::string pipe_dir_;
  std::string log_dir_;
  std::string device_;
  std::vector<std::string> servers_;  // pids, as last listed
};

}  // namespace fairlead
