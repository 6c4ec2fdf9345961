// Where each buffer of a call is: in an object, or in the call's scratch memory; and how bytes that travel with the call get
// there and back, through a block of pinned memory (staging). Decided before any address is known: where an object is, and
// where the scratch memory, is only known once both were made room for.
//
//   scratch:  temporaries │ outputs that are answered inline, or go to a ring only │ inputs that came inline │ inputs from rings
//   staging:  inputs that came inline, in their order │ outputs that are answered inline
//
// Example: x came inline, m is an in-out that begins as object 7 and is answered as object 9, y is answered inline, all of 512
// bytes. y is in scratch at 0, x at 512; m is in object 9, and before the kernels 7 is copied to 9. In staging x is at 0, y
// at 512.
//
// Pure. Threads: none of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "model/kernel_task.h"
#include "wire/device_frames.h"

namespace fairlead {

struct CallLayout {
  struct Place {
    std::uint64_t object = 0;          // 0: in scratch
    std::uint64_t scratch_offset = 0;  // of one in scratch
    bool operator==(const Place&) const = default;
  };
  // An in-out's contents, which come from an object other than the one that it is answered as.
  struct Copy {
    std::uint64_t object = 0;
    std::uint32_t buffer = 0;
  };
  // Bytes that travel with the call.
  struct Staged {
    std::uint32_t buffer = 0;
    std::uint64_t staging_offset = 0;
    std::uint64_t bytes = 0;
  };

  std::vector<Place> places;  // of every buffer
  std::vector<Copy> copies;   // before the kernels, and before what came inline
  std::vector<Staged> inputs, outputs;
  Bytes scratch{0}, staging{0};
};

// Scratch memory that every call of a task needs.
struct Temporaries {
  std::span<const std::uint64_t> offsets;  // by buffer; of those that are no temporaries: any
  Bytes bytes{0};                          // all of them, from offset 0
};

// REQUIRES: `order` binds buffers of the task as validate_call() wants it, `constants` its constants.
CallLayout lay_out_call(std::span<const BufferSpec> buffers, const Temporaries& temporaries,
                        std::span<const wire::BoundObject> constants, const wire::RunCall& order);

}  // namespace fairlead
