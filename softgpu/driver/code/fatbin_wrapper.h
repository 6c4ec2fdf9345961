// What compilers put beside a fat binary, and programs register with the runtime: where the container is.
#pragma once

#include <cstdint>

namespace softgpu {

inline constexpr std::uint32_t kFatbinWrapperMagic = 0x466243B1;

// What `__cudaRegisterFatBinary` is given. The runtime takes it apart; of the driver's calls only cuLibraryLoadData takes
// it here.
struct FatbinWrapper {
  std::uint32_t magic = kFatbinWrapperMagic;
  std::uint32_t version = 1;
  const void* data = nullptr;
  const void* file_name_or_list = nullptr;  // version 2: a list of containers that were linked into `data`
};
static_assert(sizeof(FatbinWrapper) == 24);

}  // namespace softgpu
