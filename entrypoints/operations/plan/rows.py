"""The plan: initiatives, phases, tasks, dependencies, errands, proposals and reviews."""

from herdbook.entrypoints.operations.model import (
    Operation,
    Parameter,
    argument,
    crud_operations,
    flag,
    id_argument,
    id_option,
    rows_of,
    use_case_operation,
)

_TASK = argument(
    "task",
    "its id, a unique prefix or its name; default: the task that the acting agent holds",
    required=False,
)
_FENCE = Parameter(
    "fence",
    "the fence that `claim` printed, or the task's claim_stamp, which is the same in no other "
    "store; not needed by the agent that holds the task",
    kind="fence",
)
_AGENT = Parameter("agent", "its name or id; default: the acting agent")
_TTL = Parameter(
    "ttl",
    "how long the lease lasts without a sign of life, such as 90s, 5m or 2h",
    kind="duration",
    default="30m",
)
_INITIATIVE = id_option("initiative_id", "initiatives")
_PHASE = id_option("phase_id", "phases")
_PROPOSALS = (
    id_argument("proposal_ids", "proposals", "the proposals", many=True)._replace(required=False),
    id_option("agent_id", "agents", "in place of ids: all pending proposals of this agent"),
)
_LIMIT = Parameter("limit", "the maximum number of rows", kind="number", default=20)


def _dependency_operations(noun: str, ended: str, example: str) -> tuple[Operation, ...]:
    """The operations on what phases or tasks depend on."""
    one = id_argument(f"{noun}_id", f"{noun}s")
    others = id_argument("others", f"{noun}s", "what it depends on", many=True)
    no_longer = others._replace(help="what it no longer depends on")
    return (
        use_case_operation(
            f"{noun}.after",
            f"add dependencies to a {noun}",
            f"plan.dependencies:add_{noun}_dependencies",
            one,
            others,
            example=f"{noun} after {example}",
        ),
        use_case_operation(
            f"{noun}.not-after",
            f"remove dependencies of a {noun}",
            f"plan.dependencies:remove_{noun}_dependencies",
            one,
            no_longer,
            example=f"{noun} not-after a1b2 c3d4",
        ),
        use_case_operation(
            f"{noun}.waits-for",
            f"list the dependencies of a {noun}, {ended} or not",
            f"plan.dependencies:{noun}_dependencies",
            one,
            reads=True,
        ),
        use_case_operation(
            f"{noun}.dependents",
            f"list the {noun}s that depend on a {noun}",
            f"plan.dependencies:{noun}_dependents",
            one,
            reads=True,
        ),
    )


ROWS = rows_of(
    "plan",
    use_case_operation(
        "initiative.add",
        "add an initiative",
        "plan.initiatives:begin_initiative",
        argument("name", "its name; - reads it from standard input"),
        Parameter("branch", "its branch; default: one that is named after it"),
        Parameter(
            "status", "its status", choices=("active", "pending_review", "completed", "archived")
        ),
        Parameter(
            "execution_mode",
            "yolo: phases complete by themselves; review_per_phase: a person reviews",
            choices=("yolo", "review_per_phase"),
        ),
        Parameter(
            "quality_review",
            "whether another agent reviews each task before it is completed",
            kind="yesno",
        ),
        example="initiative add 'ship the login'",
    ),
    *crud_operations("initiative", "initiatives", add=False),
    use_case_operation(
        "initiative.projects",
        "list the projects that an initiative touches",
        "plan.projects:projects_of",
        id_argument("initiative_id", "initiatives"),
        reads=True,
    ),
    use_case_operation(
        "initiative.set-projects",
        "set the projects that an initiative touches",
        "plan.projects:set_projects",
        id_argument("initiative_id", "initiatives"),
        id_argument("project_ids", "projects", "their names or ids", many=True)._replace(
            required=False
        ),
        flag("none", "it touches no project"),
        example="initiative set-projects a1b2 app site",
    ),
    *crud_operations(
        "phase",
        "phases",
        "name",
        "schema --initiative a1b2",
        changes={"set": {"code": "plan.handlers:set_phase"}},
    ),
    use_case_operation(
        "phase.approve",
        "approve phases, so that their tasks can be claimed",
        "plan.phases:approve",
        id_argument("phase_ids", "phases", "their ids or names", many=True),
        example="phase approve Schema",
    ),
    *_dependency_operations("phase", "completed", "a1b2 c3d4"),
    *crud_operations(
        "task",
        "tasks",
        "name",
        "'write the parser' --phase Schema --after 'agree on it'",
        changes={
            "add": {
                "code": "plan.handlers:add_task",
                "parameters": (
                    Parameter("after", "tasks it depends on: their ids or names", many=True),
                ),
            },
            "show": {
                "help": "show a task: its place, holder, dependencies and history",
                "code": "plan.task_show:show",
                "view": "plan.views:task",
            },
        },
    ),
    use_case_operation(
        "task.ready",
        "list the tasks that can be claimed now, most urgent first",
        "plan.claims:ready",
        _LIMIT,
        _INITIATIVE,
        _PHASE,
        example="ready --limit 5",
        alias="ready",
        reads=True,
    ),
    Operation(
        "task.claim",
        "claim the named task, or the most urgent ready one",
        "herdbook claim 'write the parser' --agent brisk-otter",
        (
            _TASK._replace(help="its id, a unique prefix or its name; default: the most urgent"),
            _AGENT,
            Parameter("initiative", "only tasks of this initiative"),
            Parameter("phase", "only tasks of this phase"),
            _TTL,
        ),
        alias="claim",
    ),
    Operation(
        "task.heartbeat",
        "extend the lease of a claimed task",
        "herdbook heartbeat a1b2",
        (_TASK, _FENCE, _TTL, _AGENT),
        view="crud.views:result",
        alias="heartbeat",
    ),
    Operation(
        "task.done",
        "complete a claimed task, or approve one under review",
        "herdbook done a1b2 --summary 'see parser.py'",
        (
            _TASK,
            _FENCE,
            Parameter("summary", "a summary of the result; - reads it from standard input"),
            _AGENT,
        ),
        code="plan.handlers:complete",
        view="crud.views:result",
        alias="done",
    ),
    Operation(
        "task.fail",
        "return a claimed task as failed (counts as an attempt)",
        "herdbook fail a1b2",
        (_TASK, _FENCE, _AGENT),
        view="crud.views:result",
        alias="fail",
    ),
    Operation(
        "task.release",
        "return a claimed task without an attempt",
        "herdbook release a1b2",
        (_TASK, _FENCE, _AGENT),
        view="crud.views:result",
        alias="release",
    ),
    use_case_operation(
        "task.move",
        "move a task to another state of the board, as a person does by hand",
        "plan.move_task:move_task",
        id_argument("task_id", "tasks"),
        argument(
            "state",
            "the state to bring it to",
            choices=("ready", "held", "waiting", "blocked", "review", "completed"),
        ),
        example="task move a1b2 ready",
    ),
    use_case_operation(
        "task.moves",
        "tell to which states a task can be moved, and why not to the others",
        "plan.move_task:possible_moves",
        id_argument("task_id", "tasks"),
        reads=True,
    ),
    use_case_operation(
        "task.retry",
        "reset a task that failed too often, so that it can be claimed again",
        "plan.claims:retry",
        id_argument("task_id", "tasks"),
    ),
    *_dependency_operations("task", "finished", "a1b2 c3d4 e5f6"),
    *(
        use_case_operation(
            f"task.{name}",
            help_,
            f"plan.schedule:{name.replace('-', '_')}",
            _INITIATIVE,
            _PHASE,
            reads=True,
        )
        for name, help_ in (
            ("order", "list unfinished tasks in dependency order"),
            ("waves", "group unfinished tasks into sets that can run in parallel"),
            ("critical-path", "list the longest chain of dependent unfinished tasks"),
        )
    ),
    use_case_operation(
        "search",
        "find tasks, phases, pages and talk in which all these words occur",
        "search:search",
        argument("text", "the words, in any case; each may be a part of a word"),
        _LIMIT,
        example="search 'login form'",
        reads=True,
        view="plan.views:search",
    ),
    *crud_operations("page", "pages", "title", "notes --initiative a1b2"),
    use_case_operation(
        "page.root",
        "show the root page of an initiative, which is made if there is none",
        "plan.pages:root_page",
        id_argument("initiative_id", "initiatives"),
        Parameter("title", "its title if it is made; default: the initiative's name"),
    ),
    *crud_operations("project", "projects", "name", "app --url https://example.com/app.git"),
    use_case_operation(
        "project.fetched",
        "note that a project was fetched",
        "plan.projects:mark_fetched",
        id_argument("project_id", "projects", "its name or id"),
        Parameter("at", "when it was fetched; default: now", kind="moment"),
        example="project fetched app",
    ),
    use_case_operation(
        "errand.add",
        "start an errand: a small change to a project outside any initiative",
        "plan.errands:start",
        argument("description", "what to do"),
        Parameter("branch", "the branch to work on", required=True),
        id_option("project_id", "projects", required=True),
        Parameter(
            "base_branch", "the branch it starts from; default: the project's default branch"
        ),
        id_option("agent_id", "agents"),
        Parameter("errand_id", "its id, chosen by you; default: a new one", option="id"),
        example="errand add 'fix the typo' --branch typo --project a1b2",
    ),
    *crud_operations("errand", "errands", add=False),
    use_case_operation(
        "errand.move",
        "change the status of an errand",
        "plan.errands:change_status",
        id_argument("errand_id", "errands"),
        argument(
            "status",
            "its new status",
            choices=("active", "pending_review", "conflict", "merged", "abandoned"),
        ),
        example="errand move a1b2 pending_review",
    ),
    *crud_operations(
        "proposal",
        "proposals",
        "title",
        "'split it' --target-type task --agent otter --initiative a1b2 --summary s --content -",
    ),
    use_case_operation(
        "proposal.accept",
        "accept a proposal into the plan",
        "plan.proposals:accept",
        id_argument("proposal_id", "proposals"),
        code="plan.acceptance:accept",
        view="plan.acceptance:view",
    ),
    use_case_operation(
        "proposal.dismiss",
        "dismiss a proposal",
        "plan.proposals:dismiss",
        id_argument("proposal_id", "proposals"),
    ),
    use_case_operation(
        "proposal.accept-all",
        "accept several proposals of one initiative as one change set",
        "plan.proposals:accept_all",
        *_PROPOSALS,
        Parameter("summary", "what the change set says; default: the titles"),
        example="proposal accept-all a1b2 c3d4",
        code="plan.acceptance:accept",
        view="plan.acceptance:view",
    ),
    use_case_operation(
        "proposal.dismiss-all",
        "dismiss several proposals",
        "plan.proposals:dismiss_all",
        *_PROPOSALS,
        example="proposal dismiss-all --agent brisk-otter",
    ),
    use_case_operation(
        "proposal.count",
        "count the proposals of an agent by status",
        "plan.proposals:count_of_agent",
        id_argument("agent_id", "agents", "its name or id"),
        example="proposal count brisk-otter",
        reads=True,
    ),
    *crud_operations("change-set", "change_sets", add=False),
    use_case_operation(
        "change-set.revert",
        "undo a change set, if nothing it changed has changed since",
        "journal.undo:revert",
        id_argument("change_set_id", "change_sets"),
    ),
    *crud_operations(
        "review",
        "review_comments",
        "body",
        "'why?' --phase Schema --at src/a.py:7",
        changes={
            "list": {"view": "plan.views:comments"},
            "add": {
                "code": "plan.handlers:add_comment",
                "parameters": (
                    Parameter(
                        "at",
                        "where: a file from the root on and its lines, such as src/a.py:7 or "
                        "src/a.py:7-9",
                    ),
                ),
            },
        },
    ),
    use_case_operation(
        "review.reply",
        "reply to a review comment",
        "plan.reviews:reply",
        id_argument("comment_id", "review_comments"),
        argument("body", "the text; - reads it from standard input"),
        Parameter("author", "the author; default: the acting agent, or you"),
        example="review reply a1b2 'because'",
    ),
    *(
        use_case_operation(
            f"review.{name}",
            f"mark the thread of a review comment as {name}d",
            f"plan.reviews:{name}",
            id_argument("comment_id", "review_comments"),
        )
        for name in ("resolve", "unresolve")
    ),
    use_case_operation(
        "review.threads",
        "list the review threads of a phase, oldest first",
        "plan.reviews:threads",
        id_argument("phase_id", "phases"),
        Parameter("resolved", "only resolved threads, or only unresolved ones", kind="yesno"),
        reads=True,
        view="plan.views:threads",
    ),
)
