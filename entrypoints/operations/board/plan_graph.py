"""The plan as a graph: `plan`."""

from typing import Any, NotRequired, TypedDict, cast

from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import Position
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.graph_layout import GraphLayout, PhaseBand
from herdbook.domain.plan.model import Priority
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.answer_fields import answer_from
from herdbook.entrypoints.operations.board.handlers import NamedPhase, NamedRow
from herdbook.ports.engine.dictionary import INITIATIVES, PHASES
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud
from herdbook.services.plan import diagram
from herdbook.services.plan.board_model import BoardState
from herdbook.services.plan.diagram import Diagram


class GraphPhase(NamedPhase):
    """A phase of the graph, its initiative, and the phases it depends on."""

    initiative_id: str
    initiative: str
    after: list[str]


class GraphTask(NamedRow):
    """An unfinished task of the graph, its wave, and the tasks it depends on."""

    phase_id: str | None
    wave: int
    state: BoardState
    priority: Priority
    critical: bool
    after: list[str]


class LayoutAnswer(TypedDict):
    """A drawing of the plan: the column and the row of each task by its id, both from 0 on."""

    columns: int
    rows: int
    bands: list[PhaseBand]
    spots: dict[str, list[int]]


class PickUpAnswer(TypedDict):
    """In which order so many agents would pick up the tasks, one step after the other.

    `next` is what a claim would give now. `stuck` are those that wait for a person; `frees` has
    what each task alone keeps from starting.
    """

    agents: int
    next: str | None
    steps: list[list[str]]
    stuck: list[str]
    frees: dict[str, list[str]]


class PlanAnswer(TypedDict):
    """The unfinished tasks in waves; `text` is a document of Mermaid, DOT or SVG."""

    waves: int
    critical_path: list[str]
    phases: list[GraphPhase]
    tasks: list[GraphTask]
    text: NotRequired[str]
    layout: NotRequired[LayoutAnswer]
    pick_up: NotRequired[PickUpAnswer]


def plan(
    app: AppContext,
    *,
    initiative: str | None,
    phase: str | None,
    mermaid: bool,
    dot: bool,
    svg: bool = False,
    layout: bool = False,
    agents: int | None = None,
    at: Position | None = None,
) -> PlanAnswer:
    """The unfinished tasks in waves, with their dependencies; also as a document on request."""
    wanted = [name for name, asked in (("mermaid", mermaid), ("dot", dot), ("svg", svg)) if asked]
    if len(wanted) > 1:
        raise InvalidValue(wanted[1], f"cannot be combined with {wanted[0]}")
    answer: PlanAnswer = app.read(Area.WORK, _plan, initiative, phase, agents, at=at)
    data = cast("dict[str, Any]", answer)
    if layout:
        from herdbook.entrypoints.operations.board import graph_picture  # noqa: PLC0415

        answer["layout"] = _layout_data(graph_picture.place_tasks(data))
    if svg:
        from herdbook.entrypoints.operations.board import graph_picture  # noqa: PLC0415

        answer["text"] = graph_picture.svg(data)
    elif wanted:
        from herdbook.entrypoints.operations.board import graph_documents  # noqa: PLC0415

        write = graph_documents.mermaid if mermaid else graph_documents.dot
        answer["text"] = write(data)
        if mermaid and not graph_documents.fits_mermaid(answer["text"]):
            app.warn(
                "this chart has more arrows or text than Mermaid draws by default; "
                "name one initiative or one phase, or use --dot or --svg"
            )
    return answer


def _layout_data(found: GraphLayout) -> LayoutAnswer:
    spots = {key: [spot.column, spot.row] for key, spot in found.spots.items()}
    return answer_from(LayoutAnswer, found, spots=spots)


def _plan(
    uow: UnitOfWork, initiative: str | None, phase: str | None, agents: int | None
) -> PlanAnswer:
    found: Diagram = diagram.build_diagram(
        uow,
        initiative_id=crud.key_of(uow, INITIATIVES, initiative) if initiative else None,
        phase_id=crud.key_of(uow, PHASES, phase) if phase else None,
        agents=agents,
    )
    answer: PlanAnswer = {
        "waves": max((node.wave for node in found.nodes), default=0),
        "critical_path": list(found.critical_path),
        "phases": [
            answer_from(GraphPhase, each.phase, initiative=each.initiative.name, after=each.after)
            for each in found.stretches
        ],
        "tasks": [answer_from(GraphTask, node, node.task) for node in found.nodes],
    }
    if agents is not None and found.pick_up is not None:
        frees = {key: others for key, others in found.pick_up.frees.items() if others}
        answer["pick_up"] = answer_from(PickUpAnswer, found.pick_up, agents=agents, frees=frees)
    return answer
