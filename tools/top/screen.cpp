// SPDX-License-Identifier: Apache-2.0
#include "tools/top/screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cwchar>

#include "tools/shell/refusal.hpp"

#define NCURSES_WIDECHAR 1
#define NCURSES_NOMACROS 1
#include <ncurses.h>

namespace ojs_shm::top {
namespace {

/// Colors that can be read on a light and on a dark background; the background stays as it is.
short color_of(Tone tone) {
  switch (tone) {
    case Tone::kGood: return COLOR_GREEN;
    case Tone::kCare: return COLOR_MAGENTA;
    case Tone::kBad: return COLOR_RED;
    case Tone::kNote: return COLOR_CYAN;
    case Tone::kPlain: break;
  }
  return -1;
}

void set_style(const Style& style, bool colors) {
  attr_t attributes = A_NORMAL;
  if (style.bold) attributes |= A_BOLD;
  if (style.reverse) attributes |= A_REVERSE;
  if (style.dim) attributes |= A_DIM;
  ::wattr_set(stdscr, attributes,
              colors ? static_cast<short>(static_cast<int>(style.tone) + 1) : short{0}, nullptr);
}

std::string utf8_of(wint_t wide) {
  char bytes[16] = {};
  std::mbstate_t state{};
  const std::size_t length = std::wcrtomb(bytes, static_cast<wchar_t>(wide), &state);
  return length == static_cast<std::size_t>(-1) ? std::string() : std::string(bytes, length);
}

Stroke function_key(wint_t code) {
  switch (code) {
    case KEY_UP: return {Key::kUp};
    case KEY_DOWN: return {Key::kDown};
    case KEY_LEFT: return {Key::kLeft};
    case KEY_RIGHT: return {Key::kRight};
    case KEY_PPAGE: return {Key::kPageUp};
    case KEY_NPAGE: return {Key::kPageDown};
    case KEY_HOME: return {Key::kHome};
    case KEY_END: return {Key::kEnd};
    case KEY_ENTER: return {Key::kEnter};
    case KEY_BACKSPACE: return {Key::kErase};
    case KEY_BTAB: return {Key::kBackTab};
    case KEY_F(1): return {Key::kHelp};
    case KEY_F(6): return {Key::kSort};
    case KEY_F(10): return {Key::kQuit};
    case KEY_MOUSE: {
      MEVENT event;
      if (::getmouse(&event) == OK && (event.bstate & (BUTTON1_CLICKED | BUTTON1_PRESSED)) != 0)
        return {Key::kClick, {}, event.y};
      return {};
    }
    default: return {};
  }
}

Stroke character(wint_t code) {
  switch (code) {
    case L'\n':
    case L'\r': return {Key::kEnter};
    case L'\t': return {Key::kTab};
    case 27: return {Key::kBack};
    case 3: return {Key::kQuit};
    case 8:
    case 127: return {Key::kErase};
    default: return code < 32 ? Stroke{} : Stroke{Key::kText, utf8_of(code)};
  }
}

bool colors_on = false;

/// The terminal has another size than the last picture, or has lost it. ncurses' own handler comes
/// after ncurses has asked for the size, so that a change in between would be missed; and it draws
/// nothing anew when the size went there and back before the program looked.
volatile std::sig_atomic_t resized = 1;

void note_resize(int) { resized = 1; }

void take_size() {
  if (resized == 0) return;
  resized = 0;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
    ::resize_term(size.ws_row, size.ws_col);
  ::clearok(curscr, TRUE);
}

}  // namespace

Screen::Screen(bool colors) {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0)
    shell::refuse(Code::kInvalid,
                  "ojs-shm-top: no terminal to draw on; give --once, --batch or --json");
  struct sigaction action {};
  action.sa_handler = note_resize;  // without SA_RESTART: it ends the wait for a key
  ::sigaction(SIGWINCH, &action, nullptr);
  ::set_escdelay(50);
  if (const char* term = std::getenv("TERM");
      ::newterm(term == nullptr || *term == '\0' ? "dumb" : term, stdout, stdin) == nullptr)
    shell::refuse(Code::kInvalid,
                  "ojs-shm-top: this terminal (TERM) is not known; give --once, --batch or --json");
  ::raw();
  ::noecho();
  ::nonl();
  ::keypad(stdscr, TRUE);
  ::curs_set(0);
  ::mousemask(BUTTON1_CLICKED | BUTTON1_PRESSED, nullptr);
  ::mouseinterval(0);
  take_size();
  colors_on = colors && ::has_colors();
  if (!colors_on) return;
  ::start_color();
  ::use_default_colors();
  for (const Tone tone : {Tone::kPlain, Tone::kGood, Tone::kCare, Tone::kBad, Tone::kNote})
    ::init_pair(static_cast<short>(static_cast<int>(tone) + 1), color_of(tone), -1);
}

Screen::~Screen() { ::endwin(); }

std::size_t Screen::width() const { return static_cast<std::size_t>(std::max(COLS, 1)); }
std::size_t Screen::height() const { return static_cast<std::size_t>(std::max(LINES, 1)); }

void Screen::show(const Picture& picture) {
  ::werase(stdscr);
  for (std::size_t y = 0; y < picture.size() && y < height(); ++y) {
    ::wmove(stdscr, static_cast<int>(y), 0);
    for (const Span& span : cut(picture[y], width())) {
      set_style(span.style, colors_on);
      ::waddnstr(stdscr, span.text.c_str(), static_cast<int>(span.text.size()));
    }
  }
  ::wattr_set(stdscr, A_NORMAL, 0, nullptr);
  ::wrefresh(stdscr);
}

Stroke Screen::wait(int ms) {
  ::wtimeout(stdscr, resized == 0 ? ms : 0);
  wint_t code = 0;
  const int kind = ::wget_wch(stdscr, &code);
  take_size();
  if (kind == ERR) return {};
  return kind == KEY_CODE_YES ? function_key(code) : character(code);
}

}  // namespace ojs_shm::top
