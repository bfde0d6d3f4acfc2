// A training step of an LSTM whose sequences have another length in every step, against LibTorch's: forward, gradients,
// Adam. 128 units over 64 features, batch 32, lengths 20 to 60, two threads.
//
//   lstm                    the parent: starts itself for each side in turns and prints the table
//   lstm stet|libtorch      one side: prints the median and the least microseconds of a step, and the last loss
#include <torch/torch.h>

#include <cstring>

#include "bench/mlp_data.h"
#include "bench/process.h"
#include "stet/stet.h"

namespace {

using bench::mlp::uniform_values;

constexpr std::int64_t batch = 32, features = 64, units = 128, classes = 10, lengths = 41;
constexpr int warm_rounds = 1, rounds = 3;

std::int64_t length_of(std::int64_t step) { return 20 + step * 17 % lengths; }

struct Data {
  std::vector<std::vector<float>> x;  // by length
  std::vector<std::int64_t> y;
  std::vector<float> wx, wh, b, wo, bo;
};

Data make_data() {
  Data out;
  for (std::int64_t step = 0; step < lengths; ++step)
    out.x.push_back(uniform_values(batch * length_of(step) * features, -1, 1, 10 + static_cast<int>(step)));
  for (std::int64_t i = 0; i < batch; ++i) out.y.push_back(i % classes);
  out.wx = uniform_values(features * 4 * units, -0.1f, 0.1f, 1);
  out.wh = uniform_values(units * 4 * units, -0.1f, 0.1f, 2);
  out.b.assign(4 * units, 0.f);
  out.wo = uniform_values(units * classes, -0.1f, 0.1f, 3);
  out.bo.assign(classes, 0.f);
  return out;
}

/// Runs steps over all lengths again and again; prints what a step takes, and the last loss.
template <class Step>
void measure(const Step& step) {
  float loss = 0;
  for (int round = 0; round < warm_rounds; ++round)
    for (std::int64_t i = 0; i < lengths; ++i) loss = step(i);
  std::vector<double> means;
  for (int round = 0; round < rounds; ++round) {
    double begin = bench::now_ns();
    for (std::int64_t i = 0; i < lengths; ++i) loss = step(i);
    means.push_back((bench::now_ns() - begin) * 1e-3 / static_cast<double>(lengths));
  }
  std::printf("%.2f %.2f %.6f\n", bench::median(means), bench::quantile(means, 0), loss);
}

void run_stet() {
  using stet::Tensor, stet::Variable;
  stet::set_thread_count(2);
  Data data = make_data();
  Variable wx(stet::tensor(data.wx, {features, 4 * units})), wh(stet::tensor(data.wh, {units, 4 * units})),
      b(stet::tensor(data.b)), wo(stet::tensor(data.wo, {units, classes})), bo(stet::tensor(data.bo));
  std::vector<Variable> weights{wx, wh, b, wo, bo};
  stet::keras::Adam adam(1e-3);
  std::vector<Tensor> xs;
  for (std::int64_t i = 0; i < lengths; ++i)
    xs.push_back(stet::tensor(data.x[static_cast<std::size_t>(i)], stet::Shape{batch, length_of(i), features}));
  Tensor y = stet::tensor(data.y);
  stet::Function step = stet::function("step(x, y)", [&](Tensor x, Tensor y) {
    stet::GradientTape tape;
    Tensor zero = stet::zeros({x.dim(0), units});
    auto [h, c] = stet::scan(
        [&](std::pair<Tensor, Tensor> state, Tensor x) {
          auto [h, c] = state;
          std::vector<Tensor> gates =
              stet::split(stet::matmul(x, wx) + stet::matmul(h, wh) + b, {units, units, units, units}, 1);
          Tensor next = stet::sigmoid(gates[1]) * c + stet::sigmoid(gates[0]) * stet::tanh(gates[2]);
          return std::pair(stet::sigmoid(gates[3]) * stet::tanh(next), next);
        },
        std::pair(zero, zero), stet::transpose(x, {1, 0, 2}));
    Tensor loss = stet::mean(stet::sparse_cross_entropy(y, stet::matmul(h, wo) + bo));
    std::vector<Tensor> gradients = tape.gradient(loss, weights);
    adam.apply_gradients(gradients, weights);
    return loss;
  });
  measure([&](std::int64_t i) { return step(xs[static_cast<std::size_t>(i)], y).item<float>(); });
  if (step.trace_count() != 1) std::fprintf(stderr, "lstm: %d traces\n", static_cast<int>(step.trace_count()));
}

void run_libtorch() {
  at::set_num_threads(2);
  Data data = make_data();
  // Its gates stand in the order of ours; weights are [4 units, inputs].
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(features, units).batch_first(true));
  torch::nn::Linear head(units, classes);
  {
    torch::NoGradGuard no_gradient;
    auto set = [](torch::Tensor to, std::vector<float>& from, std::vector<std::int64_t> sizes) {
      to.copy_(torch::from_blob(from.data(), sizes).t());
    };
    auto parameters = lstm->named_parameters();
    set(parameters["weight_ih_l0"], data.wx, {features, 4 * units});
    set(parameters["weight_hh_l0"], data.wh, {units, 4 * units});
    parameters["bias_ih_l0"].zero_();
    parameters["bias_hh_l0"].zero_();
    parameters["bias_hh_l0"].requires_grad_(false);  // one bias, as ours
    set(head->weight, data.wo, {units, classes});
    head->bias.zero_();
  }
  std::vector<torch::Tensor> weights;
  for (const std::shared_ptr<torch::nn::Module>& module :
       {std::shared_ptr<torch::nn::Module>(lstm.ptr()), std::shared_ptr<torch::nn::Module>(head.ptr())})
    for (torch::Tensor& parameter : module->parameters())
      if (parameter.requires_grad()) weights.push_back(parameter);
  torch::optim::Adam adam(weights, torch::optim::AdamOptions(1e-3).eps(1e-7));
  std::vector<torch::Tensor> xs;
  for (std::int64_t i = 0; i < lengths; ++i)
    xs.push_back(torch::from_blob(data.x[static_cast<std::size_t>(i)].data(), {batch, length_of(i), features}));
  torch::Tensor y = torch::tensor(data.y);
  measure([&](std::int64_t i) {
    adam.zero_grad();
    torch::Tensor all = std::get<0>(lstm->forward(xs[static_cast<std::size_t>(i)]));
    torch::Tensor loss = torch::nn::functional::cross_entropy(head->forward(all.select(1, -1)), y);
    loss.backward();
    adam.step();
    return loss.item<float>();
  });
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2) {
    std::strcmp(arguments[1], "stet") == 0 ? run_stet() : run_libtorch();
    return 0;
  }
  bench::print_head();
  std::vector<double> ours, theirs, our_loss, their_loss;
  auto turn = [](const char* side, std::vector<double>& least, std::vector<double>& loss) {
    return [side, &least, &loss] {
      auto output = bench::run_in_quiet({"lstm", side}, 3);
      least.push_back(output.numbers[1]);
      loss.push_back(output.numbers[2]);
      return 1e3 * output.numbers[0];
    };
  };
  auto times = bench::interleave({turn("stet", ours, our_loss), turn("libtorch", theirs, their_loss)}, 6, 0, 2);
  bench::compare_times("LSTM step, lengths 20 to 60, one trace", times[0], times[1], 1e3, "us", 1,
                       bench::quantile(ours, 0) / bench::quantile(theirs, 0));
  if (std::abs(our_loss[0] - their_loss[0]) > 1e-2 * their_loss[0])
    std::fprintf(stderr, "lstm: the losses differ: %f and %f\n", our_loss[0], their_loss[0]);
}
