// Fills (cuMemset*): pattern sizes of 1, 2 and 4 bytes.
#include "softgpu/driver/memory/copy.h"

using softgpu::Fill;
using softgpu::fill_async;
using softgpu::fill_now;

CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t count) {
  return fill_now({address, 0, value, 1, count, 1});
}
CUresult cuMemsetD16_v2(CUdeviceptr address, unsigned short value, size_t count) {
  return fill_now({address, 0, value, 2, count, 1});
}
CUresult cuMemsetD32_v2(CUdeviceptr address, unsigned value, size_t count) {
  return fill_now({address, 0, value, 4, count, 1});
}

CUresult cuMemsetD2D8_v2(CUdeviceptr address, size_t pitch, unsigned char value, size_t width, size_t height) {
  return fill_now({address, pitch, value, 1, width, height});
}
CUresult cuMemsetD2D16_v2(CUdeviceptr address, size_t pitch, unsigned short value, size_t width, size_t height) {
  return fill_now({address, pitch, value, 2, width, height});
}
CUresult cuMemsetD2D32_v2(CUdeviceptr address, size_t pitch, unsigned value, size_t width, size_t height) {
  return fill_now({address, pitch, value, 4, width, height});
}

CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t count, CUstream stream) {
  return fill_async({address, 0, value, 1, count, 1}, stream);
}
CUresult cuMemsetD16Async(CUdeviceptr address, unsigned short value, size_t count, CUstream stream) {
  return fill_async({address, 0, value, 2, count, 1}, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr address, unsigned value, size_t count, CUstream stream) {
  return fill_async({address, 0, value, 4, count, 1}, stream);
}

CUresult cuMemsetD2D8Async(CUdeviceptr address, size_t pitch, unsigned char value, size_t width, size_t height,
                           CUstream stream) {
  return fill_async({address, pitch, value, 1, width, height}, stream);
}
CUresult cuMemsetD2D16Async(CUdeviceptr address, size_t pitch, unsigned short value, size_t width, size_t height,
                            CUstream stream) {
  return fill_async({address, pitch, value, 2, width, height}, stream);
}
CUresult cuMemsetD2D32Async(CUdeviceptr address, size_t pitch, unsigned value, size_t width, size_t height,
                            CUstream stream) {
  return fill_async({address, pitch, value, 4, width, height}, stream);
}
