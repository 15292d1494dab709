// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace ojs_shm::shm {

// One name for each shared write at which a process may die. A write method of the atomics door
// takes the point that lies right after it; docs/crash_recovery.md tells for each what is left and
// what repairs it. kNone stands where a death right after the write is the same as a death right
// after the write before it, and the line says why.
// clang-format off
#define OJS_SHM_POINTS(X)                                                                         \
  X(None) /* attach and roles */                                                                  \
  X(ProcessLive) X(ProcessFreed) X(LaneTaken) X(LaneFreed) X(SeatTaken) X(SeatLeft)               \
  /* allocation */                                                                                \
  X(HintWordTaken) X(HintReturned) X(BlockTaken) X(BlockFreed) X(ChunkTaken) X(ChunkFreed)        \
  X(RingMade) X(RingNamed)                                                                        \
  /* ring */                                                                                      \
  X(IndexOpened) X(IndexClosed) X(CellFilled) X(CellClosed) X(TailMoved) X(ChunkLinking)          \
  X(ChunkLinked) X(LinkSet) X(HeadMoved) X(HeadChunkLeft) X(ChunkRetired) X(SpliceClaimed)        \
  X(SpliceMarked) X(SpliceDone) X(SpliceReleased) X(LeaksLeft) X(LeaksCollected) X(BatchOpened)   \
  X(BatchWritten) X(BatchClosed) X(BatchTaken) X(ChunkRenewed)                                    \
  /* intents and tallies */                                                                       \
  X(IntentSet) X(IntentCleared) X(TallyIn) X(TallyOut) X(TallyReserved) X(CreditReserved)         \
  X(CreditSettled)                                                                                \
  /* slots */                                                                                     \
  X(SlotFilling) X(SlotFreed) X(SlotPublished) X(SlotClaimed) X(SlotActive) X(SlotSettling)       \
  X(SlotSettled) X(SlotHandedOver) X(SlotMoving) X(SlotMoved) X(SlotReranked) X(MoveHelped)       \
  X(LeaseMoved) X(LeaseEnded) X(ProgressSet) X(KeyPlaced) X(KeyRemoved) X(KeyPassed)              \
  X(BatchCommitted) X(SpreadCommitted) X(RivalSeized) X(RivalMarked)                              \
  /* waiting */                                                                                   \
  X(TicketTaken) X(TicketVoided) X(TicketCalled) X(AttentionSet) X(DropperSet)                    \
  X(PressureMeasured) X(WaiterSet) X(WaiterCleared) X(ParkSet) X(DoorbellRung) X(WaitFlagSet)     \
  X(CompletionRung)                                                                               \
  /* settings */                                                                                  \
  X(SetNamed) X(SetChanged) X(TypeNamed) X(TypeSet) X(CounterMoved) X(PartTaken) X(PartNamed)     \
  X(AgeClassTaken) X(SettlerSet) X(MaintenanceSet) X(TurnTaken) X(PoolNamed) X(PoolSet)           \
  X(PoolTurnTaken) X(SharedTurnTaken) X(BusySet) X(BusyCleared) X(BacklogCounted) X(FlowTaken)    \
  X(FlowListed) X(FlowEnding) X(FlowEnded) X(FlowServed) X(TenantNamed) X(AccountSeatTaken)       \
  X(AccountGiven) X(SlotMarked)                                                                   \
  /* workflows */                                                                                 \
  X(WorkflowCommitted) X(MemberFailed) X(MemberDone) X(WorkflowEnded)                             \
  /* crons */                                                                                     \
  X(CronSeatTaken) X(CronStaged) X(CronCommitted) X(CronChanged) X(CronTemplateKept)              \
  X(CronTurned)                                                                                   \
  /* registered workers */                                                                        \
  X(WorkerTaken) X(WorkerNamed) X(WorkerBorn) X(WorkerBeat) X(WorkerEnded) X(WorkerFreed)         \
  X(WorkerChanging) X(WorkerTold) X(WorkerChanged) X(WorkerCounted)                               \
  /* limits */                                                                                    \
  X(PermitTaken) X(PermitGiven) X(PermitRunTaken) X(PermitRunNamed) X(RateTaken) X(RateGiven)     \
  X(LimitClosed) X(LimitNamed) X(LotTaken) X(LotNamed) X(SlotParked) X(SlotUnparking)             \
  X(LimitsHeld) X(LimitTurn) X(LimitGivenUp)                                                      \
  /* measures and events */                                                                       \
  X(WaitPageTaken) X(WaitCounted) X(EventTurnTaken) X(EventPageOpened) X(EventPageClosed)         \
  X(EventWritten) X(EventCounted) X(SampleTaken)
// clang-format on

enum class Point : std::uint16_t {
#define X(name) k##name,
  OJS_SHM_POINTS(X)
#undef X
      kCount
};

constexpr std::string_view point_name(Point point) {
  constexpr std::string_view kNames[] = {
#define X(name) #name,
      OJS_SHM_POINTS(X)
#undef X
  };
  return point < Point::kCount ? kNames[static_cast<std::size_t>(point)] : "?";
}

}  // namespace ojs_shm::shm
