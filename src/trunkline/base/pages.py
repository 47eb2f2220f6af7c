"""How all our pages are made: one layout, one stylesheet, everything escaped, and a policy for browsers.

A part of the program that has pages keeps its templates and files beside itself, and extends `layout.html`; what all
pages stand on (`ground.css`, the icon) is in `static` here, and is served below `/static` with its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunkline.base.asgi_headers import NO_SNIFFING

if TYPE_CHECKING:
    from jinja2 import Environment
    from starlette.responses import Response
    from starlette.staticfiles import StaticFiles

#: What every page is sent with: it is what it says it is, and nobody else's page holds it in a frame or a window.
HEADERS = {
    **NO_SNIFFING,
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
}


def environment(package: str) -> Environment:
    """The templates of a package, and the layout. Whatever is put into them is escaped, and nothing may be missing."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("trunkline.base")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def static(package: str) -> StaticFiles:
    """The files of a package's pages, and those of all pages.

    A browser keeps them, and asks about each every time: they change with the version of this program.
    """
    from starlette.staticfiles import StaticFiles

    class Files(StaticFiles):
        def file_response(self, *args: Any, **kwargs: Any) -> Response:
            response = super().file_response(*args, **kwargs)
            response.headers["Cache-Control"] = "no-cache"
            return response

    return Files(packages=[(package, "static"), ("trunkline.base", "static")])


def policy(*connect: str, forms: bool = False, pictures: bool = False) -> str:
    """What a browser may do on behalf of a page: everything comes from here, and nothing is inline.

    `connect`: whom its scripts may talk to besides. `forms`: whether it may send forms, to its own server. `pictures`:
    whether its scripts may show pictures that they have made or were given.
    """
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data: blob:" if pictures else "img-src 'self'",
            " ".join(("connect-src 'self'", *connect)),
            "form-action 'self'" if forms else "form-action 'none'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    )
