// Kernel tasks from C++ (docs/how-to/kernel-tasks.md): a graph of kernels written down once, saved as a folder that
// `fairlead deploy` and `fairlead ktask run` take. Nothing runs here, and no GPU is needed.
//
//   using namespace fairlead::ktask;
//   Task task;
//   const Buffer x = task.input("x", Type::kF32, {4096});
//   const Buffer y = task.output("y", Type::kF32, {4096});
//   const Module kernels = task.module("saxpy.ptx", ptx);
//   task.launch(kernels, "scale", {.grid = {16}, .block = {256}}, {2.0f, 4096u, read(x), write(y)});
//   task.save("scale");                          // scale/task.json, scale/saxpy.ptx
//
// What a task by itself can know is checked here and thrown as Error("KernelTask.Invalid"): names, shapes, buffers of another
// task. What depends on the modules and the GPU the node checks when the folder is deployed.
//
// Threads: one at a time for each Task.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead::ktask {

// Of a buffer's elements; c64 is two f32. Kernels see none of it: calls and answers in JSON do.
enum class Type { kBytes, kS8, kU8, kS16, kU16, kS32, kU32, kS64, kU64, kF16, kBf16, kF32, kF64, kC64, kC128 };

using Shape = std::vector<std::uint64_t>;

class Task;

// Names of what a task has. Valid for the task that made them.
struct Buffer {
  const Task* task;
  std::size_t index;
};
struct Module {
  const Task* task;
  std::size_t index;
};

// One argument of a kernel, in its parameters' order: a buffer's address, or a value of the parameter's size.
class Argument {
 public:
  // NOLINTBEGIN(google-explicit-constructor): an argument is written as the value it is.
  Argument(std::int32_t value);
  Argument(std::uint32_t value);
  Argument(std::int64_t value);
  Argument(std::uint64_t value);
  Argument(float value);
  Argument(double value);
  Argument(Buffer buffer);  // read or written, as its role has it
  // NOLINTEND(google-explicit-constructor)
  // A struct as the kernel expects it.
  static Argument bytes(std::string_view value);

 private:
  friend class Task;
  friend Argument read(Buffer, std::uint64_t);
  friend Argument write(Buffer, std::uint64_t);
  explicit Argument(std::string json) : json_(std::move(json)) {}
  Argument(Buffer buffer, const char* access, std::uint64_t offset);

  std::string json_;            // of a value
  const Task* task_ = nullptr;  // of a buffer:
  std::size_t buffer_ = 0;
  const char* access_ = nullptr;  // none: by role
  std::uint64_t offset_ = 0;      // bytes
};
// What the kernel does with the buffer: two that only read it may run at the same time. `offset`: bytes into it.
Argument read(Buffer buffer, std::uint64_t offset = 0);
Argument write(Buffer buffer, std::uint64_t offset = 0);

using Dimensions = std::array<std::uint32_t, 3>;  // {16} is 16 x 1 x 1

struct Geometry {
  Dimensions grid{1, 1, 1};
  Dimensions block{1, 1, 1};
  std::uint32_t shared_bytes = 0;  // dynamic shared memory
};

class Task {
 public:
  Task() = default;
  Task(const Task&) = delete;  // buffers know their task by its address
  Task& operator=(const Task&) = delete;

  Buffer input(std::string name, Type type, Shape shape);
  Buffer inout(std::string name, Type type, Shape shape);
  // `zeroed`: filled with zeros before every call.
  Buffer output(std::string name, Type type, Shape shape, bool zeroed = false);
  Buffer temporary(Type type, Shape shape, bool zeroed = false);
  // The object of this key, the same for every call.
  Buffer constant(std::string name, Type type, Shape shape, std::string key);
  // These bytes, saved beside task.json. Of exactly the shape's size.
  Buffer constant_of(std::string name, Type type, Shape shape, std::string bytes);

  // PTX, a cubin or a fat binary, saved under `file`.
  Module module(std::string file, std::string image);
  // Of the built-in library (docs/reference/kernel-library.md): "gemm", for example.
  Module library(std::string name);

  void launch(Module module, std::string kernel, const Geometry& geometry, std::initializer_list<Argument> arguments);
  // How often the whole list of launches runs. 1 to 1,000,000.
  void iterate(std::uint32_t times);

  std::string json() const;                    // task.json
  void save(const std::string& folder) const;  // made where it is missing; files of the same names are replaced

 private:
  struct File {
    std::string name, bytes;
  };
  struct Named {
    std::string name, json;
  };
  Buffer add(std::string name, const char* role, Type type, const Shape& shape, const std::string& more);
  std::string argument(const std::string& kernel, std::size_t index, const Argument& argument) const;

  std::vector<Named> buffers_;
  std::vector<std::string> modules_;
  std::vector<File> files_;
  std::vector<std::string> launches_;
  std::uint32_t iterations_ = 1;
};

}  // namespace fairlead::ktask
