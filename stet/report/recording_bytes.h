// The heads in the bytes of a recording, whatever these bytes are. Private to report/.
#pragma once
#include <cstdint>
#include <string_view>

#include "stet/files/file.h"
#include "stet/runtime/recording_format.h"

namespace stet::reporting::recording_bytes {

struct Head {
  std::uint32_t version = 0;
  std::size_t chunk_bytes = recording::chunk_bytes;
  std::uint64_t began = 0, began_at = 0, process = 0, ended = 0, lost = 0, lost_text = 0;
};
/// 0 for what is cut off.
Head head_of(std::string_view file);

struct Chunk {
  std::uint64_t number = 0;
  recording::Content content{};
  std::uint32_t used = 0;
};
/// Number 0 if the head is not all there.
Chunk chunk_of(std::string_view chunk);

/// UserError if the file does not begin as a recording does.
void require_recording(std::string_view file, const files::Reading& reading);

}  // namespace stet::reporting::recording_bytes
