// What callbacks that look for the better of values have in common. Not a public header.
#pragma once
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/callback.h"
#include "stet/runtime/log.h"

namespace stet::keras {

/// The better of values of one name.
class Monitor {
 public:
  Monitor(const char* callback, std::string name, const std::string& mode, double min_delta, Where where)
      : callback_(callback), name_(std::move(name)), min_delta_(std::abs(min_delta)) {
    if (mode != "auto" && mode != "min" && mode != "max")
      throw UserError(error_text(text(callback, ": mode is \"", mode, "\""), where,
                                 "it is \"min\", \"max\" or \"auto\", which goes by the monitored name"));
    // What is to become large; all else is a kind of loss.
    auto has = [&](const char* part) { return name_.find(part) != std::string::npos; };
    larger_ = mode == "max" ||
              (mode == "auto" && (has("acc") || has("auc") || has("precision") || has("recall") || has("f1") ||
                                  has("fbeta") || has("iou") || has("r2") || has("similarity") || has("true_")));
  }

  /// The value of this epoch; nothing, with a warning, if there is none.
  std::optional<double> value(const EpochLogs& logs) {
    auto found = logs.find(name_);
    if (found != logs.end()) return found->second;
    if (!std::exchange(warned_, true)) {
      std::vector<std::string> known;
      for (const auto& [name, value] : logs) known.push_back(name);
      const std::string warning =
          text("stet: ", callback_, ": there is no '", name_, "' to monitor; there is ", joined(known, ", "),
               name_.starts_with("val_") ? "; fit() without validation data has no val_… values" : "", "\n");
      warn("keras", warning);
    }
    return std::nullopt;
  }
  bool better(double value, double than) const {
    return larger_ ? value - min_delta_ > than : value + min_delta_ < than;
  }
  double worst() const { return larger_ ? -INFINITY : INFINITY; }
  const std::string& name() const { return name_; }

 private:
  const char* callback_;
  std::string name_;
  double min_delta_;
  bool larger_ = false, warned_ = false;
};

}  // namespace stet::keras
