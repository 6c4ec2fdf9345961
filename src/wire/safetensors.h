// Tensors by name in one piece of bytes, as the safetensors format has them, so that programs in any language read and write them.
//
//   8 bytes: the header's length | {"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} | 8 bytes of x
//
// Written: the header ends at a multiple of 8 bytes and larger elements come first, so that every tensor is aligned to its elements.
// Read: what a stranger's program answers. Each tensor's bytes lie within the file and are as many as its shape needs; nothing larger
// than the values of its header, of at most 64 KiB, is allocated. Bytes that no tensor has do no harm; tensors of types that are not known here are left out.
//
// Functions cannot see this folder; theirs is functions/runtime/fairlead/safetensors.h.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/kernel_task.h"

namespace fairlead::wire {

inline constexpr std::size_t kMostFileTensors = 1024;

struct FileTensor {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<std::uint64_t> shape;
  std::string_view bytes;
};

// REQUIRES: no complex types; bytes are as many as the shape needs. kBytes is written as U8.
std::string write_safetensors(std::vector<FileTensor> tensors);
// The tensors' bytes are within `file`. kInvalidArgument: it is no such file; says which tensor, the value and what must be.
Result<std::vector<FileTensor>> read_safetensors(std::string_view file);

}  // namespace fairlead::wire
