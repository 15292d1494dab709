// SPDX-License-Identifier: Apache-2.0
//
// Re-prioritise: the hint goes into the new ring first, under the tag that the job will have; then one cas on the
// control word moves the job, by the mover or by any fetch that meets the hint of the future. The tag counts the
// moves apart from the other transitions, so that a mover whose cas fails can tell whether the job was moved or
// taken.
//   mover     Changer::reprioritize, Rings::push     helper    Search::look (`hint_first`), Control::moved_to, moves_since
//   fetcher   Search::look, Fetcher::fetch, StraightFetch::take   canceller Changer::cancel
// Job x moves between rings 0, 1 and 2; job y stands in ring 1 all the time. The index and its closing are in, as in
// levels.pml; chunks are not.
//
// Proved: an available job has a live hint in its ring at every instant, or one of the future in the ring to which
// it is being moved, so it is never out of sight; a fetch returns a job that was the best at some instant of the
// call, "empty" only if there was none; a move that says "done" was done, or fits between two other moves that were
// (one alone may have taken its place in line before this one was called). A process killed anywhere is one that never
// takes its next step.
#ifndef FETCHES
#define FETCHERS 2
#define FETCHES 1
#define START 0   // the ring of x
#define TO_A 2    // where the first mover puts it
#define TO_B 0    // where the second one puts it; 3: there is none
#define CANCEL 0  // 1: somebody cancels x
#endif
#define LEVELS 3
#define CELLS 4
#define VERSIONS 4
#define NONE 255

#define EMPTY 0
#define CLOSED 1
#define HINT_Y 2
#define HINT_X 4
#define HINT(tag, first) (HINT_X + (tag) * 2 + (first))
#define MOVED(tag) ((tag) + 5)  // a tag is 4 * transitions + moves; four moves do not happen here
#define TAKEN(tag) ((tag) + 4)
#define MOVES(tag) ((tag) & 3)
#define TAG_OF(v) (((v) - HINT_X) / 2)
#define CELL(l, p) cell[(l) * CELLS + (p)]
#define BIT(l) (1 << (l))

byte cell[LEVELS * CELLS];
byte head[LEVELS], tail[LEVELS];
byte word;  // version * 8 + bits

// The control word of x, changed as a whole.
#define AVAILABLE 0
#define CLAIMED 1
#define ACTIVE 2
#define CANCELLED 3
byte state, ring = START, tag;
bool y_taken;

byte moved_at;            // bit t: transition t was a move
byte moved_here[LEVELS];  // the same, of moves to this ring
bool fetching[FETCHERS], empty_seen[FETCHERS], x_seen[FETCHERS], y_seen[FETCHERS];

hidden byte i, p;
hidden byte ok_hint;

inline instant() {
  // x is in sight, and the bit of its ring is set.
  if
  :: state == AVAILABLE ->
    ok_hint = false;
    p = head[ring];
    do
    :: p < CELLS ->
      if :: CELL(ring, p) == HINT(tag, 0) || CELL(ring, p) == HINT(tag, 1) -> ok_hint = true :: else fi;
      p++
    :: else -> break
    od;
    assert(ok_hint && (word & BIT(ring)))
  :: else
  fi;
  i = 0;
  do
  :: i < FETCHERS ->
    if
    :: fetching[i] ->
      if
      :: state != AVAILABLE && y_taken -> empty_seen[i] = true
      :: state == AVAILABLE && (y_taken || ring == 0) -> x_seen[i] = true
      :: !y_taken && (state != AVAILABLE || ring == 2) -> y_seen[i] = true
      :: else -> x_seen[i] = true; y_seen[i] = true  // both in ring 1: their order is not modelled
      fi
    :: else
    fi;
    i++
  :: else -> break
  od;
  i = 0;
  p = 0;
  ok_hint = false
}

inline move_from(t, to) {  // one cas on the control word
  d_step {
    if
    :: state == AVAILABLE && tag == t ->
      moved_at = moved_at | (1 << (tag / 4));
      moved_here[to] = moved_here[to] | (1 << (tag / 4));
      ring = to;
      tag = MOVED(tag);
      ok = true;
      instant()
    :: else -> ok = false
    fi
  }
}

inline fill(expected, hint) {
  d_step {
    found = CELL(to, t);
    if :: found == expected -> CELL(to, t) = hint :: else fi
  }
}

proctype Mover(byte to) {
  byte t, found, before;
  bool ok;
again:
  atomic { before = tag; ok = (state == AVAILABLE && ring != to) };
  if :: !ok -> goto end :: else fi;
#ifdef MUTANT_STATE_FIRST
  move_from(before, to);
#endif
push:
  t = tail[to];
  assert(t < CELLS);
  fill(EMPTY, HINT(MOVED(before), 1));
  if
  :: found == EMPTY
  :: found == CLOSED ->
    word = (((word >> 3) + 1) % VERSIONS) * 8 + ((word & 7) | BIT(to));
    fill(CLOSED, HINT(MOVED(before), 1));
    if :: found != CLOSED -> goto push :: else fi
  :: else -> d_step { if :: tail[to] == t -> tail[to] = t + 1 :: else fi }; goto push
  fi;
  d_step { if :: tail[to] == t -> tail[to] = t + 1 :: else fi };
#ifndef MUTANT_STATE_FIRST
  atomic { move_from(before, to); t = tag; found = ring };
#ifndef MUTANT_TAKEN_COUNTS_AS_MOVED
  if :: !ok && MOVES(t) == MOVES(before) -> goto again :: else fi;  // taken before our move: look what it is now
#endif
#ifndef MUTANT_OTHER_COUNTS_AS_MOVED
  if :: !ok && MOVES(t) == MOVES(before + 1) && found != to -> goto again :: else fi;  // moved elsewhere by another
#endif
  d_step {  // "done": by us, for us, or between two others
    found = moved_at >> (before / 4);
    assert((moved_here[to] >> (before / 4)) || (found & (found - 1)));
    ok = false
  };
#endif
end:
  atomic { before = 0; t = 0; found = 0; ok = false }
}

proctype Canceller() {
  d_step { if :: state == AVAILABLE -> state = CANCELLED; tag = TAKEN(tag); instant() :: else fi }
}

#define SAW(l) (at[l] != NONE)
#define STILL(l) (!SAW(l) || CELL(l, at[l]) == value[l])

proctype Fetcher(byte me) {
  byte l, h, v, n, seen, before, at[LEVELS], value[LEVELS];
  bool ok, mine;
  do
  :: n < FETCHES ->
    d_step { fetching[me] = true; instant() };
  restart:
    atomic { l = 0; at[0] = NONE; at[1] = NONE; at[2] = NONE; mine = false; seen = word };
    do
    :: l < LEVELS ->
      if
      :: seen & BIT(l) ->
      peek:
        h = head[l];
        v = CELL(l, h);
        if
        :: v < HINT_Y -> d_step { at[l] = h; value[l] = v; l++ }
        :: v == HINT_Y -> break  // state first: trusted
        :: v >= HINT_X && !((v - HINT_X) & 1) -> break
        :: v >= HINT_X && ((v - HINT_X) & 1) ->
#ifdef MUTANT_MOVED_HINT_TRUSTED
          break;
#endif
          d_step {
            before = tag;
            ok = (state == AVAILABLE && ring == l && tag == TAG_OF(v));
            mine = (state == AVAILABLE && MOVED(tag) == TAG_OF(v))
          };
          if
#ifndef MUTANT_NO_HELP
          :: !ok && mine -> mine = false; move_from(before, l); goto peek
#endif
          :: ok -> break
          :: else -> mine = false; d_step { if :: head[l] == h -> head[l] = h + 1; instant() :: else fi }; goto peek
          fi
        fi
      :: else -> l++
      fi
    :: else -> break
    od;
#ifndef MUTANT_NO_SECOND_LOOK
    if :: word != seen -> goto restart :: else fi;
    if :: !STILL(0) -> goto restart :: else fi;
    if :: !STILL(1) -> goto restart :: else fi;
    if :: !STILL(2) -> goto restart :: else fi;
#endif
    if
    :: l < LEVELS ->
      d_step {
        if
        :: v == HINT_Y && !y_taken -> assert(y_seen[me]); y_taken = true; ok = true; instant()
        :: v >= HINT_X && state == AVAILABLE && ring == l && tag == TAG_OF(v) ->
          assert(x_seen[me]);
          state = CLAIMED;
          tag = TAKEN(tag);
          ok = true;
          mine = true;
          instant()
        :: else -> ok = false
        fi
      };
      d_step { if :: head[l] == h -> head[l] = h + 1; instant() :: else fi };
      if :: !ok -> goto restart :: else fi;
      if :: mine -> d_step { state = ACTIVE; tag = TAKEN(tag) } :: else fi
    :: else -> assert(empty_seen[me])
    fi;
    atomic {
      fetching[me] = false; empty_seen[me] = false; x_seen[me] = false; y_seen[me] = false; mine = false; l = 0
    };
    do
    :: l < LEVELS ->
      if
      :: SAW(l) && value[l] == EMPTY ->
        before = word;
        if
        :: before & BIT(l) ->
          d_step { ok = (CELL(l, at[l]) == EMPTY); if :: ok -> CELL(l, at[l]) = CLOSED :: else fi };
          if
          :: ok -> d_step { if :: word == before -> word = before & ~BIT(l); instant() :: else fi }
          :: else
          fi
        :: else
        fi
      :: true
      fi;
      l++
    :: else -> break
    od;
    atomic {
      n++; l = 0; h = 0; v = 0; seen = 0; before = 0; ok = false;
      at[0] = 0; at[1] = 0; at[2] = 0; value[0] = 0; value[1] = 0; value[2] = 0
    }
  :: else -> break
  od
}

init {
  atomic {
    CELL(0, 0) = CLOSED;
    CELL(1, 0) = HINT_Y;
    tail[1] = 1;
    word = BIT(1);
    if
    :: START == 0 -> CELL(0, 0) = HINT(0, 0); tail[0] = 1; word = word | BIT(0); CELL(2, 0) = CLOSED
    :: else -> CELL(START, 0) = HINT(0, 0); tail[START] = 1; word = word | BIT(START)
    fi;
    run Mover(TO_A);
    if :: TO_B < LEVELS -> run Mover(TO_B) :: else fi;
    if :: CANCEL -> run Canceller() :: else fi;
    run Fetcher(0);
    if :: FETCHERS > 1 -> run Fetcher(1) :: else fi
  }
}
