// The names that layers, models and metrics get by themselves. Not a public header.
#pragma once
#include <string>
#include <string_view>

#include "stet/core/handle.h"

namespace stet::keras {

/// The class of an object as it stands in the source: "MyCustomLayer".
std::string class_name_of(const inside::Body& body);
/// "my_custom_layer", as Keras does it.
std::string snake_case(std::string_view class_name);
/// "dense", then "dense_1", …: numbered in the order of making, over the whole process.
std::string next_name(std::string_view class_name);

}  // namespace stet::keras
