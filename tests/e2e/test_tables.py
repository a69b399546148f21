"""Every table of the plan, its agents and their talk, as a program has it over `herdbook rpc`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdbook.domain.errors import AlreadyExists, HerdbookError, InvalidValue, NotFound
from herdbook.entrypoints.client import Client
from tests.e2e.conftest import Person

CHOICES = {
    ("Initiative", "status"): "active pending_review completed archived",
    ("Initiative", "execution_mode"): "yolo review_per_phase",
    ("Phase", "status"): "pending approved in_progress completed blocked pending_review",
    ("Task", "type"): "auto",
    ("Task", "category"): "execute research discuss plan detail refine verify merge review",
    ("Task", "priority"): "low medium high",
    ("Task", "status"): "pending in_progress quality_review completed blocked",
    ("Agent", "status"): "idle running waiting_for_input stopped crashed",
    ("Agent", "mode"): "execute discuss plan detail refine",
    ("Proposal", "target_type"): "page phase task",
    ("Proposal", "status"): "pending accepted dismissed",
    ("Message", "sender_type"): "agent user",
    ("Message", "recipient_type"): "agent user",
    ("Conversation", "status"): "pending answered",
    ("ChatSession", "target_type"): "phase task",
    ("ChatSession", "status"): "active closed",
    ("ChatMessage", "role"): "user assistant system",
    ("Errand", "status"): "active pending_review conflict merged abandoned",
    ("ReviewComment", "line_type"): "added removed context",
}


class Herd:
    """A server of the installed program, and the rows that most tests need."""

    def __init__(self, client: Client) -> None:
        self.call = client.call
        self.initiative = self.adds("initiative", name="User auth")
        self.phase = self.adds("phase", name="words", initiative=self.initiative)
        self.task = self.adds("task", name="write", phase=self.phase)
        self.agent = self.adds("agent", name="brisk-otter")

    def adds(self, noun: str, **values: Any) -> str:
        """Add a row; its id."""
        return str(self.call(f"{noun}.add", **values)["id"])

    def shows(self, noun: str, id_: str) -> Any:
        """A row as it is now."""
        return self.call(f"{noun}.show", id=id_)

    def ids(self, noun: str, **where: Any) -> list[str]:
        """The ids of rows, by some of their fields."""
        return [each["id"] for each in self.call(f"{noun}.list", **where)]

    def is_gone(self, noun: str, id_: str) -> bool:
        """Whether a row is not there any more."""
        try:
            self.shows(noun, id_)
        except NotFound:
            return True
        return False


@pytest.fixture
def herd(person: Person, app: Path) -> Iterator[Herd]:
    with Client.spawn(app, variables=person.variables) as client:
        yield Herd(client)


def has(row: Any, **wanted: Any) -> bool:
    """Whether a row has these values."""
    found = {name: row[name] for name in wanted}
    assert found == wanted
    return True


def test_every_choice_is_the_one_that_was_asked_for(herd: Herd) -> None:
    """As the description of the methods tells programs; another word is refused with them."""
    schemas = herd.call("rpc.discover")["components"]["schemas"]
    for (name, field), words in CHOICES.items():
        assert sorted(schemas[name]["properties"][field]["enum"]) == sorted(words.split())
    with pytest.raises(InvalidValue, match="low, medium, high"):
        herd.adds("task", name="x", priority="urgent")


def test_rows_have_ids_and_times_of_their_own(herd: Herd) -> None:
    """Ids are unique, and a change moves the second time only."""
    first, second = (herd.call("task.add", name="same") for _ in range(2))
    assert first["id"] != second["id"]
    assert first["created_at"] == first["updated_at"]
    later = herd.call("task.set", id=first["id"], description="more")
    assert later["created_at"] == first["created_at"]
    assert later["updated_at"] > first["updated_at"]
    assert herd.shows("task", first["id"]).items() >= later.items()


def test_an_initiative_begins_with_its_defaults_and_takes_its_parts_along(herd: Herd) -> None:
    """Found by its status; its phases, tasks, pages, proposals and chats go with it."""
    row = herd.shows("initiative", herd.initiative)
    assert has(row, status="active", execution_mode="review_per_phase", quality_review=False)
    old = herd.adds("initiative", name="old", status="archived", execution_mode="yolo")
    assert herd.ids("initiative", status="archived") == [old]
    page = herd.adds("page", title="Root", initiative=herd.initiative)
    chat = herd.adds("chat", target_type="task", target_id=herd.task)
    words = {"title": "t", "summary": "s", "content": "c", "target_type": "task"}
    proposal = herd.adds("proposal", agent=herd.agent, initiative=herd.initiative, **words)
    alone = herd.adds("task", name="alone", initiative=herd.initiative)
    herd.call("agent.set", id=herd.agent, initiative=herd.initiative)
    herd.call("initiative.rm", ids=[herd.initiative], yes=True)
    gone = {"phase": herd.phase, "page": page, "chat": chat, "proposal": proposal}
    assert all(herd.is_gone(*each) for each in [*gone.items(), ("task", alone)])
    assert herd.is_gone("task", herd.task)
    assert has(herd.shows("agent", herd.agent), initiative_id=None)
    assert herd.ids("initiative") == [old]


def test_a_phase_has_content_and_dependencies_that_go_with_it(herd: Herd) -> None:
    """Found by its initiative; its tasks and comments go with it, and nobody waits for it."""
    later = herd.adds("phase", name="later", initiative=herd.initiative, content='{"type":"doc"}')
    assert has(herd.shows("phase", later), status="pending", content='{"type":"doc"}')
    herd.call("phase.set", id=later, status="approved")
    herd.call("phase.after", phase=later, others=[herd.phase])
    waiting = herd.adds("task", name="waits", phase=later)
    assert waiting not in [each["id"] for each in herd.call("task.ready")]
    comment = {"file_path": "a.py", "line_number": 1, "line_type": "removed", "body": "why?"}
    review = herd.adds("review", phase=herd.phase, **comment)
    assert sorted(herd.ids("phase", initiative=herd.initiative)) == sorted([herd.phase, later])
    herd.call("phase.rm", ids=[herd.phase], yes=True)
    assert herd.is_gone("task", herd.task)
    assert herd.is_gone("review", review)
    assert waiting in [each["id"] for each in herd.call("task.ready")]


def test_a_task_begins_with_its_defaults_and_takes_its_parts_along(herd: Herd) -> None:
    """Found by its phase and its parent; dependencies and agents only lose their reference."""
    row = herd.shows("task", herd.task)
    assert has(row, type="auto", category="execute", priority="medium", status="pending")
    assert has(row, order=0, summary=None, retry_count=0, parent_task_id=None, description=None)
    part = herd.adds("task", name="part", parent_task=herd.task, category="verify", priority="low")
    assert herd.ids("task", parent_task=herd.task) == [part]
    assert herd.task in herd.ids("task", phase=herd.phase)
    after = herd.adds("task", name="after", phase=herd.phase)
    herd.call("task.after", task=after, others=[herd.task])
    waits = [each["id"] for each in herd.call("task.waits-for", task=after)]
    assert waits == [herd.task, herd.phase], "nobody has approved its phase"
    herd.call("agent.set", id=herd.agent, task=herd.task)
    herd.call("task.rm", ids=[herd.task], yes=True)
    assert herd.is_gone("task", part)
    assert [each["id"] for each in herd.call("task.waits-for", task=after)] == [herd.phase]
    assert has(herd.shows("agent", herd.agent), task_id=None)


def test_a_summary_is_for_those_who_wait_and_failures_are_counted(herd: Herd) -> None:
    """Each failed try counts until a person tries again; what is done tells how it went."""
    herd.call("phase.set", id=herd.phase, status="approved")
    held = herd.call("task.claim", agent=herd.agent)
    herd.call("task.fail", task=herd.task, fence=held["fence"])
    assert has(herd.shows("task", herd.task), retry_count=1, status="pending")
    herd.call("task.retry", task=herd.task)
    assert has(herd.shows("task", herd.task), retry_count=0)
    after = herd.adds("task", name="after", phase=herd.phase)
    herd.call("task.after", task=after, others=[herd.task])
    held = herd.call("task.claim", agent=herd.agent)
    herd.call("task.done", task=herd.task, fence=held["fence"], summary="all of it")
    assert has(herd.shows("task", herd.task), status="completed", summary="all of it")
    following = herd.call("task.claim", agent=herd.agent)
    assert following["task"]["id"] == after
    assert following["summaries"] == {herd.task: "all of it"}


def test_an_agent_has_one_name_and_is_found_by_what_it_is_at(herd: Herd) -> None:
    """Its name is its own, or made up; its prompt, process, exit and result are kept."""
    with pytest.raises(AlreadyExists):
        herd.call("agent.set", id=herd.adds("agent", name="lynx"), name="brisk-otter")
    made = herd.call("agent.add", prompt="do it", session="s-1", pid=1, mode="plan")
    assert made["name"].count("-") == 1
    assert has(made, provider="claude", mode="plan", prompt="do it", session_id="s-1", pid=1)
    assert made["worktree_id"] == herd.call("where")["worktree_id"]
    assert herd.ids("agent", name=made["name"]) == [made["id"]]
    assert herd.ids("agent", session_id="s-1") == [made["id"]]
    herd.call("agent.stop", agent=made["id"], exit_code=3, result={"ok": False})
    assert has(herd.shows("agent", made["id"]), exit_code=3, result={"ok": False})
    assert herd.ids("agent", status="stopped") == [made["id"]]
    herd.call("agent.set", id=made["id"], status="crashed")
    herd.call("agent.dismiss", agent=made["id"])
    assert herd.shows("agent", made["id"])["user_dismissed_at"] is not None


def test_an_agent_takes_its_talk_along_and_leaves_its_log(herd: Herd) -> None:
    """Proposals and questions go with it, errands and chats lose their reference only."""
    lynx = herd.adds("agent", name="lynx")
    project = herd.adds("project", name="app", url="https://example.com/app.git")
    errand = herd.adds("errand", description="d", branch="b", project=project, agent=lynx)
    chat = herd.adds("chat", target_type="task", target_id=herd.task, agent=lynx)
    words = {"title": "t", "summary": "s", "content": "c", "target_type": "task"}
    proposal = herd.adds("proposal", agent=lynx, initiative=herd.initiative, **words)
    asked = [
        herd.adds("conversation", question="?", agent=one, to=other)
        for one, other in ((lynx, herd.agent), (herd.agent, lynx))
    ]
    herd.call("log.add", agent=lynx, content='{"said": 1}\n')
    herd.call("agent.rm", ids=[lynx], yes=True)
    assert herd.is_gone("proposal", proposal)
    assert all(herd.is_gone("conversation", each) for each in asked)
    assert has(herd.shows("errand", errand), agent_id=None)
    assert has(herd.shows("chat", chat), agent_id=None)
    (piece,) = herd.call("log.list", agent=lynx)
    assert has(piece, agent_id=lynx, agent_name="lynx", content='{"said": 1}\n', session_number=1)


def test_accounts_take_turns_and_keep_their_secrets(herd: Herd) -> None:
    """The one that was used longest ago is next; an exhausted one is passed over until its time."""
    first = herd.adds("account", email="a@example.com", credentials="S3CRET", config='{"a":1}')
    second = herd.adds("account", email="b@example.com", sort_order=1)
    row = herd.shows("account", first)
    assert has(row, provider="claude", is_exhausted=False, exhausted_until=None, sort_order=0)
    assert has(row, credentials="***", config="***", last_used_at=None)
    assert [herd.call("account.take")["id"] for _ in range(3)] == [first, second, first]
    assert herd.shows("account", first)["last_used_at"] is not None
    herd.call("account.exhaust", account=second, until="2999-01-01T00:00:00+00:00")
    assert herd.ids("account", is_exhausted=True) == [second]
    assert herd.call("account.take")["id"] == first
    herd.call("account.free", account=second)
    herd.call("account.exhaust", account=second, until="2001-01-01T00:00:00+00:00")
    assert herd.call("account.take")["id"] == second


def test_proposals_are_found_by_agent_and_status_and_become_the_plan(herd: Herd) -> None:
    """Accepted or dismissed; their body, metadata and place in the order are kept."""
    words = {"agent": herd.agent, "initiative": herd.initiative, "summary": "s"}
    about = {"title": "Notes", "content": "# all", "target_type": "page", "sort_order": 2}
    page = herd.call("proposal.add", **about, **words)
    assert has(page, status="pending", target_id=None, sort_order=2, metadata=None)
    more = {"title": "Test", "content": "x", "target_type": "task", "metadata": {"why": "asked"}}
    task = herd.adds("proposal", **more, **words)
    assert has(herd.shows("proposal", task), metadata={"why": "asked"})
    herd.call("proposal.accept", proposal=page["id"])
    herd.call("proposal.dismiss", proposal=task)
    for status, id_ in {"accepted": page["id"], "dismissed": task}.items():
        assert herd.ids("proposal", agent=herd.agent, status=status) == [id_]
    assert herd.ids("proposal", agent=herd.agent, status="pending") == []
    pages = {each["title"]: each for each in herd.call("page.list", initiative=herd.initiative)}
    assert has(pages["Notes"], content="# all")


def test_pages_form_a_tree_that_goes_as_a_whole(herd: Herd) -> None:
    """Found by their parent, in their order."""
    root = herd.call("page.add", title="Root", initiative=herd.initiative, content='{"a":1}')
    assert has(root, parent_page_id=None, sort_order=0, content='{"a":1}')
    below = {"initiative": herd.initiative, "parent_page": root["id"]}
    pages = [herd.adds("page", title=f"p{n}", sort_order=n, **below) for n in range(2)]
    assert sorted(herd.ids("page", parent_page=root["id"])) == sorted(pages)
    herd.call("page.rm", ids=[root["id"]], yes=True)
    assert herd.ids("page", initiative=herd.initiative) == []


def test_a_project_has_its_name_and_address_alone(herd: Herd) -> None:
    """Its errands go with it; the branch is main unless another one is said."""
    app = herd.call("project.add", name="app", url="https://example.com/app.git")
    assert has(app, default_branch="main", last_fetched_at=None)
    for taken in ({"name": "app", "url": "u"}, {"name": "b", "url": "https://example.com/app.git"}):
        with pytest.raises(AlreadyExists):
            herd.call("project.add", **taken)
    errand = herd.call("errand.add", description="fix", branch="b", project=app["id"])
    assert has(errand, status="active", base_branch="main", agent_id=None)
    assert herd.ids("errand", project=app["id"], status="active") == [errand["id"]]
    herd.call("errand.move", errand=errand["id"], status="merged")
    assert has(herd.shows("errand", errand["id"]), status="merged")
    herd.call("project.rm", ids=[app["id"]], yes=True)
    assert herd.is_gone("errand", errand["id"])


def test_messages_have_threads_and_wait_for_the_person(herd: Herd) -> None:
    """What an agent sends is in the person's inbox until it is read or replied to."""
    sent = herd.call("message.add", content="may I?", agent=herd.agent, requires_response=True)
    assert has(sent, sender_type="agent", recipient_type="user", status="pending")
    assert [each["id"] for each in herd.call("message.inbox")] == [sent["id"]]
    reply = herd.call("message.reply", message=sent["id"], content="yes")
    assert has(reply, parent_message_id=sent["id"], sender_type="user", recipient_id=herd.agent)
    assert herd.ids("message", parent_message=sent["id"]) == [reply["id"]]
    assert has(herd.shows("message", sent["id"]), status="responded")
    assert herd.call("message.inbox") == []
    assert len(herd.call("message.thread", message=reply["id"])) == 2


def test_a_question_is_pending_until_it_is_answered(herd: Herd) -> None:
    """Found by who asked and by whom it waits for; the task that goes leaves it alone."""
    lynx = herd.adds("agent", name="lynx")
    asked = herd.call(
        "conversation.add", question="which port?", agent=herd.agent, to=lynx, task=herd.task
    )
    assert has(asked, status="pending", answer=None, from_agent_id=herd.agent, to_agent_id=lynx)
    assert herd.call("conversation.listen", agent=lynx)["id"] == asked["id"]
    assert herd.ids("conversation", to_agent=lynx, status="pending") == [asked["id"]]
    herd.call("conversation.answer", conversation=asked["id"], text="8080")
    assert has(herd.shows("conversation", asked["id"]), status="answered", answer="8080")
    assert herd.ids("conversation", from_agent=herd.agent) == [asked["id"]]
    herd.call("task.rm", ids=[herd.task], yes=True)
    assert has(herd.shows("conversation", asked["id"]), task_id=None)


def test_a_chat_about_a_task_is_one_until_it_is_closed(herd: Herd) -> None:
    """Opened again it is the same; its messages have roles and go with it."""
    about = {"target_type": "task", "target_id": herd.task}
    chat = herd.call("chat.add", agent=herd.agent, **about)
    assert has(chat, status="active", initiative_id=herd.initiative, agent_id=herd.agent)
    assert herd.call("chat.add", **about)["id"] == chat["id"]
    assert herd.ids("chat", agent=herd.agent, status="active") == [chat["id"]]
    for role in ("user", "assistant", "system"):
        herd.call("chat.post", chat_session=chat["id"], role=role, content=role)
    said = herd.call("chat.history", chat_session=chat["id"])
    assert [(each["role"], each["content"]) for each in said] == [
        (role, role) for role in ("user", "assistant", "system")
    ]
    herd.call("chat.close", chat_session=chat["id"])
    assert herd.call("chat.add", **about)["id"] != chat["id"]
    herd.call("chat.rm", ids=[chat["id"]], yes=True)
    with pytest.raises(HerdbookError):
        herd.call("chat.history", chat_session=chat["id"])


def test_a_review_comment_stands_at_its_line_until_it_is_resolved(herd: Herd) -> None:
    """By `you` unless somebody else is named; found by its phase."""
    place = {"phase": herd.phase, "file_path": "a.py", "line_number": 7, "line_type": "context"}
    comment = herd.call("review.add", body="why?", **place)
    assert has(comment, author="you", resolved=False, line_number=7, line_type="context")
    assert herd.ids("review", phase=herd.phase) == [comment["id"]]
    for method, resolved in (("review.resolve", True), ("review.unresolve", False)):
        herd.call(method, comment=comment["id"])
        assert has(herd.shows("review", comment["id"]), resolved=resolved)
    herd.call("review.rm", ids=[comment["id"]], yes=True)
    assert herd.ids("review", phase=herd.phase) == []


def test_a_log_is_kept_piece_by_piece_and_removed_as_a_whole(herd: Herd) -> None:
    """Of one agent, in the order it was written, session by session."""
    for number, text in ((1, "a\n"), (1, "b\n"), (2, "c\n")):
        herd.call("log.add", agent=herd.agent, content=text, session_number=number)
    found = herd.call("log.list", agent=herd.agent)
    assert [(each["session_number"], each["content"]) for each in found] == [
        (1, "a\n"),
        (1, "b\n"),
        (2, "c\n"),
    ]
    herd.call("log.rm", agent=herd.agent)
    assert herd.call("log.list", agent=herd.agent) == []
