from __future__ import annotations

import time

import pytest
from markupsafe import Markup

from trunkline.network.pages import markdown
from trunkline.network.pages.markdown import RenderCache, Renderer, mentioned

ID = "c" + "a" * 24


def render(text: str) -> str:
    return str(Renderer()(text))


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](&#106;avascript:alert(1))",
        "[x](vbscript:x) [y](data:text/html,x) [z](file:///etc/passwd)",
        "[x](//elsewhere.example) [y](/sign-in?next=//elsewhere.example)",
        "<javascript:alert(1)>",
        "![x](javascript:alert(1))",
        '```" onload=alert(1)\n<b>\n```',
        "javascript:alert(1)",
    ],
)
def test_nothing_hostile_becomes_markup(text: str) -> None:
    html = render(text)
    for markup in ("<script", "<img", "<b>", "href=", 'onload=alert(1)"', 'onload="'):
        assert markup not in html


def test_links_lead_out_without_vouching_for_anything() -> None:
    html = render("[a](https://a.example/x) <http://b.example> [c](mailto:c@c.example) and https://d.example/?q=(1).")
    for url in ("https://a.example/x", "http://b.example", "mailto:c@c.example", "https://d.example/?q=(1)"):
        assert f'href="{url}"' in html
    assert html.count('rel="nofollow noopener noreferrer ugc"') == 4
    assert html.endswith("</a>.</p>\n")


def test_an_attribute_cannot_be_left() -> None:
    assert render("""https://a.example/"onmouseover="x" [b](https://b.example '"><script>')""").count("<script") == 0
    assert "onmouseover=&quot;x&quot;" in render("""[b](https://b.example '"onmouseover="x"')""")


def test_pictures_become_links_so_that_reading_asks_nobody() -> None:
    html = render("![a *chart*](https://pictures.example/x.png)")
    assert "<img" not in html
    assert 'href="https://pictures.example/x.png"' in html
    assert ">a chart</a>" in html


def test_ids_become_links_where_they_lead_somewhere() -> None:
    html = str(Renderer({ID: "/communities/x/threads/y"})(f"see {ID}, `{ID}`, x{ID} and c{'b' * 24}"))
    assert html.count('<a href="/communities/x/threads/y" class="mention">') == 2
    assert f"x{ID}" in html
    assert f"and c{'b' * 24}" in html


def test_an_id_in_the_text_of_a_link_stays_a_part_of_it() -> None:
    html = str(Renderer({ID: "/here"})(f"[{ID}](https://a.example)"))
    assert html.count("<a ") == 1


def test_the_same_text_with_other_links_is_rendered_again() -> None:
    assert "href" not in str(Renderer()(f"see {ID}"))
    assert 'href="/there"' in str(Renderer({ID: "/there"})(f"see {ID}"))


def test_headings_leave_the_first_two_levels_to_the_page() -> None:
    assert render("# a\n\n###### b") == "<h3>a</h3>\n<h6>b</h6>\n"


def test_lines_tables_and_code_look_like_themselves() -> None:
    html = render("one\ntwo\n\na|b\n-|-\n1|2\n\n```sol\nx = 1;\n```\n~~old~~")
    assert "one<br />\ntwo" in html
    assert '<div class="table" tabindex="0"><table>' in html
    assert '<code class="language-sol">x = 1;\n</code>' in html
    assert "<s>old</s>" in html


def test_a_very_long_text_is_shown_and_costs_little() -> None:
    begun = time.process_time()
    html = render("# Title\n" + "word <b> " * 25_000)
    assert time.process_time() - begun < 5
    assert html.startswith("<h3>Title</h3>")
    assert '<pre class="plain"' in html
    assert "<b>" not in html
    assert html.count("word") > 20_000


def test_what_goes_on_for_ever_is_cut_and_says_so() -> None:
    html = render("x" * (markdown.MAX_MARKDOWN + markdown.MAX_SHOWN + 10))
    assert "The API has all of it" in html
    assert len(html) < markdown.MAX_MARKDOWN + markdown.MAX_SHOWN + 1000


def test_a_table_of_nothing_does_not_fill_the_page() -> None:
    text = "a|" * 400 + "\n" + "-|" * 400 + "\n" + "a|\n" * 60
    assert len(render(text)) < markdown.MAX_GROWTH * len(text) + 5000


def test_a_page_full_of_hostile_texts_ends() -> None:
    slow, begun = Renderer(seconds=0.2), time.process_time()
    texts = [str(slow("![" * 6000 + str(number))) for number in range(60)]
    assert time.process_time() - begun < 5
    assert texts[-1].startswith('<pre class="plain"')


def test_mentions_are_counted_once_and_bounded() -> None:
    assert mentioned([f"{ID} {ID}", ID], 10) == [ID]
    assert len(mentioned([" ".join(f"c{number:024d}" for number in range(100))], 7)) == 7


def test_the_words_of_a_text_are_told_without_its_signs() -> None:
    text = (
        "# Title\n\nSome **bold** `code`,\n[a link](https://a.example).\n\n- one\n- two\n\na|b\n-|-\n1|2\n\n```\nx\n```"
    )
    assert markdown.words(text) == "Title Some bold code, a link. one two a b 1 2 x"
    assert markdown.words("<script>alert(1)</script> ![alt](https://a.example)") == "<script>alert(1)</script> alt"


def test_what_is_remembered_is_bounded_in_bytes_and_the_newest_stays() -> None:
    memory = RenderCache(100_000)
    for number in range(200):
        memory.put((f"{number}", ()), Markup("x" * 10_000))
        assert memory.bytes <= 100_000
    assert memory.get(("199", ())) is not None
    assert memory.get(("0", ())) is None
    memory.put(("huge", ()), Markup("x" * 200_000))
    assert memory.bytes == 0


def test_what_was_asked_for_lately_stays_in_memory() -> None:
    memory = RenderCache(100_000)
    memory.put(("kept", ()), Markup("x"))
    for number in range(20):
        assert memory.get(("kept", ())) == "x"
        memory.put((f"{number}", ()), Markup("x" * 20_000))


def test_a_text_is_rendered_once_for_the_same_links(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[str] = []

    def render_slowly(text: str, links: object) -> Markup:
        rendered.append(text)
        return Markup(text)

    monkeypatch.setattr(markdown, "_rendered", render_slowly)
    monkeypatch.setattr(markdown, "_memory", RenderCache(10_000))
    for known in ({}, {}, {ID: "/there"}):
        Renderer(known)(ID)
    assert len(rendered) == 2
