#include "stet/keras/initializer.h"

#include <string_view>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/dim_host.h"
#include "stet/keras/initializers.h"

namespace stet::keras {
namespace {

struct NamedInitializer {
  std::string_view name, class_name;
  Initializer (*make)();
};
template <class T>
Initializer made() {
  return T();
}
using namespace initializers;
constexpr NamedInitializer named_initializers[] = {
    {"constant", "Constant", made<Constant>},
    {"glorot_normal", "GlorotNormal", made<GlorotNormal>},
    {"glorot_uniform", "GlorotUniform", made<GlorotUniform>},
    {"he_normal", "HeNormal", made<HeNormal>},
    {"he_uniform", "HeUniform", made<HeUniform>},
    {"identity", "Identity", made<Identity>},
    {"lecun_normal", "LecunNormal", made<LecunNormal>},
    {"lecun_uniform", "LecunUniform", made<LecunUniform>},
    {"ones", "Ones", made<Ones>},
    {"orthogonal", "Orthogonal", made<Orthogonal>},
    {"random_normal", "RandomNormal", made<RandomNormal>},
    {"random_uniform", "RandomUniform", made<RandomUniform>},
    {"stft", "STFT", made<STFT>},
    {"truncated_normal", "TruncatedNormal", made<TruncatedNormal>},
    {"variance_scaling", "VarianceScaling", made<VarianceScaling>},
    {"zeros", "Zeros", made<Zeros>},
};

/// Keras's other names.
std::string_view resolved(std::string_view name) {
  if (name == "normal") return "random_normal";
  if (name == "uniform") return "random_uniform";
  if (name == "one") return "ones";
  if (name == "zero") return "zeros";
  return name;
}

}  // namespace

Initializer::Initializer(const char* name, Where where) {
  std::string known;
  for (const NamedInitializer& one : named_initializers) {
    if (one.name == resolved(name) || one.class_name == name) {
      *this = one.make();
      return;
    }
    known += text(known.empty() ? "" : ", ", one.name);
  }
  throw UserError(error_text(text("there is no initializer '", name, "'"), where, text("one of ", known)));
}

Tensor Initializer::operator()(const Shape& shape, DType dtype, Where where) const {
  if (!rule_) throw UserError(error_text("the initializer is undefined", where, "give it a name or a callable"));
  Tensor value = rule_(shape, dtype);
  if (!value.defined() || value.dtype() != dtype || !(value.shape() == shape))
    throw UserError(error_text(
        text("the initializer gave ", value.defined() ? text(value.dtype(), value.shape()) : "an undefined tensor",
             " for a weight of ", dtype, shape),
        where, "make the tensor of the shape and type that it is called with"));
  return value;
}

}  // namespace stet::keras
