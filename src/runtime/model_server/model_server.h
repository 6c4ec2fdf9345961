// `fairlead model-server`: owns the memory of models on one GPU for the node that started it. It runs no kernel and reads
// nothing that a program sent but the bytes on the device; which program may have which block, the node decides.
#pragma once

#include <string>

namespace fairlead::model_server {

struct Options {
  std::string library_dir;  // of libcuda.so.1; "": the system's
  int socket = 3;           // the node's
};

// Until the node's end of the socket closes. Gives the process's exit status.
int run(const Options& options);

}  // namespace fairlead::model_server
