// One copy of a model on the GPU for all instances that use it (docs/how-to/models.md).
//
// Example:
//   Gpu gpu;
//   SharedModel model = SharedModel::load(gpu, "/var/task/model.safetensors");   // copied once, found by the others
//   kernel.launch({4}, {256}, model.address("encoder.weight"), n);
//
// The bytes belong to the node: they are mapped into this process, read only where the driver can do that. Writing to them is
// an error where the driver says so, and spoils the model of every other instance where it does not.
//
// Errors: throws Error("Model.Absent"), .Pending, .Again, .Refused, .NoRoom, .Unavailable, .Format, or "Gpu...".
// Threads: everything belongs to the thread that made the Gpu, which outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "fairlead/gpu.h"
#include "fairlead/safetensors.h"

namespace fairlead {

// A model's bytes in this process: one range of device addresses.
class SharedTensor {
 public:
  // Writes all bytes at the address, which is writable until it returns.
  using Fill = std::function<void(std::uint64_t address)>;
  // The tensor of that id (1 to 255 bytes; ids are of this version of the function), of `bytes`. Where there is none, fill()
  // is called and its result sealed. Waits while another instance fills it.
  static SharedTensor open(const Gpu& gpu, const std::string& id, std::uint64_t bytes, const Fill& fill);
  ~SharedTensor();  // REQUIRES: nothing uses it any more
  SharedTensor(SharedTensor&& other) noexcept;
  SharedTensor& operator=(SharedTensor&&) = delete;

  std::uint64_t address() const { return address_; }
  std::uint64_t bytes() const { return bytes_; }
  bool read_only() const { return read_only_; }  // whether the driver enforces it

 private:
  SharedTensor() = default;
  void map(const Gpu& gpu, const std::vector<int>& descriptors, bool writable);
  void unmap();

  const Driver* driver_ = nullptr;
  std::uint64_t number_ = 0;  // the node's
  std::uint64_t address_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t mapped_ = 0;
  bool read_only_ = false;
};

// A safetensors file on the GPU.
class SharedModel {
 public:
  // `id`: within this version of the function, which is then the caller's to change with the content; "": the file's place, number and times.
  static SharedModel load(const Gpu& gpu, const std::string& path, const std::string& id = "");

  const SafetensorsHeader& header() const { return header_; }
  std::uint64_t address(const std::string& tensor) const;  // Error("Model.Format"): it has none of that name
  const SharedTensor& memory() const { return memory_; }

 private:
  SharedModel(SafetensorsHeader header, SharedTensor memory) : header_(std::move(header)), memory_(std::move(memory)) {}

  SafetensorsHeader header_;
  SharedTensor memory_;
};

}  // namespace fairlead
