// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/top/keys.hpp"
#include "tools/top/options.hpp"
#include "tools/top/question.hpp"
#include "tools/top/view.hpp"

namespace ojs_shm::top {

/// Where a person is, and what the keys do there. Knows no terminal: it takes strokes and gives
/// pictures.
class Browser {
 public:
  Browser(const Options& options, Sampler& sampler);
  ~Browser();

  /// Looks again, unless it is frozen.
  void look();
  void press(const Stroke& stroke, std::size_t height);
  Picture picture(std::size_t width, std::size_t height);
  bool over() const { return over_; }
  std::uint64_t interval_ms() const { return interval_ms_; }

 private:
  /// One step of the way in: Esc goes back along it.
  struct Place {
    View view = View::kQueues;
    Subject subject = {};
    Look look = {};
  };

  Place& here() { return path_.back(); }
  void draw_grid();
  void read_events();
  void follow_a_new_segment();
  bool type(const Stroke& stroke);
  void command(char key);
  void move(long rows);
  void sort(int by);
  void go(Place place) { path_.push_back(std::move(place)), stale_ = true; }
  void switch_to(View view);
  void neighbour(int step);
  void enter();
  std::string oldest_job(const RegisteredWorker& worker) const;
  void back();
  void ask(char key);
  void run_answer();
  Line tabs(std::size_t width) const;
  Line footer() const;

  Options options_;
  Sampler& sampler_;
  std::vector<Place> path_;
  Grid grid_;          ///< of here(), filtered and sorted
  bool stale_ = true;  ///< the grid is older than what it shows
  bool frozen_ = false, over_ = false, filtering_ = false;
  std::uint64_t interval_ms_;
  std::size_t rows_ = 10;   ///< of the grid on the screen
  std::size_t width_ = 80;  ///< of the screen
  std::string notice_;
  EventLog log_;
  std::optional<EventReader> events_;
  std::optional<Question> question_;
};

}  // namespace ojs_shm::top
