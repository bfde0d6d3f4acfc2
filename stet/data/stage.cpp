#include "stet/data/stage.h"

#include <algorithm>
#include <unordered_set>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/runtime/recording.h"

namespace stet::data {
namespace {

class TimedElements : public Elements {
 public:
  TimedElements(std::unique_ptr<Elements> inside, const Stage& stage, StageStatistics& statistics)
      : inside_(std::move(inside)), stage_(stage), statistics_(statistics) {}
  bool next(Tensors& out) override {
    const std::uint64_t begin = nanoseconds_now();
    const bool more = inside_->next(out);
    StageStatistics::add(statistics_.nanoseconds, nanoseconds_now() - begin);
    record_work(stage_, begin);
    if (more) StageStatistics::add(statistics_.elements, 1);
    return more;
  }
  std::int64_t skip(std::int64_t count) override { return inside_->skip(count); }

 private:
  std::unique_ptr<Elements> inside_;
  const Stage& stage_;
  StageStatistics& statistics_;
};

std::uint64_t hash_of(std::string_view text, std::uint64_t seed) {
  for (char c : text) seed = combined(seed, static_cast<unsigned char>(c));
  return seed;
}

constexpr std::uint64_t quick = 5'000;  // nanoseconds: told, they would push out what matters

}  // namespace

std::string called(const Stage& stage) {
  const StageFacts& facts = stage.facts();
  std::string out = facts.name;
  if (!facts.arguments.empty()) out += text("(", facts.arguments, ")");
  if (!facts.label.empty()) out += text(" '", facts.label.substr(0, facts.label.find('(')), "'");
  return out;
}

void record_work(const Stage& stage, std::uint64_t begin) {
  if (!recording::on()) return;
  const std::uint64_t end = recording::now();
  if (end - begin >= quick) recording::span(recording::Kind::stage, recording::name_of(called(stage)), begin, end);
}

Stage::Stage(StageFacts facts, std::vector<StagePointer> upstreams)
    : facts_(std::move(facts)), upstreams_(std::move(upstreams)), depth_(1) {
  for (const StagePointer& before : upstreams_) {
    depth_ = std::max(depth_, before->depth() + 1);
    facts_.draws |= before->draws();
  }
  if (facts_.passes_on) {
    fingerprint_ = upstreams_[0]->fingerprint();
    return;
  }
  fingerprint_ = hash_of(facts_.arguments, hash_of(facts_.name, static_cast<std::uint64_t>(upstreams_.size())));
  for (const StagePointer& before : upstreams_) fingerprint_ = combined(fingerprint_, before->fingerprint());
}

std::unique_ptr<Elements> Stage::elements(const Pass& pass) const {
  std::unique_ptr<Elements> opened = open(pass);
  // Choosing positions takes nanoseconds, less than looking at a clock; sources time the host code that they call.
  StageStatistics* statistics = pass.statistics && !source_ ? pass.statistics->of(this) : nullptr;
  if (!statistics) return opened;
  return std::make_unique<TimedElements>(std::move(opened), *this, *statistics);
}

void require_depth(const Stage& stage, const char* what, Where where) {
  constexpr int most_stages = 1000;
  if (stage.depth() >= most_stages)
    throw UserError(error_text(text(what, ": a pipeline of more than ", most_stages, " stages"), where,
                               "is the dataset made longer in a loop? begin with the same one each time"));
}

std::string described(const Stage& last) {
  constexpr std::size_t most = 12;
  std::vector<const Stage*> stages = all_stages(last);
  std::string out;
  if (stages.size() > most) {
    out = "… > ";
    stages.erase(stages.begin(), stages.end() - most);
  }
  for (const Stage* stage : stages)
    out += text(stage == stages[0] ? "" : " > ", stage->facts().name, "(", stage->facts().arguments, ")");
  return out;
}

std::vector<const Stage*> all_stages(const Stage& last) {
  std::vector<const Stage*> out;
  std::unordered_set<const Stage*> seen;
  auto add = [&](const Stage& stage, auto&& again) -> void {
    if (!seen.insert(&stage).second) return;
    for (const StagePointer& before : stage.upstreams()) again(*before, again);
    out.push_back(&stage);
  };
  add(last, add);
  return out;
}

void settle(const std::vector<const Stage*>& stages, std::uint64_t drawn, std::uint64_t iteration) {
  std::uint64_t number = 0;
  for (const Stage* stage : stages)
    if (const FirstPass* first = stage->first_pass()) {
      first->settle({number == 0 ? drawn : combined(drawn, number), iteration});
      ++number;
    }
}

}  // namespace stet::data
