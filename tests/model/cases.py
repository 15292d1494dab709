# SPDX-License-Identifier: Apache-2.0
"""What is run: each model under its bounds, and each of its mutants under bounds in which it must fail.

Run.key     the name within the model; MUTANT_... is defined for the preprocessor
Run.words   the bounds, for people
Run.bounds  the same for the model; empty: those that the file itself has
Run.short   whether ./dev test runs it too
"""

from typing import NamedTuple


class Run(NamedTuple):
    key: str
    words: str
    bounds: str = ""
    short: bool = True
    liveness: bool = False  # no cycle at all: lock-freedom, in a bounded workload

    @property
    def must_fail(self) -> bool:
        return self.key.startswith("MUTANT_")


REAL, LONG = True, False

# Other bounds than those of the files.
LEVELS_TWO_WORDS = "JOBS=3 RINGS=4 FIRST=2 FETCHERS=2 FETCHES=1 PER_WORD=1"
LEVELS_TWO_FETCHES = "JOBS=2 RINGS=0 FIRST=1 FETCHERS=2 FETCHES=2 PER_WORD=2"
LEVELS_RACE = "JOBS=3 RINGS=1 FIRST=1 FETCHERS=2 FETCHES=1 PER_WORD=2"
MOVE_APART = "FETCHERS=1 FETCHES=1 START=0 TO_A=2 TO_B=1 CANCEL=0"
MOVE_CANCEL = "FETCHERS=2 FETCHES=1 START=2 TO_A=0 TO_B=2 CANCEL=1"
CHUNKS_ELSEWHERE = "JOBS=5 RINGS=24 FIRST=2 CONSUMERS=2 BOTH_ON=2 TAKES=2 CHUNKS=5"
CHUNKS_MORE = "JOBS=4 RINGS=8 FIRST=2 CONSUMERS=2 BOTH_ON=0 TAKES=2 CHUNKS=5"
CHUNKS_ONE_RING = "JOBS=3 RINGS=0 FIRST=2 CONSUMERS=1 BOTH_ON=0 TAKES=3 CHUNKS=4"
CHUNKS_SPIN = "JOBS=5 RINGS=12 FIRST=2 CONSUMERS=1 BOTH_ON=0 TAKES=2 CHUNKS=5"
CHUNKS_SPIN_ON = CHUNKS_SPIN + " OUTCOME_ONLY"
CHUNKS_STRAY = "JOBS=6 RINGS=28 FIRST=2 CONSUMERS=1 BOTH_ON=0 TAKES=2 CHUNKS=6 OUTCOME_ONLY"
SPLICE_RECYCLED = "DEAD=2 CONSUMERS=1 TAKES=2 PUSHES=1 KILL=1"
SPLICE_TWO = "DEAD=2 CONSUMERS=2 TAKES=2 PUSHES=1 KILL=0"
SPLICE_ALL_DEAD = "DEAD=6 CONSUMERS=1 TAKES=2 PUSHES=1 KILL=1"
RECLAIM_TWICE = "PUSHES=0 TAKES=1 SECOND=1"
RECLAIM_MORE = "PUSHES=1 TAKES=2 SECOND=0"
SLEEP_ONE_QUEUE = "WORKERS=2 QUEUES=1 JOBS=2 IN=0 ORDER=0 ONLY=0 VICTIM=9"
SLEEP_WORKER_DIES = "WORKERS=2 QUEUES=1 JOBS=1 IN=0 ORDER=0 ONLY=0 VICTIM=0"
SLEEP_PRODUCER_DIES = "WORKERS=2 QUEUES=1 JOBS=1 IN=0 ORDER=0 ONLY=0 VICTIM=4"
BELL_TWO_LEASES = "TIMERS=2 LEASES=2 VICTIM=4"
BUSY_NEIGHBOUR = "PRODUCERS=1 FETCHERS=2 ROUNDS=1 ROUNDS_2=1 NEIGHBOUR=1 VICTIM=9"
BUSY_TWICE = "PRODUCERS=2 FETCHERS=2 ROUNDS=2 ROUNDS_2=2 NEIGHBOUR=0 VICTIM=9"
BUSY_DIES = "PRODUCERS=2 FETCHERS=1 ROUNDS=2 ROUNDS_2=0 NEIGHBOUR=0 VICTIM=0"
BOUNDS_FETCHER = "MAX=2 TRIES_0=1 TRIES_1=0 FETCHER=1 WAITING=1"
BOUNDS_BOTH = "MAX=2 TRIES_0=1 TRIES_1=1 FETCHER=1 WAITING=1"
BOUNDS_TWO_TRIES = "MAX=2 TRIES_0=0 TRIES_1=2 FETCHER=0 WAITING=0"
PARKING_TWO_AT_ONCE = "WORKERS=3 JOBS=3 LIMIT=2 VICTIM=9"
ROOM_PASSER = "WAITERS=1 REMOVALS=2 PASSER=1 RESTS=0 VICTIM=9"
ROOM_WAITER_DIES = "WAITERS=2 REMOVALS=1 PASSER=0 RESTS=0 VICTIM=0"
ROOM_REST = "WAITERS=1 REMOVALS=2 PASSER=0 RESTS=1 VICTIM=9"
ROOM_TWO_REST = "WAITERS=2 REMOVALS=2 PASSER=0 RESTS=1 VICTIM=9"
ROOM_REST_DIES = "WAITERS=1 REMOVALS=2 PASSER=0 RESTS=1 VICTIM=3"
ROOM_REMOVER_DIES = "WAITERS=1 REMOVALS=2 PASSER=0 RESTS=0 VICTIM=3"
FLOWS_SIZE = "FLOWS=1 WEIGHT=1 MOST=1 "
FLOWS_PRODUCER_DIES = "FLOWS=1 WEIGHT=1 MOST=3 START=0 PRODUCERS=1 FETCHERS=1 FAIR=1 SWITCH=0 VICTIM=0 SECOND=1"
FLOWS_FETCHER_DIES = "FLOWS=1 WEIGHT=1 MOST=2 START=2 PRODUCERS=0 FETCHERS=2 FAIR=1 SWITCH=0 VICTIM=2 SECOND=0"
FLOWS_OFF = FLOWS_SIZE + "START=1 PRODUCERS=1 FETCHERS=1 FAIR=1 SWITCH=1 VICTIM=9 SECOND=0"
FLOWS_OFF_DIES = "FLOWS=1 WEIGHT=1 MOST=2 START=2 PRODUCERS=0 FETCHERS=1 FAIR=1 SWITCH=1 VICTIM=5 SECOND=0"
FLOWS_ON_DIES = "FLOWS=1 WEIGHT=1 MOST=2 START=2 PRODUCERS=0 FETCHERS=1 FAIR=0 SWITCH=1 VICTIM=5 SECOND=0"
FLOWS_WEIGHT = "FLOWS=1 WEIGHT=2 MOST=1 START=2 PRODUCERS=1 FETCHERS=2 FAIR=1 SWITCH=0 VICTIM=9 SECOND=0"
FLOWS_LIVE = FLOWS_SIZE + "START=1 PRODUCERS=1 FETCHERS=1 FAIR=1 SWITCH=0 VICTIM=9 SECOND=0"
TURNS_POOL = "FETCHERS=3 FETCHES=2 JOBS_0=9 JOBS_1=9 CHANGES=0 POOL=1 VICTIM=9"
TURNS_RUN_OUT = "FETCHERS=2 FETCHES=3 JOBS_0=2 JOBS_1=3 CHANGES=0 POOL=0 VICTIM=9"
TURNS_POOL_RUNS_OUT = "FETCHERS=2 FETCHES=3 JOBS_0=2 JOBS_1=3 CHANGES=0 POOL=1 VICTIM=9"
TURNS_DIES = "FETCHERS=2 FETCHES=3 JOBS_0=9 JOBS_1=9 CHANGES=0 POOL=0 VICTIM=1"
TURNS_CHANGED = "FETCHERS=2 FETCHES=2 JOBS_0=9 JOBS_1=9 CHANGES=2 POOL=0 VICTIM=9"
DROP_SIZE = "MAX=2 START=2 BATCH=2 SECOND=1 "
DROP_DIES = DROP_SIZE + "FETCHER=0 FAILS=1 VICTIM=0 REPAIRERS=1"
DROP_REPAIRER_DIES = "MAX=2 START=2 BATCH=2 SECOND=0 FETCHER=0 FAILS=1 VICTIM=0 REPAIRERS=2"
DROP_FETCHED_TOO = "MAX=2 START=2 BATCH=2 SECOND=0 FETCHER=1 FAILS=1 VICTIM=0 REPAIRERS=2"
DROP_OUTRUN = "MAX=2 START=2 BATCH=1 SECOND=2 FETCHER=4 FAILS=0 VICTIM=9 REPAIRERS=1"
DROP_OUTRUN_SMALL = "MAX=2 START=2 BATCH=1 SECOND=1 FETCHER=2 FAILS=0 VICTIM=9 REPAIRERS=1"
DROP_ONE_EACH = "MAX=3 START=3 BATCH=1 SECOND=1 FETCHER=0 FAILS=0 VICTIM=9 REPAIRERS=1"
ACCOUNTS_FETCHER = "MAX=1 WAITING=1 OF_X=1 OF_Y=1 FETCHES=1 VICTIM=2 SECOND=0"
ACCOUNTS_X_DIES = "MAX=1 WAITING=1 OF_X=1 OF_Y=1 FETCHES=1 VICTIM=0 SECOND=0"
ACCOUNTS_Y_DIES = "MAX=1 WAITING=1 OF_X=0 OF_Y=1 FETCHES=1 VICTIM=1 SECOND=0"
ACCOUNTS_TWICE = "MAX=1 WAITING=1 OF_X=1 OF_Y=1 FETCHES=1 VICTIM=2 SECOND=1"
ACCOUNTS_TWO = "MAX=2 WAITING=2 OF_X=1 OF_Y=1 FETCHES=2 VICTIM=9 SECOND=0"
ACCOUNTS_OUTRUN = "MAX=1 WAITING=1 OF_X=1 OF_Y=1 FETCHES=2 VICTIM=9 SECOND=0"
JOIN_FIRST = "VICTIM=0 REPAIRERS=2"
JOIN_LAST = "VICTIM=2 REPAIRERS=2"
KEYS_REPLACE = "REPLACE=1 OLD=1 NEIGHBOUR=0 TRIES=1 ENDS=0 VICTIM=9 REPAIRERS=1 INSERTERS=2"
KEYS_REPLACE_ENDS = "REPLACE=1 OLD=1 NEIGHBOUR=0 TRIES=1 ENDS=1 VICTIM=9 REPAIRERS=1 INSERTERS=2"
KEYS_AGAIN = "REPLACE=0 OLD=0 NEIGHBOUR=1 TRIES=2 ENDS=2 VICTIM=9 REPAIRERS=1 INSERTERS=2"
KEYS_DIES = "REPLACE=0 OLD=0 NEIGHBOUR=0 TRIES=1 ENDS=0 VICTIM=0 REPAIRERS=1 INSERTERS=2"
KEYS_DIES_TWICE = "REPLACE=0 OLD=0 NEIGHBOUR=0 TRIES=1 ENDS=0 VICTIM=0 REPAIRERS=2 INSERTERS=2"
KEYS_REPLACER_DIES_TWICE = "REPLACE=1 OLD=1 NEIGHBOUR=0 TRIES=1 ENDS=0 VICTIM=0 REPAIRERS=2 INSERTERS=2"
KEYS_REPLACER_DIES = "REPLACE=1 OLD=1 NEIGHBOUR=0 TRIES=1 ENDS=0 VICTIM=0 REPAIRERS=1 INSERTERS=2"
KEYS_THREE = "REPLACE=0 OLD=0 NEIGHBOUR=0 TRIES=1 ENDS=0 VICTIM=9 REPAIRERS=1 INSERTERS=3"
KEYS_THREE_REPLACE = "REPLACE=1 OLD=0 NEIGHBOUR=0 TRIES=1 ENDS=0 VICTIM=9 REPAIRERS=1 INSERTERS=3"
REPAIR_TWICE = "SECOND=1 REQUEUE=1 EXPIRY=0"

MODELS: dict[str, list[Run]] = {
    "levels": [
        Run("one-word", "3 jobs, 2 producers, 2 fetchers with a fetch each, 2 rings in one index word"),
        Run("two-words", "the same, each ring in an index word of its own", LEVELS_TWO_WORDS, LONG),
        Run("two-fetches", "2 jobs of one ring, 2 producers, 2 fetchers with 2 fetches each", LEVELS_TWO_FETCHES, LONG),
        Run("both-late", "3 jobs, 2 producers, the better ring second", LEVELS_RACE, LONG),
        Run("lock-free", "as one-word: no cycle", liveness=True, short=False),
        Run("MUTANT_CLEAR_WITHOUT_MARK", "the closer does not mark the cell before it clears the bit"),
        Run("MUTANT_CLEAR_ANY_VERSION", "the closer clears the bit whatever the version", short=False),
        Run("MUTANT_OPEN_KEEPS_VERSION", "an opener that finds the bit set leaves the version", short=False),
        Run("MUTANT_FILL_BEFORE_OPEN", "a marked cell is filled before the index is opened"),
        Run("MUTANT_NO_SECOND_LOOK", "a fetch looks only once"),
        Run("MUTANT_SECOND_LOOK_AT_INDEX_ONLY", "it does not look at the empty cells again", short=False),
    ],
    "move": [
        Run("there-and-back", "2 movers, 2 fetchers with a fetch each, 3 rings, another job in the middle"),
        Run("cancelled", "the other way round, and a canceller", MOVE_CANCEL, LONG),
        Run("apart", "2 movers to different rings, a fetcher", MOVE_APART),
        Run("lock-free", "as apart: no cycle", MOVE_APART, liveness=True),
        Run("MUTANT_OTHER_COUNTS_AS_MOVED", "a move says done though the job was moved elsewhere", MOVE_APART),
        Run("MUTANT_TAKEN_COUNTS_AS_MOVED", "a move says done though the job was taken before it", short=False),
        Run("MUTANT_STATE_FIRST", "the control word moves before the hint is there"),
        Run("MUTANT_NO_HELP", "a fetch takes a hint of the future for a dead one", short=False),
        Run("MUTANT_MOVED_HINT_TRUSTED", "a moved hint is claimed without a look at the slot", short=False),
        Run("MUTANT_NO_SECOND_LOOK", "a fetch looks only once"),
    ],
    "chunks": [
        Run("two-consumers", "4 pushes by 2 pushers, 2 rings, 5 chunks of a cell, 2 consumers on one ring"),
        Run("one-each", "5 pushes, a consumer on each ring", CHUNKS_ELSEWHERE, LONG),
        Run("more", "as two-consumers, 3 jobs in the ring that both serve", CHUNKS_MORE, LONG),
        Run("lock-free", "5 pushes, a consumer: no cycle", CHUNKS_SPIN, liveness=True),
        Run("MUTANT_NO_TAIL_HELP", "tail is not helped on before its chunk is left: the invariant"),
        Run("MUTANT_NO_TAIL_HELP.spin", "the same: a pusher spins for ever", CHUNKS_SPIN_ON, liveness=True),
        Run("MUTANT_NO_TAIL_HELP.stray", "the same: a hint goes into a foreign ring", CHUNKS_STRAY),
        Run("MUTANT_HEAD_NOT_VALIDATED", "a consumer trusts what it read without looking at head again"),
        Run("MUTANT_NO_INCARNATION", "a link is set whatever the chunk's incarnation", CHUNKS_ELSEWHERE, LONG),
        Run("MUTANT_LOSER_FREES_TOO", "who loses the cas on head frees the chunk as well", short=False),
        Run("MUTANT_LINKED_BY_STORE", "a slow linker marks its chunk by a store", CHUNKS_ONE_RING, LONG),
    ],
    "splice": [
        Run("killed", "a run of 2 chunks with a live hint, a consumer; the splicer may die"),
        Run("recycled", "the same with a pusher that recycles", SPLICE_RECYCLED, LONG),
        Run("nothing-lives", "the same, no live hint in the run", SPLICE_ALL_DEAD, LONG),
        Run("two-consumers", "2 consumers, nobody dies", SPLICE_TWO, LONG),
        Run("lock-free", "as killed: no cycle", liveness=True),
        Run("MUTANT_HEAD_NOT_MOVED_ON", "the repair frees the run while a consumer stands before the old link"),
        Run("MUTANT_NO_SECOND_LOOK", "the splicer does not look again whether head stayed"),
        Run("MUTANT_UNMARKED_BY_STORE", "the marks of the run are taken back by a store", SPLICE_TWO, LONG),
    ],
    "reclaim": [
        Run("repairer", "a linker or leaver dies, 2 rings, 6 chunks, a consumer, a pusher, a repairer"),
        Run("repairer-dies", "the same without the pusher; the first repairer may die too", RECLAIM_TWICE, LONG),
        Run("more", "as repairer, the consumer passes two", RECLAIM_MORE, LONG),
        Run("lock-free", "as repairer: no cycle", "", LONG, liveness=True),
        Run("MUTANT_WALK_CUT_SHORT", "the walk ends where a chunk was recycled; the rest counts as unreachable"),
        Run("MUTANT_LEFT_WITHOUT_INTENT", "a chunk is left without an intent"),
        Run("MUTANT_LINKING_FREED", "a dead linker's chunk is freed though a ring may lead to it", short=False),
        Run("MUTANT_INTENT_CLEARED_FIRST", "the repairer clears the intent before it has acted", RECLAIM_TWICE, LONG),
    ],
    "sleep": [
        Run("two-queues", "2 workers, one for both queues and one for the second, a job in each"),
        Run("one-queue", "2 workers, one queue, 2 jobs", SLEEP_ONE_QUEUE, LONG),
        Run("worker-dies", "2 workers, one queue, a job; a worker may die", SLEEP_WORKER_DIES),
        Run("producer-dies", "the same; the producer may die", SLEEP_PRODUCER_DIES, LONG),
        Run("lock-free", "as worker-dies: no cycle", SLEEP_WORKER_DIES, LONG, liveness=True),
        Run("MUTANT_SLEEPER_KEEPS_WAKE", "who slept keeps a wake though it took another queue's job"),
        Run("MUTANT_WAKE_KEPT", "a wake is never handed on", short=False),
        Run("MUTANT_LOOK_BEFORE_LYING_DOWN", "the last look is before the bit is set"),
        Run("MUTANT_PARK_READ_LATE", "the futex's value is read after the look", short=False),
        Run("MUTANT_WAKE_BEFORE_PUSH", "the producer reads the waiters before it publishes"),
        Run("MUTANT_REPAIR_WAKES_NOBODY", "the repair wakes nobody", SLEEP_WORKER_DIES),
    ],
    "parking": [
        Run("worker-dies", "2 workers, 3 jobs of a key, one at a time; a worker may die"),
        Run("two-at-once", "3 workers, 3 jobs, two at a time", PARKING_TWO_AT_ONCE, LONG),
        Run("lock-free", "as worker-dies: no cycle", liveness=True),
        Run("MUTANT_NO_SECOND_LOOK", "who parks does not look for room once more"),
        Run("MUTANT_LOOK_BEFORE_GIVING", "who gives a permit back looks into the lot before"),
        Run("MUTANT_REPAIR_LOOKS_NOT", "the repair does not look into the lot"),
        Run("MUTANT_PERMIT_WITHOUT_CAS", "a permit is taken by a look and a store"),
        Run("MUTANT_OWN_PERMIT_IN_THE_WAY", "a job's permit of an earlier hold keeps it from another", liveness=True),
    ],
    "bell": [
        Run("timer-dies", "2 timers, one of which may die in its call, and a short lease"),
        Run("lease-dies", "2 timers, 2 leases, one of which may die in its call", BELL_TWO_LEASES, LONG),
        Run("lock-free", "as timer-dies: no cycle", "", LONG, liveness=True),
        Run("MUTANT_LEASE_NOT_LOOKED_AT_AGAIN", "the shortest lease is not read again before the sleep"),
        Run("MUTANT_INBOX_NOT_LOOKED_AT_AGAIN", "the timers' ring is not looked at again before the sleep"),
        Run("MUTANT_BELL_READ_LATE", "the doorbell's value is read just before the sleep", short=False),
        Run("MUTANT_SAYS_NOTHING", "the supervisor does not say until when it sleeps", short=False),
        Run("MUTANT_DEATH_RINGS_NOT", "a death does not ring"),
    ],
    "busy": [
        Run("two-fetchers", "2 producers with a job each, a fetcher with 2 fetches and one with one"),
        Run("two-fetches", "the same, both with 2 fetches", BUSY_TWICE, LONG),
        Run("neighbour", "a producer, 2 fetchers with a fetch each, another queue in the same word", BUSY_NEIGHBOUR),
        Run("producer-dies", "2 producers, one of which may die in its enqueue, a fetcher, a repairer", BUSY_DIES),
        Run("lock-free", "as neighbour: no cycle", BUSY_NEIGHBOUR, LONG, liveness=True),
        Run("MUTANT_NOT_ANNOUNCED", "a fetcher says quiet without having announced it"),
        Run("MUTANT_LOOK_FIRST", "it looks before it announces"),
        Run("MUTANT_SAID_BY_STORE", "it says quiet whatever the word has become"),
        Run("MUTANT_NO_VERSION", "who takes it back leaves no trace", short=False),
        Run("MUTANT_MARKED_FIRST", "a producer looks at the word before its job is there"),
        Run("MUTANT_REPAIR_MARKS_NOTHING", "the repair marks no queue", BUSY_DIES),
    ],
    "bounds": [
        Run("producer-dies", "bound 3, 3 producers with an enqueue each, one of which may die"),
        Run("fetcher-dies", "bound 2, a producer with 2 enqueues, a fetcher that may die", BOUNDS_FETCHER),
        Run("fetcher-dies-2", "the same with a second producer", BOUNDS_BOTH, LONG),
        Run("two-tries", "bound 2, one producer tries twice", BOUNDS_TWO_TRIES, LONG),
        Run("lock-free", "as fetcher-dies: no cycle", BOUNDS_FETCHER, LONG, liveness=True),
        Run("MUTANT_RECOUNT", "the recount lowers `reserved` by cas and clears `refill` by a store"),
        Run("MUTANT_TAKEN_BACK_FROM_RESERVED", "a failed enqueue lowers `reserved` while a recount is on its way"),
        Run("MUTANT_CACHE_KEPT", "the repair lowers `out` and leaves the cached sums", BOUNDS_FETCHER),
        Run("MUTANT_ADD_INSTEAD_OF_CAS", "an admission adds where it should compare", BOUNDS_TWO_TRIES),
        Run("MUTANT_UNDONE_WITHOUT_RECOUNT", "the repair asks for no recount"),
    ],
    "accounts": [
        Run("fetcher-dies", "a job of X, an enqueue of X and of Y, a fetch that may die", ACCOUNTS_FETCHER),
        Run("x-dies", "the same; the enqueue of X may die", ACCOUNTS_X_DIES, LONG),
        Run("y-dies", "a job of X, an enqueue of Y that may die, a fetch", ACCOUNTS_Y_DIES),
        Run("repairer-dies", "as fetcher-dies; the first repairer may die too", ACCOUNTS_TWICE, LONG),
        Run("bound-2", "2 jobs of X, bound 2, an enqueue of X and of Y, 2 fetches", ACCOUNTS_TWO, LONG),
        Run("lock-free", "as y-dies: no cycle", ACCOUNTS_Y_DIES, LONG, liveness=True),
        Run("MUTANT_OLD_SUM_BELIEVED", "sums are believed though others were let in since", ACCOUNTS_OUTRUN),
        Run("MUTANT_DEATH_UNNOTICED", "who gives an account on minds no repair meanwhile", ACCOUNTS_FETCHER),
        Run("MUTANT_USE_NOT_MINDED", "who gives an account on minds nobody who is at work on it", ACCOUNTS_FETCHER),
        Run("MUTANT_NOT_CLOSED", "an account is given on without being closed", ACCOUNTS_FETCHER),
        Run("MUTANT_UNDONE_WITHOUT_RECOUNT", "the repair asks for no recount", ACCOUNTS_X_DIES),
    ],
    "repair": [
        Run("lease-ends", "2 workers, one dies in its fetch, ack or requeue; a repairer; a lease ends"),
        Run("repairer-dies", "the same without the lease; the first repairer may die too", REPAIR_TWICE),
        Run("lock-free", "as lease-ends: no cycle", "", LONG, liveness=True),
        Run("MUTANT_REPAIR_WITHOUT_PROOF", "the repairer takes a slow owner for dead"),
        Run("MUTANT_TALLY_BEFORE_INTENT", "the tally moves before the intent is set"),
        Run("MUTANT_INTENT_CLEARED_FIRST", "the repairer clears the intent before it has acted", REPAIR_TWICE, LONG),
        Run("MUTANT_NEVER_FINISHED", "an operation that lacked one store is undone", short=False),
        Run("MUTANT_LET_GO_FIRST", "another intent is written before the operation has been ended", short=False),
        Run("MUTANT_NOT_REPUBLISHED", "the repairer does not push the hint again"),
    ],
    "room": [
        Run("two-wait", "bound 1, 2 producers that wait, 2 jobs leave"),
        Run("one-passes", "one that waits and one that does not", ROOM_PASSER),
        Run("waiter-dies", "2 that wait, one of which may die", ROOM_WAITER_DIES, LONG),
        Run("remover-dies", "one that waits; who takes jobs out may die", ROOM_REMOVER_DIES),
        Run("rests", "one that waits and rests, 2 jobs leave", ROOM_REST),
        Run("two-rest", "the same with 2 that wait", ROOM_TWO_REST, LONG),
        Run("rests-remover-dies", "one that waits and rests; who takes jobs out may die", ROOM_REST_DIES),
        Run("lock-free", "as one-passes: no cycle", ROOM_PASSER, LONG, liveness=True),
        Run("MUTANT_PASSES", "who does not wait is let in whoever waits", ROOM_PASSER),
        Run("MUTANT_SLEEPS_WITHOUT_A_LOOK", "who has taken a place does not look again before it sleeps"),
        Run("MUTANT_CALLED_CLEARED_LATE", "a waiter says that it has been called only after its look"),
        Run("MUTANT_LEAVES_IN_SILENCE", "who is let in does not call the next"),
        Run("MUTANT_CLEARED_WHATEVER_CAME", "the bit for waiters is cleared whoever came meanwhile"),
        Run("MUTANT_REST_OUTLIVED", "who takes a job out lets a waiter rest beyond its rest", ROOM_REST),
        Run("MUTANT_SLEEPS_LONG_AFTER_A_REST_CUT_SHORT", "who was called in its rest then sleeps longer", ROOM_TWO_REST),
        Run("MUTANT_REPAIR_CALLS_NOBODY", "the repair calls nobody", ROOM_REMOVER_DIES),
        Run("MUTANT_REPAIR_MINDS_THE_CALL", "the repair calls nobody who has been called", ROOM_REMOVER_DIES),
    ],
    "flows": [
        Run("two-fetchers", "a job in a flow, a producer with another, 2 fetchers", short=False),
        Run("producer-dies", "a producer that may die, a fetcher, a repairer that may die", FLOWS_PRODUCER_DIES),
        Run("fetcher-dies", "2 jobs in a flow, 2 fetchers, one of which may die", FLOWS_FETCHER_DIES),
        Run("switched-off", "a job in a flow, a producer, a fetcher; sharing is switched off", FLOWS_OFF, LONG),
        Run("switch-off-dies", "2 jobs in a flow, a fetcher; who switches it off may die", FLOWS_OFF_DIES),
        Run("switch-on-dies", "2 jobs, a fetcher; who switches it on may die", FLOWS_ON_DIES, LONG),
        Run("weight", "2 jobs in a flow that may give two in a turn, a producer, 2 fetchers", FLOWS_WEIGHT, LONG),
        Run("lock-free", "a job in a flow, a producer, a fetcher: no cycle", FLOWS_LIVE, liveness=True),
        Run("MUTANT_TAKEN_BACK_UNNOTICED", "an announcement that was taken back leaves no trace"),
        Run("MUTANT_ENDING_COUNTS_AS_LISTED", "who brings a job minds no announcement"),
        Run("MUTANT_NO_SECOND_LOOK", "who has announced the end does not look again"),
        Run("MUTANT_LISTED_BEFORE_THE_JOB", "the job comes into a flow that has been listed before", short=False),
        Run("MUTANT_LISTED_BEFORE_THE_HINT", "the control says listed before the hint is there", FLOWS_PRODUCER_DIES),
        Run("MUTANT_TURN_BEFORE_HINT", "a turn is over before its flow has another place", FLOWS_FETCHER_DIES),
        Run("MUTANT_NOT_REPUBLISHED", "the repair does not bring the job into line", FLOWS_PRODUCER_DIES, LONG),
        Run("MUTANT_DISSOLVED_WITHOUT_PLACES", "the jobs of a flow that ends get no places", FLOWS_OFF_DIES, LONG),
    ],
    "join": [
        Run("two-at-once", "2 jobs that end at once, a third that comes after both"),
        Run("first-dies", "the same; the process that ends the first may die, and its repairer", JOIN_FIRST),
        Run("last-dies", "the process that ends the third may die, and its repairer", JOIN_LAST),
        Run("MUTANT_LOOK_BEFORE_MARK", "a process looks at the other job before it says that its own has ended"),
        Run("MUTANT_RELEASE_WITHOUT_CAS", "the third job is let run without a look whether it still waits"),
        Run("MUTANT_MARKED_TWICE", "the repair sets the bit whether it is set or not", JOIN_FIRST),
        Run("MUTANT_NOT_MARKED_AGAIN", "the repair does not set the bit of the job that the intent names", JOIN_FIRST),
        Run("MUTANT_NOT_MENDED", "the repair does not do what follows from the bits", JOIN_FIRST),
    ],
    "keys": [
        Run("two-inserters", "2 inserters of one key, a neighbour that goes"),
        Run("used-again", "the same with 2 jobs each, in the same slot; a worker ends them", KEYS_AGAIN, LONG),
        Run("inserter-dies", "2 inserters, one of which may die, a repairer", KEYS_DIES),
        Run("repairer-dies", "the same; the first repairer may die too", KEYS_DIES_TWICE, LONG),
        Run("replaced", "a job that lives, 2 inserters that replace it and each other", KEYS_REPLACE),
        Run("replaced-and-ended", "the same; a worker ends one of them", KEYS_REPLACE_ENDS, LONG),
        Run("replacer-dies", "as replaced; an inserter may die, a repairer", KEYS_REPLACER_DIES),
        Run("replacers-repairer-dies", "the same; the first repairer may die too", KEYS_REPLACER_DIES_TWICE, LONG),
        Run("three-inserters", "3 inserters of one key", KEYS_THREE),
        Run("three-replace", "3 inserters that replace each other", KEYS_THREE_REPLACE, LONG),
        Run("no-round", "as two-inserters: no cycle", liveness=True),
        Run("no-round-replaced", "as replaced: no cycle", KEYS_REPLACE, liveness=True),
        Run("no-round-of-three", "as three-inserters: no cycle", KEYS_THREE, LONG, liveness=True),
        Run("MUTANT_LOOK_FIRST", "an inserter looks before it puts its entry"),
        Run("MUTANT_AHEAD_PASSED_OVER", "an inserter does not wait for one in a higher cell"),
        Run("MUTANT_FILLING_PASSED_OVER", "an entry whose slot is being filled keeps no other out"),
        Run("MUTANT_BOTH_STEP_BACK", "two that see each other both step back", liveness=True),
        Run("MUTANT_NONE_STEPS_BACK", "two that see each other wait for each other"),
        Run("MUTANT_COUNTED_LATE", "the count goes up after the entry was put", KEYS_DIES),
        Run("MUTANT_COUNTED_DOWN_FIRST", "the count goes down before the entry is taken", KEYS_DIES),
        Run("MUTANT_ENTRY_LEFT", "the repair frees a slot and leaves its entry", KEYS_DIES),
        Run("MUTANT_FREED_FIRST", "the repair frees a slot before it takes its entry", KEYS_DIES_TWICE),
        Run("MUTANT_HELD_PASSED_OVER", "a job in another inserter's hands keeps no other out", KEYS_REPLACER_DIES, LONG),
        Run("MUTANT_SEIZED_BY_STORE", "a job is taken to be replaced whatever it has become", KEYS_REPLACE_ENDS),
        Run("MUTANT_ENDED_BEFORE_COMMIT", "what is replaced is ended before the commit", KEYS_REPLACER_DIES),
        Run("MUTANT_PUBLISHED_BEFORE_COMMIT", "the new job is published before the commit", KEYS_REPLACE),
        Run("MUTANT_GIVEN_BACK_AFTER_COMMIT", "the repair gives back what was replaced", KEYS_REPLACER_DIES),
        Run("MUTANT_COMMIT_CLEARED_FIRST", "the repairer clears the commit before it has acted", KEYS_REPLACER_DIES_TWICE),
    ],
    "turns": [
        Run("three-fetchers", "2 levels that have enough jobs, 3 fetchers with 2 fetches each"),
        Run("pool", "the same for the queues of a pool", TURNS_POOL),
        Run("run-out", "2 and 3 jobs, 2 fetchers with 3 fetches each", TURNS_RUN_OUT),
        Run("pool-runs-out", "the same for the queues of a pool", TURNS_POOL_RUNS_OUT),
        Run("fetcher-dies", "2 fetchers with 3 fetches each, one of which may die", TURNS_DIES),
        Run("changed", "2 fetchers with 2 fetches each; the weights change twice", TURNS_CHANGED),
        Run("lock-free", "as run-out: no cycle", TURNS_RUN_OUT, liveness=True),
        Run("MUTANT_STORED", "the word is stored, whatever it has become"),
        Run("MUTANT_NOT_MOVED", "the word is left where it was"),
        Run("MUTANT_CLAIMED_FIRST", "the job is claimed before the turn is taken"),
        Run("MUTANT_TURN_NOT_KEPT", "who loses a claim takes another turn"),
        Run("MUTANT_WORD_FIRST", "the word names the new cycle before it is there", TURNS_CHANGED),
        Run("MUTANT_VERSION_KEPT", "the word has no version", TURNS_CHANGED),
    ],
    "drop": [
        Run("one-each", "bound 3 and full, 2 producers with a job each", DROP_ONE_EACH),
        Run("producer-dies", "bound 2 and full, a batch whose producer may die or find no slot, another", DROP_DIES),
        Run("repairer-dies", "the same without the other; the first repairer may die too", DROP_REPAIRER_DIES),
        Run("fetched-too", "the same, and a job is fetched", DROP_FETCHED_TOO, LONG),
        Run("outrun", "2 producers with a job each, 2 fetches", DROP_OUTRUN_SMALL, LONG),
        Run("lock-free", "as one-each: no cycle", DROP_ONE_EACH, liveness=True),
        Run("MUTANT_NO_SEAT", "two drop at a time", DROP_ONE_EACH),
        Run("MUTANT_OLD_SUM_BELIEVED", "sums are believed though others were let in since", DROP_OUTRUN),
        Run("MUTANT_GONE_AT_ONCE", "a victim is ended when it is taken", DROP_DIES),
        Run("MUTANT_VICTIMS_COMMITTED_LATER", "the batch is committed first, and then its victims", DROP_DIES),
        Run("MUTANT_UNCOMMITTED_DROPPED", "the repair ends victims of a drop that was not committed", DROP_DIES),
        Run("MUTANT_INTENT_CLEARED_FIRST", "the repairer clears the intent before it has acted", DROP_REPAIRER_DIES),
        Run("MUTANT_OUT_ADDED", "the repair adds to the tally what the victims had", DROP_REPAIRER_DIES),
    ],
}
