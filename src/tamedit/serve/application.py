"""The application: every address, what it takes and what it gives."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

import tamedit
from tamedit.serve import answers, budgets
from tamedit.serve.doors import Doors
from tamedit.serve.messages import (
    AccountRequest,
    CardAnswer,
    Drawn,
    ForecastRequest,
    GenerateRequest,
    Health,
    Homes,
    ImputeRequest,
    Measured,
    ModelAnswer,
    PlanAnswer,
    PlanRequest,
    Points,
    Problem,
    Spent,
    TableAnswer,
)
from tamedit.serve.refusals import add_refusals
from tamedit.serve.served import Served
from tamedit.serve.server_settings import Settings
from tamedit.serve.uploads import table_answer
from tamedit.serve.workload import Workload

TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": words}
    for status, words in ((413, "too large"), (422, "not possible"), (503, "busy"))
}
TABLE = {"content": {"text/csv": {"schema": {"type": "string"}}}, "required": True}


def make_application(served: Served, settings: Settings) -> Doors:
    """The server of one model, with its checks around it."""
    work = Workload(settings.computations, settings.queue)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        work.close()

    app = FastAPI(
        title="TameDiT playground",
        version=tamedit.__version__,
        description="Every error is {error: one sentence, code: a word}. Nothing that is sent is kept.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    add_refusals(app)
    app.include_router(_api(served, settings, work))
    _add_pages(app)
    return Doors(app, settings)


def _api(served: Served, settings: Settings, work: Workload) -> APIRouter:
    api, model, told = APIRouter(prefix="/api", responses=ERRORS), served.model, budgets.measured()

    @api.get("/model", summary="What is served")
    async def facts() -> ModelAnswer:
        return served.answer(settings)

    @api.get("/card", summary="The privacy card in short")
    async def card() -> CardAnswer:
        return served.card

    @api.get("/health", summary="How busy the server is")
    async def health() -> Health:
        return Health(present=work.present, computing=work.computing, finished=work.finished, cancelled=work.cancelled)

    @api.get("/sample", summary="A simulated series to play with")
    async def sample(request: Request, seed: Annotated[int, Query(ge=0, lt=2**31)] = 0) -> Points:
        return await work.run(request.receive, lambda check: answers.sample_series(model, seed))

    @api.post("/read", summary="A CSV as the model reads it", openapi_extra={"requestBody": TABLE})
    async def read(
        request: Request,
        name: Annotated[str, Query(max_length=200)] = "the table",
        meter: Annotated[str | None, Query(max_length=200)] = None,
        column: Annotated[str | None, Query(max_length=200)] = None,
    ) -> TableAnswer:
        content = await request.body()
        return await work.run(request.receive, lambda check: table_answer(model, content, name, meter, column))

    @api.post("/impute", summary="Fill gaps, and hidden rows, with bands and paths")
    async def impute(request: Request, asked: ImputeRequest) -> Drawn:
        return await work.run(request.receive, lambda check: answers.imputed(model, asked, check))

    @api.post("/forecast", summary="The next steps, with bands and paths")
    async def forecast(request: Request, asked: ForecastRequest) -> Drawn:
        return await work.run(request.receive, lambda check: answers.forecast(model, asked, check))

    @api.post("/generate", summary="Synthetic homes")
    async def generate(request: Request, asked: GenerateRequest) -> Homes:
        return await work.run(request.receive, lambda check: answers.generated(model, asked, check))

    @api.post("/account", summary="ε of a mechanism")
    async def account(request: Request, asked: AccountRequest) -> Spent:
        return await work.run(request.receive, lambda check: budgets.spent(asked))

    @api.post("/plan", summary="What an ε means: noise, steps, and every unit's ε")
    async def plan(request: Request, asked: PlanRequest) -> PlanAnswer:
        return await work.run(request.receive, lambda check: budgets.planned(asked, check))

    @api.get("/measured", summary="What measured private runs reached")
    async def measured() -> Measured:
        return told

    return api


def _add_pages(app: FastAPI) -> None:
    """The page and the reference. Only files that are known by name are given out."""
    folder = files("tamedit") / "serve" / "page"
    content = {one.name: one.read_bytes() for one in folder.iterdir() if one.name.rpartition(".")[2] in TYPES}
    environment = Environment(
        loader=PackageLoader("tamedit", "serve/page"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def page(name: str) -> Response:
        return Response(content[name], media_type=f"{TYPES[name.rpartition('.')[2]]}; charset=utf-8")

    def giver(name: str) -> Any:
        async def give() -> Response:
            return page(name)

        return give

    @app.get("/api/docs", include_in_schema=False)
    async def reference() -> HTMLResponse:
        schema = app.openapi()
        return HTMLResponse(environment.get_template("reference.html.j2").render(schema=schema))

    app.add_api_route("/", giver("index.html"), include_in_schema=False)
    for name in content:
        app.add_api_route(f"/{name}", giver(name), include_in_schema=False)
