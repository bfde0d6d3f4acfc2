// Dataset::explain(): what the last iteration spent its time on.
#include <algorithm>
#include <cstdio>
#include <unordered_set>
#include <utility>
#include <vector>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/data/stage.h"
#include "stet/runtime/parallel.h"
#include "stet/runtime/recording.h"

namespace stet::data {
namespace {

/// "3.2 ms", "840 ns".
std::string duration(double nanoseconds) {
  constexpr std::pair<double, const char*> units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}};
  for (const auto& [size, unit] : units)
    if (nanoseconds >= size || size == 1) {
      char out[32];
      const double value = nanoseconds / size;
      std::snprintf(out, sizeof out, value < 10 && size > 1 ? "%.1f %s" : "%.0f %s", value, unit);
      return out;
    }
  return {};
}

/// Columns count characters, not bytes: "µ" is one.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// What one stage did.
struct Row {
  const Stage* stage;
  std::uint64_t elements = 0;
  double own = 0;             // nanoseconds in it, without upstream, of all its threads
  std::uint64_t threads = 1;  // that share this
  bool positions = false;     // makes no elements
  std::string note = {};

  double critical() const { return own / static_cast<double>(threads); }
  double each() const { return elements == 0 ? 0 : own / static_cast<double>(elements); }
};

/// Time from asking a stage for elements to having them.
double inclusive(const Stage& stage, Statistics& statistics) {
  const Stage& timed = stage.source() ? stage.source()->stage() : stage;
  return static_cast<double>(StageStatistics::read(statistics.of(&timed)->nanoseconds));
}

std::string note_of(const Row& row, const StageStatistics& numbers, double elapsed) {
  std::string out;
  if (!row.stage->facts().threading.empty() && row.threads > 0 && elapsed > 0) {
    const double busy = std::min(100.0, 100 * row.own / static_cast<double>(row.threads) / elapsed);
    out = text(row.threads, row.threads == 1 ? " thread" : " threads", ", busy ", static_cast<int>(busy + 0.5), " %");
  }
  if (const std::uint64_t looks = StageStatistics::read(numbers.looks); looks > 0) {
    char ready[64];
    std::snprintf(ready, sizeof ready, "%.1f of %llu ready",
                  static_cast<double>(StageStatistics::read(numbers.found)) / static_cast<double>(looks),
                  static_cast<unsigned long long>(StageStatistics::read(numbers.room)));
    out += text(out.empty() ? "" : ", ", ready);
  }
  return out;
}

std::vector<Row> rows_of(const std::vector<const Stage*>& stages, Statistics& statistics, double elapsed) {
  std::vector<Row> rows;
  for (const Stage* stage : stages) {
    const StageStatistics& numbers = *statistics.of(stage);
    Row row{.stage = stage, .elements = StageStatistics::read(numbers.elements)};
    row.positions = stage->source() && &stage->source()->stage() != stage;
    if (row.positions) {
      row.note = "positions only";
    } else if (stage->has_threads()) {
      row.own = static_cast<double>(StageStatistics::read(numbers.busy));
      row.threads = std::max<std::uint64_t>(StageStatistics::read(numbers.threads), 1);
      row.note = note_of(row, numbers, elapsed);
    } else {
      row.own = static_cast<double>(StageStatistics::read(numbers.nanoseconds));
      std::unordered_set<const Stage*> counted;
      for (const StagePointer& before : stage->upstreams()) {
        const Stage* timed = before->source() ? &before->source()->stage() : before.get();
        if (counted.insert(timed).second) row.own -= inclusive(*before, statistics);
      }
      row.own = std::max(row.own, 0.0);
      // Of a source whose elements are made by the threads of the map behind it.
      row.threads = std::max<std::uint64_t>(StageStatistics::read(numbers.threads), 1);
      if (row.threads > 1) row.note = text("on ", row.threads, " threads");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Lines of cells, columns aligned; the first two to the left, numbers to the right.
std::string table(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width(line[i]));
  }
  std::string out;
  for (const std::vector<std::string>& line : lines) {
    std::string row;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string space(widths[i] - width(line[i]), ' ');
      const bool left = i < 2 || i + 1 == line.size();
      row += text(i > 0 ? "  " : "", left ? line[i] : space, left ? space : line[i]);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    out += row + "\n";
  }
  return out;
}

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* one) { return name == one; });
}

/// Batches somewhere between the stage and the end, or before it.
bool batched(const Stage& last) {
  for (const Stage* stage : all_stages(last))
    if (is_one_of(stage->facts().name, {"batch", "padded_batch", "ragged_batch", "bucket_by_sequence_length"}))
      return true;
  return false;
}

/// What would help with the stage that takes the longest.
std::string advice_for(const Row& slow, const Stage& last) {
  const Stage& stage = *slow.stage;
  const std::string& name = stage.facts().name;
  const int cpus = thread_count();
  const bool batches_later = batched(last) && !batched(stage);
  if (is_one_of(name, {"map", "map_host", "interleave", "flat_map"})) {
    const std::string batch_first =
        name == "map" && batches_later ? "batch first, where it means the same for a batch" : "";
    const auto threads = static_cast<int>(stage.has_threads() ? slow.threads : 1);
    if (name != "flat_map" && threads < cpus)
      return text(stage.has_threads() ? text("it has ", threads, threads == 1 ? " thread" : " threads")
                                      : "it runs on one thread",
                  ": .num_parallel_calls = ", cpus, batch_first.empty() ? "" : text(", or ", batch_first));
    if (name == "flat_map" && cpus > 1)
      return text("it runs on one thread: interleave with .num_parallel_calls = ", cpus);
    return text("every CPU works on it already: ",
                batch_first.empty() ? "do less in it, or cache() its results" : batch_first);
  }
  if (is_one_of(name, {"filter", "filter_host", "take_while", "scan", "rejection_resample"}))
    return "it runs on one thread: do less in it; leave work on elements that stay to a map after it";
  if (name == "shuffle") return "it holds whole elements: shuffle right after the source, where it holds positions";
  if (is_one_of(name, {"batch", "window", "padded_batch", "ragged_batch", "bucket_by_sequence_length"}))
    return "it copies elements: keep them small (u8, say) and cast after the batch";
  if (name == "cache") return "it reads or writes a file: cache() in memory, or cache smaller elements";
  if (stage.upstreams().empty() && stage.source()) {
    const auto threads = static_cast<int>(slow.threads);
    if (threads >= cpus && threads > 1) return "every CPU works on it already: do less in it, or cache() its results";
    return text(
        "its host code runs on ", threads == 1 ? "one thread" : text(threads, " threads"),
        ": the threads of a map right behind it make its elements, with .num_parallel_calls = ", std::max(cpus, 2));
  }
  if (stage.upstreams().empty())
    return text("its host code runs on one thread: let it give what is cheap, a name or a number, and do the work in ",
                "map_host with .num_parallel_calls = ", std::max(cpus, 2));
  return "do less in it";
}

std::string percent(double share) { return text(static_cast<int>(100 * share + 0.5), " %"); }

/// Nanoseconds that an element may take from thread to thread, and less than which no stage is to blame for.
constexpr double handing_over = 10'000;

std::string verdict(const std::vector<Row>& rows, const Stage& last, double waited, double elapsed,
                    std::uint64_t elements) {
  if (elements < 2 || elapsed <= 0) return "too few elements came to tell whether training waits";
  const double share = std::min(1.0, waited / elapsed);
  if (share < 0.01) return "training never waited";
  if (share < 0.03) return text("training waited ", percent(share), " of the time: the pipeline keeps up");
  if (const double each = waited / static_cast<double>(elements - 1); each < handing_over)
    return text("training waited ", percent(share), " of the time, ", duration(each),
                " an element, which is what handing one over takes: make batches larger");
  const Row* slow = nullptr;
  for (const Row& row : rows)
    if (!slow || row.critical() > slow->critical()) slow = &row;
  std::string out = text("training waited ", percent(share), " of the time");
  if (slow->own <= 0) return text(out, ", and no stage took long: were other programs on the same CPUs?");
  out += text(" for: ", called(*slow->stage), " (", duration(slow->each()), " an element); ");
  const bool ahead =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.stage->facts().name == "prefetch"; });
  const bool would_do = waited < 0.9 * (elapsed - waited);  // beside the program's own work there is time for all of it
  if (!ahead && would_do) return out + "elements are made when they are asked for: .prefetch(2) at the end";
  out += advice_for(*slow, last);
  if (!ahead) out += "; and .prefetch(2) at the end";
  return out;
}

}  // namespace

void record_stages(const Stage& last, Statistics& statistics) {
  const double elapsed = static_cast<double>(StageStatistics::read(statistics.last_had)) -
                         static_cast<double>(StageStatistics::read(statistics.first_had)) +
                         static_cast<double>(StageStatistics::read(statistics.first_wait));
  files::Json::List stages;
  for (const Row& row : rows_of(all_stages(last), statistics, elapsed))
    stages.push_back(files::Json::Object{{"name", called(*row.stage)},
                                         {"depth", row.stage->depth()},
                                         {"elements", static_cast<std::int64_t>(row.elements)},
                                         {"seconds", row.own * 1e-9},
                                         {"threads", static_cast<std::int64_t>(row.threads)}});
  recording::note({{"note", "stages"}, {"name", described(last)}, {"stages", std::move(stages)}});
}

std::string DatasetBase::explain() const {
  std::shared_ptr<Statistics> statistics;
  {
    std::lock_guard lock(stage_->last_guard);
    statistics = stage_->last_statistics;
  }
  if (!statistics) return text(described(*stage_), "\nno iteration of this dataset was begun yet\n");
  const std::vector<const Stage*> stages = all_stages(*stage_);
  const std::uint64_t elements = StageStatistics::read(statistics->elements);
  const auto first_had = static_cast<double>(StageStatistics::read(statistics->first_had));
  const double elapsed = static_cast<double>(StageStatistics::read(statistics->last_had)) - first_had;
  const auto waited = static_cast<double>(StageStatistics::read(statistics->waited));
  const auto first_wait = static_cast<double>(StageStatistics::read(statistics->first_wait));
  const std::vector<Row> rows = rows_of(stages, *statistics, first_wait + elapsed);
  double all = 0;
  for (const Row& row : rows) all += row.own;

  std::vector<std::vector<std::string>> lines{{"stage", "line", "elements", "each", "share", ""}};
  for (const Row& row : rows) {
    const StageFacts& facts = row.stage->facts();
    std::string name = called(*row.stage);
    if (!facts.threading.empty()) name += text(" {", facts.threading, "}");
    const bool timed = row.own > 0;
    lines.push_back({std::move(name), at_line(facts.where, ""), row.positions ? "" : text(row.elements),
                     timed ? duration(row.each()) : "", timed && all > 0 ? percent(row.own / all) : "", row.note});
  }
  std::string out = table(lines);
  if (elements == 0) return out + "no element has come yet\n";
  out += text(elements, elements == 1 ? " element" : " elements", "; the first came after ", duration(first_wait));
  if (elements > 1 && elapsed > 0)
    out += text(", the others in ", duration(elapsed), ", of which training waited ", duration(waited));
  return text(out, "\n", verdict(rows, *stage_, waited, elapsed, elements), "\n");
}

}  // namespace stet::data
