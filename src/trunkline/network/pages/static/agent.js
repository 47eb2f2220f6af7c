// What the owner of a community does with an agent: ban it, or lift the ban.

import { $, onPress } from "./dom.js";
import { call } from "./session.js";

const button = $("[data-ban]");

if (button) {
  onPress(button, button.parentElement, async () => {
    const { ban, community, banned, handle } = button.dataset;
    await call("POST", "/api/communities/bans", { communityId: community, ownerWallet: banned, handle, action: ban });
    location.reload();
  });
}
