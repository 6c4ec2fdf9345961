// What a module of GPU code says of its kernels, read from the file itself: PTX text declares parameters, a cubin keeps
// them in .nv.info.<kernel> (attribute 0x17 one parameter, 0x19 their bytes, 0x05 the thread limit), a fat binary holds
// several of both. So a bad launch is refused when a task is registered, on a machine without a driver.
//
// Threads: free functions, any thread. The input is anybody's: truncated, compressed or hostile images are errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/kernel_task.h"

namespace fairlead {

enum class ImageFormat { kPtx, kCubin, kFatbin };

struct KernelImage {
  ImageFormat format = ImageFormat::kPtx;
  std::vector<KernelSignature> kernels;  // entry points, by name; of a fat binary the strictest limits of all its code
  std::vector<std::uint32_t> targets;    // architectures it has code for, 80 is sm_80 or compute_80; ascending
};

// kInvalidArgument: not such an image; names what is wrong and where (line of PTX, section of a cubin).
Result<KernelImage> read_kernel_image(std::string_view image);

// Not text: machine code, or what may hold some. Nothing else is said of the image.
bool is_binary(std::string_view image);

// The image's PTX that a device of this architecture may run, the newest where there are several. kInvalidArgument: there
// is only machine code in it, or PTX for newer devices.
Result<std::string> ptx_of_image(std::string_view image, std::uint32_t architecture);

}  // namespace fairlead
