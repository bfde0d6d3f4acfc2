#include "stet/report/recorded.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/files/file.h"
#include "stet/files/utf8.h"
#include "stet/report/json_members.h"
#include "stet/report/recording_bytes.h"
#include "stet/runtime/recording_format.h"

namespace stet::reporting {
namespace {

using recording::SpanRecord;
using recording::TextHead;

constexpr const char* unknown = "(unknown)";
constexpr std::int64_t longest = std::int64_t{1} << 58;  // nine years in ns: what is beyond is damaged
constexpr std::uint32_t most_names = 1 << 20;
constexpr std::size_t longest_name = 4096;
constexpr std::uint32_t no_name = std::numeric_limits<std::uint32_t>::max();

template <class T>
T number_at(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// The same, with what is not UTF-8 replaced.
std::string readable(std::string_view bytes) {
  if (files::is_utf8(bytes)) return std::string(bytes);
  std::string out;
  while (!bytes.empty()) {
    const std::size_t length = files::character_length(bytes);
    out += length == 0 ? std::string_view("\uFFFD") : bytes.substr(0, length);
    bytes.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

/// The stream of text: names and notes.
class TextReader {
 public:
  explicit TextReader(Recorded& recorded) : recorded_(recorded) {
    std::error_code nowhere;
    here_ = std::filesystem::current_path(nowhere).string() + "/";
    if (nowhere || here_ == "//" || here_.find_first_of("\"\\") != std::string::npos) here_.clear();
  }

  void read(std::string_view stream) {
    bool lost_place = false;
    repairs_left_ = 4 * stream.size();
    while (stream.size() >= sizeof(TextHead)) {
      const std::size_t length = entry(stream);
      if (length == 0) {
        // Chunks may be missing or damaged: what looks like an entry is looked for behind. The last one may only not be
        // written to its end yet.
        lost_place = true;
        stream.remove_prefix(1);
        continue;
      }
      recorded_.damaged += std::exchange(lost_place, false);
      stream.remove_prefix(length);
    }
  }

  /// Where a name that spans know by number stands in Recorded::names.
  std::uint32_t place_of(std::uint32_t number) {
    if (number < places_.size() && places_[number] != no_name) return places_[number];
    if (unknown_place_ == no_name) {
      unknown_place_ = static_cast<std::uint32_t>(recorded_.names.size());
      recorded_.names.emplace_back(unknown);
    }
    return unknown_place_;
  }

 private:
  /// Its length; 0 if none begins here, or it is not all there.
  std::size_t entry(std::string_view stream) {
    const auto kind = number_at<std::uint32_t>(stream, offsetof(TextHead, kind));
    const auto length = number_at<std::uint32_t>(stream, offsetof(TextHead, length));
    std::string_view body = stream.substr(sizeof(TextHead));
    if (body.size() < length) return 0;
    body = body.substr(0, length);
    const bool fits = kind == TextHead::name ? name(body) : kind == TextHead::note && note(body);
    return fits ? sizeof(TextHead) + length : 0;
  }

  bool name(std::string_view body) {
    if (body.size() < sizeof(std::uint32_t) || body.size() > sizeof(std::uint32_t) + longest_name) return false;
    const auto number = number_at<std::uint32_t>(body, 0);
    if (number >= most_names) return false;
    if (number >= places_.size()) places_.resize(number + 1, no_name);
    if (places_[number] == no_name) {
      places_[number] = static_cast<std::uint32_t>(recorded_.names.size());
      recorded_.names.push_back(readable(body.substr(sizeof number)));
    }
    return true;
  }

  bool note(std::string_view body) {
    if (body.size() < 2 || body.front() != '{' || body.back() != '}') return false;
    if (parsed(body)) return true;
    // Once more with what is no UTF-8 replaced, in time that grows with the stream however damaged it is.
    if (repairs_left_ < body.size()) return false;
    repairs_left_ -= body.size();
    return !files::is_utf8(body) && parsed(readable(body));
  }

  bool parsed(std::string_view body) {
    static const files::Reading reading{"recording", "", {}};
    try {
      recorded_.notes.push_back(files::parse_json(named_from_here(body), reading));
      return true;
    } catch (const UserError&) {
      return false;
    }
  }

  /// Files of the folder that this process is in are called what they are called from there, wherever a note speaks of
  /// them: that is shorter, and a page that is given away does not tell where its maker keeps things.
  std::string named_from_here(std::string_view body) const {
    std::string out;
    while (!here_.empty()) {
      const std::size_t at = body.find(here_);
      if (at == std::string_view::npos) break;
      const bool begins = at == 0 || !(std::isalnum(static_cast<unsigned char>(body[at - 1])) ||
                                       std::string_view("_-./").find(body[at - 1]) != std::string_view::npos);
      out += body.substr(0, begins ? at : at + here_.size());
      body.remove_prefix(at + here_.size());
    }
    out += body;
    return out;
  }

  Recorded& recorded_;
  std::string here_;  // with a '/' at its end; empty where there is nothing to leave out
  std::vector<std::uint32_t> places_;
  std::uint32_t unknown_place_ = no_name;
  std::size_t repairs_left_ = 0;  // bytes of notes
};

class Parser {
 public:
  Parser(std::string_view bytes, Recorded& recorded) : bytes_(bytes), recorded_(recorded), text_(recorded) {}

  void run() {
    head();
    chunks();
    begin_note();
    if (recorded_.kinds.empty())
      for (int kind = 0; kind < recording::kind_count; ++kind)
        recorded_.kinds.emplace_back(kind_name(static_cast<recording::Kind>(kind)));
    meanings();
    for (std::string_view records : span_chunks_)
      for (; records.size() >= sizeof(SpanRecord); records.remove_prefix(sizeof(SpanRecord))) record(records);
    finish();
  }

 private:
  void head() {
    const recording_bytes::Head head = recording_bytes::head_of(bytes_);
    recorded_.version = head.version;
    recorded_.process = head.process;
    recorded_.began = head.began;
    recorded_.began_at = static_cast<std::int64_t>(head.began_at);
    recorded_.lost_spans = head.lost;
    recorded_.lost_text = head.lost_text;
    recorded_.complete =
        head.ended >= head.began && head.ended - head.began < static_cast<std::uint64_t>(longest) && head.ended != 0;
    if (recorded_.complete) recorded_.length = static_cast<std::int64_t>(head.ended - head.began);
    chunk_bytes_ = head.chunk_bytes;
  }

  void chunks() {
    struct Text {
      std::uint64_t number;
      std::string_view bytes;
    };
    std::vector<Text> texts;
    for (std::size_t at = recording::head_bytes; at < bytes_.size(); at += chunk_bytes_) {
      const std::string_view whole = bytes_.substr(at, chunk_bytes_);
      const recording_bytes::Chunk chunk = recording_bytes::chunk_of(whole);
      if (chunk.number == 0) continue;
      const std::string_view used = whole.substr(sizeof(recording::ChunkHead)).substr(0, chunk.used);
      if (chunk.content == recording::Content::spans)
        span_chunks_.push_back(used);
      else if (chunk.content == recording::Content::text)
        texts.push_back({chunk.number, used});
      else
        ++recorded_.damaged;
    }
    std::stable_sort(texts.begin(), texts.end(), [](const Text& a, const Text& b) { return a.number < b.number; });
    std::string stream;
    for (const Text& text : texts) stream += text.bytes;
    text_.read(stream);
  }

  void begin_note() {
    for (const files::Json& note : recorded_.notes) {
      if (string_in(note, "note") != "begin") continue;
      recorded_.program = string_in(note, "program");
      recorded_.stet = string_in(note, "stet");
      recorded_.cpu = string_in(note, "cpu");
      recorded_.thread_count = small_integer_in(note, "threads");
      for (const files::Json& kind : list_in(note, "kinds"))
        if (recorded_.kinds.size() < 256) recorded_.kinds.push_back(kind.if_string() ? *kind.if_string() : unknown);
      return;
    }
  }

  void meanings() {
    for (std::size_t number = 0; number < recorded_.kinds.size(); ++number)
      for (int kind = 0; kind < recording::kind_count; ++kind)
        if (recorded_.kinds[number] == kind_name(static_cast<recording::Kind>(kind)))
          recorded_.meanings[number] = static_cast<recording::Kind>(kind);
    known_kinds_ = recorded_.kinds.size();
  }

  void record(std::string_view bytes) {
    SpanRecord record;
    std::memcpy(&record, bytes.data(), sizeof record);
    const auto begin = static_cast<std::int64_t>(record.begin - recorded_.began);
    if (begin < -longest || begin > (recorded_.complete ? recorded_.length : longest)) {
      ++recorded_.damaged;
    } else if (record.type == SpanRecord::counter) {
      const auto value = std::bit_cast<double>(record.duration);
      if (begin >= 0 && std::isfinite(value)) recorded_.counters.push_back({begin, value, text_.place_of(record.name)});
    } else if (record.type == SpanRecord::span && record.duration < static_cast<std::uint64_t>(longest)) {
      span(record, begin);
    } else {
      ++recorded_.damaged;
    }
  }

  void span(const SpanRecord& record, std::int64_t begin) {
    // One that began in an earlier recording is told from the beginning of this one on.
    std::int64_t end = begin + static_cast<std::int64_t>(record.duration);
    if (recorded_.complete) end = std::min(end, recorded_.length);
    begin = std::max<std::int64_t>(begin, 0);
    if (end < begin) {
      ++recorded_.damaged;
      return;
    }
    std::uint8_t kind = record.kind;
    if (kind >= known_kinds_) {
      if (recorded_.kinds.size() == known_kinds_ && known_kinds_ < 256) recorded_.kinds.emplace_back(unknown);
      kind = static_cast<std::uint8_t>(recorded_.kinds.size() - 1);
    }
    auto amount = [](double given) { return std::isfinite(given) && given > 0 ? given : 0; };
    recorded_.spans.push_back({begin, end - begin, amount(record.bytes), amount(record.flops),
                               text_.place_of(record.name), record.thread, kind});
  }

  void finish() {
    name_threads();
    std::sort(recorded_.counters.begin(), recorded_.counters.end(),
              [](const RecordedCounter& a, const RecordedCounter& b) {
                return std::pair(a.name, a.time) < std::pair(b.name, b.time);
              });
    nest();
    if (recorded_.complete) return;
    for (const RecordedSpan& span : recorded_.spans) recorded_.length = std::max(recorded_.length, span.end());
    for (const RecordedCounter& counter : recorded_.counters)
      recorded_.length = std::max(recorded_.length, counter.time);
    for (const files::Json& note : recorded_.notes)
      if (std::optional<std::int64_t> time = known_integer_in(note, "time")) {
        const auto since = static_cast<std::int64_t>(static_cast<std::uint64_t>(*time) - recorded_.began);
        if (since < longest) recorded_.length = std::max(recorded_.length, since);
      }
  }

  /// Threads get numbers in the order of their own, without holes.
  void name_threads() {
    std::vector<bool> used(65536);
    for (const RecordedSpan& span : recorded_.spans) used[span.thread] = true;
    std::vector<std::uint16_t> places(65536);
    for (std::size_t number = 0; number < used.size(); ++number) {
      if (!used[number]) continue;
      places[number] = static_cast<std::uint16_t>(recorded_.threads.size());
      recorded_.threads.push_back(text("thread ", number));
    }
    for (const files::Json& note : recorded_.notes) {
      if (string_in(note, "note") != "thread") continue;
      const std::int64_t number = known_integer_in(note, "thread").value_or(-1);
      if (number >= 0 && number < 65536 && used[static_cast<std::size_t>(number)] && !string_in(note, "name").empty())
        recorded_.threads[places[static_cast<std::size_t>(number)]] = string_in(note, "name");
    }
    for (RecordedSpan& span : recorded_.spans) span.thread = places[span.thread];
  }

  void nest() {
    std::sort(recorded_.spans.begin(), recorded_.spans.end(), [](const RecordedSpan& a, const RecordedSpan& b) {
      if (a.thread != b.thread) return a.thread < b.thread;
      return a.begin != b.begin ? a.begin < b.begin : a.duration > b.duration;
    });
    std::vector<std::int64_t> ends;  // of the spans around this one
    const RecordedSpan* last = nullptr;
    for (RecordedSpan& span : recorded_.spans) {
      if (!last || last->thread != span.thread) ends.clear();
      while (!ends.empty() && ends.back() <= span.begin) ends.pop_back();
      if (!ends.empty() && span.end() > ends.back()) span.duration = ends.back() - span.begin;
      ends.push_back(span.end());
      last = &span;
    }
  }

  std::string_view bytes_;
  Recorded& recorded_;
  TextReader text_;
  std::size_t chunk_bytes_ = recording::chunk_bytes, known_kinds_ = 0;
  std::vector<std::string_view> span_chunks_;
};

}  // namespace

Recorded parse_recording(std::string_view bytes, const std::string& name, Where where) {
  recording_bytes::require_recording(bytes, {"recording", name, where});
  Recorded out;
  out.path = name;
  Parser(bytes, out).run();
  return out;
}

}  // namespace stet::reporting
