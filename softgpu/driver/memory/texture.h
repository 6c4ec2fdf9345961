// Texture and surface objects: what a kernel's handle stands for. The PTX machine looks them up here.
#pragma once

#include "softgpu/driver/process.h"
#include "softgpu/ptx/texture.h"

namespace softgpu {

// The objects of all contexts; handles are never used twice, so a stale one names nothing.
const ptx::TextureTable& texture_table();

}  // namespace softgpu
