#include "stet/runtime/recorded_steps.h"

#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>

#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/runtime/program.h"
#include "stet/runtime/step_cost.h"

namespace stet {
namespace {

constinit thread_local recording::Name running = 0;

constexpr std::size_t most_ops_named = 4, most_title = 160;

/// The steps that a recording knows, by name and by the place that they are of: equal layers have equal steps.
struct ToldSteps {
  Lock guard;
  std::uint64_t session = 0;
  std::unordered_set<std::string> steps;
  bool is_new(std::string step) {
    std::lock_guard lock(guard);
    if (std::exchange(session, recording::session()) != recording::session()) steps.clear();
    return steps.insert(std::move(step)).second;
  }
};
ToldSteps& told_steps() {
  static auto* const one = new ToldSteps;  // never destroyed: see thread_end.h
  return *one;
}

void tell_step(const Step& step, recording::Name number, const std::string& name) {
  if (!step.origin) return;
  const StepOrigin& origin = *step.origin;
  const std::string scope = origin.name_scope ? *origin.name_scope : std::string();
  const bool has_place = origin.where.known();
  const std::string file = has_place ? origin.where.file : "";
  const int line = has_place ? origin.where.line : 0;
  if (!told_steps().is_new(text(number, " ", line, " ", file, " ", scope))) return;
  files::Json::List ops;
  for (const char* op : origin.ops) ops.emplace_back(op);
  recording::note({{"note", "kernel"},
                   {"name", name},
                   {"made_of", std::move(ops)},
                   {"not_fused", origin.apart},
                   {"scope", scope},
                   {"file", has_place ? files::Json(file) : files::Json()},
                   {"line", has_place ? files::Json(line) : files::Json()}});
}

}  // namespace

std::string recorded_name(const Step& step) {
  std::string out;
  if (step.origin && step.origin->ops.size() > 1) {
    const std::vector<const char*>& ops = step.origin->ops;
    for (std::size_t i = 0; i < std::min(ops.size(), most_ops_named); ++i) out += text(i ? "+" : "", ops[i]);
    if (ops.size() > most_ops_named) out += text("+", ops.size() - most_ops_named, " more");
    out += ": ";
  }
  out += step.title();
  if (out.size() > most_title) out = text(out.substr(0, most_title), "…");
  return out;
}

RecordedStep recorded_step(const Program& program, std::size_t number, const Bindings& bindings) {
  const Step& step = *program.steps[number];
  const std::string name = recorded_name(step);
  RecordedStep out{.name = recording::name_of(name)};
  tell_step(step, out.name, name);
  if (!step.children().empty()) return out;
  out.bytes = static_cast<double>(touched_bytes(program, step, bindings));
  out.flops = static_cast<double>(known_size(step.flops(), bindings));
  return out;
}

RecordedSteps::RecordedSteps(const Program& program, const Bindings& bindings) : told_(recording::session()) {
  for (std::size_t s = 0; s < program.steps.size(); ++s) steps_.push_back(recorded_step(program, s, bindings));
}

void RecordedSteps::tell(const Program& program) const {
  if (told_.exchange(recording::session()) == recording::session()) return;
  for (std::size_t s = 0; s < steps_.size(); ++s)
    tell_step(*program.steps[s], steps_[s].name, recorded_name(*program.steps[s]));
}

recording::Name running_step() { return running; }

StepClock::StepClock(const RecordedStep& step)
    : step_(step), outer_(std::exchange(running, step.name)), begin_(recording::now()) {}

StepClock::~StepClock() {
  recording::span(recording::Kind::step, step_.name, begin_, recording::now(), step_.bytes, step_.flops);
  running = outer_;
}

}  // namespace stet
