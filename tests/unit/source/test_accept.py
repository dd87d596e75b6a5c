"""One pod per name and per UID, over all sources; half-written files; whole lists."""

from __future__ import annotations

import json

from services.source.core.accept import DUPLICATE
from services.source.core.manifest import ObjectKey
from services.source.core.merge import Held, Listing, SourcePlan, plan_sources, replan
from services.source.core.state import SourceState, restored_state, stored_objects

NODE = "node1"
URL = "http://manifests/pods"


def pod(name: str, image: str = "x:1", uid: str = "") -> str:
    given_uid = f", uid: {uid}" if uid else ""
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}{given_uid}}}\n"
        f"spec: {{containers: [{{name: c, image: {image}}}]}}\n"
    )


def pods(*names: str) -> str:
    return "---\n".join(pod(name) for name in names)


def look(state: SourceState, *, fresh: tuple[str, ...] = (), others: Held | None = None, **files: str) -> SourcePlan:
    """A listing of these files (`a=...` is /m/a.yaml)."""
    listing = Listing(
        "/m",
        {f"/m/{name}.yaml": text.encode() for name, text in files.items()},
        fresh=frozenset(f"/m/{name}.yaml" for name in fresh),
    )
    return plan_sources(state, listing, NODE, 1000.0, others=others)


def ask(state: SourceState, body: str, others: Held | None = None) -> SourcePlan:
    """An answer of the URL."""
    return plan_sources(state, Listing(URL, {URL: body.encode()}), NODE, 1000.0, source="http", others=others)


def fail(state: SourceState) -> SourcePlan:
    return plan_sources(state, Listing(URL, missing=True, error="500"), NODE, 1000.0, source="http")


def pod_list(*items: object) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "PodList", "items": items})


def item(name: str, image: str = "x:1") -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": image}]}}


def names(plan: SourcePlan) -> list[str]:
    return [one.name.removesuffix(f"-{NODE}") for one in plan.pods]


def images(plan: SourcePlan) -> list[str]:
    return [one.body["spec"]["containers"][0]["image"] for one in plan.pods]


def texts(plan: SourcePlan) -> str:
    return "\n".join(problem.text() for problem in plan.problems)


# -- files that are being written ---------------------------------------------------------------------------------


def test_a_fresh_file_that_lost_documents_is_taken_as_it_was_until_it_settles() -> None:
    """Rewritten in place and listed half-written, a sound prefix would take the later pods away."""
    first = look(SourceState(), a=pods("one", "two"))
    prefix = look(first.state, fresh=("a",), a=pods("one"))
    assert (names(prefix), prefix.unsettled, prefix.problems) == (["one", "two"], True, ())
    whole = look(prefix.state, fresh=("a",), a=pods("one", "two", "three"))
    assert (names(whole), whole.unsettled) == (["one", "two", "three"], False)


def test_a_settled_file_that_lost_documents_lets_their_pods_go() -> None:
    first = look(SourceState(), a=pods("one", "two"))
    prefix = look(first.state, fresh=("a",), a=pods("one"))
    settled = look(prefix.state, a=pods("one"))
    assert (names(settled), settled.unsettled) == (["one"], False)


def test_what_is_new_or_edited_in_a_fresh_file_does_not_wait() -> None:
    first = look(SourceState(), fresh=("a",), a=pod("one"))
    assert (names(first), first.unsettled) == (["one"], False)
    edited = look(first.state, fresh=("a",), a=pod("one", "x:2") + "---\n" + pod("two"))
    assert (images(edited), edited.unsettled) == (["x:2", "x:1"], False)


def test_a_removed_file_lets_its_pods_go_at_once() -> None:
    first = look(SourceState(), fresh=("a",), a=pod("one"))
    assert names(look(first.state)) == []


def test_a_half_written_file_is_waited_for_after_a_restart_too() -> None:
    first = look(SourceState(), a=pods("one", "two"))
    restored = restored_state(stored_objects(first.state), gen=first.state.gen, listed_at=1.0)
    assert names(look(restored, fresh=("a",), a=pods("one"))) == ["one", "two"]


# -- a UID is one pod's -------------------------------------------------------------------------------------------


def test_a_pod_with_a_fixed_uid_can_not_be_renamed() -> None:
    first = look(SourceState(), a=pod("one", uid="u"))
    renamed = look(first.state, a=pod("two", "x:2", uid="u"))
    assert (names(renamed), images(renamed)) == (["one"], ["x:1"])
    assert renamed.pods[0].gen == first.pods[0].gen
    assert 'metadata.uid: the UID "u" is that of Pod "default/one-node1": a pod can\'t be renamed' in texts(renamed)
    assert "give the pod of the new name another uid, or none" in texts(renamed)


def test_the_rename_stays_refused_and_its_undoing_is_taken() -> None:
    first = look(SourceState(), a=pod("one", uid="u"))
    again = look(look(first.state, a=pod("two", uid="u")).state, a=pod("two", uid="u"))
    assert names(again) == ["one"]
    undone = look(again.state, a=pod("one", "x:2", uid="u"))
    assert (names(undone), images(undone), undone.problems) == (["one"], ["x:2"], ())


def test_the_rename_is_refused_after_a_restart_too() -> None:
    first = look(SourceState(), a=pod("one", uid="u"))
    restored = restored_state(stored_objects(first.state), gen=first.state.gen, listed_at=1.0)
    assert names(look(restored, a=pod("two", uid="u"))) == ["one"]


def test_a_renamed_pod_may_have_another_uid() -> None:
    first = look(SourceState(), a=pod("one", uid="u"))
    assert names(look(first.state, a=pod("two", uid="v"))) == ["two"]


def test_the_uid_of_a_pod_that_is_gone_is_no_other_pods() -> None:
    """Its containers may still be ending: under that UID they would be taken for the new pod's."""
    first = look(SourceState(), a=pod("one", uid="u"))
    moved = look(first.state, b=pod("two", uid="u"))
    assert names(moved) == [] and "can't be renamed" in texts(moved)
    gone = look(moved.state)
    assert names(look(gone.state, b=pod("two", uid="u"))) == []
    assert names(look(gone.state, b=pod("one", uid="u"))) == ["one"]


# -- other sources ------------------------------------------------------------------------------------------------


def test_what_another_source_has_on_the_node_stays_there() -> None:
    theirs = ask(SourceState(), pod("one", "x:url"))
    ours = look(SourceState(), a=pods("one", "two"), others={"http": theirs.state.running})
    assert names(ours) == ["two"]
    (told,) = ours.abroad["http"]
    assert told.path == URL and "also in /m/a.yaml:1, which is ignored" in told.message
    assert f'/m/a.yaml:1: Pod "default/one" is also in {URL}:1, which keeps running' in texts(ours)


def test_a_uid_of_another_source_is_taken_too() -> None:
    theirs = ask(SourceState(), pod("one", uid="u"))
    ours = look(SourceState(), a=pod("two", uid="u"), others={"http": theirs.state.running})
    assert names(ours) == [] and 'the UID "u" of Pod "default/two" is also in' in texts(ours)


def test_a_name_that_another_source_gives_up_is_taken_without_a_new_listing() -> None:
    theirs = ask(SourceState(), pod("one", "x:url"))
    ours = look(SourceState(), a=pod("one"), others={"http": theirs.state.running})
    after = replan(ours.state, 1001.0, {"http": {}})
    assert (names(after), images(after), after.problems) == (["one"], ["x:1"], ())


# -- the URL's own rules ------------------------------------------------------------------------------------------


def test_one_invalid_item_turns_the_list_down() -> None:
    """S17"""
    first = ask(SourceState(), pod_list(item("a"), item("b")))
    second = ask(first.state, pod_list(item("a", "x:2"), item("c"), item("d", "")))
    assert (names(second), images(second)) == (["a", "b"], ["x:1", "x:1"])
    assert "not all items are valid: none is taken" in texts(second)


def test_other_documents_beside_a_list_are_taken() -> None:
    plan = ask(SourceState(), pod("one") + "---\n" + pod_list(item("a"), item("b", "")) + "\n---\n" + pod("two"))
    assert names(plan) == ["one", "two"]


def test_in_a_file_a_list_is_not_turned_down_for_one_item() -> None:
    assert names(look(SourceState(), a=pod_list(item("a"), item("b", "")))) == ["a"]


def test_an_empty_answer_is_an_empty_set() -> None:
    first = ask(SourceState(), pod("one"))
    assert names(ask(first.state, "")) == []


def test_an_empty_file_still_keeps_its_pods() -> None:
    first = look(SourceState(), a=pod("one"))
    assert names(look(first.state, a="")) == ["one"]


def test_an_empty_list_is_an_empty_set() -> None:
    first = ask(SourceState(), pod("one"))
    assert names(ask(first.state, pod_list())) == []


def test_no_answer_keeps_the_pods_and_the_problems_of_the_last_one() -> None:
    first = ask(SourceState(), pod("one") + "---\n" + pod("two", '""'))
    failed = fail(first.state)
    assert names(failed) == ["one"]
    assert "Required value" in texts(failed) and f"{URL}: 500 (the last pods keep running)" in texts(failed)


def test_a_duplicate_in_a_list_is_dropped_with_the_kubelets_reason() -> None:
    plan = ask(SourceState(), pod_list(item("a", "x:1"), item("a", "x:2")))
    assert (names(plan), images(plan)) == (["a"], ["x:1"])
    assert {problem.reason for problem in plan.problems} == {DUPLICATE} == {"FailedValidation"}


def test_the_answer_of_a_url_is_one_that_gives_no_toleration_and_its_own_uid() -> None:
    """S06"""
    by_url, by_file = ask(SourceState(), pod("a")).pods[0], look(SourceState(), a=pod("a")).pods[0]
    assert by_url.key == by_file.key == ObjectKey("Pod", "default", "a")
    assert by_url.uid != by_file.uid
    assert "tolerations" not in by_url.body["spec"] and by_file.body["spec"]["tolerations"]
