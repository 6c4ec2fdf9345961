// Kernel tasks, calls, answers and one-off requests as bytes: a compact binary form for programs, JSON for people (docs/how-to/kernel-tasks.md
// shows both). What arrives comes from anybody: every length and index is checked before it is used, and nothing larger
// than the input is allocated.
//
// Binary: "FLKT", version 1, kind (1 task, 2 call, 3 answer, 4 request), then fields in the order of model/kernel_task.h. Integers are
// little endian in the width of their type (Bytes and Duration 8 bytes), enumerators and bools one byte, counts and lengths
// unsigned LEB128, a variant its index and then the alternative. Decoding what was encoded gives the same value; each value
// has one encoding.
//
// Threads: free functions, any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/kernel_task.h"
#include "model/kernel_task_request.h"

namespace fairlead::wire {

inline constexpr char kKernelTaskContentType[] = "application/vnd.fairlead.kernel-task";  // any of the four below

std::string encode(const KernelTask& task);
std::string encode(const KernelTaskCall& call);
std::string encode(const KernelTaskAnswer& answer);
std::string encode(const KernelTaskRequest& request);
// kCorrupt: names the field, the value and the bound.
Result<KernelTask> decode_kernel_task(std::string_view bytes);
Result<KernelTaskCall> decode_kernel_task_call(std::string_view bytes);
Result<KernelTaskAnswer> decode_kernel_task_answer(std::string_view bytes);
Result<KernelTaskRequest> decode_kernel_task_request(std::string_view bytes);
bool is_binary(std::string_view bytes);  // begins as the above do

// task.json. Buffers, modules and arguments refer to each other by name there. Buffers come out in the order of their
// names, modules in the order of their first use and with names only: the caller reads each image and fills in its digest.
// kInvalidArgument with the path of the value: "kernels[2].grid[0] is 0, ...".
//
//   {"buffers": {"x": {"role": "input", "type": "f32", "shape": [1024]},
//                "w": {"role": "constant", "key": "weights/w", "type": "f32", "shape": [1024]},
//                "y": {"role": "output", "bytes": 4096}},
//    "kernels": [{"module": "kernels.ptx", "kernel": "scale", "grid": [4], "block": [256], "shared_bytes": 0,
//                 "arguments": [{"f32": 2.0}, {"s32": 1024}, {"buffer": "x"}, {"buffer": "y", "offset": 0,
//                 "access": "write"}, {"bytes": "BASE64", "relocations": [{"at": 8, "buffer": "w"}]}]}],
//    "iterations": 1}
Result<KernelTask> kernel_task_from_json(std::string_view json);
std::string kernel_task_to_json(const KernelTask& task);  // REQUIRES: validate_task()

// A call and its answer. An input is {"key": K}, {"base64": B}, {"values": [...]} (numbers by the buffer's type, nested
// as its shape or flat) or such a list alone; an output is {"key": K} or null (inline). An inline output of a typed
// buffer is answered as nested "values", another as "base64", as is one with a NaN or an infinity, which JSON has not. No
// text at all is a call that binds nothing.
//
//   {"inputs": {"x": {"values": [1, 2, 3]}}, "outputs": {"y": {"key": "results/y"}}}
//   {"outputs": {"y": {"key": "results/y", "bytes": 4096}}, "phases_us": {"kernel_run": 41.2, ...}}
Result<KernelTaskCall> kernel_task_call_from_json(const KernelTask& task, std::string_view json);
// REQUIRES: validate_answer()
std::string kernel_task_answer_to_json(const KernelTask& task, const KernelTaskAnswer& answer);

// A one-off request; the task and the call become texts again, for their own readers.
//
//   {"task": {"buffers": ..., "kernels": ...}, "files": {"kernels.ptx": "BASE64"}, "call": {"inputs": ...},
//    "timeout_seconds": 60}
Result<KernelTaskRequest> kernel_task_request_from_json(std::string_view json);

}  // namespace fairlead::wire
