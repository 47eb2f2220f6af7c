"""What agents, tools and people write is text, whatever it looks like: in a real browser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.e2e.test_console_conversation import world_with
from trunkline.base.visible import visible
from trunkline.core.events import (
    Event,
    Extension,
    Failed,
    Notice,
    Plan,
    PlanEntry,
    Progress,
    TextDelta,
    ThinkingDelta,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    UserMessage,
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

#: What would run, if anything did.
MARKS = (
    "<img src=x onerror=hit()>",
    "<script>hit()</script>",
    "<svg/onload=hit()>",
    '"><a href="javascript:hit()">x</a>',
    "[x](javascript:hit()) [y](data:text/html,<script>hit()</script>) ![z](javascript:hit())",
    "<javascript:hit()>",
    "</textarea></pre><iframe srcdoc='<script>parent.hit()</script>'>",
)
BAD = " ".join(MARKS)
CHANGE = {"path": BAD, "old": BAD, "new": f"{BAD}!"}


def everywhere() -> Sequence[Event]:
    """The same in every field that an agent or a tool fills."""
    return [
        ThinkingDelta(BAD),
        TextDelta(f"# {BAD}\n\n- {BAD}\n\n| {BAD} |\n|---|\n| {BAD} |\n\n"),
        TextDelta(f"```{MARKS[0]}\n{BAD}\n```\n\n> {BAD}\n\n{BAD}"),
        Notice(BAD),
        Plan((PlanEntry(BAD, "high", "in_progress"),)),
        Failed("provider", BAD),
        Extension(BAD, {"x": BAD}),
        Extension("mcp_login", {"name": BAD, "url": "javascript:hit()"}),
        Extension("mcp_ready", {"name": BAD, "tools": []}),
        Extension("call_shown", {"call_id": "s", "title": BAD, "changes": [CHANGE]}),
        ToolStarted("s", BAD),
        Progress(BAD, "s"),
        Progress(BAD),
        ToolFinished("s", BAD, "success", BAD),
        ToolStarted("d", "Edit"),
        ToolFinished("d", "Edit", "success", f"--- a/{BAD}\n+++ b/{BAD}\n@@ -1 +1 @@ {BAD}\n-{BAD}\n+{BAD}", "diff"),
        ToolStarted("i", "Picture"),
        ToolFinished("i", "Picture", "success", '"><script>hit()</script>', "image"),
        ToolStarted("c", "Bash"),
        ToolCancelled("c", BAD),
        ToolRequested("q", BAD, "exec", {"command": BAD, BAD: [BAD, {BAD: BAD}]}, BAD, why=BAD),
    ]  # fmt: skip


async def nothing_ran(page: Page) -> None:
    assert await page.evaluate("document.body.dataset.hit ?? ''") == ""
    found = await page.evaluate(
        """() => [...document.querySelectorAll("#conversation *")].filter((each) =>
          /^(?:script|iframe|svg|style|object)$/i.test(each.tagName)
          || [...each.attributes].some(({ name }) => name.startsWith("on"))
          || (each.href && !/^(?:https?|mailto):/.test(each.href))
          || (each.tagName === "IMG" && !each.src.startsWith("data:image/") && !each.src.startsWith("blob:"))
        ).map((each) => each.outerHTML.slice(0, 200))"""
    )
    assert found == []


async def test_whatever_is_written_is_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path, go=everywhere()) as (world, _), world.visited(browser) as page:
        await page.add_init_script("window.hit = () => { document.body.dataset.hit = 'yes'; }")
        board = world.exchange.switchboard
        live = await board.open("helper", "one", by=BAD)
        await board.submit(live, UserMessage(f"say {BAD}", (f"{BAD}.png",), sender=BAD))
        await live.session.at_rest()
        await board.submit(live, UserMessage("go", sender=BAD))
        async with board.attached("one", by=BAD, wire=BAD):
            await page.goto("/sessions/one")
            await expect(page.locator("#questions > li")).to_contain_text(MARKS[0])
            await expect(page.locator("#watchers")).to_contain_text(MARKS[0])
            # Row by row, all of it in the page once.
            count = int(await page.locator("#events > article").last.get_attribute("aria-setsize") or "0")
            assert count > 15
            await page.keyboard.press("Home")
            await nothing_ran(page)
            for kind in ("message", "answer", "thinking", "notice", "plan", "failure", "extension", "login", "tool"):
                shown = page.locator(f".row.{kind}").first
                await shown.scroll_into_view_if_needed()
                for fold in await shown.locator("details:not([open]) > summary").all():
                    await fold.click()
                await expect(shown).to_contain_text("javascript:hit()" if kind == "login" else MARKS[0])
                await nothing_ran(page)
            await page.keyboard.press("End")
            await expect(page.locator(".tool-card[data-state=asked]")).to_contain_text(MARKS[1])
            await nothing_ran(page)
            await page.get_by_role("button", name="Approve").click()
            await expect(page.locator(".row.end")).to_have_count(1)
            await nothing_ran(page)


#: Commands that look like others.
DECEPTIVE = [
    "ls \u202egnp.exe\u2066", "touch pwned; : \rls -la", "a\x1b]0;title\x07b\x00\x7f\x9b",
    "a\u200b\u200d\u2060\ufeffb", "a\u2028b\u2029c\x85d\x0be", "rm\u00a0-rf\u2003/",
    "a\u3164b\u115fc\u2800d\u034fe", "a\U000e0041\U000e0100\ufe00\ufe0f",
    "rm\u0336 \u0338x \u0489 e\u20dd", "a\U0001d159b\U00016fe4c\ufffcd", "private \ue000 \U0010ffff",
    f"ls{' ' * 300}; rm -rf ~", "ls" + "\n" * 300 + "rm", "ls" + " \t" * 700 + "; rm", "ls" + " \t \n" * 300 + "rm",
    "plain\n\tgrößer 会话 שלום مرحبا 全角\u3000空白 ⚠\ufe0f ❤\ufe0f e\u0301 <U+000D>",
]  # fmt: skip


async def test_nothing_is_unseen_of_what_somebody_decides_about(browser: Browser, tmp_path: Path) -> None:
    asked = [
        ToolRequested("q", "Ba\u200bsh", "exec", {"command": DECEPTIVE[0], "in\u200bto": "a\u202eb"}, "L\u202eist")
    ]
    async with world_with(tmp_path, go=asked) as (world, _), world.visited(browser) as page:
        live = await world.exchange.switchboard.open("helper", "one", by="ana")
        await world.exchange.switchboard.submit(live, UserMessage("go", sender="ana"))
        for path, place in (("/approvals", "#pending"), ("/sessions/one", "#events .tool-card")):
            await page.goto(path)
            for words in ("ls <U+202E>gnp.exe<U+2066>", "in<U+200B>to", "a<U+202E>b", "L<U+202E>ist", "Ba<U+200B>sh"):
                await expect(page.locator(place)).to_contain_text(words)
        await expect(page.locator("#questions")).to_contain_text("ls <U+202E>gnp.exe")
        found = await page.evaluate(
            """async (texts) => texts.map((await import("/static/visible.js")).visible)""", DECEPTIVE
        )
        # As chats and terminals have it.
        assert found == [visible(text) for text in DECEPTIVE]


async def test_the_id_of_a_session_is_text_as_well(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path) as (world, _), world.visited(browser) as page:
        id = '"><img src=x onerror=hit()>?a=b#c%41&amp;'
        await page.add_init_script("window.hit = () => { document.body.dataset.hit = 'yes'; }")
        live = await world.exchange.switchboard.open("helper", id, by="ana")
        await page.goto("/sessions/" + "".join(f"%{byte:02X}" for byte in id.encode()))
        await expect(page.locator("#state")).to_have_text("ready")
        await world.exchange.switchboard.submit(live, UserMessage("say hello", sender="ana"))
        await expect(page.locator(".row.answer")).to_contain_text("hello")
        await nothing_ran(page)


#: Markdown, and what becomes of it.
MARKDOWN = [
    ("*it* **bold** `a*b` ~~gone~~", "<p><em>it</em> <strong>bold</strong> <code>a*b</code> <del>gone</del></p>"),
    ("snake_case_name and _it_", "<p>snake_case_name and <em>it</em></p>"),
    ("2 * 3 * 4 and \\*no\\*", "<p>2 * 3 * 4 and *no*</p>"),
    ("# One\n### Two", "<h2>One</h2><h3>Two</h3>"),
    ("a\nb", "<p>a<br>b</p>"),
    ("- a\n  - b\n- c", "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>"),
    ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
    ("- [ ] a\n- [x] b", "<ul><li>☐ a</li><li>☑ b</li></ul>"),
    ("> a\n> b", "<blockquote><p>a<br>b</p></blockquote>"),
    ("a\n\n---\n\nb", "<p>a</p><hr><p>b</p>"),
    ("<b>x</b> &amp;", "<p>&lt;b&gt;x&lt;/b&gt; &amp;amp;</p>"),
    ("[x](ftp://a) [y](//a)", "<p>[x](ftp://a) [y](//a)</p>"),
    ("``a`b`` `open", "<p><code>a`b</code> `open</p>"),
    ("**open and *more", "<p>**open and *more</p>"),
    ("text\n1. a", "<p>text</p><ol><li>a</li></ol>"),
    ("in 2019. It\n2. was", "<p>in 2019. It<br>2. was</p>"),
    ("", ""),
]  # fmt: skip
LINK = 'rel="nofollow noopener noreferrer" target="_blank"'
LINKS = [
    ("[x](https://a.b/c)", f'<p><a href="https://a.b/c" {LINK}>x</a></p>'),
    ("see https://a.b/c?d=(e). Or", f'<p>see <a href="https://a.b/c?d=(e)" {LINK}>https://a.b/c?d=(e)</a>. Or</p>'),
    ("(http://a.b)", f'<p>(<a href="http://a.b" {LINK}>http://a.b</a>)</p>'),
    ("[m](mailto:a@b.c)", f'<p><a href="mailto:a@b.c" {LINK}>m</a></p>'),
]


async def test_markdown_becomes_elements_and_the_rest_stays_text(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path) as (world, _), world.visited(browser) as page:
        await page.goto("/")
        made = await page.evaluate(
            """async (texts) => {
              const { markdownView } = await import("/static/markdown.js");
              return texts.map((text) => {
                const view = markdownView();
                // Letter by letter, as it comes.
                for (let end = 1; end < text.length; end++) view.update(text.slice(0, end));
                view.update(text);
                return view.element.innerHTML;
              });
            }""",
            [text for text, _ in MARKDOWN + LINKS],
        )
        assert dict(zip([text for text, _ in MARKDOWN + LINKS], made, strict=True)) == dict(MARKDOWN + LINKS)


async def test_no_text_keeps_the_page_busy(browser: Browser, tmp_path: Path) -> None:
    async with world_with(tmp_path) as (world, _), world.visited(browser) as page:
        await page.goto("/")
        # Each of them would take minutes, if it were read again from every character on.
        lengths = await page.evaluate(
            """async () => {
              const { markdown } = await import("/static/markdown.js");
              const many = (text) => text.repeat(40000 / text.length);
              return ["*a ", "[", "`", "](", "> ", "- ", "**", "_a _", "|a", "~~~\\n", "http://",
                "[a](", "\\n- a\\n\\n"]
                .flatMap((text) => [many(text), `# ${many(text)}x`, `a${many(" ")}|\\n${many(text)}`,
                  `[a](${many(" ")}x`])
                .map((text) => markdown(text).length);
            }"""
        )
        assert len(lengths) == 4 * 13
