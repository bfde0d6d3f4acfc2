// Recordings that tests make: by the recorder itself, and byte by byte.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "stet/files/json.h"
#include "stet/report/recorded.h"
#include "stet/runtime/recording.h"
#include "stet/runtime/recording_format.h"
#include "tests/files/files.h"

namespace stet::reporting {

/// A file of a recording as a program would have written it, with times that the test chooses: ns from its beginning.
class HandMade {
 public:
  static constexpr std::uint64_t began = 5'000'000'000;

  explicit HandMade(std::uint64_t length, std::uint64_t lost = 0) : bytes_(recording::head_bytes, '\0') {
    std::memcpy(bytes_.data(), recording::magic, sizeof recording::magic);
    poke(offsetof(recording::Head, version), recording::format_version);
    poke(offsetof(recording::Head, chunk_bytes), static_cast<std::uint32_t>(recording::chunk_bytes));
    poke(offsetof(recording::Head, began), began);
    poke(offsetof(recording::Head, began_at), std::uint64_t{1'700'000'000'000'000'000});
    poke(offsetof(recording::Head, ended), began + length);
    poke(offsetof(recording::Head, lost), lost);
    files::Json::List kinds;
    for (int kind = 0; kind < recording::kind_count; ++kind)
      kinds.emplace_back(recording::kind_name(static_cast<recording::Kind>(kind)));
    note({{"note", "begin"},
          {"program", "train"},
          {"stet", "0.1.0"},
          {"threads", 2},
          {"cpu", "a processor"},
          {"kinds", std::move(kinds)}});
  }

  void span(recording::Kind kind, const std::string& name, std::uint64_t begin, std::uint64_t end, double bytes = 0,
            double flops = 0, std::uint16_t thread = 0) {
    record({recording::SpanRecord::span, static_cast<std::uint8_t>(kind), thread, name_of(name), began + begin,
            end - begin, bytes, flops});
  }
  void counter(const std::string& name, std::uint64_t time, double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    record({recording::SpanRecord::counter, 0, 0, name_of(name), began + time, bits, 0, 0});
  }
  void record(const recording::SpanRecord& record) {
    spans_.append(reinterpret_cast<const char*>(&record), sizeof record);
  }
  void note(files::Json::Object what, std::uint64_t time = 0) {
    what.emplace_back("time", static_cast<std::int64_t>(began + time));
    entry(recording::TextHead::note, files::to_text(files::Json(std::move(what))));
  }
  void entry(std::uint32_t kind, std::string_view body) {
    const recording::TextHead head{kind, static_cast<std::uint32_t>(body.size())};
    text_.append(reinterpret_cast<const char*>(&head), sizeof head);
    text_ += body;
  }

  /// `chunk_bytes`: other versions may have chunks of another size.
  std::string bytes(std::size_t chunk_bytes = recording::chunk_bytes) const {
    std::string out = bytes_;
    files::poke(out, offsetof(recording::Head, chunk_bytes), static_cast<std::uint32_t>(chunk_bytes));
    std::uint64_t number = 0;
    auto chunks = [&](std::string_view all, recording::Content content, std::size_t room) {
      for (; !all.empty(); all.remove_prefix(std::min(room, all.size()))) {
        const std::string_view part = all.substr(0, room);
        struct {
          std::uint64_t number;
          recording::Content content;
          std::uint32_t used;
        } head{++number, content, static_cast<std::uint32_t>(part.size())};
        out.append(reinterpret_cast<const char*>(&head), sizeof head);
        out += part;
        out.append(chunk_bytes - sizeof head - part.size(), '\0');
      }
    };
    const std::size_t room = chunk_bytes - sizeof(recording::ChunkHead);
    chunks(text_, recording::Content::text, room);
    chunks(spans_, recording::Content::spans, room - room % sizeof(recording::SpanRecord));
    return out;
  }
  Recorded read() const { return parse_recording(bytes(), "made"); }

  template <class T>
  void poke(std::size_t at, T value) {
    files::poke(bytes_, at, value);
  }

 private:
  std::uint32_t name_of(const std::string& name) {
    auto [found, added] = names_.try_emplace(name, static_cast<std::uint32_t>(names_.size() + 1));
    if (added) {
      std::string body(reinterpret_cast<const char*>(&found->second), sizeof found->second);
      entry(recording::TextHead::name, body + name);
    }
    return found->second;
  }

  std::string bytes_, text_, spans_;
  std::map<std::string, std::uint32_t> names_;
};

/// A run of three seconds in which there is one of everything that a recording can tell.
inline HandMade whole_recording(std::uint64_t length = 3'000'000'000) {
  using files::Json;
  using recording::Kind;
  constexpr std::uint64_t ms = 1'000'000;
  HandMade made(length);
  const Json::Object node{
      {"op", "add"},         {"kernel", "matmul"},       {"text", "add x y"}, {"scope", "model/dense"},
      {"in", Json::List{0}}, {"file", "/src/train.cpp"}, {"line", 30},        {"made_of", Json::List{"add"}}};
  const Json::Object graph{{"nodes", Json::List{node, node}}};
  for (int number : {1, 2}) {
    made.note({{"note", "trace"},
               {"id", number},
               {"function", "train_step(x, y)"},
               {"file", "/src/train.cpp"},
               {"line", 10},
               {"number", number},
               {"begin", static_cast<std::int64_t>(HandMade::began) + number * 100 * static_cast<std::int64_t>(ms)},
               {"seconds", 0.0625},
               {"compile_seconds", 0.25},
               {"nearest", number - 1},
               {"max_traces", 64},
               {"on_limit", "evict"},
               {"arguments", "x: f32[b,5], y: i32[b]"},
               {"called_with", "f32[32,5], i32[32]"},
               {"call_file", "/src/train.cpp"},
               {"call_line", 57},
               {"facts", Json::List{Json::Object{{"text", "s0 == 5"},
                                                 {"pin", true},
                                                 {"file", "/src/train.cpp"},
                                                 {"line", 12},
                                                 {"asked_by", "host code"}}}},
               {"cause", number == 1 ? "" : "argument 0 'x' f32[b,5] -> f64[b,5] dtype changed"},
               {"fixes", number == 1 ? Json::List{} : Json::List{"cast(x, f32) before the call"}},
               {"constants", Json::List{Json::Object{{"text", "f32[10], a constant"}, {"bytes", 40}}}},
               {"passes", Json::List{Json::Object{
                              {"name", "fuse_maps"}, {"seconds", 0.0125}, {"nodes_before", 9}, {"nodes_after", 4}}}},
               {"graph", graph},
               {"program", graph},
               {"bytes", 1000}});
    made.note({{"note", "trace_calls"}, {"id", number}, {"calls", 20}});
  }
  made.note({{"note", "source"}, {"file", "/src/train.cpp"}, {"line", 57}, {"lines", Json::List{"train_step(x, y);"}}});
  made.note({{"note", "kernel"},
             {"name", "matmul"},
             {"made_of", Json::List{"matmul", "add"}},
             {"not_fused", "a sum"},
             {"scope", "model/dense"},
             {"file", "/src/train.cpp"},
             {"line", 30}});
  made.note({{"note", "event"}, {"kind", "retrace"}, {"function", "train_step(x, y)"}, {"text", "why"}}, 200 * ms);
  made.note({{"note", "event"}, {"kind", "warning"}, {"function", "train_step(x, y)"}, {"text", "slow"}}, 300 * ms);
  made.note(
      {{"note", "stages"},
       {"name", "train"},
       {"stages", Json::List{Json::Object{{"name", "batch(32)"}, {"depth", 0}, {"elements", 40}, {"seconds", 0.25}}}}});
  made.note({{"note", "epoch"},
             {"name", "mlp"},
             {"epoch", 1},
             {"epochs", 1},
             {"begin", static_cast<std::int64_t>(HandMade::began)},
             {"seconds", 2.5},
             {"waited", 0.25},
             {"batches", 40},
             {"values", Json::Object{{"loss", 0.5}}}});
  made.span(Kind::epoch, "mlp", 0, 2500 * ms);
  made.span(Kind::wait, "train", 0, 250 * ms);
  for (std::uint64_t batch = 0; batch < 40; ++batch) {
    const std::uint64_t begin = (300 + 50 * batch) * ms;
    made.span(Kind::call, "train_step(x, y)", begin, begin + 45 * ms);
    made.span(Kind::step, "matmul", begin + 1 * ms, begin + 40 * ms, 1e6, 2e9);
    made.span(Kind::region, "matmul", begin + 2 * ms, begin + 39 * ms, 0, 0, 1);
    made.counter("memory of tensors", begin, static_cast<double>(1000 * batch));
  }
  made.note({{"note", "counts"},
             {"calls looked up", 3},
             {"kernels compiled", 2},
             {"kernels from the object cache", 6},
             {"allocations", 1000},
             {"allocations from the system", 10}});
  return made;
}

constexpr std::uint64_t us = 1000, ms = 1'000'000, s = 1'000'000'000;

/// What the recorder makes of `told`, in memory.
template <class Told>
std::string recorded_bytes(const Told& told, std::size_t most_bytes = std::size_t{64} << 20) {
  const std::uint64_t number = recording::begin({.most_bytes = most_bytes});
  told();
  std::string bytes = recording::contents();
  recording::end(number);
  return bytes;
}

}  // namespace stet::reporting
