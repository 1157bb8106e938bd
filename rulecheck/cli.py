"""The command line. Commands import what they use, so that ``--help`` answers at once."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rulecheck import __version__, terminal
from rulecheck.config import (
    BACKENDS,
    ROUNDINGS,
    cache_folder,
    default_paths,
    find_rule_files,
    load,
)
from rulecheck.errors import UserError
from rulecheck.report import FORMATS, REPLAY_FORMATS, Style, render, render_replay

if TYPE_CHECKING:
    from rulecheck.records import Settings


def _show_help(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """Print as results are printed: click fails if the reader has gone or the disk is full."""
    if wanted and not context.resilient_parsing:
        terminal.write(context.get_help() + "\n")
        context.exit()


def _show_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        terminal.write(f"rulecheck {__version__}\n")
        context.exit()


class _BackendName(click.Choice[str]):
    """A choice that tells where to look if the backend is not there."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        """The usual message, and what to do."""
        told = super().get_invalid_choice_message(value, ctx)
        return f"{told} Run 'rulecheck doctor' to see which backends work here, and why not."


_help = click.help_option("-h", "--help", callback=_show_help)
_color = click.option(
    "--color",
    type=click.Choice(terminal.COLORS),
    default="auto",
    help="Default: NO_COLOR, FORCE_COLOR, then whether it is a terminal.",
)
_rounding = click.option(
    "--rounding",
    type=click.Choice(ROUNDINGS),
    envvar="RULECHECK_ROUNDING",
    show_envvar=True,
    help="Whether a rounding that is skipped is a warning (default) or an error.",
)
_isolated = click.option("--isolated", is_flag=True, help="Read no configuration file.")
_config = click.option(
    "--config", "config_file", metavar="FILE", help="Read this configuration file."
)


@click.group(context_settings={"max_content_width": 100})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
@_help
def cli() -> None:
    """Verify the cuBLASLt rewrite rules of e-graph tensor compilers.

    Exit codes: 0 all fine; 1 a rule is wrong; 2 usage or configuration; 3 internal error;
    4 nothing wrong, but something inconclusive, or nothing was checked.
    """


@cli.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--rule", metavar="NAME", help="Check only the rule of this name.")
@click.option(
    "--dialect",
    metavar="NAME",
    envvar="RULECHECK_DIALECT",
    show_envvar=True,
    help="Default: luminal.",
)
@click.option(
    "--backend",
    type=_BackendName(BACKENDS),
    envvar="RULECHECK_BACKEND",
    show_envvar=True,
    help="Default: cpu.",
)
@_rounding
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    default="text",
    envvar="RULECHECK_FORMAT",
    show_envvar=True,
)
@click.option(
    "--output", "outputs", metavar="FORMAT=PATH", multiple=True, help="Also write this report."
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    envvar="RULECHECK_JOBS",
    show_envvar=True,
    help="Rules judged at once. Default: one per core.",
)
@click.option(
    "--no-cache",
    is_flag=True,
    envvar="RULECHECK_NO_CACHE",
    show_envvar=True,
    help="Judge everything anew; keep nothing in .rulecheck_cache.",
)
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever is found.")
@click.option("--allow-empty", is_flag=True, help="Exit 0 if there is no rule to check.")
@click.option("-q", "--quiet", is_flag=True, help="Print findings only.")
@_config
@_isolated
@_color
@_help
@click.pass_obj
def check(
    argv: tuple[str, ...],
    *,
    paths: tuple[str, ...],
    rule: str | None,
    dialect: str | None,
    backend: str | None,
    rounding: str | None,
    form: str,
    outputs: tuple[str, ...],
    jobs: int | None,
    no_cache: bool,
    exit_zero: bool,
    allow_empty: bool,
    quiet: bool,
    config_file: str | None,
    isolated: bool,
    color: str,
) -> int:
    """Judge every rule of files and folders.

    Without PATH: the paths of the nearest rulecheck.toml or [tool.rulecheck] in pyproject.toml,
    else the folder rules/.
    """
    targets = _parse_outputs(outputs)
    settings = _settings(
        paths=paths,
        rule=rule,
        dialect=dialect,
        backend=backend,
        rounding=rounding,
        jobs=jobs,
        no_cache=no_cache,
        config_file=config_file,
        isolated=isolated,
    )
    import msgspec

    from rulecheck.campaign import check as run
    from rulecheck.severity import exit_code

    progress = terminal.Progress(quiet=quiet)
    try:
        report = msgspec.structs.replace(run(settings, progress), argv=argv)
    finally:
        progress.clear()
    code = exit_code(report, allow_empty=allow_empty, exit_zero=exit_zero)
    plain = Style(quiet=quiet)
    for name, path in targets:
        _write_file(path, render(name, report, plain))
    terminal.write(render(form, report, _style(color, quiet=quiet)))
    return code


@cli.command()
@click.argument("subject", metavar="TOKEN|FILE")
@_rounding
@click.option("--format", "form", type=click.Choice(list(REPLAY_FORMATS)), default="text")
@_config
@_isolated
@_color
@_help
def replay(
    *,
    subject: str,
    rounding: str | None,
    form: str,
    config_file: str | None,
    isolated: bool,
    color: str,
) -> int:
    """Run one case again and show everything.

    TOKEN is what a finding's replay line gives; FILE holds a case as JSON. The exit code is that
    of the case's verdict.
    """
    from rulecheck.campaign import replay as run
    from rulecheck.records import Settings
    from rulecheck.severity import severity, worst_exit

    config = load(Path.cwd(), config_file, isolated=isolated)
    strict = (rounding or config.rounding) == "strict"
    result = run(subject, Settings(paths=(), strict_rounding=strict))
    terminal.write(render_replay(form, result, _style(color)))
    return worst_exit([severity(result.evidence.verdict, strict_rounding=strict)])


@cli.command()
@click.argument("subject", metavar="[CODE|VERDICT]", required=False)
@click.option("--all", "everything", is_flag=True, help="Explain every code.")
@_help
def explain(subject: str | None, everything: bool) -> int:
    """Explain a diagnostic code or a verdict.

    What it means, why it matters, how to repair it. Without an argument: the list of codes.
    """
    from rulecheck import explain as table

    width = min(terminal.output_width(), 88)
    if everything:
        parts = [table.show(entry, width) for entry in table.ENTRIES.values()]
    elif subject is None:
        parts = ["".join(f"{code}  {entry.title}\n" for code, entry in table.ENTRIES.items())]
    else:
        parts = [table.show(entry, width) for entry in table.find(subject)]
    terminal.write("\n".join(parts))
    return 0


@cli.command()
@_help
def doctor() -> int:
    """Say what works on this machine.

    Versions, canaries of the engine and of the numerics, backends, and why the rest does not
    work. The exit code is 4 if `rulecheck check` cannot work here.
    """
    from rulecheck import doctor as examination
    from rulecheck.campaign import probe
    from rulecheck.severity import ExitCode

    checks = examination.examine(probe)
    terminal.write(examination.show(checks))
    return ExitCode.OK if examination.works(checks) else ExitCode.INCONCLUSIVE


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code. No traceback reaches a user."""
    args = tuple(sys.argv[1:] if argv is None else argv)
    if "_RULECHECK_COMPLETE" in os.environ:  # a shell asks for completions; click answers and exits
        cli.main(args, prog_name="rulecheck")
    # A CI job that is cancelled: leave through the context managers, so that no child is left.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        # Not cli.main: click takes any broken pipe, a child's too, for a silent exit code 1.
        with cli.make_context("rulecheck", list(args), obj=("rulecheck", *args)) as context:
            return int(cli.invoke(context) or 0)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 -- the front door
        return _fail(error)


def _fail(error: Exception | KeyboardInterrupt) -> int:
    """Say what ended the run and return its exit code."""
    code = 3
    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case UserError():
            code, message = 2, f"rulecheck: error: {error}"
        case click.ClickException():
            error.show()
            return 2
        case click.Abort() | KeyboardInterrupt():
            code, message = 130, "rulecheck: interrupted; nothing is reported"
        case _:
            message = _internal(error)
    terminal.complain(message)
    return code


def _internal(error: BaseException) -> str:
    """Describe a bug of ours: type, message, place, and what to do with it."""
    if os.environ.get("RULECHECK_DEBUG") == "1":
        return "".join(traceback.format_exception(error))
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(_HERE)]
    frame = (own or frames)[-1]
    place = Path(frame.filename)
    name = place.relative_to(_HERE.parent) if place.is_relative_to(_HERE) else place.name
    return (
        f"rulecheck: internal error: {type(error).__name__}: {error}\n"
        f"  at {name}:{frame.lineno} in {frame.name}\n"
        "  This is a defect of rulecheck and says nothing about the rules. Please report it\n"
        "  to the project with the rule file, the command line and what `rulecheck doctor` says.\n"
        "  RULECHECK_DEBUG=1 shows the traceback."
    )


_HERE = Path(__file__).parent


def _style(color: str, *, quiet: bool = False) -> Style:
    wanted = terminal.wants_color(color, sys.stdout, os.environ)
    return Style(color=wanted, width=terminal.output_width(), quiet=quiet)


def _settings(
    *,
    paths: tuple[str, ...],
    rule: str | None,
    dialect: str | None,
    backend: str | None,
    rounding: str | None,
    jobs: int | None,
    no_cache: bool,
    config_file: str | None,
    isolated: bool,
) -> Settings:
    """Combine the command line (and its environment), the configuration file and the defaults."""
    if config_file is not None and isolated:
        raise click.UsageError("--config and --isolated exclude each other.")
    from rulecheck.records import Settings

    config = load(Path.cwd(), config_file, isolated=isolated)
    return Settings(
        paths=find_rule_files(paths or default_paths(config)),
        rule=rule,
        dialect=dialect or config.dialect or "luminal",
        backend=backend or config.backend or "cpu",
        strict_rounding=(rounding or config.rounding) == "strict",
        jobs=jobs or config.jobs or 0,
        cache="" if no_cache else cache_folder(config, Path.cwd()),
    )


def _parse_outputs(outputs: tuple[str, ...]) -> list[tuple[str, Path]]:
    """Check every --output before anything runs: a long run must not end in a typing error."""
    targets: list[tuple[str, Path]] = []
    for output in outputs:
        name, equals, target = output.partition("=")
        if not equals or not target or name not in FORMATS:
            known = ", ".join(FORMATS)
            raise click.UsageError(f"--output {output!r}: write FORMAT=PATH; formats: {known}.")
        path = Path(target)
        if path.is_dir() or not path.parent.is_dir():
            what = "is a folder" if path.is_dir() else "lies in a folder that does not exist"
            raise click.UsageError(f"--output {output!r}: {target} {what}.")
        if path in [other for _, other in targets]:
            raise click.UsageError(f"--output {output!r}: {target} is named twice.")
        targets.append((name, path))
    return targets


def _write_file(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", "name a file that can be written") from error
