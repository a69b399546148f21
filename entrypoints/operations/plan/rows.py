"""The plan: initiatives, phases, tasks, dependencies, errands, proposals and reviews."""

from typing import Any

from herdbook.entrypoints.operations.model import (
    Operation,
    Parameter,
    argument,
    crud_operations,
    flag,
    id_argument,
    id_option,
    use_case_operation,
)

_TASK = Parameter(
    "task",
    "its id, a unique prefix or its name; default: the task that the acting agent holds",
    positional=True,
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

_TASK_CODE: dict[str, dict[str, Any]] = {
    "task.add": {
        "code": "plan.handlers:add_task",
        "parameters": (Parameter("after", "tasks it depends on: their ids or names", many=True),),
    },
    "task.show": {
        "help": "show a task: its place, holder, dependencies and history",
        "code": "plan.task_show:show",
        "view": "plan.views:task",
    },
}
"""What tasks have instead of the operations that every kind of rows has."""
_REVIEW_CODE: dict[str, dict[str, Any]] = {
    "review.list": {"view": "plan.views:comments"},
    "review.add": {
        "code": "plan.handlers:add_comment",
        "parameters": (
            Parameter(
                "at",
                "where: a file from the root on and its lines, such as src/a.py:7 or src/a.py:7-9",
            ),
        ),
    },
}

ROWS: tuple[Operation, ...] = (
    use_case_operation(
        "initiative.add",
        "add an initiative",
        "plan.initiatives:begin_initiative",
        "initiative add 'ship the login'",
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
    ),
    *crud_operations("initiative", "initiatives", "name", "", add=False),
    use_case_operation(
        "initiative.projects",
        "list the projects that an initiative touches",
        "plan.projects:projects_of",
        "initiative projects a1b2",
        id_argument("initiative_id", "initiatives"),
        reads=True,
    ),
    use_case_operation(
        "initiative.set-projects",
        "set the projects that an initiative touches",
        "plan.projects:set_projects",
        "initiative set-projects a1b2 app site",
        id_argument("initiative_id", "initiatives"),
        id_argument("project_ids", "projects", "their names or ids", many=True)._replace(
            required=False
        ),
        flag("none", "it touches no project"),
    ),
    *(
        each._replace(code="plan.handlers:set_phase") if each.name == "phase.set" else each
        for each in crud_operations("phase", "phases", "name", "schema --initiative a1b2")
    ),
    use_case_operation(
        "phase.approve",
        "approve phases, so that their tasks can be claimed",
        "plan.phases:approve",
        "phase approve Schema",
        id_argument("phase_ids", "phases", "their ids or names", many=True),
    ),
    use_case_operation(
        "phase.after",
        "add dependencies to a phase",
        "plan.dependencies:add_phase_dependencies",
        "phase after a1b2 c3d4",
        id_argument("phase_id", "phases"),
        id_argument("others", "phases", "what it depends on", many=True),
    ),
    use_case_operation(
        "phase.not-after",
        "remove dependencies of a phase",
        "plan.dependencies:remove_phase_dependencies",
        "phase not-after a1b2 c3d4",
        id_argument("phase_id", "phases"),
        id_argument("others", "phases", "what it no longer depends on", many=True),
    ),
    use_case_operation(
        "phase.waits-for",
        "list the dependencies of a phase, completed or not",
        "plan.dependencies:phase_dependencies",
        "phase waits-for a1b2",
        id_argument("phase_id", "phases"),
        reads=True,
    ),
    use_case_operation(
        "phase.dependents",
        "list the phases that depend on a phase",
        "plan.dependencies:phase_dependents",
        "phase dependents a1b2",
        id_argument("phase_id", "phases"),
        reads=True,
    ),
    *(
        each._replace(**_TASK_CODE.get(each.name, {}))
        for each in crud_operations(
            "task", "tasks", "name", "'write the parser' --phase Schema --after 'agree on it'"
        )
    ),
    use_case_operation(
        "task.ready",
        "list the tasks that can be claimed now, most urgent first",
        "plan.claims:ready",
        "ready --limit 5",
        _LIMIT,
        _INITIATIVE,
        _PHASE,
        alias="ready",
        reads=True,
    ),
    Operation(
        "task.claim",
        "claim the named task, or the most urgent ready one",
        "plan.handlers:claim",
        "plan.views:claim",
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
        "plan.handlers:heartbeat",
        "crud.views:result",
        "herdbook heartbeat a1b2",
        (_TASK, _FENCE, _TTL, _AGENT),
        alias="heartbeat",
    ),
    Operation(
        "task.done",
        "complete a claimed task, or approve one under review",
        "plan.handlers:complete",
        "crud.views:result",
        "herdbook done a1b2 --summary 'see parser.py'",
        (
            _TASK,
            _FENCE,
            Parameter("summary", "a summary of the result; - reads it from standard input"),
            _AGENT,
        ),
        alias="done",
    ),
    Operation(
        "task.fail",
        "return a claimed task as failed (counts as an attempt)",
        "plan.handlers:fail",
        "crud.views:result",
        "herdbook fail a1b2",
        (_TASK, _FENCE, _AGENT),
        alias="fail",
    ),
    Operation(
        "task.release",
        "return a claimed task without an attempt",
        "plan.handlers:release",
        "crud.views:result",
        "herdbook release a1b2",
        (_TASK, _FENCE, _AGENT),
        alias="release",
    ),
    use_case_operation(
        "task.move",
        "move a task to another state of the board, as a person does by hand",
        "plan.move_task:move_task",
        "task move a1b2 ready",
        id_argument("task_id", "tasks"),
        Parameter(
            "state",
            "the state to bring it to",
            positional=True,
            required=True,
            choices=("ready", "held", "waiting", "blocked", "review", "completed"),
        ),
    ),
    use_case_operation(
        "task.moves",
        "tell to which states a task can be moved, and why not to the others",
        "plan.move_task:possible_moves",
        "task moves a1b2",
        id_argument("task_id", "tasks"),
        reads=True,
    ),
    use_case_operation(
        "task.retry",
        "reset a task that failed too often, so that it can be claimed again",
        "plan.claims:retry",
        "task retry a1b2",
        id_argument("task_id", "tasks"),
    ),
    use_case_operation(
        "task.after",
        "add dependencies to a task",
        "plan.dependencies:add_task_dependencies",
        "task after a1b2 c3d4 e5f6",
        id_argument("task_id", "tasks"),
        id_argument("others", "tasks", "what it depends on", many=True),
    ),
    use_case_operation(
        "task.not-after",
        "remove dependencies of a task",
        "plan.dependencies:remove_task_dependencies",
        "task not-after a1b2 c3d4",
        id_argument("task_id", "tasks"),
        id_argument("others", "tasks", "what it no longer depends on", many=True),
    ),
    use_case_operation(
        "task.waits-for",
        "list the dependencies of a task, finished or not",
        "plan.dependencies:task_dependencies",
        "task waits-for a1b2",
        id_argument("task_id", "tasks"),
        reads=True,
    ),
    use_case_operation(
        "task.dependents",
        "list the tasks that depend on a task",
        "plan.dependencies:task_dependents",
        "task dependents a1b2",
        id_argument("task_id", "tasks"),
        reads=True,
    ),
    use_case_operation(
        "task.order",
        "list unfinished tasks in dependency order",
        "plan.schedule:order",
        "task order",
        _INITIATIVE,
        _PHASE,
        reads=True,
    ),
    use_case_operation(
        "task.waves",
        "group unfinished tasks into sets that can run in parallel",
        "plan.schedule:waves",
        "task waves",
        _INITIATIVE,
        _PHASE,
        reads=True,
    ),
    use_case_operation(
        "task.critical-path",
        "list the longest chain of dependent unfinished tasks",
        "plan.schedule:critical_path",
        "task critical-path",
        _INITIATIVE,
        _PHASE,
        reads=True,
    ),
    use_case_operation(
        "search",
        "find tasks, phases, pages and talk in which all these words occur",
        "search:search",
        "search 'login form'",
        argument("text", "the words, in any case; each may be a part of a word"),
        _LIMIT,
        reads=True,
    )._replace(view="plan.views:search"),
    *crud_operations("page", "pages", "title", "notes --initiative a1b2"),
    use_case_operation(
        "page.root",
        "show the root page of an initiative, which is made if there is none",
        "plan.pages:root_page",
        "page root a1b2",
        id_argument("initiative_id", "initiatives"),
        Parameter("title", "its title if it is made; default: the initiative's name"),
    ),
    *crud_operations("project", "projects", "name", "app --url https://example.com/app.git"),
    use_case_operation(
        "project.fetched",
        "note that a project was fetched",
        "plan.projects:mark_fetched",
        "project fetched app",
        id_argument("project_id", "projects", "its name or id"),
        Parameter("at", "when it was fetched; default: now", kind="moment"),
    ),
    use_case_operation(
        "errand.add",
        "start an errand: a small change to a project outside any initiative",
        "plan.errands:start",
        "errand add 'fix the typo' --branch typo --project a1b2",
        Parameter("description", "what to do", positional=True, required=True),
        Parameter("branch", "the branch to work on", required=True),
        id_option("project_id", "projects", required=True),
        Parameter(
            "base_branch", "the branch it starts from; default: the project's default branch"
        ),
        id_option("agent_id", "agents"),
        Parameter("errand_id", "its id, chosen by you; default: a new one", option="id"),
    ),
    *crud_operations("errand", "errands", "", "", add=False),
    use_case_operation(
        "errand.move",
        "change the status of an errand",
        "plan.errands:change_status",
        "errand move a1b2 pending_review",
        id_argument("errand_id", "errands"),
        Parameter(
            "status",
            "its new status",
            positional=True,
            required=True,
            choices=("active", "pending_review", "conflict", "merged", "abandoned"),
        ),
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
        "proposal accept a1b2",
        id_argument("proposal_id", "proposals"),
    ),
    use_case_operation(
        "proposal.dismiss",
        "dismiss a proposal",
        "plan.proposals:dismiss",
        "proposal dismiss a1b2",
        id_argument("proposal_id", "proposals"),
    ),
    use_case_operation(
        "proposal.accept-all",
        "accept several proposals of one initiative as one change set",
        "plan.proposals:accept_all",
        "proposal accept-all a1b2 c3d4",
        *_PROPOSALS,
        Parameter("summary", "what the change set says; default: the titles"),
    ),
    use_case_operation(
        "proposal.dismiss-all",
        "dismiss several proposals",
        "plan.proposals:dismiss_all",
        "proposal dismiss-all --agent brisk-otter",
        *_PROPOSALS,
    ),
    use_case_operation(
        "proposal.count",
        "count the proposals of an agent by status",
        "plan.proposals:count_of_agent",
        "proposal count brisk-otter",
        id_argument("agent_id", "agents", "its name or id"),
        reads=True,
    ),
    *crud_operations("change-set", "change_sets", "summary", "", add=False),
    use_case_operation(
        "change-set.revert",
        "undo a change set, if nothing it changed has changed since",
        "journal.undo:revert",
        "change-set revert a1b2",
        id_argument("change_set_id", "change_sets"),
    ),
    *(
        each._replace(**_REVIEW_CODE.get(each.name, {}))
        for each in crud_operations(
            "review", "review_comments", "body", "'why?' --phase Schema --at src/a.py:7"
        )
    ),
    use_case_operation(
        "review.reply",
        "reply to a review comment",
        "plan.reviews:reply",
        "review reply a1b2 'because'",
        id_argument("comment_id", "review_comments"),
        argument("body", "the text; - reads it from standard input"),
        Parameter("author", "the author; default: the acting agent, or you"),
    ),
    use_case_operation(
        "review.resolve",
        "mark the thread of a review comment as resolved",
        "plan.reviews:resolve",
        "review resolve a1b2",
        id_argument("comment_id", "review_comments"),
    ),
    use_case_operation(
        "review.unresolve",
        "mark the thread of a review comment as unresolved",
        "plan.reviews:unresolve",
        "review unresolve a1b2",
        id_argument("comment_id", "review_comments"),
    ),
    use_case_operation(
        "review.threads",
        "list the review threads of a phase, oldest first",
        "plan.reviews:threads",
        "review threads a1b2",
        id_argument("phase_id", "phases"),
        Parameter("resolved", "only resolved threads, or only unresolved ones", kind="yesno"),
        reads=True,
    )._replace(view="plan.views:threads"),
)

ROWS = tuple(
    each._replace(code="plan.acceptance:accept", view="plan.acceptance:view")
    if each.name in ("proposal.accept", "proposal.accept-all")
    else each
    for each in ROWS
)
