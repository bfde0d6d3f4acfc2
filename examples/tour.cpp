// A tour of stet, as a user types it: eager tensors, layers, a traced training step, signatures, branches, datasets,
// fit.
#include <stet/stet.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <tuple>

using namespace stet;  // safe beside <cmath>, <cstdlib>; `using namespace std` too is not

std::tuple<Tensor, Tensor> augment(Tensor image, Tensor label) { return {image / 255, label}; }

int main() {
  // Eager by default: tensors are values.
  Tensor x = tensor({{1.f, 2.f}, {3.f, 4.f}});
  Tensor y = relu(matmul(x, x) * 2 + 1);
  std::cout << y << y.shape() << y.dtype();  // NumPy-like printing
  float v = y.item<float>({0, 1});           // also y.to_vector<float>()

  // Keras vocabulary, in C++. What you hold is a handle (a copy shares); what you subclass is a Custom… class.
  keras::Sequential model{keras::Input({28, 28}), keras::Flatten(), keras::Dense(128, {.activation = relu}),
                          keras::Dense(10)};
  keras::Adam optimizer(1e-3);
  keras::losses::SparseCategoricalCrossentropy loss_fn({.from_logits = true});

  // Traced, compiled, cached. Capture handles by value.
  Function train_step = function("train_step(x, y)", [=](Tensor x, Tensor y) {
    GradientTape tape;
    Tensor loss = loss_fn(y, model(x, {.training = true}));
    auto variables = model.trainable_variables();
    optimizer.apply_gradients(tape.gradient(loss, variables), variables);
    return std::tuple{loss, mean(x)};  // the call returns what the lambda returns
  });                                  // train_step is Function<std::tuple<Tensor, Tensor>(Tensor, Tensor)>
  for (int batch : {10, 20, 10, 30}) {
    auto [loss, m] = train_step(random::normal({batch, 28, 28}), random::randint({batch}, 0, 10));
    std::cout << loss << m;
  }
  train_step.trace_count();  // 1
  std::cout << train_step.explain();

  // An optional promise about inputs. Named unknown sizes tie dimensions together.
  function("f(x, n)", [](Tensor x, Tensor n) { return x * n; },
           {.signature = {{f32, {dyn("batch"), 10}}, {i32, {dyn}}}});

  // Data-dependent control flow is traced too: both branches, one trace.
  Function act = function("act(x)", [](Tensor x) {
    if (mean(x) > 0.5f) return relu(x);
    return sigmoid(x);
  });

  // Input pipelines: typed elements.
  Tensor images = random::uniform({1000, 28, 28}), labels = random::randint({1000}, 0, 10);
  auto train = data::from_tensor_slices(images, labels).shuffle(10'000).map(augment).batch(64).prefetch(2);
  for (auto [image, label] : train) train_step(image, label);

  // compile and fit: options in the order of Keras's own signature.
  model.compile({.optimizer = optimizer, .loss = loss_fn, .metrics = {keras::metrics::SparseCategoricalAccuracy()}});
  keras::History h = model.fit(train, {.epochs = 5, .validation_data = {images, labels}});
  model.summary();
  double loss = model.evaluate(train)["loss"];
  Tensor p = model.predict(images);

  // Policies.
  NoRetrace guard;  // on this thread, a second or later trace throws RetraceError
  on_retrace([](const RetraceEvent& e) { std::cerr << e.explanation; });
  (void)v;
  (void)loss;
  (void)p;
  (void)h;
  act(x);
}
