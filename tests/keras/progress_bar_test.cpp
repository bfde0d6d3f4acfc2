// The progress bar, character by character, on a clock of its own.
#include "stet/keras/progress_bar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

using namespace stet::keras;

namespace {

const std::string full_bar = "\33[32m━━━━━━━━━━━━━━━━━━━━\33[0m\33[37m\33[0m";

class ProgressBarTest : public ::testing::Test {
 protected:
  ProgressBar bar(std::optional<std::int64_t> target, int verbose, bool in_place, std::size_t columns = 0,
                  bool color = true) {
    return ProgressBar(out, {.target = target,
                             .verbose = verbose,
                             .in_place = in_place,
                             .color = color,
                             .columns = columns,
                             .seconds = [this] { return now; }});
  }
  std::string drawn() {
    std::string text = out.str();
    out.str("");
    return text;
  }
  double now = 100;
  std::ostringstream out;
};

TEST_F(ProgressBarTest, RedrawsInPlaceOnATerminal) {
  ProgressBar progress = bar(200, 1, true);
  progress.tracing("train_step");
  EXPECT_EQ(drawn(), "\r\33[1m  0/200\33[0m \33[37m━━━━━━━━━━━━━━━━━━━━\33[0m tracing train_step …");
  now += 1.24;
  progress.traced(1.2, 1);
  progress.update(1, {{"loss", 0.4321}, {"accuracy", 0.8765}});
  EXPECT_EQ(drawn(), std::string(49, '\b').append(
                         "\r\33[1m  1/200\33[0m \33[37m━━━━━━━━━━━━━━━━━━━━\33[0m \33[1m4:06\33[0m 1s/step - loss: "
                         "0.4321 - accuracy: 0.8765 (tracing 1.2 s)"));
  now += 0.04;
  EXPECT_FALSE(progress.due());  // at most every 0.05 s
  progress.update(2, {});
  EXPECT_EQ(drawn(), "");
  now += 0.06;
  EXPECT_TRUE(progress.due());
  progress.update(51, {{"loss", 0.0001}, {"accuracy", -0.5}});
  // The traced step does not count: 50 steps in 0.1 s. What was longer is overwritten.
  EXPECT_EQ(drawn(),
            std::string(91, '\b')
                .append("\r\33[1m 51/200\33[0m \33[32m━━━━━\33[0m\33[37m━━━━━━━━━━━━━━━\33[0m \33[1m0s\33[0m 2ms/step "
                        "- loss: 1.0000e-04 - accuracy: -0.5000")
                .append(12, ' '));
  now += 0.298;
  progress.finish(200, {{"loss", 2}, {"val_loss", 3}});
  EXPECT_EQ(drawn(), std::string(79, '\b')
                         .append("\r\33[1m200/200\33[0m ")
                         .append(full_bar)
                         .append(" \33[1m2s\33[0m 2ms/step - loss: 2.0000 - val_loss: 3.0000")
                         .append(5, ' ')
                         .append("\n"));
}

TEST_F(ProgressBarTest, WritesLinesElsewhereWithoutColours) {
  ProgressBar progress = bar(2, 1, false, 20, false);
  progress.tracing("train_step");
  EXPECT_EQ(drawn(), "");
  now += 0.2;
  progress.update(1, {{"loss", 1}});
  EXPECT_EQ(drawn(), "\n1/2 ━━━━━━━━━━────────── 0s 200ms/step - loss: 1.0000");
  now += 0.2;
  progress.finish(2, {{"loss", 1}});
  EXPECT_EQ(drawn(), "\n2/2 ━━━━━━━━━━━━━━━━━━━━ 0s 200ms/step - loss: 1.0000\n");
}

TEST_F(ProgressBarTest, KeepsToTheWidthOfItsTerminal) {
  ProgressBar progress = bar(200, 1, true, 40);
  progress.tracing("train_step_of_a_model");
  EXPECT_EQ(drawn(), "\r\33[1m  0/200\33[0m \33[37m━━━━━━━━━━━━━━━━━━━━\33[0m tracing t…");
  now += 1;
  progress.traced(0.9, 2);
  progress.update(50, {{"loss", 0.5}, {"accuracy", 0.75}});
  // Without the cells, which say less than the numbers.
  EXPECT_EQ(drawn(), std::string(39, '\b').append("\r\33[1m 50/200\33[0m \33[1m3s\33[0m 20ms/step - loss: 0.5000 - …"));
  now += 1;
  progress.update(51, {});
  EXPECT_EQ(drawn(),
            std::string(39, '\b').append("\r\33[1m 51/200\33[0m \33[1m5s\33[0m 39ms/step · 2 traces").append(8, ' '));
  now += 1;
  progress.finish(200, {{"loss", 0.5}});  // nothing is drawn over the last
  EXPECT_EQ(drawn(), std::string(31, '\b')
                         .append("\r\33[1m200/200\33[0m ")
                         .append(full_bar)
                         .append(" \33[1m3s\33[0m 15ms/step - loss: 0.5000 · 2 traces\n"));
}

TEST_F(ProgressBarTest, WithoutColoursOnATerminal) {
  ProgressBar progress = bar(4, 1, true, 80, false);
  now += 1;
  progress.update(1, {});
  EXPECT_EQ(drawn(), "\r1/4 ━━━━━─────────────── 3s 1s/step");
}

TEST_F(ProgressBarTest, CountsWhereTheEndIsNotKnown) {
  ProgressBar progress = bar({}, 1, true);
  now += 2;
  progress.update(3, {{"loss", 1}});
  EXPECT_EQ(drawn(), "\r      3/Unknown \33[1m2s\33[0m 667ms/step - loss: 1.0000");
}

TEST_F(ProgressBarTest, OneLineAnEpoch) {
  ProgressBar progress = bar(938, 2, false);
  now += 1;
  progress.traced(0.9, 1);
  progress.update(1, {});
  now += 0.5;
  progress.update(500, {});
  now += 0.44;
  progress.traced(0.2, 2);
  progress.update(938, {});
  progress.finish(938, {{"loss", NAN}, {"accuracy", 0.5}});
  EXPECT_EQ(drawn(), "938/938 - 2s - 1ms/step - loss: nan - accuracy: 0.5000 · 2 traces\n");
}

TEST_F(ProgressBarTest, SaysNothingWhenSilent) {
  ProgressBar progress = bar(10, 0, true);
  progress.tracing("train_step");
  progress.update(1, {});
  progress.finish(10, {});
  EXPECT_EQ(drawn(), "");
}

TEST_F(ProgressBarTest, EndsItsLineWhenAStepThrows) {
  {
    ProgressBar progress = bar(10, 1, true);
    now += 1;
    progress.update(1, {});
    drawn();
  }
  EXPECT_EQ(drawn(), "\n");
}

TEST_F(ProgressBarTest, NamesEveryRetrace) {
  ProgressBar progress = bar(10, 1, true);
  now += 1;
  progress.update(1, {});
  drawn();
  now += 0.01;
  progress.traced(0.0432, 2);  // drawn at once
  progress.update(2, {});
  std::string text = drawn();
  EXPECT_NE(text.find(" (tracing 43 ms) · 2 traces"), std::string::npos) << text;
  now += 1;
  progress.update(3, {});
  text = drawn();
  EXPECT_EQ(text.find("tracing"), std::string::npos) << text;
  EXPECT_NE(text.find(" · 2 traces"), std::string::npos) << text;
}

TEST(ProgressBarText, Numbers) {
  EXPECT_EQ(metric_text(0.43214), "0.4321");
  EXPECT_EQ(metric_text(1e-3), "1.0000e-03");
  EXPECT_EQ(metric_text(0), "0.0000e+00");
  EXPECT_EQ(metric_text(-0.25), "-0.2500");
  EXPECT_EQ(metric_text(-NAN), "nan");
  EXPECT_EQ(metric_text(INFINITY), "inf");
  EXPECT_EQ(metric_text(-INFINITY), "-inf");
}

}  // namespace
