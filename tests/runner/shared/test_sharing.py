"""Who runs which agent: whoever runs least, and all launchers come to the same answer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trunkline.runner.shared.sharing import PATIENCE_SECONDS, LaunchersView, SeenAgent, to_give, to_take


def agent(name: str, holder: str | None = None, able: str = "abc", free: float = 0.0) -> SeenAgent:
    return SeenAgent(name, "wanted", 1, holder, free, frozenset(able))


def seen(*agents: SeenAgent, there: str = "abc") -> LaunchersView:
    return LaunchersView({id: f"launcher {id}" for id in there}, agents)


def test_free_agents_go_to_those_who_run_least() -> None:
    view = seen(agent("1", "a"), agent("2", "a"), agent("3", "b"), agent("4"), agent("5"), agent("6"))
    assert (to_take("a", view), to_take("b", view), to_take("c", view)) == ([], ["5"], ["4", "6"])


def test_only_who_can_run_an_agent_takes_it() -> None:
    view = seen(agent("1", able="b"), agent("2", able="ab"), agent("3", able=""))
    assert (to_take("a", view), to_take("b", view), to_take("c", view)) == (["2"], ["1"], [])


def test_one_that_waits_for_too_long_is_taken_by_whoever_sees_it() -> None:
    view = seen(agent("1", free=PATIENCE_SECONDS + 1), agent("2", free=PATIENCE_SECONDS - 1))
    assert [to_take(me, view) for me in "abc"] == [["1"], ["1", "2"], ["1"]]


def test_who_is_not_there_any_more_is_nobodys_next_one() -> None:
    view = seen(agent("1", "b"), agent("2"), there="bc")
    assert (to_take("c", view), to_take("b", view)) == (["2"], [])


def test_an_agent_is_handed_over_between_two_cycles_if_that_makes_it_fairer() -> None:
    view = seen(agent("1", "a"), agent("2", "a"), agent("3", "b"), there="ab")
    assert to_give("a", view, ["1", "2"]) is None
    view = seen(agent("1", "a"), agent("2", "a"), agent("3", "a"), there="ab")
    assert to_give("a", view, []) is None
    assert to_give("a", view, ["2", "3"]) == "2"
    # To nobody who could not run it.
    alone = seen(*(agent(name, "a", able="a") for name in "123"), there="ab")
    assert to_give("a", alone, ["1", "2", "3"]) is None


@given(
    st.dictionaries(
        st.integers(0, 12), st.tuples(st.sampled_from(["a", "b", "c", None]), st.sets(st.sampled_from("abc")))
    ),
    st.sets(st.sampled_from("abc"), min_size=1),
)
def test_nobody_is_asked_for_by_two_and_handing_over_comes_to_an_end(
    agents: dict[int, tuple[str | None, set[str]]], there: set[str]
) -> None:
    holders = {str(number): holder if holder in there else None for number, (holder, _) in agents.items()}
    able = {str(number): "".join(able | ({holder} if holder else set())) for number, (holder, able) in agents.items()}

    def view() -> LaunchersView:
        names = "".join(sorted(there))
        return seen(*(agent(id, holder, able[id]) for id, holder in holders.items()), there=names)

    for _ in range(100):
        before = view()
        taken = [(id, me) for me in there for id in to_take(me, before)]
        assert len({id for id, _ in taken}) == len(taken)
        given = [id for me in there if (id := to_give(me, before, holders)) is not None]
        if not taken and not given:
            break
        holders |= dict(taken) | dict.fromkeys(given)
    else:
        raise AssertionError("it never ends")
    # What somebody can run is run.
    assert all(holders[id] is not None for id in holders if set(able[id]) & there)
