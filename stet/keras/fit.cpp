// fit(), evaluate() and predict(): batches through traced steps.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>

#include "stet/base/error.h"
#include "stet/base/terminal.h"
#include "stet/base/text.h"
#include "stet/core/scope.h"
#include "stet/keras/backup_body.h"
#include "stet/keras/callback_list.h"
#include "stet/keras/fit_progress.h"
#include "stet/keras/interrupt.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/model.h"
#include "stet/keras/output_kind.h"
#include "stet/keras/progress_bar.h"
#include "stet/keras/training.h"
#include "stet/keras/used_variables.h"
#include "stet/ops/ops.h"
#include "stet/runtime/log.h"
#include "stet/runtime/recording.h"

namespace stet::keras {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// 0, 1 or 2.
int verbosity(int asked) {
  if (asked != verbose_auto) return asked;
  return ::isatty(STDOUT_FILENO) ? 1 : 2;
}
ProgressBar make_bar(std::optional<std::int64_t> target, int verbose) {
  return ProgressBar(std::cout, {.target = target,
                                 .verbose = verbose,
                                 .in_place = ::isatty(STDOUT_FILENO) != 0,
                                 .color = colored(),
                                 .columns = static_cast<std::size_t>(terminal_width()),
                                 .seconds = seconds_now});
}

[[noreturn]] void refuse(const std::string& what, Where where, const std::string& advice) {
  throw UserError(error_text(what, where, advice));
}

void check_batch_size(const char* call, const char* option, std::int64_t size, Where where) {
  if (size <= 0) refuse(text(call, ": ", option, " = ", size), where, "a batch has at least one sample");
}
void check_steps(const char* call, const char* option, std::int64_t steps, Where where) {
  if (steps < 0) refuse(text(call, ": ", option, " = ", steps), where, "0 stands for all batches");
}
void check_verbose(const char* call, int verbose, Where where) {
  if (verbose < verbose_auto || verbose > 2)
    refuse(text(call, ": verbose = ", verbose), where, "0: silent, 1: a progress bar, 2: one line per epoch");
}
void check_options(const FitOptions& options, Where where) {
  check_batch_size("fit", "batch_size", options.batch_size, where);
  if (options.epochs < 0) refuse(text("fit: epochs = ", options.epochs), where, "it is 0 or more");
  check_verbose("fit", options.verbose, where);
  if (!(options.validation_split >= 0 && options.validation_split < 1))
    refuse(text("fit: validation_split = ", options.validation_split), where, "it is at least 0 and below 1");
  if (options.initial_epoch < 0) refuse(text("fit: initial_epoch = ", options.initial_epoch), where, "it is 0 or more");
  check_steps("fit", "steps_per_epoch", options.steps_per_epoch, where);
  check_steps("fit", "validation_steps", options.validation_steps, where);
  if (options.validation_batch_size < 0)
    refuse(text("fit: validation_batch_size = ", options.validation_batch_size), where, "0 stands for batch_size");
  if (options.validation_freq < 1)
    refuse(text("fit: validation_freq = ", options.validation_freq), where, "it is 1 or more");
}

/// Without a number of steps, what is read must end. `what` is the data that a call was given, `option` its number of
/// steps.
void check_ends(const char* what, const Data& data, const ReadOptions& read, const char* option, std::int64_t steps,
                Where where) {
  if (steps == 0 && data.batch_count(read) == data::infinite)
    refuse(text(what, " never ends"), where, text("say how many batches to take: .", option, " = …"));
}

/// What a step has used, now that the model has this form.
void note_used(Training& training, const char* step, const UsedVariables& used) {
  std::lock_guard lock(training.guard);
  if (!training.forms.empty())
    training.used[{training.forms.back().number, step}].insert(used.all().begin(), used.all().end());
}

/// The step, made when it is asked for the first time since compile().
std::shared_ptr<Step> step_of(CustomModel& model, std::shared_ptr<Step> Training::*which, const char* name,
                              Step::Run run) {
  Training& training = model.training();
  std::lock_guard lock(training.guard);
  if (!(training.*which)) {
    auto framed = [&model, name, run = std::move(run)](const Batch& batch) {
      LayerFrame frame(model, model.name());
      OutputKinds kinds;
      UsedVariables used;
      Step::Report logs = run(batch);
      if (tracing()) note_traced(model);
      note_used(model.training(), name, used);
      return logs;
    };
    training.*which = std::make_shared<Step>(name, std::move(framed), training.options.run_eagerly);
  }
  return training.*which;
}

void check_compiled(CustomModel& model, const char* call, Where where) {
  std::lock_guard lock(model.training().guard);
  if (!model.training().compiled)
    refuse(text(call, ": ", model.description(), " is not compiled"), where,
           "call compile({.optimizer = keras::Adam(), .loss = …}) first");
}

void reset(const std::vector<Metric>& metrics) {
  for (const Metric& metric : metrics) metric.reset_state();
}

/// What a step reported, as numbers; the loss comes first.
ProgressBar::Values values_of(const Step& step, const std::vector<Tensor>& reported, Where where) {
  ProgressBar::Values out;
  std::vector<std::string> names = step.names();
  for (std::size_t i = 0; i < reported.size(); ++i) {
    if (!reported[i].defined() || reported[i].size() != 1)
      refuse(text("the step reports '", names[i], "' as ", described(reported[i])), where,
             "a report is one number: take its mean");
    std::pair<std::string, double> value{names[i], reported[i].item<double>({}, where)};
    if (names[i] == "loss")
      out.insert(out.begin(), std::move(value));
    else
      out.push_back(std::move(value));
  }
  return out;
}

/// One step, told to the bar.
std::vector<Tensor> run_step(Step& step, const Batch& batch, const ModelForm& form, std::int64_t number,
                             ProgressBar& bar, Where where) {
  recording::Span span(recording::Kind::batch, [&] { return step.name(); });
  const int traces_before = step.trace_count();
  const double start = seconds_now();
  if (number == 1 && traces_before == 0 && !step.eager()) bar.tracing(step.name());
  std::vector<Tensor> reported = step(batch, form, where);
  const int traces = step.trace_count();
  if (traces > traces_before) bar.traced(seconds_now() - start, traces);
  return reported;
}

/// Batches, over and over: an epoch that is cut short by a number of steps goes on where the last one ended.
class Batches {
 public:
  /// `most` batches an epoch; 0: all there are, and they end.
  Batches(Data data, ReadOptions options, std::int64_t most, Where where)
      : data_(std::move(data)),
        options_(std::move(options)),
        most_(most),
        where_(where),
        count_(most > 0 ? std::optional(most) : data_.batch_count(options_)) {}

  void start() {
    if (std::exchange(resumed_, false)) return;
    given_ = 0;
    if (most_ == 0 || !reader_) reader_ = data_.read(options_, where_);
  }
  std::optional<Batch> next() {
    if (most_ > 0 && given_ == most_) return std::nullopt;
    recording::Span span(recording::Kind::wait, [] { return "batch"; });
    const Waiting waiting(waited_);
    ++given_;
    std::optional<Batch> batch = reader_();
    if (!batch && most_ > 0) {
      reader_ = data_.read(options_, where_);
      batch = reader_();
    }
    return batch;
  }
  std::optional<std::int64_t> count() const { return count_; }
  /// Seconds that next() has taken so far, while somebody recorded.
  double waited() const { return static_cast<double>(waited_) * 1e-9; }

  /// Of the batch that was given last; nothing before start().
  std::optional<data::IterationPosition> position() const {
    return reader_ ? std::optional(reader_.position()) : std::nullopt;
  }
  /// The next epoch is one that has given so many batches, the last of them at this position; none: it comes after the
  /// one whose last batch was there.
  void resume(const std::optional<data::IterationPosition>& position, std::int64_t given) {
    if (!position) return;
    if (given > 0 || most_ > 0) {
      reader_ = data_.read_from(*position, options_, where_);
      given_ = given;
      resumed_ = true;
    } else {
      data_.go_on_after(*position, where_);
    }
  }
  std::optional<Batch> example() const { return data_.example(options_, where_); }

 private:
  struct Waiting {
    explicit Waiting(std::uint64_t& sum) : sum(sum), begin(recording::on() ? recording::now() : 0) {}
    ~Waiting() {
      if (begin != 0) sum += recording::now() - begin;
    }
    std::uint64_t& sum;
    const std::uint64_t begin;
  };
  const Data data_;
  ReadOptions options_;
  std::uint64_t waited_ = 0;
  std::int64_t most_, given_ = 0;
  Where where_;
  std::optional<std::int64_t> count_;
  Data::Reader reader_;
  bool resumed_ = false;  // the reader stands in the epoch that start() is to begin
};

/// All steps of an epoch; the last report. Nothing when there was no batch.
struct Epoch {
  std::int64_t steps = 0;
  ProgressBar::Values values = {};
};
/// What is done after a batch, and all that callbacks do there; `values` gives its report.
using AfterBatch = std::function<void(std::int64_t steps, const std::function<ProgressBar::Values()>& values)>;
/// Goes on with `epoch`.
Epoch run_epoch(Step& step, const ModelForm& form, Batches& batches, ProgressBar& bar, const BatchHooks& hooks,
                Where where, Epoch epoch = {}, const AfterBatch& after = {}) {
  std::vector<Tensor> reported;
  const std::function<ProgressBar::Values()> values = [&] { return values_of(step, reported, where); };
  batches.start();
  while (std::optional<Batch> batch = batches.next()) {
    if (hooks.begin) hooks.begin(epoch.steps);
    for (std::int64_t left = hooks.steps_at_once; batch; batch = batches.next()) {
      ++epoch.steps;
      reported = run_step(step, *batch, form, epoch.steps, bar, where);
      if (--left == 0) break;
    }
    bar.update(epoch.steps, bar.due() ? values() : ProgressBar::Values());
    if (hooks.end) {
      BatchLogs logs;
      const std::vector<std::string> names = step.names();
      for (std::size_t i = 0; i < names.size(); ++i) logs[names[i]] = reported[i];
      hooks.end(epoch.steps - 1, logs);
    }
    if (after) after(epoch.steps, values);
    if (hooks.stops && hooks.stops()) break;
  }
  if (!reported.empty()) epoch.values = values();
  return epoch;
}

/// An epoch of fit() as recordings have it: from its first batch to the end of its validation and callbacks.
class RecordedEpoch {
 public:
  explicit RecordedEpoch(const Batches& batches)
      : batches_(batches), waited_before_(batches.waited()), begin_(recording::now()) {}
  void tell(const std::string& model, int number, int all, const Epoch& epoch) const {
    if (!recording::on()) return;
    const std::uint64_t end = recording::now();
    recording::span(recording::Kind::epoch, recording::name_of(text("epoch ", number)), begin_, end);
    files::Json::Object values;
    for (const auto& [name, value] : epoch.values) values.emplace_back(name, value);
    recording::note({{"note", "epoch"},
                     {"name", model},
                     {"epoch", number},
                     {"epochs", all},
                     {"begin", static_cast<std::int64_t>(begin_)},
                     {"seconds", static_cast<double>(end - begin_) * 1e-9},
                     {"waited", batches_.waited() - waited_before_},
                     {"batches", epoch.steps},
                     {"values", std::move(values)}});
  }

 private:
  const Batches& batches_;
  const double waited_before_;
  const std::uint64_t begin_;
};

Step::Report reported(Logs logs) { return {logs.begin(), logs.end()}; }
std::shared_ptr<Step> train_step_of(CustomModel& model) {
  return step_of(model, &Training::train, "train_step",
                 [&model](const Batch& batch) { return reported(model.train_step(batch)); });
}
std::shared_ptr<Step> test_step_of(CustomModel& model) {
  return step_of(model, &Training::test, "test_step",
                 [&model](const Batch& batch) { return reported(model.test_step(batch)); });
}
std::shared_ptr<Step> predict_step_of(CustomModel& model) {
  return step_of(model, &Training::predict, "predict_step", [&model](const Batch& batch) {
    Step::Report outputs;
    for (Tensor& one : model.predict_step(batch)) outputs.emplace_back(text("output ", outputs.size()), std::move(one));
    return outputs;
  });
}

std::int64_t steps_at_once(CustomModel& model) {
  std::lock_guard lock(model.training().guard);
  return model.training().options.steps_per_execution;
}

ProgressBar::Values evaluated(CustomModel& model, const ModelForm& form, const std::vector<Metric>& metrics,
                              const Data& data, const EvaluateOptions& options, const CallbackList& callbacks,
                              Where where, std::optional<data::IterationPosition>* position = nullptr) {
  std::shared_ptr<Step> step = test_step_of(model);
  Batches batches(data, {.batch_size = options.batch_size}, options.steps, where);
  ProgressBar bar = make_bar(batches.count(), verbosity(options.verbose));
  reset(metrics);
  callbacks.tell(&CustomCallback::on_test_begin);
  BatchHooks hooks = callbacks.of_batches(&CustomCallback::on_test_batch_begin, &CustomCallback::on_test_batch_end);
  hooks.steps_at_once = steps_at_once(model);
  Epoch epoch = run_epoch(*step, form, batches, bar, hooks, where);
  if (epoch.steps == 0) refuse("evaluate: the data is empty", where, "give it at least one batch");
  if (position) *position = batches.position();
  EpochLogs logs(epoch.values.begin(), epoch.values.end());
  callbacks.tell(&CustomCallback::on_test_end, logs);
  bar.finish(epoch.steps, epoch.values);
  return epoch.values;
}

/// What a BackupAndRestore, if there is one, makes of a fit().
struct Backup {
  BackupAndRestoreBody* const body;
  CustomModel& model;
  const CallbackList& callbacks;
  const Data &train, &validation;
  Batches& batches;
  FitProgress& progress;
  const Where where;
  std::optional<CheckpointFolder::Found> found = {};
  int epochs_of_fit = 0;

  /// Goes on where the newest checkpoint is.
  void find(std::shared_ptr<Step>& step, const ModelForm& form, const ReadOptions& validation_options, int epochs) {
    if (!body) return;
    body->clock.start();
    found = body->newest();
    if (!found) return;
    const FitProgress saved = progress_of(*found, body->call, body->where());
    if (saved.steps > 0 && saved.batches != progress.batches)
      files::Reading{body->call, found->path, body->where()}.fail(
          text("is of batch ", saved.steps, " of an epoch of ", told(saved.batches), ", and the data has ",
               told(progress.batches)),
          "give fit() the data and the batch_size that it had; to begin anew, take the folder away");
    try {
      // What the first steps make must be there, to be given values. Draws of this are forgotten.
      if (std::optional<Batch> batch = batches.example()) step->prepare(*batch, form, where);
      if (saved.tested || saved.validation_position) {
        const bool own = validation.defined();
        if (std::optional<Batch> batch = own ? validation.example(validation_options, where) : batches.example())
          test_step_of(model)->prepare(*batch, form, where);
      }
      if (saved.validation_position && validation.defined()) validation.go_on_after(*saved.validation_position, where);
      batches.resume(saved.position, saved.steps);
      train.set_next_iteration(saved.next_iteration);
      validation.set_next_iteration(saved.next_validation);
    } catch (const UserError& error) {
      throw UserError(text(error.what(), "\n  in BackupAndRestore, which goes on from '", found->path, "'"));
    }
    const std::optional<std::int64_t> batches_now = progress.batches;
    progress = saved;
    progress.batches = batches_now;
    epochs_of_fit = epochs;
    if (progress.stopped) model.training().stops = true;
    // In the middle of an epoch, callbacks are first told that it begins: they see the model as it is, and what they
    // do to it then was done before.
    restore_model(step);
    if (progress.steps == 0 || ends()) go_on();
  }
  void restore_inside_epoch(std::shared_ptr<Step>& step) {
    if (!found) return;
    restore_model(step);
    go_on();
  }
  AfterBatch after_batch() {
    if (!body) return {};
    return [this](std::int64_t steps, const std::function<ProgressBar::Values()>& values) {
      const bool due = body->clock.after_batch(steps - 1);
      // One that has just been stopped has still its epoch to end: it goes on from before, and stops again.
      if ((!due && !InterruptWatch::interrupted()) || model.training().stops) return;
      FitProgress now = progress;
      now.steps = steps;
      now.values = values();
      try {
        now.position = batches.position();
      } catch (const UserError& error) {
        if (!due) return;  // Ctrl-C has asked for it: the one before stays
        throw UserError(text(error.what(),
                             "\n  in BackupAndRestore, which saves inside of epochs; with .save_freq = "
                             "\"epoch\" it saves at their ends"));
      }
      save(std::move(now));
    };
  }
  /// Of an epoch that was run to its end. Ctrl-C may have come since then.
  void after_epoch() {
    if (!body || (!body->clock.after_epoch() && !InterruptWatch::interrupted())) return;
    FitProgress now = progress;
    ++now.epoch;
    now.position = batches.position();
    save(std::move(now));
  }
  void end() {
    if (body && !InterruptWatch::interrupted()) body->end();
  }

  static std::string told(const std::optional<std::int64_t>& count) {
    return count ? text(*count, *count == 1 ? " batch" : " batches") : "an unknown number of batches";
  }
  bool ends() const { return progress.stopped || progress.epoch >= epochs_of_fit; }
  void restore_model(std::shared_ptr<Step>& step) {
    if (restore_variables(*found, model, body->call, body->where())) step = train_step_of(model);
  }
  void go_on() {
    restore_callbacks(*found, callbacks, body->call, body->where());
    const std::string place =
        ends()
            ? std::string("fit has nothing left to do")
            : text("fit goes on with ", progress.steps > 0 ? text("batch ", progress.steps + 1, " of ") : std::string(),
                   "epoch ", progress.epoch + 1, "/", epochs_of_fit);
    inform("keras", text("stet: ", place, ", from '", found->path, "'\n"));
    found.reset();
    body->clock.start();
    body->clock.set_counts({.last = progress.steps - 1});
  }
  void save(FitProgress now) {
    now.stopped = model.training().stops;
    now.next_iteration = train.next_iteration();
    now.next_validation = validation.next_iteration();
    body->write(checkpoint_of(now, model, callbacks, body->where()));
  }
};

}  // namespace

History Model::fit(const Samples& x, const Samples& y, FitOptions options, Where where) const {
  return fit(Data(x, y, where), std::move(options), where);
}

History Model::fit(const Data& data, FitOptions options, Where where) const {
  std::shared_ptr<inside::Body> alive = body();
  CustomModel& model = model_body("fit", where);
  check_compiled(model, "fit", where);
  check_options(options, where);
  if (!data.defined()) refuse("fit: there is no data", where, "give it tensors or a Dataset");
  const ModelNames names = model.names();
  Data train = data.with_sample_weight(options.sample_weight, where).in_order(names, where);
  Data validation = options.validation_data.in_order(names, where);
  if (options.validation_split > 0 && !validation.defined())
    std::tie(train, validation) = train.split(options.validation_split, where);
  CallingLine line(where);
  FormOfModel form(model);
  std::shared_ptr<Step> step = train_step_of(model);
  const int verbose = verbosity(options.verbose);
  Batches batches(train,
                  {.batch_size = options.batch_size, .shuffle = options.shuffle, .class_weight = options.class_weight},
                  options.steps_per_epoch, where);
  EvaluateOptions evaluate_options{
      .batch_size = options.validation_batch_size > 0 ? options.validation_batch_size : options.batch_size,
      .verbose = 0,
      .steps = options.validation_steps};
  check_ends("fit: the Dataset", train, {.batch_size = options.batch_size}, "steps_per_epoch", options.steps_per_epoch,
             where);
  if (validation.defined())
    check_ends("fit: the Dataset of validation_data", validation, {.batch_size = evaluate_options.batch_size},
               "validation_steps", options.validation_steps, where);
  const CallbackList callbacks(options.callbacks, *this, where);
  Training& training = model.training();
  training.stops = false;
  InterruptWatch watch;
  auto stops = [&] { return training.stops || InterruptWatch::interrupted(); };
  BatchHooks hooks = callbacks.of_batches(&CustomCallback::on_train_batch_begin, &CustomCallback::on_train_batch_end);
  hooks.stops = stops;
  hooks.steps_at_once = steps_at_once(model);
  FitProgress progress{.epoch = options.initial_epoch, .batches = batches.count(), .target = batches.count()};
  callbacks.tell(&CustomCallback::on_train_begin);
  Backup backup{callbacks.backup(where), model, callbacks, train, validation, batches, progress, where};
  backup.find(step, *form, {.batch_size = evaluate_options.batch_size}, options.epochs);
  for (; progress.epoch < options.epochs && !stops(); ++progress.epoch) {
    const int number = progress.epoch;
    EpochLogs before;
    callbacks.tell(&CustomCallback::on_epoch_begin, number, before);
    if (verbose > 0) std::cout << text("Epoch ", number + 1, "/", options.epochs, "\n") << std::flush;
    ProgressBar bar = make_bar(progress.target, verbose);
    reset(metrics_of(model));  // the first step may have made one
    backup.restore_inside_epoch(step);
    const RecordedEpoch recorded(batches);
    Epoch epoch =
        run_epoch(*step, *form, batches, bar, hooks, where,
                  {std::exchange(progress.steps, 0), std::exchange(progress.values, {})}, backup.after_batch());
    if (epoch.steps == 0) refuse("fit: the data is empty", where, "give it at least one batch");
    if (!stops()) progress.target = epoch.steps;
    const bool cut_short = InterruptWatch::interrupted();
    if (!cut_short && validation.defined() && (number + 1) % options.validation_freq == 0)
      for (auto& [name, value] : evaluated(model, *form, metrics_of(model), validation, evaluate_options, callbacks,
                                           where, &progress.validation_position))
        epoch.values.emplace_back(text("val_", name), value);
    progress.last = EpochLogs(epoch.values.begin(), epoch.values.end());
    callbacks.tell(&CustomCallback::on_epoch_end, number, progress.last);
    for (const auto& [name, value] : progress.last)
      if (std::none_of(epoch.values.begin(), epoch.values.end(), [&](const auto& one) { return one.first == name; }))
        epoch.values.emplace_back(name, value);
    bar.finish(epoch.steps, epoch.values);
    recorded.tell(model.name(), number + 1, options.epochs, epoch);
    progress.history.epochs.push_back(number);
    for (const auto& [name, value] : progress.last) progress.history.values[name].push_back(value);
    if (!cut_short) backup.after_epoch();
  }
  callbacks.tell(&CustomCallback::on_train_end, progress.last);
  if (InterruptWatch::interrupted())
    inform("keras",
           text("\nstet: fit was interrupted", at_line(where, ", at "), ": the model keeps what it has learned\n"));
  if (!progress.history.epochs.empty()) optimizer(where).finalize_variable_values(trainable_variables(), where);
  backup.end();
  return progress.history;
}

Results Model::evaluate(const Samples& x, const Samples& y, EvaluateOptions options, Where where) const {
  return evaluate(Data(x, y, where), std::move(options), where);
}

Results Model::evaluate(const Data& data, EvaluateOptions options, Where where) const {
  std::shared_ptr<inside::Body> alive = body();
  CustomModel& model = model_body("evaluate", where);
  check_compiled(model, "evaluate", where);
  check_batch_size("evaluate", "batch_size", options.batch_size, where);
  check_verbose("evaluate", options.verbose, where);
  check_steps("evaluate", "steps", options.steps, where);
  if (!data.defined()) refuse("evaluate: there is no data", where, "give it tensors or a Dataset");
  const Data ordered = data.with_sample_weight(options.sample_weight, where).in_order(model.names(), where);
  check_ends("evaluate: the Dataset", ordered, {.batch_size = options.batch_size}, "steps", options.steps, where);
  CallingLine line(where);
  FormOfModel form(model);
  Results results;
  const CallbackList callbacks(options.callbacks, *this, where);
  for (auto& [name, value] : evaluated(model, *form, metrics_of(model), ordered, options, callbacks, where))
    results[name] = value;
  return results;
}

Tensors Model::predict_data(const Data& data, PredictOptions options, Where where) const {
  std::shared_ptr<inside::Body> alive = body();
  CustomModel& model = model_body("predict", where);
  check_batch_size("predict", "batch_size", options.batch_size, where);
  check_verbose("predict", options.verbose, where);
  check_steps("predict", "steps", options.steps, where);
  check_ends("predict: the Dataset", data, {.batch_size = options.batch_size}, "steps", options.steps, where);
  CallingLine line(where);
  FormOfModel form(model);
  std::shared_ptr<Step> step = predict_step_of(model);
  Batches batches(data.in_order(model.names(), where), {.batch_size = options.batch_size}, options.steps, where);
  ProgressBar bar = make_bar(batches.count(), verbosity(options.verbose));
  std::vector<Tensors> parts;  // by output
  const CallbackList callbacks(options.callbacks, *this, where);
  callbacks.tell(&CustomCallback::on_predict_begin);
  batches.start();
  std::int64_t number = 0;
  while (std::optional<Batch> batch = batches.next()) {
    ++number;
    callbacks.tell(&CustomCallback::on_predict_batch_begin, number - 1);
    Tensors outputs = run_step(*step, {.x = batch->x, .more_x = batch->more_x}, *form, number, bar, where);
    parts.resize(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) parts[i].push_back(outputs[i]);
    bar.update(number, {});
    callbacks.tell(&CustomCallback::on_predict_batch_end, number - 1, BatchLogs{{"outputs", outputs.at(0)}});
  }
  callbacks.tell(&CustomCallback::on_predict_end);
  if (number == 0) refuse("predict: the data is empty", where, "give it at least one sample");
  bar.finish(number, {});
  Tensors out;
  for (const Tensors& all : parts) out.push_back(all.size() == 1 ? all[0] : concat(all, 0, where));
  return out;
}

Tensor Model::only_output(Tensors outputs, Where where) const {
  if (outputs.size() != 1)
    refuse(text("predict: ", model_body("predict", where).description(), " gives ", outputs.size(), " outputs"), where,
           "predict_many() gives all of them");
  return outputs[0];
}
Tensor Model::predict(const Samples& x, PredictOptions options, Where where) const {
  return only_output(predict_many(x, std::move(options), where), where);
}
Tensors Model::predict_many(const Samples& x, PredictOptions options, Where where) const {
  return predict_data(Data(x, where), std::move(options), where);
}

// --- one batch

namespace {
/// The tensors as one batch.
Batch batch_of(const Data& data, const CustomModel& model, const std::map<std::int64_t, double>& class_weight,
               Where where) {
  if (data.samples() == 0) refuse("the batch is empty", where, "give it at least one sample");
  const ReadOptions all{.batch_size = data.samples(), .class_weight = class_weight};
  return *data.in_order(model.names(), where).read(all, where)();
}
Results results_of(const Step& step, const std::vector<Tensor>& reported, Where where) {
  Results out;
  for (auto& [name, value] : values_of(step, reported, where)) out[name] = value;
  return out;
}
}  // namespace

Results Model::train_on_batch(const Samples& x, const Samples& y, TrainOnBatchOptions options, Where where) const {
  std::shared_ptr<inside::Body> alive = body();
  CustomModel& model = model_body("train_on_batch", where);
  check_compiled(model, "train_on_batch", where);
  const Batch batch = batch_of(Data(x, y, options.sample_weight, where), model, options.class_weight, where);
  CallingLine line(where);
  FormOfModel form(model);
  std::shared_ptr<Step> step = train_step_of(model);
  reset(metrics_of(model));
  return results_of(*step, (*step)(batch, *form, where), where);
}
Results Model::test_on_batch(const Samples& x, const Samples& y, TestOnBatchOptions options, Where where) const {
  std::shared_ptr<inside::Body> alive = body();
  CustomModel& model = model_body("test_on_batch", where);
  check_compiled(model, "test_on_batch", where);
  const Batch batch = batch_of(Data(x, y, options.sample_weight, where), model, {}, where);
  CallingLine line(where);
  FormOfModel form(model);
  std::shared_ptr<Step> step = test_step_of(model);
  reset(metrics_of(model));
  return results_of(*step, (*step)(batch, *form, where), where);
}
Tensor Model::predict_on_batch(const Samples& x, Where where) const {
  const Data data(x, where);
  return only_output(predict_data(data, {.batch_size = std::max<std::int64_t>(data.samples(), 1)}, where), where);
}
void Model::reset_metrics(Where where) const { reset(metrics_of(model_body("reset_metrics", where))); }

}  // namespace stet::keras
