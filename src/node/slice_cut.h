// Which idle slices are cut anew for a pipeline that waits, and into what: the layouts that MigControl read, the node's devices, and
// reslice() (decide/pipeline/mig_geometry.h) over what the pipeline would answer on the slices that would be there.
//
// What others need stays. A function that is no pipeline and has a device that holds it, has one afterwards, too, that no pipeline takes.
//
// Example: 3g.40gb, busy, and four 1g.10gb, idle. A component of 20 GiB fits on none of the four: two of them become a 2g.20gb. The other two
// stay as they are.
//
// Pure. Threads: plain functions, any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "decide/pipeline/dag.h"
#include "decide/pipeline/mig_geometry.h"
#include "gpu/mig_control.h"
#include "model/device.h"
#include "node/pipeline_placement.h"

namespace fairlead {

struct SliceCut {
  std::string gpu_uuid;
  std::vector<MigEnd> destroy;  // GPU instances
  std::vector<Device> devices;  // which they are for the node
  std::vector<MigPiece> make;
  std::string why;  // "1g.10gb, 1g.10gb become 2g.20gb: ..."
};

struct SliceCutQuestion {
  const Dag& dag;  // of the pipeline that waits
  const std::vector<MigLayout>& layouts;
  std::vector<Device> devices;  // of the node, but for those that pipelines hold
  std::vector<Device> idle;     // of them: nothing runs there, and nobody is promised a place
  std::vector<DeviceNeed> others;
  ResliceTerms terms = {};
};

// Of all GPUs the cut with the highest rate. Empty: none pays.
std::optional<SliceCut> plan_cut(const SliceCutQuestion& question);

}  // namespace fairlead
