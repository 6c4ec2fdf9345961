// How the GPUs of this machine are cut into slices (MIG), and cutting them anew: through NVML, for whoever has the right to (root, or who may
// open /proc/driver/nvidia/capabilities/mig/config).
//
// Only slices that nobody uses can go, and no other slice is touched: NVIDIA's "MIG User Guide", dynamic partitioning.
//
// Example: of a GPU that is 4g.40gb + 3 x 1g.10gb, two of the 1g go and a 2g.20gb is made in their place. Work on the 4g goes on.
//
// Threads: one call at a time. Calls block, for up to about a second.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace fairlead {

struct MigLayout {
  struct Profile {
    unsigned id = 0;   // NVML's
    std::string name;  // "1g.10gb"; with "+me" it has media engines, which only one slice of a GPU has
    int compute = 1;   // slices
    int memory_slices = 1;
    Bytes memory{0};
    std::vector<int> starts;  // memory slices at which one may begin
  };
  struct Instance {  // a GPU instance
    unsigned id = 0;
    std::size_t profile = 0;         // of `profiles`
    int start = 0;                   // memory slice
    std::vector<std::string> uuids;  // of its compute instances, "MIG-..."; none: programs cannot use it
  };
  std::string gpu_uuid;
  std::vector<Profile> profiles;
  std::vector<Instance> instances;
};

// To end: a GPU instance with one compute instance. Ids are used again, and so are UUIDs on some drivers: all of it says that it is the one
// that was meant.
struct MigEnd {
  unsigned id = 0;
  unsigned profile = 0;  // its id
  int start = 0;         // memory slice
  std::string uuid;      // of its compute instance
};

struct MigPiece {        // to be made: a GPU instance with one compute instance that takes all of it
  unsigned profile = 0;  // its id
  int start = 0, memory_slices = 1;
};

class MigControl {
 public:
  // As Nvml::load(). kUnavailable also where the driver is too old to cut GPUs.
  static Result<std::unique_ptr<MigControl>> load(const std::string& library_dir);
  ~MigControl();
  MigControl(const MigControl&) = delete;
  MigControl& operator=(const MigControl&) = delete;

  // Of the GPUs that are in MIG mode; those that do not answer are left out.
  Result<std::vector<MigLayout>> layouts() const;
  // These instances go, then these are made. On an error what was there before is made again; the message says what failed, and what could
  // not be made again.
  Status cut(const std::string& gpu_uuid, const std::vector<MigEnd>& destroy, const std::vector<MigPiece>& make);

 private:
  struct Library;
  explicit MigControl(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace fairlead
