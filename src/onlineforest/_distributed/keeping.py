"""The parts of a forest, which live elsewhere, kept in step.

Operations have numbers. All parts get all of them, in order; those since the last snapshot are
kept, so that a part that is lost can be built again from the snapshot and catch up. Knows nothing
of Ray, a crew keeps the parts; nor what is asked of a forest.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from onlineforest._core import calibration_of
from onlineforest._distributed.shard import Hello, Outcome, PartPlan, Start, Status
from onlineforest._distributed.shares import join_left_out
from onlineforest._distributed.snapshots import Snapshots


class ShardLostError(RuntimeError):
    """A shard was lost and could not be brought back; says what can be done.

    Nothing that was learned up to the last snapshot is lost: `load_snapshot` reads it. The next
    call tries to bring the shard back again.

    Examples
    --------
    >>> from onlineforest.ray import ShardLostError
    >>> issubclass(ShardLostError, RuntimeError)
    True
    """


class PartUnreadableError(ShardLostError):
    """A part cannot begin with its snapshot."""


class MemberLostError(Exception):
    """A member of a crew is gone, or is not as it should be. Raised by a crew."""


class Crew(Protocol):
    """Keeps the parts of a forest, each in a process of its own, and carries messages."""

    def start(self, plan: PartPlan, start: Start) -> None:
        """Start a part, in place of one that was there."""

    def put(self, value: Any) -> Any:
        """A handle to a value that all parts can be given."""

    def call(self, number: int, method: str, *arguments: Any) -> Any:
        """Call a method of a part, after those called before; a handle to what it returns."""

    def get(self, handle: Any, timeout: float | None = None) -> Any:
        """What a method returned; `MemberLostError`, or `TimeoutError`."""

    def resources(self, n_parts: int) -> str:
        """What parts need and what there is, in words."""

    def close(self) -> None:
        """End all parts."""


@dataclass(frozen=True)
class Settings:
    """How a forest in parts is run."""

    max_in_flight: int
    recovery_timeout: float
    snapshots: Snapshots | None
    max_log: int
    max_tries: int = 5


@dataclass(frozen=True)
class Entry:
    """An operation that was given a number, and how many samples were seen after it."""

    number: int
    n_seen: int
    operation: str = ""
    arguments: Any = None  # a handle
    keywords: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Member:
    """What is known about a part."""

    plan: PartPlan
    start: Start
    sent: int = 0  # so many operations were sent to it
    is_there: bool = False
    n_failures: int = 0  # since it last did something
    handles: dict[int, Any] = field(default_factory=dict)  # by number of the operation
    outcomes: dict[int, Outcome] = field(default_factory=dict)


class PartKeeper:
    """Keeps the parts of a forest in step, whatever happens to them.

    Parameters
    ----------
    crew : Crew
        Keeps the parts.
    plans : list of PartPlan
        The parts.
    starts : list of Start
        Where each begins; all after the same number of operations.
    own : Hello
        What a part in this process would say of itself.
    settings : Settings
        How it is run.
    n_seen : int
        How many samples were seen by then.
    """

    def __init__(
        self,
        crew: Crew,
        plans: list[PartPlan],
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

    # Operations.

    def _operate(
        self,
        operation: str,
        arguments: tuple[Any, ...],
        keywords: Mapping[str, Any] | None = None,
        n_new: int = 0,
    ) -> Any:
        with self._lock:
            self._check_open()
            self._check_log()
            is_pipelined = self._is_pipelined and operation == "learn"
            if not is_pipelined:  # a calibration of before must not come after it
                self._settle()
            while self._tip.number - self._completed >= self._settings.max_in_flight:
                self._complete_next()
            number = self._submit(operation, arguments, keywords or {}, n_new)
            if is_pipelined:
                return None
            while self._completed < number:
                self._complete_next()
            answer, self._answer = self._answer, None
            self._settle()
            return answer

    def _submit(
        self, operation: str, arguments: tuple[Any, ...], keywords: Mapping[str, Any], n_new: int
    ) -> int:
        handle = self._crew.put(arguments)
        n_seen = self._tip.n_seen + n_new
        entry = Entry(self._tip.number + 1, n_seen, operation, handle, keywords)
        self._log[entry.number] = entry
        self._tip = entry  # from here on it counts, even if an interrupt comes
        for member in self._members:
            if member.is_there:
                try:
                    self._send_missing(member)
                except MemberLostError as error:
                    self._note_loss(member, error)
        return entry.number

    def _complete_next(self) -> None:
        """Wait until all parts have carried out the oldest operation that is under way."""
        number = self._completed + 1
        outcomes = [self._outcome_of(member, number) for member in self._members]
        first = outcomes[0]
        for member, outcome in zip(self._members, outcomes, strict=True):
            if (outcome.status, outcome.refusal) != (first.status, first.refusal):
                raise ShardLostError(
                    f"{member.plan.name} does not agree with shard 0 after operation {number}: "
                    f"{outcome.status}, {outcome.refusal!r} and {first.status}, {first.refusal!r}."
                )
        # An interrupt may come at any line: what is done twice then does no harm.
        if first.left_out is not None and len(self._members) > 1:
            left_out = join_left_out([outcome.left_out for outcome in outcomes])
            self._submit("set_calibration", calibration_of(left_out), {}, 0)
        self._status, self._answer = first.status, first.answer
        is_last = self._tip.number == number
        if first.refusal is not None and is_last and first.status is not None:
            self._tip = replace(self._tip, n_seen=first.status.n_seen)  # nothing was learned
        self._completed = number
        for member in self._members:
            del member.outcomes[number]
            member.handles.pop(number, None)
        if self._settings.snapshots is None:
            del self._log[number]
        if first.refusal is not None:
            raise ValueError(first.refusal)

    def _settle(self) -> None:
        while self._completed < self._tip.number:
            self._complete_next()

    @contextmanager
    def pipelined(self) -> Iterator[None]:
        """Here `learn` does not wait for the parts, as long as not too much is under way."""
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
                self._bring_back(member)
                self._send_missing(member)
                outcome = self._crew.get(member.handles[number])
            except MemberLostError as error:
                self._note_loss(member, error)
            else:
                member.outcomes[number] = outcome
                del member.handles[number]
                member.n_failures = 0
        return member.outcomes[number]

    def _send_missing(self, member: Member) -> None:
        while member.sent < self._tip.number:
            entry = self._log[member.sent + 1]
            handle = self._crew.call(
                member.plan.number,
                "carry_out",
                entry.number,
                entry.operation,
                entry.arguments,
                entry.keywords,
            )
            if entry.number > self._completed and entry.number not in member.outcomes:
                member.handles[entry.number] = handle
            member.sent = entry.number

    # Questions.

    def _settled_status(self) -> Status:
        with self._lock:
            self._check_open()
            self._settle()
            if self._status is None:
                self._status = self._find_status()
            return self._status

    def _find_status(self) -> Status:
        statuses: list[Status] = self._ask_all("status")
        if any(status != statuses[0] for status in statuses):
            raise ShardLostError(f"The shards do not agree: {statuses}.")
        return statuses[0]

    def _ask_first(self, question: str, *arguments: Any) -> Any:
        return self._ask(self._members[0], question, *arguments)

    def _ask(self, member: Member, question: str, *arguments: Any) -> Any:
        answer = self._ask_members([member], question, *arguments)[0]
        # What comes from another process may not be written to.
        is_locked = isinstance(answer, np.ndarray) and not answer.flags.writeable
        return answer.copy() if is_locked else answer

    def _ask_all(self, question: str, *arguments: Any) -> list[Any]:
        return self._ask_members(self._members, question, *arguments)

    def _ask_members(self, members: list[Member], question: str, *arguments: Any) -> list[Any]:
        with self._lock:
            self._check_open()
            self._settle()
            handle = self._crew.put(arguments)
            position = self._completed
            outcomes = self._call_all(members, lambda _: ("ask", question, handle, position))
        for outcome in outcomes:
            if outcome.refusal is not None:
                raise ValueError(outcome.refusal)
        return [outcome.answer for outcome in outcomes]

    def _call_all(self, members: list[Member], message_to: Any) -> list[Outcome]:
        """Call a method of members, which are asked again if they were lost meanwhile."""
        handles: dict[int, Any] = {}
        answers: dict[int, Outcome] = {}
        while len(answers) < len(members):
            waiting = [m for m in members if m.plan.number not in answers]
            for member in waiting:
                number = member.plan.number
                try:
                    if number not in handles:
                        self._bring_back(member)
                        self._send_missing(member)
                        handles[number] = self._crew.call(number, *message_to(member))
                except MemberLostError as error:
                    self._note_loss(member, error)
            for member in waiting:
                number = member.plan.number
                if number not in handles:
                    continue
                try:
                    answers[number] = self._crew.get(handles[number])
                    member.n_failures = 0
                except MemberLostError as error:
                    del handles[number]
                    self._note_loss(member, error)
        return [answers[member.plan.number] for member in members]

    # Parts that are lost, and snapshots.

    def _note_loss(self, member: Member, error: MemberLostError) -> None:
        member.is_there = False
        member.handles.clear()
        member.n_failures += 1
        if self._settings.snapshots is None:
            raise ShardLostError(f"{self._why_it_is_gone(member)} {error}") from error
        if member.n_failures >= self._settings.max_tries:
            member.n_failures = 0
            raise ShardLostError(
                f"{member.plan.name} was lost {self._settings.max_tries} times at the same place, "
                f"after operation {self._completed}. {self._what_is_safe()} {error}"
            ) from error

    def _bring_back(self, member: Member) -> None:
        if member.is_there:
            return
        if self._settings.snapshots is None:  # then nothing is kept that it could begin with
            raise ShardLostError(self._why_it_is_gone(member))
        deadline = time.monotonic() + self._settings.recovery_timeout
        self._crew.start(member.plan, member.start)
        self._greet(member, deadline)
        self.n_recoveries += 1

    @staticmethod
    def _why_it_is_gone(member: Member) -> str:
        return (
            f"{member.plan.name} was lost, and no folder for snapshots was given from which it "
            "could be brought back."
        )

    def _greet(self, member: Member, deadline: float) -> None:
        """Wait until a part is there, and see whether it can be one of this forest."""
        name = member.plan.name
        try:
            handle = self._crew.call(member.plan.number, "hello")
            hello: Hello = self._crew.get(handle, max(deadline - time.monotonic(), 0.0))
        except TimeoutError:
            raise ShardLostError(
                f"{name} could not be started within {self._settings.recovery_timeout:g} s. "
                f"{self._crew.resources(member.plan.n_parts)} {self._what_is_safe()}".rstrip()
            ) from None
        if hello.refusal is not None:
            raise PartUnreadableError(f"{name} cannot begin with its snapshot: {hello.refusal}")
        for what in ("version", "fingerprint"):
            own, other = getattr(self._own, what), getattr(hello, what)
            if own != other:
                raise ShardLostError(
                    f"{name} runs where forests are not the same to the bit: its {what} is {other} "
                    f"({hello.machine}), here it is {own} ({self._own.machine}). All nodes need "
                    "the same build of onlineforest and of the system's mathematics."
                )
        if hello.position != member.start.position:
            raise ShardLostError(
                f"{name} begins after operation {hello.position}, not {member.start.position}."
            )
        member.sent = hello.position
        member.is_there = True

    def _what_is_safe(self) -> str:
        snapshots = self._settings.snapshots
        if snapshots is None:
            return ""
        return (
            f"What was learned up to operation {self._snapshot_position} is safe in "
            f"{str(snapshots.folder)!r}: load_snapshot reads it."
        )

    @property
    def n_seen(self) -> int:
        """Number of samples given."""
        return self._tip.n_seen

    @property
    def position(self) -> int:
        """How many operations there were."""
        return self._tip.number

    @property
    def n_since_snapshot(self) -> int:
        """How many operations came since the last snapshot."""
        return self._tip.number - self._snapshot_position

    @property
    def seed(self) -> int:
        """The seed of the trees."""
        return int(self._members[0].plan.options["seed"])

    @property
    def is_log_full(self) -> bool:
        """Whether so many operations are kept that no more are taken before a snapshot."""
        return self._settings.snapshots is not None and len(self._log) >= self._settings.max_log

    def _check_log(self) -> None:
        if not self.is_log_full:
            return
        raise ShardLostError(
            f"No snapshot could be written since operation {self._snapshot_position}: so "
            f"{len(self._log)} operations are kept, and no more are taken, until a snapshot can be "
            "written. Nothing has changed."
        )

    def check_agreement(self) -> None:
        """Raise if parts that began with a snapshot are not those of one forest."""
        try:
            n_seen = self._settled_status().n_seen
        except ShardLostError as error:
            raise PartUnreadableError(f"The snapshot's parts cannot be used. {error}") from error
        if n_seen != self.n_seen:
            raise PartUnreadableError(
                f"The snapshot's parts have seen {n_seen} samples, not {self.n_seen}."
            )

    def write_parts(self) -> int:
        """Let all parts write a snapshot; returns its position. Raises `OSError` if one cannot."""
        snapshots = self._settings.snapshots
        if snapshots is None:
            raise ValueError("No folder for snapshots was given.")
        with self._lock:
            self._check_open()
            self._settle()
            position = self._completed
            if position != self._snapshot_position:
                snapshots.drop(position)  # left by another that could not be gone on with
            snapshots.begin(position)
            outcomes = self._call_all(
                self._members,
                lambda m: ("snapshot", snapshots.part_file(position, m.plan.number), position),
            )
            for member, outcome in zip(self._members, outcomes, strict=True):
                name, path = member.plan.name, snapshots.part_file(position, member.plan.number)
                hindrance = outcome.refusal
                if hindrance is None and not os.path.exists(path):
                    hindrance = f"it wrote {path!r}, which is not there: all nodes must share it."
                if hindrance is not None:
                    self.give_up_snapshot(position)
                    raise OSError(f"{name}: {hindrance}")
        return position

    def give_up_snapshot(self, position: int) -> None:
        """Remove a snapshot that could not be finished, unless it was whole already."""
        snapshots = self._settings.snapshots
        if snapshots is not None and position != self._snapshot_position:
            snapshots.drop(position)

    def rely_on_snapshot(self, position: int) -> None:
        """From now on, parts that are lost begin with this snapshot."""
        snapshots = self._settings.snapshots
        assert snapshots is not None
        with self._lock:
            for member in self._members:
                path = snapshots.part_file(position, member.plan.number)
                member.start = Start(position, snapshot=path)
            self._snapshot_position = position
            for number in [n for n in self._log if n <= position]:
                del self._log[number]

    def close(self) -> None:
        """End all parts; what was learned since the last snapshot is gone."""
        self._is_closed = True
        self._crew.close()

    @property
    def is_closed(self) -> bool:
        """Whether the parts were ended."""
        return self._is_closed

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError(
                "The shards of this forest were closed. fit starts new ones, and RayForest.resume "
                "goes on with a snapshot."
            )
