// SPDX-License-Identifier: Apache-2.0
//
// Tenants that share one level: the line of the level holds hints to flows, a flow has a ring of its own for its jobs.
// All flows have the weight WEIGHT. A job that stands in the line by itself is its number there, a flow 10 and more.
//   producer  Places::stand_in_line; Flows::join_flow; FlowLine::list
//   fetcher   Search::first_live, first_of_flow; FlowLine::end, end_turn; Fetcher::fetch
//   switcher  Flows::set_fairness: gather_flows or dissolve_flows
//   repairer  Repairer::repair: republish, let_go
// A push and a look at the head of a ring are one step each, and so is moving a head (`levels`, `chunks`).
//
// Proved: when nothing moves any more every job has been served and no flow believes that it stands in line: so a job in a
// flow is never out of sight; a job is served once; a flow has at most MOST live hints in the line at a time. Also when one
// process is killed at any step, and its repairer too, and while sharing is switched on or off.
#ifndef FLOWS
#define FLOWS 1
#define START 1      // jobs that wait at first
#define PRODUCERS 1  // with a job each
#define FETCHERS 2
#define WEIGHT 1
#define FAIR 1      // at first
#define SWITCH 0    // somebody switches it
#define VICTIM 9    // 0, 1: a producer; 2, 3, 4: a fetcher; 5: the switcher; 9: nobody
#define SECOND 0    // the first repairer may die too
#define MOST 1
#endif
#define JOBS (START + PRODUCERS)
#define FLOW_OF(j) ((j) % FLOWS)
#define LINE 14
#define OWN 6
#define PATIENCE 2
#define SWITCHER 5
#define NONE 99

mtype = { idle, listed, ending };
mtype state[FLOWS] = idle;
byte tag[FLOWS], served[FLOWS], looks[FLOWS];
byte own[FLOWS * OWN] = NONE, own_head[FLOWS], own_tail[FLOWS];
byte line[LINE] = NONE, line_tag[LINE], head, tail;
byte job[JOBS];     // 0 not there, 1 available, 2 claimed, 3 in a hand or in a front lane
byte holder[JOBS];  // of one that is claimed, plus one
bool fair = FAIR, dead, dead_too, over[6];

#define SET(f, x, y, z, w) state[f] = x; tag[f] = y; served[f] = z; looks[f] = w
inline read_control(f) { s = state[f]; t = tag[f]; n = served[f]; l = looks[f] }
inline cas(f, x, y, z, w) {
  won = state[f] == s && tag[f] == t && served[f] == n && looks[f] == l;
  if :: won -> SET(f, x, y, z, w) :: else fi
}

inline peek_line() { h = head; w = line[h]; p = line_tag[h] }
inline retire_line() { if :: head == h -> line[h] = NONE; line_tag[h] = 0; head++ :: else fi }
inline push_line(what, its_tag) {
  d_step {
    assert(tail < LINE - 1);
    line[tail] = what;
    line_tag[tail] = its_tag;
    tail++;
    k = head;
    do
    :: k < tail -> if :: line[k] == 10 && state[0] != idle && line_tag[k] == tag[0] -> c++ :: else fi; k++
    :: else -> break
    od;
    assert(c <= MOST);
    k = 0;
    c = 0
  }
}
inline peek_own(f) { o = own_head[f]; j = own[f * OWN + o]; }
inline retire_own(f) { if :: own_head[f] == o -> own[f * OWN + o] = NONE; own_head[f]++ :: else fi }
inline push_own(f, what) { d_step { assert(own_tail[f] < OWN - 1); own[f * OWN + own_tail[f]] = what; own_tail[f]++ } }

// Taking an announcement back, so that a process that believes in the old one notices.
#ifdef MUTANT_TAKEN_BACK_UNNOTICED
#define TAKEN_BACK l
#else
#define TAKEN_BACK (l + 1)
#endif

// `won` says at last whether the flow is in line. Gives up where it is outrun too often.
inline list_flow(f) {
  do
  :: atomic {
       read_control(f);
#ifdef MUTANT_ENDING_COUNTS_AS_LISTED
       if :: s != idle -> won = true; break :: else fi
#else
       if :: s == listed -> won = true; break :: else fi
#endif
     };
     if
     :: atomic { s == ending -> cas(f, listed, t, n, TAKEN_BACK); if :: won -> break :: else fi }
     :: s == idle ->
#ifdef MUTANT_LISTED_BEFORE_THE_HINT
        atomic { cas(f, listed, t + 1, 0, 0) };
        if :: won -> push_line(10 + f, t + 1) :: else fi
#else
        push_line(10 + f, t + 1);
        atomic { cas(f, listed, t + 1, 0, 0) }
#endif
     fi;
     atomic { r++; if :: r == PATIENCE -> won = false; break :: else fi }
  od;
  r = 0
}

inline join_flow(f, what) {
#ifdef MUTANT_LISTED_BEFORE_THE_JOB
  list_flow(f);
  push_own(f, what)
#else
  push_own(f, what);
  list_flow(f)
#endif
}

inline stand_in_line(x) {
  if
  :: flags -> join_flow(FLOW_OF(x), x)
  :: else -> won = false
  fi;
  if :: !won -> push_line(x, 0) :: else fi
}

proctype Producer(byte me) {
  mtype s = idle;
  byte t, n, l, r, k, c;
  bool won, flags;
  {
    flags = fair;
    job[START + me] = 1;
    stand_in_line(START + me);
    over[me] = true
  } unless { me == VICTIM && dead }
}

/// `s`, `t`, `n`, `l` are what the control was when the flow was found empty; `h` is its place in the line.
inline end_flow(f) {
  if
  :: atomic { s == listed -> cas(f, ending, t, n, l); s = ending }
  :: s == ending -> won = true
  fi;
  if
  :: won ->
#ifdef MUTANT_NO_SECOND_LOOK
    j = NONE;
#else
    d_step { peek_own(f) };
#endif
    if
    :: atomic { j != NONE -> cas(f, listed, t, n, TAKEN_BACK) }
    :: atomic { j == NONE -> cas(f, idle, t + 1, 0, 0) };
       if :: atomic { won -> retire_line() } :: else fi
    fi
  :: else
  fi
}

inline end_turn(f) {
  d_step { read_control(f) };
  d_step { peek_line() };
  if
  :: w != 10 + f || s == idle || t != p
  :: else ->
    if
    :: atomic { n + 1 < WEIGHT -> cas(f, s, t, n + 1, l) }
    :: atomic { n + 1 >= WEIGHT -> peek_own(f) };
       if
       :: j == NONE -> end_flow(f)
       :: j != NONE && s == ending
       :: j != NONE && s == listed ->
#ifdef MUTANT_TURN_BEFORE_HINT
         atomic { cas(f, listed, t + 1, 0, 0) };
         if :: won -> atomic { retire_line() }; push_line(10 + f, t + 1) :: else fi
#else
         push_line(10 + f, t + 1);
         atomic { cas(f, listed, t + 1, 0, 0) };
         if :: atomic { won -> retire_line() } :: else fi
#endif
       fi
    fi
  fi
}

inline claim(x) { won = job[x] == 1; if :: won -> job[x] = 2; holder[x] = me + 1 :: else fi }
inline forget() {
  d_step { s = idle; t = 0; n = 0; l = 0; r = 0; k = 0; c = 0; h = 0; w = 0; p = 0; o = 0; j = 0; x = 0; f = 0; won = false; flags = false }
}

proctype Fetcher(byte me) {
  mtype s = idle;
  byte t, n, l, r, k, c, h, w, p, o, j, x, f;
  bool won, flags;
  {
end_nothing_in_line:
    do
    :: atomic { head < tail -> flags = fair };
       atomic { peek_line(); if :: w == NONE -> goto again :: w < 10 :: else -> f = w - 10 fi };
       if
       :: atomic { w < 10 -> won = job[w] == 1 };  // a job by itself
          if
          :: atomic { !won -> retire_line(); goto again }
          :: won && flags -> join_flow(FLOW_OF(w), w); if :: atomic { won -> retire_line(); goto again } :: else fi
          :: won && !flags
          fi;
          atomic { claim(w) };
          atomic { retire_line(); if :: won -> job[w] = 3 :: else fi }
       :: atomic { w >= 10 -> read_control(f) };
          if
          :: atomic { (s == idle || t != p) && t + 1 == p && s != ending -> cas(f, listed, p, 0, 0) }
          :: atomic { (s == idle || t != p) && !(t + 1 == p && s != ending) -> retire_line() }
          :: atomic { s != idle && t == p -> peek_own(f) };
             if
             :: j == NONE -> end_flow(f)
             :: atomic { j != NONE -> won = job[j] == 1 };
                if
                :: atomic { !won -> retire_own(f) }
                :: atomic { won -> claim(j) };
                   atomic { retire_own(f); x = j };
                   if :: won -> end_turn(f); job[x] = 3 :: else fi
                fi
             fi
          fi
       fi;
again: skip;
       forget()
    od
  } unless { atomic { me == VICTIM && dead -> forget() } }
}

/// On: the jobs at the head of the line join their flows. Off: each flow's end is announced, its jobs get places of their own,
/// and it is idle; again when one got a job meanwhile, or gave one.
#if SWITCH > 0
proctype Switcher() {
  mtype s = idle;
  byte t, n, l, r, k, c, h, w, p, o, j;
  bool won, again;
  {
    fair = !FAIR;
#if FAIR
    do
    ::
      again = false;
      atomic { read_control(0); o = own_head[0] };
      if
      :: s == idle -> break
      :: atomic { s == listed -> cas(0, ending, t, n, l); s = ending; again = !won }
      :: s == ending -> won = true
      fi;
      if
      :: won ->
        won = false;
        do
        :: atomic { j = own[o]; if :: j == NONE -> break :: else fi };
          o++;
          if
          :: job[j] == 1 ->
            won = true;
#ifndef MUTANT_DISSOLVED_WITHOUT_PLACES
            push_line(j, 0)
#endif
          :: else
          fi
        od;
        if :: atomic { won -> cas(0, idle, t + 1, 0, 0); again = !won } :: else fi
      :: else
      fi;
      if :: again :: else -> break fi
    od
#else
    do
    :: atomic { peek_line(); if :: w >= 10 -> break :: else fi };
      if
      :: job[w] == 1 -> join_flow(FLOW_OF(w), w); if :: !won -> break :: else fi
      :: else
      fi;
      atomic { retire_line() }
    od;
    skip;
#endif
    over[SWITCHER] = true
  } unless { SWITCHER == VICTIM && dead }
}
#endif

#if VICTIM < 9
proctype Killer() {
  atomic { if :: !over[VICTIM] -> dead = true :: true fi };
  atomic { if :: SECOND > 0 && dead -> dead_too = true :: true fi }
}

inline repair() {
  do
  :: x < JOBS -> d_step { if :: job[x] == 2 && holder[x] == VICTIM + 1 -> job[x] = 3 :: else fi; x++ }  // in front
  :: else -> break
  od;
#if VICTIM < 2 && !defined(MUTANT_NOT_REPUBLISHED)
  flags = fair;
  if :: job[START + VICTIM] == 1 -> stand_in_line(START + VICTIM) :: else fi;
#endif
  skip
}
proctype Repairer() {
  mtype s = idle;
  byte t, n, l, r, k, c, x;
  bool won, flags;
end:
  dead;
  { repair() } unless { dead_too }
}
proctype Again() {
  mtype s = idle;
  byte t, n, l, r, k, c, x;
  bool won, flags;
end:
  dead_too;
  repair()
}
#endif

proctype Judge() {
  byte i;
  timeout;
  d_step {
    do :: i < JOBS -> assert(job[i] == 3 || (job[i] == 0 && dead)); i++ :: else -> break od;
    i = 0;
    do :: i < FLOWS -> assert(state[i] == idle); i++ :: else -> break od
  }
}

init {
  byte i;
  d_step {
    do
    :: i < START ->
      job[i] = 1;
      if
      :: FAIR ->
        own[FLOW_OF(i) * OWN + own_tail[FLOW_OF(i)]] = i;
        own_tail[FLOW_OF(i)]++;
        if
        :: state[FLOW_OF(i)] == idle ->
          state[FLOW_OF(i)] = listed; tag[FLOW_OF(i)] = 1;
          line[tail] = 10 + FLOW_OF(i); line_tag[tail] = 1; tail++
        :: else
        fi
      :: else -> line[tail] = i; tail++
      fi;
      i++
    :: else -> break
    od;
    i = 0
  };
  atomic {
    do :: i < PRODUCERS -> run Producer(i); i++ :: else -> break od;
    i = 0;
    do :: i < FETCHERS -> run Fetcher(2 + i); i++ :: else -> break od;
#if SWITCH > 0
    run Switcher();
#endif
#if VICTIM < 9
    run Killer();
    run Repairer();
    run Again();
#endif
    run Judge()
  }
}
