"""How `--help` looks: two aligned columns, no boxes, readable in a pipe and at 80 columns."""

import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

_INDENT = 2
_WIDEST_LABEL = 26
_WIDEST_LINE = 100


class HelpText:
    """A help formatter for cyclopts."""

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
        """Print one panel: the commands, the arguments or the options."""
        rows = [(_label(entry), _text(entry)) for entry in panel.entries if _label(entry)]
        if not rows:
            return
        title = {"Parameters": "Options"}.get(str(panel.title), str(panel.title))
        lines = [f"{title}:"]
        width = min(max(len(label) for label, _ in rows), _WIDEST_LABEL) + 2
        room = max(20, min(console.width, _WIDEST_LINE) - _INDENT - width)
        for label, text in rows:
            wrapped = textwrap.wrap(text, room) or [""]
            first = f"{label:<{width}}"
            if len(label) + 2 > width:
                lines.append(" " * _INDENT + label)
                first = " " * width
            lines.append(" " * _INDENT + first + wrapped[0])
            lines += [" " * (_INDENT + width) + line for line in wrapped[1:]]
        _print(console, "\n".join(line.rstrip() for line in lines) + "\n")

    def render_usage(self, console: "Console", options: "ConsoleOptions", usage: Any) -> None:
        """Print the usage line."""
        if usage:
            _print(console, f"Usage: {_plain(usage).strip().removeprefix('Usage: ')}\n")

    def render_description(self, console: "Console", options: "ConsoleOptions", description: Any) -> None:
        """Print what the command does, and its examples."""
        text = _plain(description).strip("\n")
        width = min(console.width, _WIDEST_LINE)
        blocks = [_flowed(block, width) for block in text.split("\n\n") if block.strip()]
        if blocks:
            _print(console, "\n\n".join(blocks) + "\n")


def _flowed(block: str, width: int) -> str:
    """A paragraph wrapped to the width; one with indented lines is laid out already."""
    if any(line.startswith(" ") for line in block.splitlines()):
        return block
    return textwrap.fill(" ".join(block.split()), width)


def _label(entry: "HelpEntry") -> str:
    return ", ".join(entry.display_labels_with_metavar) if entry.metavar else ", ".join(entry.display_labels)


def _text(entry: "HelpEntry") -> str:
    parts = [" ".join(_plain(entry.description).split())]
    if entry.choices:
        parts.append(f"[{', '.join(entry.choices)}]")
    if entry.default not in (None, "", "()", '""', "False", "None"):
        parts.append(f"[default: {entry.default}]")
    return " ".join(part for part in parts if part)


def _plain(value: Any) -> str:
    """The text of what may be a rich renderable."""
    if value is None:
        return ""
    if hasattr(value, "plain"):
        return str(value.plain)
    if hasattr(value, "__rich_console__"):
        from rich.console import Console

        console = Console(width=10_000, no_color=True, force_terminal=False)
        with console.capture() as capture:
            console.print(value, end="", markup=False, highlight=False)
        return "\n".join(line.rstrip() for line in capture.get().splitlines())
    return str(value)


def _print(console: "Console", text: str) -> None:
    # Not through rich: it would wrap what is already wrapped.
    console.file.write(text + "\n")
