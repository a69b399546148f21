"""Run a use case in one transaction; retry transient failures; idempotent with an operation id."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from herdbook.domain.errors import InvalidValue
from herdbook.domain.grading import Experience
from herdbook.domain.journal import NOBODY, Actor, OperationResult, Position
from herdbook.domain.plan.claims import Claim
from herdbook.domain.secret import HIDDEN
from herdbook.ports.engine.codec import decode_row, encode_row
from herdbook.ports.engine.kinds import Dictionary
from herdbook.ports.engine.retry import Retry
from herdbook.ports.engine.store import Store, TryAgain
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from herdbook.ports.world.system import Ids

if TYPE_CHECKING:
    from herdbook.ports.unit_of_work.past_cache import PastCache

P = ParamSpec("P")
R = TypeVar("R")


def run(
    store: Store,
    space: str,
    use_case: Callable[Concatenate[UnitOfWork, P], R],
    *args: Any,
    ids: Ids | None = None,
    actor: Actor = NOBODY,
    operation_id: str | None = None,
    experience: Experience | None = None,
    **kwargs: Any,
) -> R:
    """Run a use case in a write transaction of its own and commit what it changed.

    A use case that changed nothing is not committed, unless it has an `operation_id`: it leaves the
    journal, the space's clock and the engine's files as they are, and costs no durable write.

    It is run again, from the start, when the connection breaks or the engine asks for it, until the
    store's patience has passed since that first happened. With an `operation_id`, written in the
    same transaction, it is applied once, even when the reply to its commit was lost, and a second
    call with the same id returns the first call's answer. Without one, an attempt whose commit got
    no reply is not repeated, and TryAgain is raised.
    """
    retry = Retry(store.patience)
    while True:
        begun: UnitOfWork | None = None
        try:
            with unit_of_work(
                store,
                space,
                ids=ids,
                actor=actor,
                operation_id=operation_id,
                experience=experience,
            ) as uow:
                begun = uow
                if operation_id is not None:
                    known = uow.operations.find(operation_id)
                    if known is not None:
                        answer: R = _decode_answer(uow, known.result)
                        return answer
                result = use_case(uow, *args, **kwargs)
                if operation_id is not None:
                    _save_answer(uow, operation_id, result)
                if uow.has_changes:
                    uow.commit()
                return result
        except TryAgain:
            unsure = begun is not None and begun.commit_started and operation_id is None
            if unsure or not retry.pause():
                raise


def read(
    store: Store,
    space: str,
    question: Callable[Concatenate[UnitOfWork, P], R],
    *args: Any,
    ids: Ids | None = None,
    experience: Experience | None = None,
    at: Position | None = None,
    past_cache: "PastCache | None" = None,
    **kwargs: Any,
) -> R:
    """Run a query function in a read transaction of its own; retry if the connection breaks.

    With `at`, it reads the space as it was at an earlier position of its journal, and raises what
    `past_unit_of_work` raises; a `past_cache` makes the next such question cheaper.
    """

    def ask() -> R:
        if at is not None:
            from herdbook.ports.unit_of_work.past import past_unit_of_work  # noqa: PLC0415 - seldom

            with past_unit_of_work(
                store, space, at, experience=experience, cache=past_cache
            ) as uow:
                return question(uow, *args, **kwargs)
        with unit_of_work(store, space, ids=ids, write=False, experience=experience) as uow:
            return question(uow, *args, **kwargs)

    return retry(ask, store.patience)


def retry(work: Callable[[], R], patience: float) -> R:
    """Call something idempotent again if the connection breaks, until the patience has passed."""
    retry = Retry(patience)
    while True:
        try:
            return work()
        except TryAgain:
            if not retry.pause():
                raise


def _save_answer(uow: UnitOfWork, operation_id: str, result: Any) -> None:
    uow.operations.prune(uow.now)
    uow.operations.add(
        OperationResult(
            operation_id=operation_id, result=_encode_answer(uow.dictionary, result), at=uow.now
        )
    )


def _encode_answer(dictionary: Dictionary, result: Any) -> Any:
    """A result as JSON that records its type: rows, containers of rows, or plain values.

    Raises InvalidValue for any other type.
    """
    for kind in dictionary:
        if isinstance(result, kind.entity):
            return {"row": kind.name, "values": encode_row(kind, result)}
    if isinstance(result, Claim):
        return {"claim": _encode_answer(dictionary, result._asdict())}
    if isinstance(result, dict):
        return {"map": {key: _encode_answer(dictionary, each) for key, each in result.items()}}
    if isinstance(result, list | tuple):
        shape = "tuple" if isinstance(result, tuple) else "list"
        return {shape: [_encode_answer(dictionary, each) for each in result]}
    if result is None or isinstance(result, str | int | float | bool):
        return {"value": result}
    raise InvalidValue(
        "result", f"a {type(result).__name__} cannot be kept as the answer of an operation"
    )


def _decode_answer(uow: UnitOfWork, answer: Any) -> Any:
    if "value" in answer:
        return answer["value"]
    if "list" in answer:
        return [_decode_answer(uow, each) for each in answer["list"]]
    if "tuple" in answer:
        return tuple(_decode_answer(uow, each) for each in answer["tuple"])
    if "map" in answer:
        return {key: _decode_answer(uow, each) for key, each in answer["map"].items()}
    if "claim" in answer:
        return Claim(**_decode_answer(uow, answer["claim"]))
    kind = uow.dictionary.kinds[answer["row"]]
    row = decode_row(kind, answer["values"])
    masked = [name for name in kind.secrets if answer["values"].get(name) == HIDDEN]
    if masked:
        # Answers store no secrets; the row itself does, as long as it exists.
        (current,) = uow.get(kind, [kind.key_of(row)])
        vars(row).update({name: vars(current)[name] if current else None for name in masked})
    return row
