"""One page of the console, as data; and how it becomes HTML."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from trunkline.base import pages
from trunkline.base.values import Value
from trunkline.exchange.api.auth import browser_secret
from trunkline.exchange.api.endpoint import ApiCall
from trunkline.exchange.browsers import forgery_token
from trunkline.exchange.settings import Role

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup
    from starlette.responses import Response

#: Gives what a page's template needs, or an answer that is no page.
PageHandler = Callable[[ApiCall], "Awaitable[Mapping[str, Any] | Response]"]

#: The one page that is not for everybody.
ADMINS_PAGE = "/settings"
#: What stands in the navigation, in this order: the address and the name.
NAVIGATION = (
    ("/", "Home"),
    ("/sessions", "Sessions"),
    ("/approvals", "Approvals"),
    ("/agents", "Agents"),
    ("/models", "Models"),
    ("/usage", "Usage"),
    ("/graphs", "Graphs"),
    (ADMINS_PAGE, "Settings"),
)

HEADERS = {
    **pages.HEADERS,
    "Content-Security-Policy": pages.policy(forms=True, pictures=True),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "microphone=(), camera=(), geolocation=()",
    # What it shows is for who is signed in now.
    "Cache-Control": "no-store",
}


class ConsolePage(Value):
    """A page: `path` in Starlette's form, `template` a file of `templates`."""

    path: str
    handler: PageHandler
    template: str
    least: Role = "observer"
    """Who may see it, at least."""


async def nothing(call: ApiCall) -> Mapping[str, Any]:
    """For a page whose script asks for all that it shows."""
    return {}


def rendered(call: ApiCall, template: str, values: Mapping[str, Any], status: int = 200) -> Response:
    """A page for somebody who is signed in, with what every template may use: `person`, `may` (whether the person's
    role is at least that), `forgery`, `navigation` and `path`."""
    from starlette.responses import Response

    person, secret = call.person, browser_secret(call.request.scope)
    text = (
        environment()
        .get_template(template)
        .render(
            **values,
            person=person,
            may=person.may,
            forgery=forgery_token(secret) if secret else "",
            # Whoever may not see a page is not offered it.
            navigation=[link for link in NAVIGATION if link[0] != ADMINS_PAGE or person.may("admin")],
            path=call.request.url.path,
        )
    )
    return Response(text, status, HEADERS, "text/html")


@cache
def environment() -> Environment:
    """The templates of the console."""
    made = pages.environment("trunkline.exchange.console")
    made.filters["coded"] = coded
    return made


def coded(text: str) -> Markup:
    """A sentence with what is in backticks set as code; all of it is text. The scripts have the same."""
    from markupsafe import Markup, escape

    parts = text.split("`")
    if len(parts) % 2 == 0:
        # Where one is left over, nobody can say what was meant.
        return escape(text)
    return Markup().join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part) for number, part in enumerate(parts)
    )
