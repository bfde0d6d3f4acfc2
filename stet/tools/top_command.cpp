// stet top: a program that runs, seen through the recording that it writes.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/report/report_data.h"
#include "stet/tools/commands.h"
#include "stet/tools/output.h"
#include "stet/tools/recordings.h"
#include "stet/tools/words.h"

namespace stet::tools {
namespace {

using files::Json;
using reporting::Recorded;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds between_looks{1000};

/// Lines of the terminal.
std::size_t terminal_height() {
  constexpr std::size_t usual = 24;
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : usual;
}

struct Look {
  std::string table, state;
  bool runs = false, died = false;
  std::int64_t length = 0;
};

/// `before`: the last look at it, if there was one.
Look look(const std::string& path, const Look* before = nullptr) {
  const Recorded recorded = reporting::read_recording(path);
  Look out;
  out.length = recorded.length;
  // A program in another container has a number that says nothing here.
  out.runs = is_being_written(recorded) || (!recorded.complete && before && recorded.length > before->length);
  out.died = !out.runs && !recorded.complete;
  out.state = out.runs   ? "it runs; Ctrl-C ends this view, and not the program"
              : out.died ? "the program has died: its recording was not ended"
                         : "the program has ended its recording";
  out.table = summary_text(recorded, summarize(recorded), limits_for(recorded), text_options());
  return out;
}

/// The first lines that fit, each cleared to its end, and nothing below.
void draw(const Look& seen) {
  std::string frame = "\33[H";
  std::size_t lines = 0;
  const std::size_t most = std::max<std::size_t>(terminal_height(), 4) - 2;
  for (std::string_view rest = seen.table; !rest.empty() && lines < most; ++lines) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    frame += text(line, "\33[K\n");
  }
  frame += text(in_color(Color::green, seen.state), "\33[K\33[J");
  std::cout << frame << std::flush;
}

int watch(const std::string& path) {
  Look seen = look(path);
  if (seen.died) {
    std::this_thread::sleep_for(between_looks);
    seen = look(path, &seen);
  }
  std::cout << "\33[2J";
  while (seen.runs) {
    draw(seen);
    const Clock::time_point begin = Clock::now();
    std::this_thread::sleep_for(between_looks);
    try {
      Look next = look(path, &seen);
      seen = std::move(next);
    } catch (const UserError&) {
      // The program was started again, and writes its file anew: the next look sees it.
      if (::access(path.c_str(), F_OK) != 0) {
        seen.runs = false;
        seen.state = "the recording is gone";
      }
    }
    // Large recordings take long to read: no more than a fifth of the time goes into it.
    const auto took = Clock::now() - begin - between_looks;
    if (4 * took > between_looks) std::this_thread::sleep_for(4 * took - between_looks);
  }
  std::cout << "\33[H\33[J" << seen.table << in_color(seen.died ? Color::red : Color::green, seen.state) << "\n";
  return seen.died ? 1 : 0;
}

/// What the page gets, without what is large: spans, sources, traces with their graphs.
Json brief_data(const Recorded& recorded) {
  Json whole = report_data(recorded, summarize(recorded), limits_for(recorded));
  Json::Object out;
  out.emplace_back("running", is_being_written(recorded));
  for (auto& [name, value] : *whole.if_object()) {
    constexpr std::string_view kept[] = {"program", "limits", "verdict",  "findings", "shares", "functions",
                                         "kernels", "caches", "training", "stages",   "events"};
    if (std::find(std::begin(kept), std::end(kept), name) == std::end(kept)) continue;
    if (name == "functions")
      for (Json& function : *value.if_list())
        std::erase_if(*function.if_object(), [](const Json::Member& member) { return member.first == "traces"; });
    out.emplace_back(name, std::move(value));
  }
  return out;
}

int run(const Words& words) {
  const std::string path = recording_path(words);
  if (words.has("--json")) {
    const Recorded recorded = reporting::read_recording(path);
    print_json(brief_data(recorded));
    return recorded.complete || is_being_written(recorded) ? 0 : 1;
  }
  if (::isatty(STDOUT_FILENO) && !words.has("--once")) return watch(path);
  const Look seen = look(path);
  std::cout << seen.table << seen.state << "\n";
  return seen.died ? 1 : 0;
}

}  // namespace

const Command top_command{
    .name = "top",
    .help = "what a program is doing that writes a recording",
    .forms = {{"<recording>", "looks once a second until the program has ended; 1 if it died"}},
    .options = {{"--once", "", "look once, as where stdout is no terminal"}, json_option},
    .text =
        "The table is that of stet report, of all that was recorded up to now: start the program with STET_PROFILE "
        "naming a folder, and look at the file that it writes there.\n"
        "\n"
        "  STET_PROFILE=. ./train &\n"
        "  stet top train.stet-profile",
    .run = run};

}  // namespace stet::tools
