#include "stet/report/recording_bytes.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "stet/base/text.h"
#include "stet/files/utf8.h"

namespace stet::reporting::recording_bytes {
namespace {

template <class T>
void read(std::string_view bytes, std::size_t offset, T& to) {
  if (offset + sizeof to <= bytes.size()) std::memcpy(&to, bytes.data() + offset, sizeof to);
}

constexpr std::string_view magic{recording::magic, sizeof recording::magic};

}  // namespace

Head head_of(std::string_view file) {
  Head out;
  std::uint32_t chunk_bytes = 0;
  read(file, offsetof(recording::Head, version), out.version);
  read(file, offsetof(recording::Head, chunk_bytes), chunk_bytes);
  read(file, offsetof(recording::Head, began), out.began);
  read(file, offsetof(recording::Head, began_at), out.began_at);
  read(file, offsetof(recording::Head, process), out.process);
  read(file, offsetof(recording::Head, ended), out.ended);
  read(file, offsetof(recording::Head, lost), out.lost);
  read(file, offsetof(recording::Head, lost_text), out.lost_text);
  // Other versions may have chunks of another size; anything else is damage.
  constexpr std::uint32_t least = 1 << 12, most = 1 << 26;
  if (std::has_single_bit(chunk_bytes) && chunk_bytes >= least && chunk_bytes <= most) out.chunk_bytes = chunk_bytes;
  return out;
}

Chunk chunk_of(std::string_view chunk) {
  Chunk out;
  if (chunk.size() < sizeof(recording::ChunkHead)) return out;
  read(chunk, offsetof(recording::ChunkHead, number), out.number);
  read(chunk, offsetof(recording::ChunkHead, content), out.content);
  read(chunk, offsetof(recording::ChunkHead, used), out.used);
  return out;
}

void require_recording(std::string_view file, const files::Reading& reading) {
  constexpr const char* advice = "name the file that Profile or STET_PROFILE wrote; it ends with .stet-profile";
  if (file.empty()) reading.fail("it is empty, and no recording of stet", advice);
  if (file.starts_with(magic)) return;
  constexpr std::size_t shown = 16;
  reading.fail(text("it is no recording of stet, which begins with 'stetrec': it begins with ",
                    files::quoted_name(file.substr(0, shown))),
               advice);
}

}  // namespace stet::reporting::recording_bytes
