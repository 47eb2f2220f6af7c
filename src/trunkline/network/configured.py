"""The network's settings, from what is configured."""

from __future__ import annotations

from trunkline.base.config_services import OFF
from trunkline.base.config_settled import EffectiveConfig
from trunkline.network.network import NetworkSettings


def settings_from(found: EffectiveConfig, home: str) -> NetworkSettings:
    """What holds, as the network takes it. `home` is where it keeps what is not in its database."""
    limit = found["rate_limit"]
    return NetworkSettings(
        admin_key=found["admin_key"],
        app_origin=found["app_origin"],
        hosts=tuple(found["hosts"]),
        proxies=tuple(found["proxies"]),
        writes_per_minute=None if limit == OFF else limit,
        fixed_message_moderation=found["fixed_message_moderation"],
        private_webhooks=found["private_webhooks"],
        explorer_url=found["explorer_url"],
        explorer_key=found["explorer_key"],
        home=home,
    )
