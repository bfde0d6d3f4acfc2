// Forecasting: a series with a trend, two seasons and noise; windows of its past; a network that forecasts the next day
// at once. Compared with the naive forecasts "as it is now" and "as it was a day ago".
//
//   time_series [--epochs 20] [--seed 1]
#include <stet/stet.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>

using namespace stet;

namespace {

constexpr int day = 24, week = 7 * day;
constexpr int history = 2 * day;  // hours that a forecast sees
constexpr int horizon = day;      // hours that it is for

constexpr double two_pi = 6.283185307179586;

/// Hour by hour: a level that rises, a day, a week that makes the days stronger and weaker, and noise that lingers.
Tensor generated_series(int hours) {
  Tensor t = cast(arange(hours), f32);
  Tensor daily = sin(two_pi * t / day) + 0.4f * sin(2 * two_pi * t / day + 1.f);
  Tensor weekly = 1.f + 0.5f * cos(two_pi * t / week);
  auto lingering = [](Tensor level, Tensor shock) {
    Tensor now = 0.9f * level + shock;
    return std::pair(now, now);
  };
  auto [last, noise] = scan(lingering, tensor(0.f), random::normal({hours}, {.stddev = 0.1}));
  return 20.f + 0.002f * t + 3.f * weekly * daily + noise;
}

/// By row, the hours of one window: [count, history + horizon].
Tensor windows_of(const Tensor& series, int stride) {
  Tensor begins = arange(0, series.dim(0) - (history + horizon) + 1, stride);
  return series[expand_dims(begins, 1) + arange(history + horizon)];
}

/// What a forecast sees, [count, history, 1], and what it should say, [count, horizon].
std::pair<Tensor, Tensor> past_and_future(const Tensor& windows) {
  return {windows[{Range{}, Range{.end = history}, newaxis}], windows[{Range{}, Range{.begin = history}}]};
}

/// Windows start at their own level: what is learned is how the series goes on from its last hour, whatever the trend
/// has made of it. The forecast gets that level back.
struct Forecaster : keras::CustomModel {
  keras::Conv1D shapes{16, 6, {.strides = 2, .padding = "causal", .activation = relu}};
  keras::LSTM memory{32};
  keras::Dense hours{horizon};
  STET_MEMBERS(shapes, memory, hours)
  Tensor call(const Tensor& x, const keras::Context&) override {
    Tensor now = x[{Range{}, -1}];  // [batch, 1]
    return now + hours(memory(shapes(x - expand_dims(now, 1))));
  }
};

double mean_absolute_error(const Tensor& truth, const Tensor& forecast) {
  return mean(abs(truth - forecast)).item<float>();
}

int run(int epochs, int seed) {
  random::seed(seed);
  const int hours = 150 * day;
  Tensor series = generated_series(hours);
  // Time is not shuffled: the last month is for the test, the one before it for validation.
  Tensor past = series[Range{.end = -60 * day}], recent = series[range(-60 * day, -30 * day)],
         unseen = series[Range{.begin = -30 * day}];
  auto [x, y] = past_and_future(windows_of(past, 1));
  auto [validation_x, validation_y] = past_and_future(windows_of(recent, 3));
  auto [test_x, test_y] = past_and_future(windows_of(unseen, 1));
  std::cout << "windows: " << x.shape() << " -> " << y.shape() << ", validation " << validation_x.dim(0) << ", test "
            << test_x.dim(0) << "\n";

  auto model = keras::make<Forecaster>();
  model.compile({.optimizer = keras::Adam(1e-2), .loss = keras::losses::Huber(), .metrics = {"mae"}});
  keras::EarlyStopping stop({.patience = 3, .restore_best_weights = true});
  keras::ReduceLROnPlateau slower({.factor = 0.3, .patience = 1});
  model.fit(x, y,
            {.batch_size = 64,
             .epochs = epochs,
             .callbacks = {stop, slower},
             .validation_data = {validation_x, validation_y}});

  Tensor forecast = model.predict(test_x, {.batch_size = 256});
  Tensor as_now = broadcast_to(test_x[{Range{}, -1}], test_y.shape());
  Tensor as_yesterday = test_x[{Range{}, Range{.begin = history - day, .end = history - day + horizon}, 0}];
  double error = mean_absolute_error(test_y, forecast), now_error = mean_absolute_error(test_y, as_now),
         yesterday_error = mean_absolute_error(test_y, as_yesterday);

  std::printf("\nthe first day of the test\n  hours ahead   truth  forecast  a day ago\n");
  for (int hour = 0; hour < horizon; hour += 4)
    std::printf("  %11d  %6.2f  %8.2f  %9.2f\n", hour + 1, test_y.item<float>({0, hour}),
                forecast.item<float>({0, hour}), as_yesterday.item<float>({0, hour}));
  Tensor by_hour = mean(abs(test_y - forecast), 0);
  std::printf("\nmean absolute error on %d days that were not seen: %.3f\n", 30, error);
  std::printf("  1 hour ahead %.3f, %d hours ahead %.3f\n", by_hour.item<float>({0}), horizon,
              by_hour.item<float>({horizon - 1}));
  std::printf("  naive: as it is now %.3f, as it was a day ago %.3f\n", now_error, yesterday_error);
  int traces = model.train_function().trace_count();
  std::printf("traces of train_step: %d\n", traces);
  bool good = traces == 1 && error < 0.7 * yesterday_error && error < 0.7 * now_error;
  std::printf("%s: one trace, and errors below 70 %% of both naive forecasts'\n",
              good ? "as it should be" : "something is wrong, expected");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  int epochs = 20, seed = 1;
  try {
    for (int i = 1; i < argc; i += 2) {
      std::string name = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
      if (name == "--epochs")
        epochs = std::stoi(value);
      else if (name == "--seed")
        seed = std::stoi(value);
      else
        throw std::invalid_argument(name);
    }
  } catch (const std::logic_error&) {  // of std::stoi, too
    std::cerr << "usage: time_series [--epochs n] [--seed n]\n";
    return 2;
  }
  try {
    return run(epochs, seed);
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
