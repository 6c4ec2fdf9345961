// Contents of a buffer as numbers, by its element type: 1.5 of f16 is 00 3e, and c64 is a pair of f32, [re, im].
//
// JSON has no NaN and no infinity: contents that have one are no numbers here, and travel as base64.
//
// Threads: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/kernel_task.h"
#include "wire/json_value.h"

namespace fairlead::wire {

// Appends the element that `value` says, rounded to nearest even where the type is coarser. Refuses another thing than a
// number (for complex types: a pair of them), a fraction or a value beyond the type's range.
void append_element(ElementType type, const JsonValue& value, std::string& out);

// A list of elements: flat, or nested as the shape. Refuses another count than the buffer's.
std::string elements_from_json(const BufferSpec& buffer, const JsonValue& list);

// Nested as the shape, in the fewest digits that read back the same. Nothing where the type is kBytes, the size is not
// the buffer's, or a number is not finite.
std::optional<std::string> elements_to_json(const BufferSpec& buffer, std::string_view contents);

}  // namespace fairlead::wire
