"""Pages as text: what people read of them, and nothing of what surrounds it."""

from __future__ import annotations

import pytest

from trunkline.tools.html_text import LEAST_MAIN_CHARS, readable
from trunkline.tools.html_tree import DEEPEST, parse

ADDRESS = "https://example.org/docs/page.html"
LONG = "word " * LEAST_MAIN_CHARS


def text(html: str) -> str:
    return readable(html, ADDRESS)[1]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h1>One</h1><h3>Three &amp; more</h3>", "# One\n\n### Three & more"),
        ("<p>a\n  b<p>c<br>d", "a b\n\nc\nd"),
        ("<p>x <b>bold </b>y <em>so</em>", "x **bold** y *so*"),
        ('<a href="/a?b=1#c">There</a>', "[There](https://example.org/a?b=1#c)"),
        ('<a href="javascript:x()">There</a> <a href="#top">Top</a>', "There Top"),
        ('<a href="data:text/html,x">There</a>', "There"),
        ('<h2>Use <a class="headerlink" href="#use">¶</a></h2>', "## Use"),
        ("<ul><li>one<li>two<ul><li>in</ul><li>three</ul>", "- one\n- two\n  - in\n- three"),
        ('<ol start="9"><li>nine<li>ten</ol>', "9. nine\n10. ten"),
        (
            '<pre><code class="language-py">if a &lt; b:\n    c()\n</code></pre>',
            "```py\nif a < b:\n    c()\n```",
        ),
        ("<pre>a ``` b</pre>", "````\na ``` b\n````"),
        ("Use <code>a  b</code>.", "Use `a b`."),
        ("<blockquote><p>a<p>b</blockquote>", "> a\n>\n> b"),
        (
            "<table><caption>T</caption><tr><th>A<th>B<tr><td>1|2<td>x<br>y</table>",
            "T\n\n| A | B |\n| --- | --- |\n| 1\\|2 | x y |",
        ),
        (
            f"<table><tr><td colspan={'9' * 5000}>a<tr><td>b<td>c</table>",
            f"| a |{'  |' * 49}\n|{' --- |' * 50}\n| b | c |{'  |' * 48}",
        ),
        ("<table><tr><td colspan=\u0663>a<td>b</table>", "| a | b |\n| --- | --- |"),
        ("<table><tr><td colspan=2>wide<tr><td>a<td>b</table>", "| wide |  |\n| --- | --- |\n| a | b |"),
        ("<table><tr><td>left<td><h2>Right</h2></table>", "left\n\n## Right"),
        ('<img src="a.png" alt="A cat"><img src="b.png">', "![A cat](https://example.org/docs/a.png)"),
        ("<dl><dt>a<dd>b</dl>", "a\n\n: b"),
        ("<div>a<div>b</div>c</div>", "a\n\nb\n\nc"),
        ("a <span>b <p>c</p></span>", "a\n\nb\n\nc"),
        ('<base href="https://other.example/x/"><a href="y">z</a>', "[z](https://other.example/x/y)"),
        ("a\x00b\x1b[31mc", "ab[31mc"),
    ],
)
def test_a_page_becomes_text_that_reads_like_it(html: str, expected: str) -> None:
    assert text(html) == expected


@pytest.mark.parametrize(
    "noise",
    [
        "<script>noise()</script>",
        "<style>noise {}</style>",
        "<nav><a href='/'>noise</a></nav>",
        "<div role='navigation'>noise</div>",
        "<footer>noise</footer>",
        "<aside>noise</aside>",
        "<svg><text>noise</text></svg>",
        "<noscript>noise</noscript>",
        "<template>noise</template>",
        "<div hidden>noise</div>",
        "<div aria-hidden='true'>noise</div>",
        "<div style='color: red; display:none'>noise</div>",
        "<!-- noise -->",
        "<button>noise</button>",
        "<iframe src='noise'></iframe>",
    ],
)
def test_what_is_no_text_of_the_page_is_left_out(noise: str) -> None:
    assert text(f"<body>{noise}<p>Text</p>{noise}</body>") == "Text"


def test_of_a_page_with_a_main_part_only_that_is_read() -> None:
    html = f"<header>Site</header><main><nav>Here</nav><p>{LONG}</p><aside>Note</aside></main><p>Other"
    assert text(html) == f"{LONG.strip()}\n\nNote"


def test_a_main_part_with_hardly_a_word_in_it_is_not_the_page() -> None:
    assert text("<main>Loading</main><p>All of it</p>") == "Loading\n\nAll of it"


def test_a_page_that_is_all_menu_is_read_all_the_same() -> None:
    assert text("<nav><p>Everything") == "Everything"


def test_the_title_is_told_apart() -> None:
    assert readable("<title>A\n &lt;b&gt;</title><p>x", ADDRESS) == ("A <b>", "x")


@pytest.mark.parametrize(
    "html",
    ["<div>" * 5000 + "x", "<ul><li>" * 3000 + "x", "<table><tr><td>" * 2000 + "x", "<b>" * 5000 + "x", "</p>" * 999],
)
def test_no_depth_is_too_deep(html: str) -> None:
    assert len(text(html)) < 1000


def test_the_tree_is_never_deeper_than_whoever_walks_it_can() -> None:
    depth, element = 0, parse("<div>" * 5000)
    while element.children:
        (element, *_) = (child for child in element.children if not isinstance(child, str))
        depth += 1
    assert depth <= DEEPEST


def test_an_end_in_a_line_does_not_end_what_the_line_stands_in() -> None:
    assert text("<ul><li><b>a</i></b><li>b</span></ul><p>c") == "- **a**\n- b\n\nc"
