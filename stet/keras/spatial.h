// What layers over one to three spatial axes share: their layouts, and the options that say something for each axis.
// Not a public header.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stet/base/where.h"
#include "stet/keras/library_layer.h"
#include "stet/keras/window_sizes.h"

namespace stet::keras {

/// "[batch, height, width, channels]", or with channels_first "[batch, channels, height, width]".
const char* spatial_layout(int axes, bool channels_first);
/// What a layer over so many spatial axes takes.
Takes takes_spatial(int axes, bool channels_first);

/// Whether the option is "channels_first"; UserError unless it is one of Keras's two, or empty: "channels_last".
bool is_channels_first(const char* layer, const std::string& data_format, Where where);
/// From [batch, channels, …] to [batch, …, channels], and back.
Tensor channels_to_last(const Tensor& x);
Tensor channels_to_first(const Tensor& x);

/// One number for each spatial axis, from an option; UserError if their number is another, or one is less than `least`.
std::vector<std::int64_t> for_each_axis(const char* layer, const char* option, const WindowSizes& sizes, int axes,
                                        std::int64_t least, Where where);

/// UserError unless `given` is one of the names.
void require_name(const char* layer, const char* option, const std::string& given,
                  const std::vector<const char*>& names, Where where);
/// UserError unless a number is at least `least`.
void require_at_least(const char* layer, const char* option, std::int64_t given, std::int64_t least, Where where);

}  // namespace stet::keras
