#include "stet/keras/report.h"

#include <optional>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/report/profile.h"

namespace stet::keras {
namespace {

class ReportBody : public CustomCallback {
 public:
  ReportBody(std::string path, Where where) : path_(std::move(path)), where_(where) {}

  void on_train_begin() override { begin(trains); }
  void on_train_end(EpochLogs&) override { end(trains); }
  void on_test_begin() override { begin(tests); }
  void on_test_end(EpochLogs&) override { end(tests); }
  void on_predict_begin() override { begin(predicts); }
  void on_predict_end() override { end(predicts); }

 private:
  enum Kind { nothing, trains, tests, predicts };

  /// A fit() validates inside of it. What began before and did not end was ended by an exception.
  void begin(Kind kind) {
    if (kind == tests && running_ == trains) return;
    profile_.emplace(ProfileOptions{}, where_);
    running_ = kind;
  }
  void end(Kind kind) {
    if (running_ != kind) return;
    running_ = nothing;
    profile_->stop(where_);
    profile_->save(path_, where_);
    profile_.reset();
  }

  const std::string path_;
  const Where where_;
  std::optional<Profile> profile_;
  Kind running_ = nothing;
};

}  // namespace

Report::Report(std::string path, Where where) : Callback(std::make_shared<ReportBody>(path, where)) {
  if (!path.ends_with(".html") && !path.ends_with(".json") && !path.ends_with(".stet-profile"))
    throw UserError(error_text(text("Report: '", path, "' has none of the endings that it knows"), where,
                               "a page ends in .html, a trace for Perfetto in .json, a recording in .stet-profile"));
}

}  // namespace stet::keras
