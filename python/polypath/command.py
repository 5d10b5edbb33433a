"""The command `polypath`. Ctrl-C ends it silently until the command handles signals."""

import signal


def main() -> None:
    """The entry point; ends the process."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from polypath import cli

    cli.main()
