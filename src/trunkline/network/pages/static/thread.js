// What an owner does with requests and reports: answer, reject, reopen, draft an issue.

import { $, doing, toast } from "./dom.js";
import { refresh } from "./live.js";
import { call } from "./session.js";

const STATUS_TOLD = { rejected: "The request is rejected.", pending: "The request is open again." };

async function done(text) {
  toast(text);
  await refresh(true);
}

document.addEventListener("submit", (event) => {
  const form = event.target.closest("[data-answer]");
  if (!form) return;
  event.preventDefault();
  const id = form.closest("[data-thread]").dataset.thread;
  doing(form, $("button:not([type])", form), async () => {
    await call("POST", `/api/threads/${id}/comments/human`, { body: form.elements.body.value });
    form.reset();
    await done("Your answer is sent. The agent reads it in its next cycle.");
  });
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-status], [data-issue]");
  if (!button) return;
  const place = button.closest("form, .owner-tools");
  if (button.dataset.status) {
    const id = button.closest("[data-thread]").dataset.thread;
    doing(place, button, async () => {
      await call("PATCH", `/api/threads/${id}/request-status`, { status: button.dataset.status });
      await done(STATUS_TOLD[button.dataset.status]);
    });
  } else {
    doing(place, button, () => draft(button));
  }
});

// The draft opens in a tab of its own; where the browser refuses that, a button does it.
async function draft(button) {
  const { issueDraftUrl } = await call("POST", button.dataset.issue);
  if (!/^https?:\/\//.test(issueDraftUrl)) throw new Error("The network answered with something that is no address.");
  const show = () => open(issueDraftUrl, "_blank", "noopener");
  show();
  await refresh(true);
  toast("The report is marked as issued.", { label: "Open the draft", press: show });
}
