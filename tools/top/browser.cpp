// SPDX-License-Identifier: Apache-2.0
#include "tools/top/browser.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>

#include "tools/shell/output.hpp"

namespace ojs_shm::top {
namespace {

constexpr std::size_t kMostEvents = 1000;
constexpr std::size_t kHeaderLines = 5;

/// The interval goes along these steps.
constexpr std::uint64_t kIntervals[] = {100, 200, 500, 1000, 2000, 5000, 10'000, 30'000, 60'000};

}  // namespace

Browser::Browser(const Options& options, Sampler& sampler)
    : options_(options), sampler_(sampler), interval_ms_(options.interval_ms) {
  path_.push_back({options.view, options.subject, {}});
  events_.emplace(sampler_.observer().events({.from_start = true}));
  look();
}

Browser::~Browser() = default;

void Browser::look() {
  if (frozen_) return;
  if (sampler_.last().removed) follow_a_new_segment();
  sampler_.take();
  read_events();
  stale_ = true;
}

void Browser::read_events() {
  Event event;
  while (events_->next(event)) {
    log_.events.push_back(event);
    if (log_.events.size() > kMostEvents) log_.events.pop_front();
  }
  log_.lost = events_->lost();
}

/// The name may lead to another segment by now, and that segment is meant.
void Browser::follow_a_new_segment() {
  if (!options_.post_mortem.empty() || !sampler_.follow(options_.where)) return;
  events_.emplace(sampler_.observer().events({.from_start = true}));
  log_ = {};
  notice_ = "a new segment has the name";
}

void Browser::draw_grid() {
  if (!stale_) return;
  stale_ = false;
  grid_ = grid_of(here().view, sampler_.observer(), sampler_.last(), here().subject, log_,
                  options_.admin);
  arrange(grid_, here().look);
  wrap(grid_, width_);
  if (grid_.rows.empty()) return;
  here().look.cursor = grid_.rows[place_of(grid_, here().look)].key;
}

// --- Keys ----------------------------------------------------------------------------------------

void Browser::press(const Stroke& stroke, std::size_t height) {
  draw_grid();
  if (question_ || filtering_) {
    if (type(stroke)) return;
  }
  notice_.clear();
  const auto page = static_cast<long>(rows_ > 1 ? rows_ - 1 : 1);
  switch (stroke.key) {
    case Key::kUp: return move(-1);
    case Key::kDown: return move(1);
    case Key::kPageUp: return move(-page);
    case Key::kPageDown: return move(page);
    case Key::kHome: return move(-1'000'000);
    case Key::kEnd: return move(1'000'000);
    case Key::kLeft: here().look.first_column -= here().look.first_column == 0 ? 0 : 1; return;
    case Key::kRight: ++here().look.first_column; return;
    case Key::kEnter: return enter();
    case Key::kBack:
    case Key::kErase: return back();
    case Key::kTab: return neighbour(1);
    case Key::kBackTab: return neighbour(-1);
    case Key::kHelp: return switch_to(View::kHelp);
    case Key::kSort: return sort(1);
    case Key::kQuit: over_ = true; return;
    case Key::kText:
      if (stroke.text.size() == 1) command(stroke.text[0]);
      return;
    case Key::kClick: {
      const long row = stroke.line - static_cast<long>(kHeaderLines) - 2;
      if (row < 0 || stroke.line + 1 >= static_cast<int>(height)) return;
      move(row + static_cast<long>(here().look.scrolled) -
           static_cast<long>(place_of(grid_, here().look)));
      return;
    }
    case Key::kNone: return;
  }
}

void Browser::command(char key) {
  switch (key) {
    case 'q': over_ = true; return;
    case '?':
    case 'h': return switch_to(View::kHelp);
    case '/': filtering_ = true; return;
    case '<': return sort(-1);
    case '>': return sort(1);
    case 'I':
      here().look.descending = !here().look.descending;
      stale_ = true;
      return;
    case ' ': frozen_ = !frozen_; return;
    case '+': {
      const auto next =
          std::upper_bound(std::begin(kIntervals), std::end(kIntervals), interval_ms_);
      if (next != std::end(kIntervals)) interval_ms_ = *next;
      return;
    }
    case '-': {
      const auto next =
          std::lower_bound(std::begin(kIntervals), std::end(kIntervals), interval_ms_);
      if (next != std::begin(kIntervals)) interval_ms_ = *std::prev(next);
      return;
    }
    case 't':
      if (here().view == View::kQueues && !grid_.rows.empty())
        go({View::kTenants, {.queue = here().look.cursor}, {}});
      return;
    case 's':
      if (here().view != View::kJobs) return;
      here().subject.jobs = static_cast<JobChoice>((static_cast<int>(here().subject.jobs) + 1) % 4);
      stale_ = true;
      return;
    default: break;
  }
  if (key >= '1' && key <= '9') return switch_to(kViews[key - '1']);
  if (key == '0') return switch_to(View::kWorkflows);
  if (key == 'C') return switch_to(View::kCrons);
  ask(key);
}

/// A prompt takes the key; false when it is none for a prompt.
bool Browser::type(const Stroke& stroke) {
  if (stroke.key == Key::kQuit) return false;
  std::string& text = question_ ? question_->value : here().look.filter;
  stale_ = true;
  switch (stroke.key) {
    case Key::kBack:
      if (!question_) text.clear();
      filtering_ = false;
      question_.reset();
      return true;
    case Key::kEnter:
      if (question_ && question_->wants_value) run_answer();
      if (question_) notice_ = "not done: y does it";
      question_.reset();
      filtering_ = false;
      return true;
    case Key::kErase:
      while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0U) == 0x80U)
        text.pop_back();
      if (!text.empty()) text.pop_back();
      return true;
    case Key::kText:
      if (question_ && !question_->wants_value) {
        if (stroke.text == "y" || stroke.text == "Y")
          run_answer();
        else
          notice_ = "not done";
        question_.reset();
      } else {
        text += stroke.text;
      }
      return true;
    default: return !question_ ? false : true;
  }
}

void Browser::ask(char key) {
  if (!options_.admin) {
    if (std::string_view("prRDcPM").find(key) != std::string_view::npos)
      notice_ = "this only looks; start it with --admin to change anything";
    return;
  }
  question_ = question_of(options_, here().view, here().subject, key,
                          grid_.rows.empty() ? "" : here().look.cursor);
}

void Browser::run_answer() {
  notice_ = question_->change(question_->value);
  question_.reset();
  look();
}

void Browser::move(long rows) {
  if (grid_.rows.empty()) return;
  const long last = static_cast<long>(grid_.rows.size()) - 1;
  const long now = static_cast<long>(place_of(grid_, here().look));
  here().look.cursor = grid_.rows[static_cast<std::size_t>(std::clamp(now + rows, 0L, last))].key;
}

void Browser::sort(int by) {
  const auto columns = static_cast<int>(grid_.columns.size());
  Look& look = here().look;
  look.sort = look.sort + by < -1 ? columns - 1 : look.sort + by >= columns ? -1 : look.sort + by;
  // Numbers are asked for from the largest, names from the first.
  look.descending = look.sort >= 0 && grid_.columns[static_cast<std::size_t>(look.sort)].right;
  stale_ = true;
}

void Browser::switch_to(View view) {
  if (view == View::kHelp) {
    if (here().view != View::kHelp) go({View::kHelp, {}, {}});
    return;
  }
  path_.clear();
  go({view, {}, {}});
}

void Browser::neighbour(int step) {
  const auto found = std::find(std::begin(kViews), std::end(kViews), path_.front().view);
  const auto at = found == std::end(kViews) ? 0 : static_cast<int>(found - std::begin(kViews));
  constexpr int kCount = static_cast<int>(std::size(kViews));
  switch_to(kViews[(at + step + kCount) % kCount]);
}

/// The job that it has held longest; empty: none.
std::string Browser::oldest_job(const RegisteredWorker& worker) const {
  std::string oldest;
  std::uint64_t started_at_ms = 0;
  for (const JobInfo& job : sampler_.observer().list({.state = State::kActive})) {
    if (job.worker_id != worker.id) continue;
    if (!oldest.empty() && job.started_at_ms >= started_at_ms) continue;
    oldest = job.id;
    started_at_ms = job.started_at_ms;
  }
  return oldest;
}

void Browser::enter() {
  if (grid_.rows.empty()) return;
  const std::string row = here().look.cursor;
  const Sample& sample = sampler_.last();
  switch (here().view) {
    case View::kQueues: return go({View::kJobs, {.queue = row}, {}});
    case View::kTenants:
      for (const TenantCensus& tenant : sample.census.tenants)
        if (tenant.queue + " " + tenant.tenant == row)
          return go({View::kJobs, {.queue = tenant.queue, .tenant = tenant.tenant}, {}});
      return;
    case View::kPools: return go({View::kQueues, {.pool = row.substr(0, row.find(' '))}, {}});
    case View::kJobs: return go({View::kJob, {.job = row}, {}});
    case View::kWorkers:
      for (const WorkerCensus& worker : sample.census.workers)
        if (std::to_string(worker.process) == row && !worker.oldest_job.empty())
          return go({View::kJob, {.job = worker.oldest_job}, {}});
      for (const RegisteredWorker& worker : sample.census.registered)
        if (const std::string job = key_of(worker) == row ? oldest_job(worker) : ""; !job.empty())
          return go({View::kJob, {.job = job}, {}});
      notice_ = "it has no job in hand";
      return;
    case View::kPast:
      if (const std::size_t space = row.find(' '); space + 1 < row.size())
        return go({View::kJob, {.job = row.substr(space + 1)}, {}});
      return;
    case View::kEvents:
      for (const Event& event : log_.events)
        if (event.id == row && !event.job_id.empty())
          return go({View::kJob, {.job = event.job_id}, {}});
      return;
    case View::kWorkflows: return go({View::kWorkflow, {.workflow = row}, {}});
    case View::kWorkflow:
      if (const std::string& job = grid_.rows[place_of(grid_, here().look)].cells[2].text;
          job != "-")
        return go({View::kJob, {.job = job}, {}});
      notice_ = "it has no job, or none yet";
      return;
    case View::kCrons:
      for (const CronInfo& cron : sampler_.observer().crons())
        if (cron.name == row && !cron.last_job.empty())
          return go({View::kJob, {.job = cron.last_job}, {}});
      notice_ = "it has enqueued no job yet";
      return;
    case View::kLimits:
    case View::kCounters:
    case View::kJob:
    case View::kHelp: return;
  }
}

void Browser::back() {
  stale_ = true;
  if (!here().look.filter.empty())
    here().look.filter.clear();
  else if (path_.size() > 1)
    path_.pop_back();
}

// --- Pictures ------------------------------------------------------------------------------------

/// Where the full names of all do not fit, those of the other segments are short; where even these
/// do not, the first are left out until the chosen one fits.
Line Browser::tabs(std::size_t width) const {
  static constexpr std::string_view kTabs = "1234567890C";
  static_assert(kTabs.size() == std::size(kViews));
  const auto tab_of = [this](std::size_t i, bool full) {
    const bool chosen = path_.front().view == kViews[i];
    const std::string name(full || chosen ? name_of(kViews[i]) : short_name_of(kViews[i]));
    const std::string before = chosen ? "[" : full ? " " : "";
    return Line{{std::string(1, kTabs[i]), {Tone::kNote, !full}},
                {before + name + (chosen ? "]" : " "), {Tone::kPlain, chosen, false, false}}};
  };
  const auto tabs_from = [&](std::size_t first, bool full) {
    Line line;
    for (std::size_t i = first; i < std::size(kViews); ++i)
      for (Span& span : tab_of(i, full)) line.push_back(std::move(span));
    return line;
  };
  Line line = tabs_from(0, true);
  if (width_of(line) <= width) return line;
  const auto chosen =
      static_cast<std::size_t>(std::ranges::find(kViews, path_.front().view) - std::begin(kViews));
  for (std::size_t first = 0; first <= std::min(chosen, std::size(kViews) - 1); ++first) {
    std::size_t end = 0;
    for (std::size_t i = first; i <= chosen && i < std::size(kViews); ++i)
      end += width_of(tab_of(i, false));
    line = tabs_from(first, false);
    if (end <= width) break;
  }
  return line;
}

Line Browser::footer() const {
  const Place& place = path_.back();
  if (question_) {
    Line line{{question_->text + " ", {Tone::kCare, true, false, false}}};
    line.push_back({question_->wants_value ? question_->value + "_   Enter does it, Esc does not"
                                           : "y does it, any other key does not"});
    return line;
  }
  if (filtering_) return {{"filter: " + place.look.filter + "_", {Tone::kNote, true}}};
  Line line;
  std::string way;
  for (const Place& step : path_) {
    way += (way.empty() ? "" : " > ") + std::string(name_of(step.view));
    const Subject& subject = step.subject;
    for (const std::string* what : {&subject.queue, &subject.tenant, &subject.pool})
      if (!what->empty()) way += " " + shell::printable(*what);
    if (step.view == View::kJobs) way += " (" + std::string(name_of(subject.jobs)) + ")";
  }
  if (frozen_) line.push_back({"FROZEN ", {Tone::kCare, true, true, false}});
  if (options_.admin) line.push_back({"ADMIN ", {Tone::kBad, true, false, false}});
  line.push_back({way + "  ", {Tone::kPlain, true, false, false}});
  if (!place.look.filter.empty())
    line.push_back({"filter \"" + shell::printable(place.look.filter) + "\"  ", {Tone::kNote}});
  line.push_back({fmt::format("every {} ms  ? help  q quit", interval_ms_)});
  return line;
}

Picture Browser::picture(std::size_t width, std::size_t height) {
  stale_ = stale_ || (width != width_ && grid_.wraps);
  width_ = width;
  draw_grid();
  Picture picture = header_of(sampler_.last(), notice_, width);
  picture.push_back(cut(tabs(width), width));
  const std::size_t room = height > kHeaderLines + 2 ? height - kHeaderLines - 2 : 1;
  rows_ = room > 1 ? room - 1 : 1;
  for (Line& line : draw(grid_, here().look, width, room, here().view != View::kHelp))
    picture.push_back(std::move(line));
  while (picture.size() + 1 < height) picture.push_back({});
  picture.push_back(cut(footer(), width));
  return picture;
}

}  // namespace ojs_shm::top
