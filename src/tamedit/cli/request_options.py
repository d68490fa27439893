"""The choices of a `TrainRequest` as options: names, words, defaults and help texts are the request's own."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand

from tamedit.cli.flags import flag, in_flags
from tamedit.privacy.settings import Privacy
from tamedit.runs.request import OF_PRIVATE_RUNS, RENAMED, TrainRequest

CHOICES = {name: field for name, field in TrainRequest.model_fields.items() if name not in ("privacy", "reading")}
CHOICES |= Privacy.model_fields
_FLAGS = {name: flag(name) for name in CHOICES}


def asks_for(*names: str, **defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the options of these choices; what was given of them, and how to read a table, reaches it as `chosen`.

    `TrainRequest.flat(**chosen)` is the request. `defaults` are the command's own; `...` makes an option required.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def asked(context: typer.Context, reading: dict[str, Any], **arguments: Any) -> None:
            every = {name: arguments.pop(name) for name in names}
            given = {name: value for name, value in every.items() if name in defaults or _was_given(context, name)}
            command(chosen={"reading": reading, **given}, **arguments)

        kind = inspect.Parameter.KEYWORD_ONLY
        parameters = [inspect.Parameter("context", kind, annotation=typer.Context)]
        for name, own in inspect.signature(command).parameters.items():
            if name != "chosen":
                parameters.append(own.replace(kind=kind))
                continue
            parameters += [_option(one, defaults.get(one, CHOICES[one].default)) for one in names]
            parameters.append(inspect.Parameter("reading", kind))
        asked.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return asked

    return decorate


class KnowsOldNames(TyperCommand):
    """A command that still takes the earlier names of its options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        old = {flag(before): flag(now) for before, now in RENAMED.items()}
        split = [argument.partition("=") for argument in args]
        return super().parse_args(ctx, [old.get(name, name) + sign + value for name, sign, value in split])


def _was_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _option(name: str, default: Any) -> inspect.Parameter:
    field = CHOICES[name]
    limits = {"ge": "min", "le": "max"}
    shown = typer.Option(
        flag(name),
        **{limits[kind]: getattr(one, kind) for one in field.metadata for kind in limits if hasattr(one, kind)},
        help=in_flags(field.description or "", _FLAGS),
        rich_help_panel="Privacy" if name in Privacy.model_fields or name in OF_PRIVATE_RUNS else None,
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is ... else default,
        annotation=Annotated[_typed(field.annotation, required=default is ...), shown],
    )


def _typed(annotation: Any, required: bool) -> Any:
    """What typer can read: words of a list, numbers, paths and flags as they are, everything else as a text."""
    arms = [annotation] if get_origin(annotation) is Literal else [*(get_args(annotation) or [annotation])]
    kinds = [arm for arm in arms if arm is not NoneType]
    plain = kinds[0] if kinds[0] in (int, float, bool, Path) or get_origin(kinds[0]) is Literal else str
    return plain if required or (NoneType not in arms and annotation is not Any) else plain | None
