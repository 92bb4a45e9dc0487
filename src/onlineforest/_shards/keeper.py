"""Keeps the shards of a forest in step, in the driver.

Every operation has a number. All shards get all operations, in order. Each shard has all samples,
so a lost one is made anew from the state of a living one, wherever that is in the sequence; the
keeper stores only operations in progress. Must not know Ray, which a crew hides, or what operations
do.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from onlineforest._shards.crew import Crew, Pending, Sent
from onlineforest._shards.errors import MemberLostError, ShardLostError
from onlineforest._shards.messages import NamedArraysQuestion, Operation, Question
from onlineforest._shards.shard import Hello, Outcome, ShardPlan, Start, Status

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Settings:
    """How the driver treats its shards."""

    max_in_flight: int  # operations that shards may lag behind while learning is pipelined
    recovery_timeout: float  # seconds
    file: str | None = None  # the model file, which messages to users name
    max_tries: int = 5  # consecutive losses of one shard


@dataclass(frozen=True)
class Tip:
    """The number of operations, and the number of samples seen after them."""

    number: int
    n_seen: int


@dataclass
class Member:
    """A shard as the driver knows it."""

    plan: ShardPlan
    start: int = 0  # the position it started at; another shard has the outcomes until there
    sent: int = 0  # number of the latest operation that was sent
    is_running: bool = False
    n_losses: int = 0  # since its latest reply
    pending: dict[int, Pending] = field(default_factory=dict)  # by operation number
    outcomes: dict[int, Outcome] = field(default_factory=dict)


class ShardKeeper:
    """Sends operations and questions to all shards, and makes lost shards anew.

    Parameters
    ----------
    crew : Crew
        Keeps the processes.
    plans : list of ShardPlan
        The shards.
    start : Start
        The state that all shards start from, at position 0.
    own : Hello
        The hello of this process, to compare with.
    settings : Settings
        Limits, timeouts and the name of the model file.
    """

    def __init__(
        self, crew: Crew, plans: list[ShardPlan], start: Start, own: Hello, settings: Settings
    ) -> None:
        self._crew = crew
        self._own = own
        self._settings = settings
        self._members = [Member(plan) for plan in plans]
        self._lock = threading.RLock()
        self._is_pipelined = False
        self._is_closed = False
        self._n_done = 0  # operations that all shards have carried out
        self._in_progress: dict[int, Sent] = {}
        self._answer: Any = None
        self.n_recoveries = 0
        try:
            sent = crew.put(start)
            for plan in plans:
                crew.start(plan, sent)
            deadline = time.monotonic() + settings.recovery_timeout
            statuses = [self._greet(member, 0, deadline) for member in self._members]
            if any(status != statuses[0] for status in statuses):
                raise ShardLostError(f"The shards do not agree: {statuses}.")
        except BaseException as error:
            self.close()
            if isinstance(error, MemberLostError):
                raise ShardLostError(f"A shard could not be started. {error}") from error
            raise
        self._status = statuses[0]
        self._tip = Tip(0, self._status.n_seen)

    @property
    def plans(self) -> list[ShardPlan]:
        """The shards, in the order of their trees."""
        return [member.plan for member in self._members]

    @property
    def n_seen(self) -> int:
        """Number of samples given, those of operations in progress included."""
        return self._tip.n_seen

    @property
    def position(self) -> int:
        """Number of operations."""
        return self._tip.number

    # Operations.

    def operate(self, operation: Operation) -> Any:
        """Let all shards carry out an operation; None at once if learning is pipelined."""
        with self._lock:
            self._check_open()
            is_pipelined = self._is_pipelined and operation.name == "learn"
            if not is_pipelined:
                self._wait_for_all()
            while self._tip.number - self._n_done >= self._settings.max_in_flight:
                self._wait_for_next()
            self._submit(operation)
            if is_pipelined:
                return None
            self._wait_for_all()
            answer, self._answer = self._answer, None
            return answer

    def _submit(self, operation: Operation) -> None:
        number = self._tip.number + 1
        self._in_progress[number] = self._crew.put(operation)
        # From here on the operation counts, even after an interrupt.
        self._tip = Tip(number, self._tip.n_seen + operation.n_new)
        for member in self._members:
            if member.is_running:
                try:
                    self._send_missing(member)
                except MemberLostError as error:
                    self._note_loss(member, error)

    def _wait_for_next(self) -> None:
        """Wait until all shards have carried out the oldest operation in progress."""
        number = self._n_done + 1
        outcomes = [self._outcome_of(member, number) for member in self._members]
        first = next(outcome for outcome in outcomes if outcome is not None)
        for member, outcome in zip(self._members, outcomes, strict=True):
            if outcome is None:  # it started after this operation
                continue
            if (outcome.status, outcome.refusal) != (first.status, first.refusal):
                raise ShardLostError(
                    f"{member.plan.name} does not agree with others after operation {number}: "
                    f"{outcome.status}, {outcome.refusal!r} and {first.status}, {first.refusal!r}."
                )
        # An interrupt may come at any line: every step below may run twice.
        assert first.status is not None
        self._status, self._answer = first.status, first.answer
        if first.refusal is not None and self._tip.number == number:
            self._tip = replace(self._tip, n_seen=first.status.n_seen)  # nothing was learned
        self._n_done = number
        self._in_progress.pop(number, None)
        for member in self._members:
            member.outcomes.pop(number, None)
        if first.refusal is not None:
            raise ValueError(first.refusal)

    def _wait_for_all(self) -> None:
        """Wait until no operation is in progress."""
        while self._n_done < self._tip.number:
            self._wait_for_next()

    @contextmanager
    def pipelined(self) -> Iterator[None]:
        """In this context, learning waits only if `max_in_flight` operations are in progress."""
        self._is_pipelined = True
        try:
            yield
            with self._lock:
                self._check_open()
                self._wait_for_all()
        finally:
            self._is_pipelined = False

    def _outcome_of(self, member: Member, number: int) -> Outcome | None:
        """The reply of a shard to an operation; None if the shard started after the operation."""
        while member.start < number and number not in member.outcomes:
            try:
                self._bring_up(member)
                if member.start < number:
                    self._receive(member, number)
            except MemberLostError as error:
                self._note_loss(member, error)
        return member.outcomes.get(number)

    def _receive(self, member: Member, number: int) -> None:
        """Wait until a shard has carried out an operation that was sent to it."""
        if number not in member.outcomes:
            member.outcomes[number] = self._crew.get(member.pending[number])
            member.n_losses = 0
        member.pending.pop(number, None)

    def _send_missing(self, member: Member) -> None:
        """Send all operations that the shard has not been sent yet."""
        for number in range(member.sent + 1, self._tip.number + 1):
            operation = self._in_progress[number]
            member.pending[number] = self._call(member, "carry_out", number, operation)
            member.sent = number

    def _call(self, member: Member, method: str, *arguments: Any) -> Pending:
        return self._crew.call(member.plan.number, method, *arguments)

    # Questions.

    @contextmanager
    def at_one_position(self) -> Iterator[None]:
        """In this context, no other thread changes the forest between two questions."""
        with self._lock:
            yield

    def status(self) -> Status:
        """The status that all shards agree on after the latest operation."""
        with self._lock:
            self._check_open()
            self._wait_for_all()
            return self._status

    def ask_any(self, question: Question[Answer]) -> Answer:
        """The answer of a shard that lives, since all would answer alike."""
        living = [member.plan.number for member in self._members if member.is_running]
        return self.ask_one(living[0] if living else 0, question)

    def ask_one(self, number: int, question: Question[Answer]) -> Answer:
        """The answer of one shard. Arrays are writable."""
        answer: Answer = _writable(self._ask([self._members[number]], question)[0])
        return answer

    def ask_all(self, question: Question[Answer]) -> list[Answer]:
        """The answers of all shards, in the order of their trees. Arrays may be read-only."""
        return self._ask(self._members, question)

    def _ask(self, members: list[Member], question: Question[Answer]) -> list[Answer]:
        with self._lock:
            self._check_open()
            self._wait_for_all()
            outcomes = self._replies(members, question)
        for outcome in outcomes:
            if outcome.refusal is not None:
                raise ValueError(outcome.refusal)
        return [outcome.answer for outcome in outcomes]

    def _replies(self, members: list[Member], question: Question[Any]) -> list[Outcome]:
        """The replies of shards; a shard that is lost is asked again when it is made anew."""
        sent = self._crew.put(question)
        pending: dict[int, Pending] = {}
        replies: dict[int, Outcome] = {}
        while len(replies) < len(members):
            waiting = [m for m in members if m.plan.number not in replies]
            for member in waiting:
                try:
                    if member.plan.number not in pending:
                        self._bring_up(member)
                        asked = self._call(member, "ask", sent, self._n_done)
                        pending[member.plan.number] = asked
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
        """Mark a shard as lost; raise if that happens again and again."""
        member.is_running = False
        member.pending.clear()
        member.n_losses += 1
        if member.n_losses >= self._settings.max_tries:
            member.n_losses = 0
            raise ShardLostError(
                f"{member.plan.name} was lost {self._settings.max_tries} times in a row, after "
                f"operation {self._n_done}. {self._about_file()} {error}"
            ) from error

    def _bring_up(self, member: Member) -> None:
        """Make a shard anew if it was lost, and send it what it lacks."""
        if not member.is_running:
            start = self._start_of_living()
            deadline = time.monotonic() + self._settings.recovery_timeout
            self._crew.start(member.plan, self._crew.put(start))
            self._greet(member, start.position, deadline)
            self.n_recoveries += 1
        self._send_missing(member)

    def _start_of_living(self) -> Start:
        """The state of a living shard after all operations that it was sent.

        Their outcomes are stored first, since the new shard does not carry them out.
        """
        for member in self._members:
            if not member.is_running:
                continue
            try:
                for number in range(max(self._n_done, member.start) + 1, member.sent + 1):
                    self._receive(member, number)
                question = self._crew.put(NamedArraysQuestion("get_state"))
                reply = self._crew.get(self._call(member, "ask", question, member.sent))
                return Start(member.sent, reply.answer)
            except MemberLostError as error:
                self._note_loss(member, error)
        raise ShardLostError(
            f"The last living shard was lost, after operation {self._n_done}. {self._about_file()}"
        )

    def _greet(self, member: Member, position: int, deadline: float) -> Status:
        """Wait until a shard has started, and check that it can belong to this forest."""
        try:
            pending = self._call(member, "hello")
            hello: Hello = self._crew.get(pending, max(deadline - time.monotonic(), 0.0))
        except TimeoutError:
            raise ShardLostError(
                f"{member.plan.name} could not be started within "
                f"{self._settings.recovery_timeout:g} s. "
                f"{self._crew.resources(member.plan.n_shards)} {self._about_file()}"
            ) from None
        self._check_same_build(member.plan.name, hello)
        assert hello.status is not None
        member.start = member.sent = position
        member.is_running = True
        return hello.status

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

    def _about_file(self) -> str:
        """A sentence for errors: which file to continue from."""
        file = self._settings.file
        if file is None or not os.path.exists(file):
            return "There is no model file."
        return f"The forest as it was saved last is in {file!r}: RayForest.resume reads it."

    def close(self) -> None:
        """End all shards; everything that was not saved is lost."""
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
                "continues from a model file."
            )


def _writable(answer: Any) -> Any:
    """An answer, whose arrays are copied if they are in shared memory."""
    if isinstance(answer, dict):
        return {name: _writable(array) for name, array in answer.items()}
    if isinstance(answer, np.ndarray) and not answer.flags.writeable:
        return answer.copy()
    return answer
