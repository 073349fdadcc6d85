"""The web application: a page, its data as JSON, and the reports of the folder, each under a policy that lets
no foreign code run."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from stagewise.lab.report import HERE as REPORT
from stagewise.lab.report import scripts
from stagewise.lab.serve import curves, watch
from stagewise.lab.spec.experiment import PRESETS

HERE = Path(__file__).parent
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src "
    "'unsafe-inline'; img-src data:"
)
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
LOOPBACK = ["localhost", "127.0.0.1", "[::1]", "::1"]


def app(root: Path, only_here: bool = True) -> Starlette:
    """The application for a folder of runs. With `only_here`, requests under other names than this machine's
    own are refused."""
    routes = [
        Route("/", page),
        Route("/page.css", style),
        Route("/live.js", script),
        Route("/api/runs", runs),
        Route("/api/run/{experiment}/{settings}/{seeds}", run),
        Route("/api/compare", compare),
        Route("/api/figures", figures),
        Route("/api/figure/{id}/{preset}", figure),
        Route("/told/{paper}/{preset}", told),
        Route("/reports/{name}/{file}", report),
        Route("/reports/{name}/figures/{file}", picture),
    ]
    guards = [
        Middleware(Guarded),
        *([Middleware(TrustedHostMiddleware, allowed_hosts=LOOPBACK)] if only_here else []),
    ]
    made = Starlette(
        routes=routes, middleware=guards, exception_handlers={watch.Missing: _missing, Exception: _broken}
    )
    made.state.root = root
    return made


class Guarded:
    """Gives every answer, errors too, the usual headers with the security policy; a header that the answer
    has is kept."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        async def guarded(message):
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _headers().items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, guarded if scope["type"] == "http" else send)


def page(request: Request) -> Response:
    return _answer((HERE / "live.html").read_bytes(), "text/html; charset=utf-8")


def style(request: Request) -> Response:
    return _answer((REPORT / "page.css").read_bytes(), "text/css")


def script(request: Request) -> Response:
    return _answer(_script(), "text/javascript")


@cache
def _script() -> bytes:
    return scripts(str(HERE / "live.js")).encode()


def runs(request: Request) -> Response:
    root = request.app.state.root
    return _json({"root": str(root), "runs": watch.runs_in(root), "reports": watch.reports(root)})


def run(request: Request) -> Response:
    block = watch.block_of(request.app.state.root, **request.path_params)
    found = watch.trajectory(block)
    chart = curves.drawn({block.experiment.name: found}) if found is not None else None
    return _json(
        {
            "settings": watch.settings_of(block),
            "finished": block.finished,
            "records": 0 if found is None else found.sizes["record"],
            "chart": chart,
        }
    )


def compare(request: Request) -> Response:
    """Answer with the settings in which runs of one experiment differ, and their curves in one chart."""
    names = request.query_params.getlist("run")
    if not 2 <= len(names) <= 8 or any(name.count("/") != 2 for name in names):
        raise watch.Missing("compare takes two to eight runs")
    found = [watch.block_of(request.app.state.root, *name.split("/")) for name in names]
    if len({block.experiment.name for block in found}) > 1:
        raise watch.Missing("only runs of the same experiment can be compared")
    apart = watch.differing([watch.settings_of(block) for block in found])
    labels = [_label(n, block, apart) for n, block in enumerate(found)]
    there = {
        label: run for label, block in zip(labels, found) if (run := watch.trajectory(block)) is not None
    }
    chart = curves.drawn(there) if there else None
    return _json({"labels": labels, "differing": apart, "chart": chart})


def _label(n: int, block, apart: dict[str, list[str]]) -> str:
    told = ", ".join(f"{path}={values[n]}" for path, values in list(apart.items())[:3])
    return f"{n + 1}. {told or 'the same settings'} (seeds {block.first}-{block.last - 1})"


def figures(request: Request) -> Response:
    """Answer with the figures and the papers' pages that can be made from what is stored."""
    root = request.app.state.root
    return _json({"figures": watch.figures_ready(root), "pages": watch.pages_ready(root)})


def figure(request: Request) -> Response:
    from stagewise.lab.judge.ledger import experiments_of
    from stagewise.lab.report import draw
    from stagewise.lab.store.run import stored_runs

    root, preset = request.app.state.root, request.path_params["preset"]
    chosen = watch.figures().get(request.path_params["id"])
    if chosen is None or preset not in PRESETS or not watch.ready(chosen, preset, root):
        raise watch.Missing("that figure cannot be drawn from what is stored")
    return _json(draw(chosen, preset, stored_runs(experiments_of(chosen.needs_at(preset)), root)))


def told(request: Request) -> Response:
    """A paper's page, as in the report, made now from what is stored."""
    from stagewise.lab.reproduction import page as page_of

    name, preset, root = request.path_params["paper"], request.path_params["preset"], request.app.state.root
    if (
        name not in watch.catalogue.papers()
        or preset not in PRESETS
        or not watch.page_ready(name, preset, root)
    ):
        raise watch.Missing("that page cannot be told from what is stored")
    return Response(
        page_of(name, preset, root),
        media_type="text/html; charset=utf-8",
        headers={"Content-Security-Policy": REPORT_POLICY},
    )


def report(request: Request) -> Response:
    return _file(request, request.path_params["name"], request.path_params["file"])


def picture(request: Request) -> Response:
    return _file(request, request.path_params["name"], "figures", request.path_params["file"])


def _file(request: Request, *parts: str) -> Response:
    path = watch.inside(request.app.state.root, "reports", *parts)
    if path.suffix not in KINDS or not path.is_file():
        raise watch.Missing("no such file in the reports")
    return FileResponse(
        path, media_type=KINDS[path.suffix], headers={"Content-Security-Policy": REPORT_POLICY}
    )


def _missing(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, status_code=404)


def _broken(request: Request, error: Exception) -> Response:
    return JSONResponse(
        {"error": f"that cannot be shown: {type(error).__name__}"}, status_code=500, headers=_headers()
    )


def _json(value) -> Response:
    # JSON is written in ASCII, because names may hold characters that UTF-8 cannot encode.
    return Response(json.dumps(value, allow_nan=False), media_type="application/json")


def _answer(content: bytes, kind: str) -> Response:
    return Response(content, media_type=kind)


def _headers() -> dict[str, str]:
    return {
        "Content-Security-Policy": POLICY,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }
