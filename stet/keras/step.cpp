#include "stet/keras/step.h"

#include "stet/base/text.h"
#include "stet/keras/layer_state.h"

namespace stet::keras {

std::string ModelForm::State::description() const {
  std::lock_guard lock(guard_);
  return description_;
}
void ModelForm::State::become(std::uint64_t number, std::string description) {
  {
    std::lock_guard lock(guard_);
    description_ = std::move(description);
  }
  set_changes(number);
}
void ModelForm::State::refresh() {
  const std::uint64_t now = layer_changes();
  if (seen_.exchange(now) != now) look_();
}

Step::Step(std::string name, Run run, bool eagerly)
    : name_(std::move(name)),
      run_(std::move(run)),
      eagerly_(eagerly),
      of_x_(
          text(name_, "(x, model)"), [this](Tensor x, ModelForm) { return this->run(Batch{.x = x}); }, {}, Where{}),
      of_x_y_(
          text(name_, "(x, y, model)"),
          [this](Tensor x, Tensor y, ModelForm) { return this->run(Batch{.x = x, .y = y}); }, {}, Where{}),
      of_x_y_weight_(
          text(name_, "(x, y, sample_weight, model)"),
          [this](Tensor x, Tensor y, Tensor weight, ModelForm) {
            return this->run(Batch{.x = x, .y = y, .sample_weight = weight});
          },
          {}, Where{}),
      of_several_(
          text(name_, "(x, y, sample_weight, model)"),
          [this](std::vector<Tensor> x, std::vector<Tensor> y, std::vector<Tensor> weight, ModelForm) {
            auto others = [](std::vector<Tensor>& all) {
              std::vector<Tensor> out;
              if (all.size() > 1) out.assign(all.begin() + 1, all.end());
              return out;
            };
            return this->run({x[0], y[0], weight[0], others(x), others(y), others(weight)});
          },
          {}, Where{}) {}

std::vector<Tensor> Step::run(const Batch& batch) {
  std::vector<std::string> names;
  std::vector<Tensor> values;
  for (auto& [name, value] : run_(batch)) {
    names.push_back(std::move(name));
    values.push_back(std::move(value));
  }
  std::lock_guard lock(guard_);
  names_ = std::move(names);
  return values;
}

std::vector<Tensor> Step::operator()(const Batch& batch, const ModelForm& model, Where where) {
  if (eagerly_) return run(batch);
  model.state().refresh();
  auto note = [&](const FunctionBase& used) {
    std::lock_guard lock(guard_);
    last_ = used;
  };
  if (!batch.more_x.empty() || !batch.more_y.empty() || !batch.more_sample_weight.empty()) {
    note(of_several_);
    return of_several_(batch.all_x(), batch.all_y(), batch.all_sample_weights(), model, where);
  }
  if (batch.y.defined() && batch.sample_weight.defined()) {
    note(of_x_y_weight_);
    return of_x_y_weight_(batch.x, batch.y, batch.sample_weight, model, where);
  }
  if (batch.y.defined()) {
    note(of_x_y_);
    return of_x_y_(batch.x, batch.y, model, where);
  }
  note(of_x_);
  return of_x_(batch.x, model, where);
}

void Step::prepare(const Batch& batch, const ModelForm& model, Where where) {
  if (eagerly_) {
    run(batch);
    return;
  }
  model.state().refresh();
  if (!batch.more_x.empty() || !batch.more_y.empty() || !batch.more_sample_weight.empty())
    of_several_.concrete(batch.all_x(), batch.all_y(), batch.all_sample_weights(), model, where);
  else if (batch.y.defined() && batch.sample_weight.defined())
    of_x_y_weight_.concrete(batch.x, batch.y, batch.sample_weight, model, where);
  else if (batch.y.defined())
    of_x_y_.concrete(batch.x, batch.y, model, where);
  else
    of_x_.concrete(batch.x, model, where);
}

std::vector<std::string> Step::names() const {
  std::lock_guard lock(guard_);
  return names_;
}
std::optional<FunctionBase> Step::function() const {
  std::lock_guard lock(guard_);
  return last_;
}
int Step::trace_count() const {
  return of_x_.trace_count() + of_x_y_.trace_count() + of_x_y_weight_.trace_count() + of_several_.trace_count();
}

}  // namespace stet::keras
