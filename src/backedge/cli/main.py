"""The installed command `backedge`. Everything is imported inside: Ctrl-C ends it with a sentence from the first moment."""

import sys


def entry() -> None:
    """Run the command. Errors are printed as one sentence, not as a traceback."""
    try:
        from backedge.cli.running import code_of

        code = code_of()
    except KeyboardInterrupt:
        print("backedge: interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    entry()
