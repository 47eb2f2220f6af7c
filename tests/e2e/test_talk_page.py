"""People talk to an agent in a real browser, whose microphone is a file."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.async_api import Browser, Page, expect

from tests.conftest import require
from tests.support import browser as browsers
from tests.support.browser import overflow, picture, visiting
from tests.support.local_model import TIMEOUT_SECONDS, model_path
from tests.support.speech import collected, pulled
from tests.support.talk_page import page_served, speaking_browser, written
from tests.support.tryll_served import served
from trunkline.agents.external.tryll_talk_options import TalkOptions
from trunkline.agents.graph.pool import ModelPool
from trunkline.models.voice import loading

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(300)]

#: Words are counted by their loudness, and answered by an engine that repeats them; the voice is a real one.
QUICK = TalkOptions("mock", "mock", "espeak")

#: Keeps what the page showed, from its beginning: a state may be over before a test looks for it, and the microphone
#: goes on.
NOTED = """
  window.noted = [];
  new MutationObserver(() => {
    const hush = document.querySelector("#hush");
    const { state } = document.documentElement.dataset;
    if (!hush || !state) return;
    const now = [state, document.querySelectorAll("#words .agent").length, hush.hidden];
    if (String(now) !== String(window.noted.at(-1))) window.noted.push(now);
  }).observe(document, { attributeFilter: ["data-state", "hidden"], childList: true, subtree: true });
"""
#: Whether there is an answer behind the first one that was heard.
ANSWERED_AGAIN = """() => {
  const spoken = noted.slice(noted.findIndex(([state]) => state === "speaking"));
  return spoken.some(([, answers]) => spoken[0][0] === "speaking" && answers > spoken[0][1]);
}"""


class Note(NamedTuple):
    """What the page showed at some time."""

    state: str
    answers: int
    hushed: bool
    """Whether there is no answer to be stopped."""


@pytest.fixture(autouse=True)
def _needed() -> None:
    require("Chromium", browsers.executable() is not None, "on Debian: apt-get install chromium")
    pulled("espeak")


async def espeak_file(path: Path, text: str, *, before: float, after: float) -> Path:
    voice = await loading.load_espeak("espeak")
    try:
        pcm = await collected(voice.speak(text))
    finally:
        await voice.close()
    rate = voice.sample_rate
    return written(path, bytes(int(before * rate) * 2) + pcm + bytes(int(after * rate) * 2), rate)


@asynccontextmanager
async def talking(
    tmp_path: Path,
    file: Path | None,
    options: TalkOptions = QUICK,
    pool: ModelPool | None = None,
    *,
    allowed: bool = True,
) -> AsyncIterator[tuple[Browser, str]]:
    async with (
        served(tmp_path, pool) as server,
        page_served(server.host, server.port, options) as site,
        speaking_browser(file, allowed=allowed) as browser,
    ):
        yield browser, site


def state(*names: str) -> str:
    return ", ".join(f'html[data-state="{name}"]' for name in names)


async def in_state(page: Page, *names: str) -> None:
    await page.wait_for_selector(state(*names))


async def noted(page: Page) -> list[Note]:
    """What has changed on a page that has `NOTED`."""
    return [Note(*note) for note in await page.evaluate("window.noted")]


async def played(page: Page) -> float:
    return float(await page.evaluate("document.documentElement.dataset.played"))


async def test_what_is_said_is_answered_aloud_and_speech_interrupts_it(tmp_path: Path) -> None:
    file = await espeak_file(tmp_path / "said.wav", "One two three four five six seven.", before=1, after=3)
    async with talking(tmp_path, file) as (browser, site), visiting(browser, site) as page:
        await page.add_init_script(NOTED)
        await page.goto("/")
        await in_state(page, "off")
        await picture(page, "talk-ready")
        await page.get_by_role("button", name="Start talking").click()
        await expect(page.locator("#words .you").first).to_contain_text("w1 w2")
        await expect(page.locator("#words .agent").first).to_contain_text("You said: w1 w2")
        # The file begins anew while the answer is spoken, which takes longer than the file is silent.
        await page.wait_for_function(ANSWERED_AGAIN)
        notes = await noted(page)
        speaking = next(at for at, note in enumerate(notes) if note.state == "speaking")
        answers = notes[speaking].answers
        states = [state for state, _ in itertools.groupby(note.state for note in notes[:speaking])]
        assert 1 <= answers <= states.count("hearing"), "one for what was said"
        heard = itertools.dropwhile(lambda note: note.state != "hearing", notes[speaking:])
        interrupting = list(itertools.takewhile(lambda note: note.state == "hearing", heard))
        assert interrupting[-1].hushed, "the answer goes on"
        assert {note.answers for note in interrupting} == {answers}
        await in_state(page, "speaking")
        await picture(page, "talk-speaking")
        await page.get_by_role("button", name="End", exact=True).click()
        await in_state(page, "over")
        assert await page.locator("#hush").is_hidden()


async def test_push_to_talk_by_the_keyboard_and_typing_instead(tmp_path: Path) -> None:
    file = await espeak_file(tmp_path / "said.wav", "One two three four five six seven.", before=0.2, after=0.2)
    async with talking(tmp_path, file) as (browser, site), visiting(browser, site, phone=True, dark=True) as page:
        await page.add_init_script(NOTED)
        await page.goto("/")
        await page.get_by_label("Push to talk").check()
        await page.get_by_role("button", name="Start talking").click()
        await in_state(page, "waiting")
        assert await overflow(page) == 0
        await picture(page, "talk-phone")
        await page.get_by_role("button", name="Hold to talk").focus()
        await page.keyboard.down(" ")
        await in_state(page, "hearing")
        await expect(page.locator("#words .you")).to_contain_text("w1 w2 w3")
        # All that is heard is said back, and with so much of it there is time to stop the answer.
        await expect(page.locator("#words .you")).to_contain_text("w19 w20")
        await page.keyboard.up(" ")
        await in_state(page, "speaking")
        await page.get_by_role("button", name="Stop the answer").click()
        await in_state(page, "waiting")
        before, seen = await played(page), len(await noted(page))
        await page.get_by_label("Or type").fill("One word.")
        await page.keyboard.press("Enter")
        # From its first word on, it waits only when the answer is over.
        await expect(page.locator("#words .agent").last).to_have_text("AgentYou said: One word.")
        await in_state(page, "waiting")
        assert "speaking" in [note.state for note in (await noted(page))[seen:]]
        assert await played(page) > before + 1, "the sound was played to its end"
        assert await overflow(page) == 0
        await picture(page, "talk-phone-said")


async def test_without_a_microphone_or_the_right_to_use_it_one_can_type(tmp_path: Path) -> None:
    for file, allowed, said in ((None, True, "No microphone was found"), (tmp_path, False, "does not let this page")):
        async with (
            talking(tmp_path, file, TalkOptions("mock", "mock", "mock"), allowed=allowed) as (browser, site),
            visiting(browser, site) as page,
        ):
            await page.goto("/")
            await page.get_by_role("button", name="Start talking").click()
            await expect(page.locator("#note")).to_contain_text(said)
            await in_state(page, "typing")
            assert await page.locator("#problem").is_hidden(), "all is well"
            await page.get_by_label("Or type").fill("Anybody?")
            await page.get_by_role("button", name="Send").click()
            await expect(page.locator("#words .agent")).to_contain_text("You said: Anybody?")
            await picture(page, f"talk-{'denied' if not allowed else 'none'}")
            await page.get_by_role("button", name="Put this note away").click()
            await expect(page.locator("#note")).to_be_hidden()


async def test_the_first_words_can_be_typed_and_the_microphone_comes_when_it_is_asked_for(tmp_path: Path) -> None:
    file = await espeak_file(tmp_path / "said.wav", "One two three four five six seven.", before=1, after=3)
    async with (
        talking(tmp_path, file, TalkOptions("mock", "mock", "mock")) as (browser, site),
        visiting(browser, site, dark=True) as page,
    ):
        await page.add_init_script("""
            const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
            window.asked = 0;
            navigator.mediaDevices.getUserMedia = (wanted) => (window.asked++, ask(wanted));
        """)
        await page.goto("/")
        # Before the server has said anything, too.
        await page.get_by_label("Or type").fill("Anybody?")
        await page.keyboard.press("Enter")
        await expect(page.locator("#words .agent")).to_contain_text("You said: Anybody?")
        await in_state(page, "typing")
        assert await page.get_by_label("Or type").input_value() == ""
        assert await page.evaluate("window.asked") == 0
        assert await overflow(page) == 0
        await picture(page, "talk-typed")
        await page.get_by_role("button", name="Use the microphone").click()
        await in_state(page, "hearing")
        assert await page.locator("#microphone").is_hidden()
        assert await page.evaluate("window.asked") == 1


async def test_a_server_that_goes_away_is_told_and_can_be_tried_again(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        address = server.host, server.port
    async with page_served(*address, QUICK) as site, speaking_browser(None) as browser, visiting(browser, site) as page:
        await page.goto("/")
        await in_state(page, "over")
        await expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
        await expect(page.get_by_role("button", name="Start again")).to_be_enabled()


#: Between two questions: many times what a quiet machine takes to answer.
SILENT_SECONDS = 40


@pytest.fixture
def joe() -> str:
    """A voice, with the models that hear and answer it."""
    model_path()
    pulled("whisper-base")
    return pulled("piper-joe")


@pytest.mark.long
@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_a_spoken_question_is_understood_and_answered_by_real_models(tmp_path: Path, joe: str) -> None:
    voice = await loading.load_piper("piper-joe", joe)
    try:
        pcm = await collected(voice.speak("What is the capital of France?"))
    finally:
        await voice.close()
    rate = voice.sample_rate
    # The microphone says it again and again; the next time would interrupt a busy machine that has not answered yet.
    file = written(tmp_path / "question.wav", bytes(rate * 2) + pcm + bytes(rate * 2 * SILENT_SECONDS), rate)
    pool = ModelPool()
    options = TalkOptions("smollm2-135m", "whisper-base", "piper-joe")
    async with talking(tmp_path, file, options, pool) as (browser, site), visiting(browser, site) as page:
        await page.goto("/")
        await page.get_by_role("button", name="Start talking").click()
        await page.wait_for_selector(state("speaking"), timeout=60_000)
        # On a busy machine the first time may be heard from its middle on.
        asked = page.locator("#words .you", has_text="capital of France")
        await expect(asked.first).to_be_visible(timeout=2_000 * SILENT_SECONDS)
        assert len(await page.locator("#words .agent p").first.inner_text()) > 3
        await picture(page, "talk-real")
        await page.wait_for_selector(state("listening", "hearing"), timeout=60_000)
        assert await played(page) > 0.3
