"""Keeps the shards of a forest in step, in the driver.

Every operation has a number. All shards get all operations, in order. The keeper stores the
operations since the last snapshot, so that a lost shard can be restored from the snapshot and
catch up. Must not know Ray, which a crew hides, or what operations do.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from onlineforest._core import calibration_from
from onlineforest._distributed.crew import Crew, Pending, Sent
from onlineforest._distributed.errors import (
    MemberLostError,
    ShardLostError,
    ShardUnreadableError,
)
from onlineforest._distributed.messages import (
    CurrentStatus,
    Operation,
    Question,
    SetCalibration,
    Status,
)
from onlineforest._distributed.shard import Hello, Outcome, ShardPlan, Start
from onlineforest._distributed.snapshots import Snapshots
from onlineforest._distributed.splitting import join_left_out

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Settings:
    """How the driver treats its shards."""

    max_in_flight: int  # operations that shards may lag behind while learning is pipelined
    recovery_timeout: float  # seconds
    snapshots: Snapshots | None  # None: a lost shard is an error
    max_log: int  # operations stored since the last snapshot
    max_tries: int = 5  # consecutive losses of one shard


@dataclass(frozen=True)
class Entry:
    """A numbered operation, and the number of samples seen after it."""

    number: int
    n_seen: int
    operation: Sent = None


@dataclass
class Member:
    """A shard as the driver knows it."""

    plan: ShardPlan
    start: Start
    sent: int = 0  # number of the latest operation that was sent
    is_running: bool = False
    n_losses: int = 0  # since its latest reply
    pending: dict[int, Pending[Outcome]] = field(default_factory=dict)  # by operation number
    outcomes: dict[int, Outcome] = field(default_factory=dict)


class ShardKeeper:
    """Sends operations and questions to all shards, and restores shards that are lost.

    Parameters
    ----------
    crew : Crew
        Keeps the processes.
    plans : list of ShardPlan
        The shards.
    starts : list of Start
        What each shard starts from; all at the same position.
    own : Hello
        The hello of a shard in this process, to compare with.
    settings : Settings
        Limits, timeouts and the folder of snapshots.
    n_seen : int
        Number of samples seen before the first operation.
    """

    def __init__(
        self,
        crew: Crew,
        plans: list[ShardPlan],
        starts: list[Start],
        own: Hello,
        settings: Settings,
        n_seen: int = 0,
    ) -> None:
        self._crew = crew
        self._own = own
        self._settings = settings
        self._members = [Member(plan, start) for plan, start in zip(plans, starts, strict=True)]
        self._lock = threading.RLock()
        self._is_pipelined = False
        self._is_closed = False
        self._tip = Entry(starts[0].position, n_seen)
        self._completed = starts[0].position
        self._snapshot_position = starts[0].position
        self._log: dict[int, Entry] = {}
        self._answer: Any = None
        self._status: Status | None = None
        self.n_recoveries = 0
        try:
            for member in self._members:
                self._crew.start(member.plan, member.start)
            for member in self._members:
                self._greet(member, time.monotonic() + settings.recovery_timeout)
        except BaseException as error:
            self.close()
            if isinstance(error, MemberLostError):
                raise ShardLostError(f"A shard could not be started. {error}") from error
            raise

    @property
    def plans(self) -> list[ShardPlan]:
        """The shards, in the order of their trees."""
        return [member.plan for member in self._members]

    # Operations.

    def operate(self, operation: Operation[Any, Answer]) -> Answer | None:
        """Let all shards carry out an operation; None at once if learning is pipelined."""
        with self._lock:
            self._check_open()
            self._check_log()
            is_pipelined = self._is_pipelined and operation.may_be_pipelined
            if not is_pipelined:  # a calibration of an earlier batch must come before it
                self._settle()
            while self._tip.number - self._completed >= self._settings.max_in_flight:
                self._complete_next()
            number = self._submit(operation)
            if is_pipelined:
                return None
            while self._completed < number:
                self._complete_next()
            answer, self._answer = self._answer, None
            self._settle()
            return answer  # type: ignore[no-any-return]

    def _submit(self, operation: Operation[Any, Any]) -> int:
        sent = self._crew.put(operation)
        entry = Entry(self._tip.number + 1, self._tip.n_seen + operation.n_new, sent)
        self._log[entry.number] = entry
        self._tip = entry  # from here on the operation counts, even after an interrupt
        for member in self._members:
            if member.is_running:
                try:
                    self._send_missing(member)
                except MemberLostError as error:
                    self._note_loss(member, error)
        return entry.number

    def _complete_next(self) -> None:
        """Wait until all shards have carried out the oldest operation in progress."""
        number = self._completed + 1
        outcomes = [self._outcome_of(member, number) for member in self._members]
        first = outcomes[0]
        for member, outcome in zip(self._members, outcomes, strict=True):
            if (outcome.status, outcome.refusal) != (first.status, first.refusal):
                raise ShardLostError(
                    f"{member.plan.name} does not agree with shard 0 after operation {number}: "
                    f"{outcome.status}, {outcome.refusal!r} and {first.status}, {first.refusal!r}."
                )
        # An interrupt may come at any line: every step below may run twice.
        if first.left_out is not None and len(self._members) > 1:
            self._submit(_calibration_from(outcomes))
        self._status, self._answer = first.status, first.answer
        is_last = self._tip.number == number
        if first.refusal is not None and is_last and first.status is not None:
            self._tip = replace(self._tip, n_seen=first.status.n_seen)  # nothing was learned
        self._completed = number
        for member in self._members:
            del member.outcomes[number]
            member.pending.pop(number, None)
        if self._settings.snapshots is None:
            del self._log[number]
        if first.refusal is not None:
            raise ValueError(first.refusal)

    def _settle(self) -> None:
        """Wait until no operation is in progress."""
        while self._completed < self._tip.number:
            self._complete_next()

    @contextmanager
    def pipelined(self) -> Iterator[None]:
        """In this context, learning waits only if `max_in_flight` operations are in progress."""
        self._is_pipelined = True
        try:
            yield
            with self._lock:
                self._check_open()
                self._settle()
        finally:
            self._is_pipelined = False

    def _outcome_of(self, member: Member, number: int) -> Outcome:
        while number not in member.outcomes:
            try:
                self._restore(member)
                self._send_missing(member)
                outcome = self._crew.get(member.pending[number])
            except MemberLostError as error:
                self._note_loss(member, error)
            else:
                member.outcomes[number] = outcome
                del member.pending[number]
                member.n_losses = 0
        return member.outcomes[number]

    def _send_missing(self, member: Member) -> None:
        """Send all operations that the shard has not been sent yet."""
        while member.sent < self._tip.number:
            entry = self._log[member.sent + 1]
            pending = self._crew.carry_out(member.plan.number, entry.number, entry.operation)
            if entry.number > self._completed and entry.number not in member.outcomes:
                member.pending[entry.number] = pending
            member.sent = entry.number

    # Questions.

    @contextmanager
    def at_one_position(self) -> Iterator[None]:
        """In this context, no other thread changes the forest between two questions."""
        with self._lock:
            yield

    def status(self) -> Status:
        """What all shards agree on after the latest operation."""
        with self._lock:
            self._check_open()
            self._settle()
            if self._status is None:
                self._status = self._find_status()
            return self._status

    def _find_status(self) -> Status:
        statuses = self.ask_all(CurrentStatus())
        if any(status != statuses[0] for status in statuses):
            raise ShardLostError(f"The shards do not agree: {statuses}.")
        return statuses[0]

    def ask_first(self, question: Question[Any, Answer]) -> Answer:
        """The answer of the first shard."""
        return self.ask_one(0, question)

    def ask_one(self, number: int, question: Question[Any, Answer]) -> Answer:
        """The answer of one shard. Arrays are writable."""
        answer = self._ask([self._members[number]], question)[0]
        if isinstance(answer, np.ndarray) and not answer.flags.writeable:  # in shared memory
            return answer.copy()
        return answer

    def ask_all(self, question: Question[Any, Answer]) -> list[Answer]:
        """The answers of all shards, in the order of their trees. Arrays may be read-only."""
        return self._ask(self._members, question)

    def _ask(self, members: list[Member], question: Question[Any, Answer]) -> list[Answer]:
        with self._lock:
            self._check_open()
            self._settle()
            sent, position = self._crew.put(question), self._completed
            outcomes = self._replies(
                members, lambda member: self._crew.ask(member.plan.number, sent, position)
            )
        for outcome in outcomes:
            if outcome.refusal is not None:
                raise ValueError(outcome.refusal)
        return [outcome.answer for outcome in outcomes]

    def _replies(
        self, members: list[Member], send: Callable[[Member], Pending[Outcome]]
    ) -> list[Outcome]:
        """Send a message to each shard and wait for the replies; send again to restored shards."""
        pending: dict[int, Pending[Outcome]] = {}
        replies: dict[int, Outcome] = {}
        while len(replies) < len(members):
            waiting = [m for m in members if m.plan.number not in replies]
            for member in waiting:
                number = member.plan.number
                try:
                    if number not in pending:
                        self._restore(member)
                        self._send_missing(member)
                        pending[number] = send(member)
                except MemberLostError as error:
                    self._note_loss(member, error)
            for member in waiting:
                number = member.plan.number
                if number not in pending:
                    continue
                try:
                    replies[number] = self._crew.get(pending[number])
                    member.n_losses = 0
                except MemberLostError as error:
                    del pending[number]
                    self._note_loss(member, error)
        return [replies[member.plan.number] for member in members]

    # Recovery.

    def _note_loss(self, member: Member, error: MemberLostError) -> None:
        """Mark a shard as lost; raise if it cannot be restored."""
        member.is_running = False
        member.pending.clear()
        member.n_losses += 1
        if self._settings.snapshots is None:
            raise ShardLostError(f"{self._loss_without_folder(member)} {error}") from error
        if member.n_losses >= self._settings.max_tries:
            member.n_losses = 0
            raise ShardLostError(
                f"{member.plan.name} was lost {self._settings.max_tries} times in a row, after "
                f"operation {self._completed}. {self._safe_snapshot()} {error}"
            ) from error

    def _restore(self, member: Member) -> None:
        """Start a lost shard again, from its snapshot."""
        if member.is_running:
            return
        if self._settings.snapshots is None:  # the operations it missed are not stored
            raise ShardLostError(self._loss_without_folder(member))
        deadline = time.monotonic() + self._settings.recovery_timeout
        self._crew.start(member.plan, member.start)
        self._greet(member, deadline)
        self.n_recoveries += 1

    @staticmethod
    def _loss_without_folder(member: Member) -> str:
        return f"{member.plan.name} was lost. Without a folder of snapshots it cannot be restored."

    def _greet(self, member: Member, deadline: float) -> None:
        """Wait until a shard has started, and check that it can belong to this forest."""
        name = member.plan.name
        try:
            pending = self._crew.hello(member.plan.number)
            hello = self._crew.get(pending, max(deadline - time.monotonic(), 0.0))
        except TimeoutError:
            raise ShardLostError(
                f"{name} could not be started within {self._settings.recovery_timeout:g} s. "
                f"{self._crew.resources(member.plan.n_shards)} {self._safe_snapshot()}".rstrip()
            ) from None
        if hello.refusal is not None:
            raise ShardUnreadableError(f"{name} cannot start from its snapshot: {hello.refusal}")
        self._check_same_build(name, hello)
        if hello.position != member.start.position:
            raise ShardLostError(
                f"{name} starts after operation {hello.position}, not {member.start.position}."
            )
        member.sent = hello.position
        member.is_running = True

    def _check_same_build(self, name: str, hello: Hello) -> None:
        for what, own, other in (
            ("version", self._own.version, hello.version),
            ("fingerprint", self._own.fingerprint, hello.fingerprint),
        ):
            if own != other:
                raise ShardLostError(
                    f"{name} would not grow the same forest to the bit: its {what} is {other} "
                    f"({hello.machine}), that of the driver is {own} ({self._own.machine}). All "
                    "nodes need the same build of onlineforest and the same system libraries."
                )

    def _safe_snapshot(self) -> str:
        snapshots = self._settings.snapshots
        if snapshots is None:
            return ""
        return (
            f"Everything up to operation {self._snapshot_position} is safe in "
            f"{str(snapshots.folder)!r}: load_snapshot reads it."
        )

    # Positions and snapshots.

    @property
    def n_seen(self) -> int:
        """Number of samples given, those of operations in progress included."""
        return self._tip.n_seen

    @property
    def position(self) -> int:
        """Number of operations."""
        return self._tip.number

    @property
    def n_since_snapshot(self) -> int:
        """Number of operations since the last snapshot."""
        return self._tip.number - self._snapshot_position

    @property
    def is_log_full(self) -> bool:
        """Whether `operate` refuses operations until a snapshot is written."""
        return self._settings.snapshots is not None and len(self._log) >= self._settings.max_log

    def _check_log(self) -> None:
        if not self.is_log_full:
            return
        raise ShardLostError(
            f"No snapshot could be written since operation {self._snapshot_position}, and the "
            f"driver stores {len(self._log)} operations. It accepts no more until a snapshot can "
            "be written. Nothing has changed."
        )

    def check_agreement(self) -> None:
        """Raise if shards that started from a snapshot do not belong to one forest."""
        try:
            n_seen = self.status().n_seen
        except ShardLostError as error:
            raise ShardUnreadableError(f"The snapshot's shards cannot be used. {error}") from error
        if n_seen != self.n_seen:
            raise ShardUnreadableError(
                f"The snapshot's shards have seen {n_seen} samples, not {self.n_seen}."
            )

    def write_shards(self) -> int:
        """Let all shards write a snapshot; return its position. `OSError` if one cannot."""
        snapshots = self._settings.snapshots
        if snapshots is None:
            raise ValueError("A snapshot needs a folder.")
        with self._lock:
            self._check_open()
            self._settle()
            position = self._completed
            if position != self._snapshot_position:
                snapshots.drop(position)  # of an earlier run that got further
            snapshots.begin(position)

            def path_of(member: Member) -> str:
                return snapshots.shard_file(position, member.plan.number)

            outcomes = self._replies(
                self._members,
                lambda member: self._crew.snapshot(member.plan.number, path_of(member), position),
            )
            for member, outcome in zip(self._members, outcomes, strict=True):
                name, path = member.plan.name, path_of(member)
                problem = outcome.refusal
                if problem is None and not os.path.exists(path):
                    problem = f"the driver does not see {path!r}: all nodes must share the folder."
                if problem is not None:
                    self.give_up_snapshot(position)
                    raise OSError(f"{name}: {problem}")
        return position

    def give_up_snapshot(self, position: int) -> None:
        """Remove an incomplete snapshot; one that was complete before stays."""
        snapshots = self._settings.snapshots
        if snapshots is not None and position != self._snapshot_position:
            snapshots.drop(position)

    def rely_on_snapshot(self, position: int) -> None:
        """From now on, lost shards are restored from this snapshot."""
        snapshots = self._settings.snapshots
        assert snapshots is not None
        with self._lock:
            for member in self._members:
                path = snapshots.shard_file(position, member.plan.number)
                member.start = Start(position, snapshot=path)
            self._snapshot_position = position
            for number in [n for n in self._log if n <= position]:
                del self._log[number]

    def close(self) -> None:
        """End all shards; everything since the last snapshot is lost."""
        self._is_closed = True
        self._crew.close()

    @property
    def is_closed(self) -> bool:
        """Whether the shards were ended."""
        return self._is_closed

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError(
                "The shards of this forest were closed. fit starts new ones, RayForest.resume "
                "continues from a snapshot."
            )


def _calibration_from(outcomes: list[Outcome]) -> SetCalibration:
    """The calibration of a forest, from the left-out predictions of all its shards."""
    left_out = [outcome.left_out for outcome in outcomes if outcome.left_out is not None]
    if len(left_out) != len(outcomes):
        raise ShardLostError(
            f"Only {len(left_out)} of {len(outcomes)} shards sent left-out predictions."
        )
    return SetCalibration(*calibration_from(join_left_out(left_out)))
