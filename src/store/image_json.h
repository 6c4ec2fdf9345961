// What the registry keeps of an image, as JSON text in the database.
#pragma once

#include <string>

#include "base/result.h"
#include "model/image.h"

namespace fairlead::store {

// kInvalidArgument when a text is not UTF-8.
Result<std::string> encode_image(const FunctionImage& image);
Result<std::string> encode_overrides(const ImageOverrides& overrides);

// kCorrupt names the field that is not what was written.
Result<FunctionImage> decode_image(const std::string& text);
Result<ImageOverrides> decode_overrides(const std::string& text);

}  // namespace fairlead::store
